import { buildConnector, Pool } from "undici";
import type { Secret } from "../../platform/crypto/secret.ts";
import { answerOf, type Place, parseReply, type ServerReply, transportReason } from "../../schema/routes/answer.ts";
import type { AnswerOf, RouteContract } from "../../schema/routes/contract.ts";
import { type RouteInput, type RouteRequest, requestOf } from "../../schema/routes/request.ts";
import { REPORT_BYTES_HEADER, UNANSWERED_HEADER } from "../../schema/routes/workers.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject, own } from "../../schema/words/json.ts";

/** How a route is called, besides what its contract says. */
export interface CallOptions {
  idempotencyKey?: string;
  /** Earlier tries of a report that ended without an answer. */
  unanswered?: number;
  /** Length of a report's JSON, where attachments follow it. */
  reportBytes?: number;
  traceparent?: string;
  /** The secret of the claim in whose name a worker calls. */
  claim?: string;
  /** In whose name: the session of a user, by a gateway. */
  session?: { tokenSha256: string; address: string | undefined };
  /** The client for whom a gateway calls, where it names no session. */
  address?: string;
  /** Longest silence before the answer's head, and within its body. */
  timeoutMs: number;
  signal: AbortSignal;
}

/** One call of the server's API, as it travels. */
export interface ServerCall extends RouteRequest, CallOptions {}

/** Calls to one server over connections that are kept. */
export interface ServerConnection {
  /**
   * Rejects with the signal's reason when it aborts, with `FlowError` SERVER_UNREACHABLE when there was no answer: whether the
   * server got the call is not known then.
   */
  call(call: ServerCall): Promise<ServerReply>;
  /** Ends at once, calls under way included. */
  close(): Promise<void>;
}

/** What a connection is made of. */
export interface ServerAddress {
  /** Without a slash at its end. */
  url: string;
  token: Secret | undefined;
  /** A unix socket of the server, tried before the address: a call costs a tenth to a quarter less CPU. Not with https. */
  socket?: string | undefined;
  /** Connections at a time; further calls wait for one. */
  connections: number;
  /** Longest time to connect. Default 5 s. */
  connectMs?: number;
  /** The secret that this worker was given when it registered last. */
  workerSecret?(): string | undefined;
}

const CONNECT_MS = 5_000;
/** Shorter than the 5 s after which Node closes a connection that idles: a call that meets the closing would be lost. */
const KEEP_ALIVE_MS = 4_000;

/** Opens nothing yet: connections are made when they are needed. */
export function connectServer(address: ServerAddress): ServerConnection {
  const { url, token, connections, connectMs = CONNECT_MS, workerSecret } = address;
  const { origin, pathname } = new URL(url);
  const prefix = pathname.replace(/\/$/, "");
  const pool = new Pool(origin, {
    connections,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connect: connectorOf(address, connectMs),
  });
  const always = token === undefined ? {} : { authorization: `Bearer ${token.reveal()}` };
  return {
    async call(call) {
      const { method, path, body, timeoutMs, signal } = call;
      try {
        const answer = await pool.request({
          method,
          path: `${prefix}${path}`,
          headers: { ...always, ...headersOf(call, workerSecret?.()) },
          ...(body !== undefined && { body }),
          headersTimeout: timeoutMs,
          bodyTimeout: timeoutMs,
          signal,
        });
        const text = await answer.body.text();
        const retryAfterMs = secondsOf(answer.headers["retry-after"]);
        return {
          status: answer.statusCode,
          body: parseReply(text),
          ...(retryAfterMs !== undefined && { retryAfterMs }),
        };
      } catch (cause) {
        signal.throwIfAborted();
        throw new FlowError("SERVER_UNREACHABLE", `The server at ${url} did not answer: ${transportReason(cause)}`, {
          cause,
        });
      }
    },
    close: () => pool.destroy(),
  };
}

/** A socket file that is gone, or whose server is, is no obstacle. */
function connectorOf({ url, socket }: ServerAddress, timeout: number): buildConnector.connector {
  const byAddress = buildConnector({ timeout });
  if (socket === undefined || !url.startsWith("http:")) return byAddress;
  const bySocket = buildConnector({ timeout, socketPath: socket });
  return (options, done) => {
    bySocket(options, (...made) => {
      if (made[0] === null) done(...made);
      else byAddress(options, done);
    });
  };
}

/** The headers of a call, without who calls. `worker`: the secret that this worker was given when it registered last. */
export function headersOf(call: ServerCall, worker: string | undefined): Record<string, string> {
  const { body, idempotencyKey, unanswered, reportBytes, traceparent, claim, session, address } = call;
  return {
    ...(body !== undefined && { "content-type": "application/json" }),
    ...(idempotencyKey !== undefined && { "idempotency-key": idempotencyKey }),
    ...(unanswered !== undefined && { [UNANSWERED_HEADER]: String(unanswered) }),
    ...(reportBytes !== undefined && { [REPORT_BYTES_HEADER]: String(reportBytes) }),
    ...(traceparent !== undefined && { traceparent }),
    ...(worker !== undefined && { "x-flow-worker": worker }),
    ...(claim !== undefined && { "x-flow-claim": claim }),
    ...(session !== undefined && { "x-flow-session": session.tokenSha256 }),
    ...defined({ "x-flow-address": session?.address ?? address }),
  };
}

/** The same connection, for calls in the name of a claim. */
export function inNameOf(connection: ServerConnection, secret: string | undefined): ServerConnection {
  if (secret === undefined) return connection;
  return { ...connection, call: (call) => connection.call({ ...call, claim: secret }) };
}

/** Calls a route once. Throws `FlowError` as `answerOf` and {@link ServerConnection.call} do, and the signal's reason. */
export async function callServer<C extends RouteContract>(
  connection: ServerConnection,
  contract: C,
  input: RouteInput<C> & CallOptions,
  place?: Place,
): Promise<AnswerOf<C>> {
  const request = requestOf(contract, input);
  return answerOf(contract, request, await connection.call(serverCall(request, input)), place);
}

/** The request with what the transport needs. */
export function serverCall(request: RouteRequest, options: CallOptions): ServerCall {
  const { idempotencyKey, traceparent, session, timeoutMs, signal } = options;
  return {
    ...request,
    ...(idempotencyKey !== undefined && { idempotencyKey }),
    ...(traceparent !== undefined && { traceparent }),
    ...(session !== undefined && { session }),
    timeoutMs,
    signal,
  };
}

/** The server cannot answer now, and nothing is wrong with the call: too many calls, overload, restart, a proxy's error. */
export function isUnavailable({ status, body }: ServerReply): boolean {
  // What the call is for may not be: a refusal that says of which playbook stays one. Else it is the worker's token.
  if (status === 403 && isJsonObject(body) && own(body, "detail") !== undefined) return false;
  // A token that is not accepted is an operator's affair, and may be put right while this process runs.
  if (status === 401 || status === 403 || status === 408 || status === 429) return true;
  // Errors of storing are reported to the caller.
  if (status === 507) return false;
  // Waiting does not help if the server lacks a key: the caller gets the error.
  if (isJsonObject(body) && own(body, "code") === "ENCRYPTION") return false;
  return status >= 500 || (status < 400 && body === undefined);
}

/** `Retry-After` in its form of seconds; the other one, a date, is used by no server of ours. */
export function secondsOf(header: unknown): number | undefined {
  return typeof header === "string" && /^\d{1,5}$/.test(header) ? Number(header) * 1_000 : undefined;
}
