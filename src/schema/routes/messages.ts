import { contract } from "./contract.ts";

/*
 * The worker connection (docs/worker-protocol.md): one HTTP connection that was upgraded, on which a worker's frequent calls are
 * messages. Each kind of call is one of the routes, and is answered as that route answers it.
 */

/** What a request asks for in its `Upgrade` header. */
export const CONNECTION_PROTOCOL = "flow-worker/1";

/** The worker connection (Worker protocol). */
export const CONNECTION_ROUTES = {
  open: contract({
    method: "get",
    path: "/api/worker/connection",
    summary: `Turns the connection into a worker connection (\`Upgrade: ${CONNECTION_PROTOCOL}\`, answered with 101): calls as messages. 426 without that header`,
    access: "worker",
    refusals: [426],
  }),
} as const;

/** The kind of a message: its first byte after the length. */
export const MESSAGE = {
  claim: 1,
  report: 2,
  heartbeat: 3,
  /** The worker does not wait for the answer any more. */
  cancel: 16,
  ping: 17,
  answer: 128,
  pong: 129,
  /** The server stops: no new calls here. */
  leave: 130,
  /** The last one: why the server closes the connection. */
  close: 131,
} as const;

/** The route of each kind of call: all of them take `POST`. */
export const MESSAGE_PATHS: { readonly [kind: number]: string } = {
  [MESSAGE.claim]: "/api/commands/claim",
  [MESSAGE.report]: "/api/events/batch",
  [MESSAGE.heartbeat]: "/api/worker/pool/heartbeat",
};

/** What a call may say besides its body: headers of its route. Others are ignored. */
export const MESSAGE_FIELDS: ReadonlySet<string> = new Set([
  "idempotency-key",
  "traceparent",
  "x-flow-claim",
  "x-flow-report-bytes",
  "x-flow-unanswered",
  "x-flow-worker",
]);

/** Why a server closes a worker connection. */
export const CLOSE_REASONS = {
  malformed: "a message was not as it must be",
  unknown_kind: "a message was of a kind that this server does not know",
  too_long: "a message was announced that is longer than any may be",
  id_in_use: "a call had the id of one that is not answered yet",
  idle: "nothing came for too long",
  slow: "a message did not come to its end, or answers were not read",
  unauthenticated: "the token is not taken any more",
  stopping: "the server stops",
} as const;

/** One of {@link CLOSE_REASONS}. */
export type CloseReason = keyof typeof CLOSE_REASONS;

/** The longest fields of a message, bytes. */
export const FIELDS_BYTES_MAX = 8 * 1024;
