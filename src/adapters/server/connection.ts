import { Pool } from "undici";
import type { Secret } from "../../platform/crypto/secret.ts";
import { ERROR_STATUS, type ErrorCode, FlowError, messageOf } from "../../schema/words/errors.ts";
import { isJsonObject, type Json, type JsonObject, own } from "../../schema/words/json.ts";

/** One call of the server's API. */
export interface ServerCall {
  method: "GET" | "POST" | "PUT";
  /** Below the server's address, with its query. */
  path: string;
  /** JSON text. */
  body?: string;
  idempotencyKey?: string;
  traceparent?: string;
  /** In whose name: the session of a user, by a gateway. */
  session?: { tokenSha256: string; address: string | undefined };
  /** Longest silence before the answer's head, and within its body. */
  timeoutMs: number;
  signal: AbortSignal;
}

/** What the server answered, whatever its status. */
export interface ServerReply {
  status: number;
  /** Undefined for invalid JSON. */
  body: Json | undefined;
  retryAfterMs?: number;
}

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
  /** Connections at a time; further calls wait for one. */
  connections: number;
  /** Longest time to connect. Default 5 s. */
  connectMs?: number;
}

const CONNECT_MS = 5_000;
/** Shorter than the 5 s after which Node closes a connection that idles: a call that meets the closing would be lost. */
const KEEP_ALIVE_MS = 4_000;

/** Opens nothing yet: connections are made when they are needed. */
export function connectServer({ url, token, connections, connectMs = CONNECT_MS }: ServerAddress): ServerConnection {
  const { origin, pathname } = new URL(url);
  const prefix = pathname.replace(/\/$/, "");
  const pool = new Pool(origin, {
    connections,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connect: { timeout: connectMs },
  });
  const always = token === undefined ? {} : { authorization: `Bearer ${token.reveal()}` };
  return {
    async call({ method, path, body, idempotencyKey, traceparent, session, timeoutMs, signal }) {
      try {
        const answer = await pool.request({
          method,
          path: `${prefix}${path}`,
          headers: {
            ...always,
            ...(body !== undefined && { "content-type": "application/json" }),
            ...(idempotencyKey !== undefined && { "idempotency-key": idempotencyKey }),
            ...(traceparent !== undefined && { traceparent }),
            ...(session !== undefined && { "x-flow-session": session.tokenSha256 }),
            ...(session?.address !== undefined && { "x-flow-address": session.address }),
          },
          ...(body !== undefined && { body }),
          headersTimeout: timeoutMs,
          bodyTimeout: timeoutMs,
          signal,
        });
        const text = await answer.body.text();
        const retryAfterMs = seconds(answer.headers["retry-after"]);
        return { status: answer.statusCode, body: parse(text), ...(retryAfterMs !== undefined && { retryAfterMs }) };
      } catch (cause) {
        signal.throwIfAborted();
        throw new FlowError("SERVER_UNREACHABLE", `The server at ${url} did not answer: ${reason(cause)}`, { cause });
      }
    },
    close: () => pool.destroy(),
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

/** What the server's error says, or what can be said without it. */
export function refusal({ status, body }: ServerReply): FlowError {
  const fields: JsonObject = isJsonObject(body) ? body : {};
  const error = own(fields, "error");
  const code = own(fields, "code");
  const detail = own(fields, "detail") as Json | undefined;
  const message = typeof error === "string" ? error : `The server answered with status ${status}`;
  const known = typeof code === "string" && Object.hasOwn(ERROR_STATUS, code) ? (code as ErrorCode) : fallback(status);
  return new FlowError(known, message, detail === undefined ? {} : { detail });
}

function fallback(status: number): ErrorCode {
  if (status === 404) return "NOT_FOUND";
  if (status === 409) return "CONFLICT";
  if (status === 413) return "TOO_LARGE";
  return status >= 500 ? "UNAVAILABLE" : "INVALID_INPUT";
}

function parse(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

/** `Retry-After` in seconds; flow's servers never send the other form, a date. */
function seconds(header: string | string[] | undefined): number | undefined {
  return typeof header === "string" && /^\d{1,5}$/.test(header) ? Number(header) * 1_000 : undefined;
}

/** The innermost cause says what happened: `connect ECONNREFUSED 127.0.0.1:8082`. */
function reason(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  if (cause instanceof AggregateError && cause.errors.length > 0) return messageOf(cause.errors[0]);
  return cause.cause instanceof Error ? reason(cause.cause) : cause.message;
}
