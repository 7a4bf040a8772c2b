import { answerOf, parseReply, refusalIn, strangeAnswer, transportReason } from "../../schema/routes/answer.ts";
import type { AnswerOf, RouteContract } from "../../schema/routes/contract.ts";
import { type RouteInput, type RouteRequest, requestOf } from "../../schema/routes/request.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject, own } from "../../schema/words/json.ts";
import type { ServerTarget } from "./target.ts";

/** Default time limit of a call. The slowest one writes a document. */
const CALL_MS = 30_000;

/** How a command calls a route, besides what its contract says. */
export interface CallOptions {
  headers?: Readonly<Record<string, string>>;
  signal: AbortSignal;
  /** Longest that the call may take, in milliseconds; default 30 s. */
  timeoutMs?: number;
}

/**
 * Calls a route of a server. Throws `FlowError`: with the code, message and detail of the server's own error;
 * SERVER_UNREACHABLE when it cannot be reached or is not a flow server; CANCELLED.
 */
export async function callServer<C extends RouteContract>(
  target: ServerTarget,
  contract: C,
  input: RouteInput<C> & CallOptions,
): Promise<AnswerOf<C>> {
  const { signal, timeoutMs = CALL_MS } = input;
  const request = requestTo(target, contract, input);
  try {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    const response = await send(target, request, { ...input, signal: limited });
    const body = parseReply(await response.text());
    if (!response.ok) throw refusalOf(target, request, response.status, body);
    return answerOf(contract, request, { status: response.status, body }, place(target));
  } catch (error) {
    throw error instanceof FlowError ? error : exchangeFailed(target, error, signal, timeoutMs);
  }
}

/** An answer that is on its way. */
export interface OpenAnswer {
  headers: Headers;
  /** To be read to the end, or ended. Throws as {@link callServer} does. */
  parts: AsyncGenerator<Uint8Array>;
}

/**
 * Opens an answer that is read as it comes: a stream, a payload of any content type. The reader sets time limits and ends it
 * through the signal. Throws as {@link callServer} does.
 */
export async function openAnswer<C extends RouteContract>(
  target: ServerTarget,
  contract: C,
  input: RouteInput<C> & CallOptions,
): Promise<OpenAnswer> {
  const { signal } = input;
  const { contentType = "*/*" } = contract;
  const request = requestTo(target, contract, input);
  try {
    const response = await send(target, request, { ...input, headers: { accept: contentType, ...input.headers } });
    const given = response.headers.get("content-type") ?? "";
    if (!response.ok) throw refusalOf(target, request, response.status, parseReply(await response.text()));
    if (contract.contentType === undefined || given.startsWith(contentType))
      return { headers: response.headers, parts: partsOf(response, target, signal) };
    await response.body?.cancel();
    throw strangeAnswer(request, response.status, place(target));
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

/** A gateway passes `/flow/…` on as the server's `/api/…`. */
function requestTo<C extends RouteContract>({ gateway }: ServerTarget, contract: C, input: RouteInput<C>) {
  const request = requestOf(contract, input);
  return gateway === "passes" ? { ...request, path: request.path.replace(/^\/api\//, "/flow/") } : request;
}

function send(
  { url, token }: ServerTarget,
  { method, path, body }: RouteRequest,
  { headers, signal }: CallOptions,
): Promise<Response> {
  return fetch(`${url}${path}`, {
    method,
    headers: {
      accept: "application/json",
      ...(body !== undefined && { "content-type": "application/json" }),
      ...(token !== undefined && { authorization: `Bearer ${token.reveal()}` }),
      ...headers,
    },
    ...defined({ body }),
    // The token is for this address alone.
    redirect: "manual",
    signal,
  });
}

function place({ url, origin, gateway }: ServerTarget) {
  return { kind: gateway === undefined ? "server" : "gateway", name: `${url} (${origin})` } as const;
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
  const { kind, name } = place(target);
  const hint = kind === "server" ? ELSEWHERE : OTHER_GATEWAY;
  const isLate = cause instanceof DOMException && cause.name === "TimeoutError";
  const why = isLate ? `no answer within ${timeoutMs / 1_000} s` : transportReason(cause);
  return new FlowError("SERVER_UNREACHABLE", `Cannot reach the ${kind} at ${name}: ${why}. ${hint}`, { cause });
}

/** The server's own error with what helps here: how to log in, by which id its log has the call. */
function refusalOf(target: ServerTarget, request: RouteRequest, status: number, body: ReturnType<typeof parseReply>) {
  const refusal = refusalIn({ status, body });
  if (refusal === undefined) return strangeAnswer(request, status, place(target));
  const { code, message, detail } = refusal;
  const options = detail === undefined ? {} : { detail };
  const refused = `${target.url} refused the call: ${message}`;
  if (target.gateway === "passes" && status === 401) {
    return new FlowError(code, `${refused}. 'flow login' opens a session`, options);
  }
  // What a user may not do is a matter of roles; a token would not help.
  if (target.gateway === undefined && (status === 401 || (status === 403 && code === "FORBIDDEN"))) {
    const hint = `Set FLOW_SERVER_TOKEN, or give the context its token: flow context add <name> --server ${target.url} --token-file FILE`;
    return new FlowError(code, `${refused}. ${hint}`, options);
  }
  const id = status >= 500 && isJsonObject(body) ? own(body, "request_id") : undefined;
  return new FlowError(code, typeof id === "string" ? `${message} (request ${id})` : message, options);
}
