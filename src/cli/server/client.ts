import * as v from "valibot";
import { ERROR_STATUS, type ErrorCode, FlowError, messageOf } from "../../schema/words/errors.ts";
import type { Json } from "../../schema/words/json.ts";
import { ErrorBody } from "../../schema/words/wire.ts";
import type { ServerTarget } from "./target.ts";

/** Default time limit of a call. The slowest one writes a document. */
const CALL_MS = 30_000;

/** One call of the API. */
export interface ServerRequest<S extends v.GenericSchema> {
  method: "GET" | "POST" | "PUT" | "DELETE";
  /** Below the server's address, its parts encoded. */
  path: string;
  body?: unknown;
  headers?: Readonly<Record<string, string>>;
  /** What the answer must look like. */
  answer: S;
  signal: AbortSignal;
  /** Longest that the call may take, in milliseconds; default 30 s. */
  timeoutMs?: number;
}

/**
 * Calls a server. Throws `FlowError`: with the code, message and detail of the server's own error; SERVER_UNREACHABLE when
 * it cannot be reached or is not a flow server; CANCELLED.
 */
export async function callServer<S extends v.GenericSchema>(
  target: ServerTarget,
  request: ServerRequest<S>,
): Promise<v.InferOutput<S>> {
  const { signal, timeoutMs = CALL_MS } = request;
  const limited = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  try {
    const response = await send(target, request, limited);
    const text = await response.text();
    const answer = response.ok ? v.safeParse(request.answer, parse(text)) : undefined;
    if (answer?.success === true) return answer.output;
    throw unexpectedAnswer(target, request, response, text);
  } catch (error) {
    throw error instanceof FlowError ? error : exchangeFailed(target, error, signal, timeoutMs);
  }
}

/**
 * Opens a stream of server-sent events and yields its bytes. The reader sets time limits through the signal.
 * Throws as {@link callServer} does, while reading too.
 */
export async function* openStream(
  target: ServerTarget,
  request: { path: string; headers: Readonly<Record<string, string>>; signal: AbortSignal },
): AsyncGenerator<Uint8Array> {
  const { signal } = request;
  const sent = { ...request, method: "GET" as const, headers: { ...request.headers, accept: "text/event-stream" } };
  try {
    const response = await send(target, sent, signal);
    if (!response.ok || response.headers.get("content-type")?.startsWith("text/event-stream") !== true) {
      throw unexpectedAnswer(target, sent, response, await response.text());
    }
    for await (const chunk of response.body ?? []) yield chunk;
  } catch (error) {
    throw error instanceof FlowError ? error : exchangeFailed(target, error, signal);
  }
}

/** A payload that is on its way. */
export interface OpenPayload {
  headers: Headers;
  /** To be read to the end, or ended. Throws as {@link callServer} does. */
  parts: AsyncGenerator<Uint8Array>;
}

/**
 * Opens a stored payload, which may have any content type. The reader ends it through the signal. Throws as
 * {@link callServer} does.
 */
export async function openPayload(
  target: ServerTarget,
  { path, signal }: { path: string; signal: AbortSignal },
): Promise<OpenPayload> {
  const sent = { method: "GET" as const, path, headers: { accept: "*/*" } };
  try {
    const response = await send(target, sent, signal);
    if (!response.ok) throw unexpectedAnswer(target, sent, response, await response.text());
    return { headers: response.headers, parts: partsOf(response, target, signal) };
  } catch (error) {
    throw error instanceof FlowError ? error : exchangeFailed(target, error, signal);
  }
}

async function* partsOf(response: Response, target: ServerTarget, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of response.body ?? []) yield chunk;
  } catch (error) {
    throw error instanceof FlowError ? error : exchangeFailed(target, error, signal);
  }
}

type SentRequest = Pick<ServerRequest<v.GenericSchema>, "method" | "path" | "body" | "headers">;

function send(
  target: ServerTarget,
  { method, path, body, headers }: SentRequest,
  signal: AbortSignal,
): Promise<Response> {
  return fetch(`${target.url}${pathAt(target, path)}`, {
    method,
    headers: {
      accept: "application/json",
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...(target.token === undefined ? {} : { authorization: `Bearer ${target.token.reveal()}` }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    // The token is for this address alone.
    redirect: "manual",
    signal,
  });
}

/** A gateway passes `/flow/…` on as the server's `/api/…`. */
function pathAt({ gateway }: ServerTarget, path: string): string {
  return gateway === "passes" ? path.replace(/^\/api\//, "/flow/") : path;
}

/** The error for an answer that is not the expected one. */
function unexpectedAnswer(
  target: ServerTarget,
  { method, path }: SentRequest,
  { ok, status }: Response,
  text: string,
): FlowError {
  const body = ok ? undefined : v.safeParse(ErrorBody, parse(text));
  if (body?.success === true) return serverError(body.output, status, target);
  const kind = target.gateway === undefined ? "server" : "gateway";
  const what = `${method} ${pathAt(target, path)} was answered with ${status}, not as a flow ${kind} answers`;
  const question = `Is ${target.url} (${target.origin}) a flow ${kind} of this version?`;
  return new FlowError("SERVER_UNREACHABLE", `${what}. ${question}`);
}

const ELSEWHERE = "'flow serve' starts one here; --server, FLOW_SERVER_URL or 'flow context use' choose another";
const OTHER_GATEWAY = "--context, or 'flow login --gateway URL', choose another";

/** Why the server cannot be reached, without the hint to choose another one: for a caller that waits for this one. */
export function unreachableReason({ message }: FlowError): string {
  return message.replace(`. ${ELSEWHERE}`, "").replace(`. ${OTHER_GATEWAY}`, "");
}

/** The error for a request without a complete answer. */
function exchangeFailed(target: ServerTarget, cause: unknown, signal: AbortSignal, timeoutMs = CALL_MS): FlowError {
  if (signal.aborted) {
    if (signal.reason instanceof FlowError && signal.reason.code !== "CANCELLED") return signal.reason;
    return new FlowError("CANCELLED", "interrupted while waiting for the server", { cause });
  }
  const { url, origin } = target;
  const [kind, hint] = target.gateway === undefined ? ["server", ELSEWHERE] : ["gateway", OTHER_GATEWAY];
  const what = `Cannot reach the ${kind} at ${url} (${origin})`;
  return new FlowError("SERVER_UNREACHABLE", `${what}: ${reason(cause, timeoutMs)}. ${hint}`, { cause });
}

/** `fetch` says "fetch failed"; why stands below it, once per address that was tried. */
function reason(error: unknown, timeoutMs: number): string {
  if (error instanceof DOMException && error.name === "TimeoutError") return `no answer within ${timeoutMs / 1_000} s`;
  if (error instanceof AggregateError && error.errors.length > 0) return reason(error.errors[0], timeoutMs);
  if (error instanceof Error && error.cause instanceof Error) return reason(error.cause, timeoutMs);
  return messageOf(error);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function serverError({ error, code, detail, request_id }: ErrorBody, status: number, target: ServerTarget): FlowError {
  const known: ErrorCode = Object.hasOwn(ERROR_STATUS, code) ? (code as ErrorCode) : "INTERNAL";
  const options = detail === undefined ? {} : { detail: detail as Json };
  if (target.gateway === "passes" && status === 401) {
    return new FlowError(known, `${target.url} refused the call: ${error}. 'flow login' opens a session`, options);
  }
  // What a user may not do is a matter of roles; a token would not help.
  if (target.gateway === undefined && (status === 401 || (status === 403 && code === "FORBIDDEN"))) {
    const hint = `Set FLOW_SERVER_TOKEN, or give the context its token: flow context add <name> --server ${target.url} --token-file FILE`;
    return new FlowError(known, `${target.url} refused the call: ${error}. ${hint}`, options);
  }
  const id = status >= 500 ? ` (request ${request_id})` : "";
  return new FlowError(known, `${error}${id}`, options);
}
