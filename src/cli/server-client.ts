import * as v from "valibot";
import { ERROR_STATUS, type ErrorCode, FlowError, messageOf } from "../schema/errors.ts";
import type { Json } from "../schema/json.ts";
import { ErrorBody } from "../schema/wire.ts";
import type { ServerTarget } from "./server-target.ts";

/** Longest that one call may take. The longest there is writes a document. */
const CALL_MS = 30_000;

/** What to ask. */
export interface ServerRequest<S extends v.GenericSchema> {
  method: "GET" | "POST";
  /** Below the server's address, its parts encoded. */
  path: string;
  body?: unknown;
  /** What the answer must look like. */
  answer: S;
  signal: AbortSignal;
}

/**
 * Asks a server. Throws `FlowError`: with the code, message and detail of the server's own error; SERVER_UNREACHABLE when
 * there is none, or when what answers is none of ours; CANCELLED.
 */
export async function callServer<S extends v.GenericSchema>(
  target: ServerTarget,
  request: ServerRequest<S>,
): Promise<v.InferOutput<S>> {
  const { status, text } = await exchange(target, request);
  const body = parse(text);
  if (status === 200) {
    const answer = v.safeParse(request.answer, body);
    if (answer.success) return answer.output;
  } else {
    const refusal = v.safeParse(ErrorBody, body);
    if (refusal.success) throw told(refusal.output, status, target);
  }
  const what = `${request.method} ${request.path} was answered with ${status}, not as a flow server answers`;
  throw new FlowError(
    "SERVER_UNREACHABLE",
    `${what}. Is ${target.url} (${target.origin}) a flow server of this version?`,
  );
}

async function exchange(
  target: ServerTarget,
  request: ServerRequest<v.GenericSchema>,
): Promise<{ status: number; text: string }> {
  const { method, path, body, signal } = request;
  try {
    const response = await fetch(`${target.url}${path}`, {
      method,
      headers: {
        accept: "application/json",
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...(target.token === undefined ? {} : { authorization: `Bearer ${target.token.reveal()}` }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      // The token is for this address alone.
      redirect: "manual",
      signal: AbortSignal.any([signal, AbortSignal.timeout(CALL_MS)]),
    });
    return { status: response.status, text: await response.text() };
  } catch (cause) {
    if (signal.aborted) throw new FlowError("CANCELLED", "interrupted while waiting for the server", { cause });
    throw unreachable(target, cause);
  }
}

function unreachable({ url, origin }: ServerTarget, cause: unknown): FlowError {
  const why = reason(cause);
  const hint = "'flow serve' starts one here; --server, FLOW_SERVER_URL or 'flow context use' choose another";
  return new FlowError("SERVER_UNREACHABLE", `Cannot reach the server at ${url} (${origin}): ${why}. ${hint}`, {
    cause,
  });
}

/** `fetch` says "fetch failed"; why stands below it, once per address that was tried. */
function reason(error: unknown): string {
  if (error instanceof DOMException && error.name === "TimeoutError") return `no answer within ${CALL_MS / 1_000} s`;
  if (error instanceof AggregateError && error.errors.length > 0) return reason(error.errors[0]);
  if (error instanceof Error && error.cause instanceof Error) return reason(error.cause);
  return messageOf(error);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function told({ error, code, detail, request_id }: ErrorBody, status: number, target: ServerTarget): FlowError {
  const known: ErrorCode = Object.hasOwn(ERROR_STATUS, code) ? (code as ErrorCode) : "INTERNAL";
  const options = detail === undefined ? {} : { detail: detail as Json };
  if (status === 401 || (status === 403 && code === "FORBIDDEN")) {
    const hint = `Set FLOW_SERVER_TOKEN, or give the context its token: flow context add <name> --server ${target.url} --token-file FILE`;
    return new FlowError(known, `${target.url} refused the call: ${error}. ${hint}`, options);
  }
  const id = status >= 500 ? ` (request ${request_id})` : "";
  return new FlowError(known, `${error}${id}`, options);
}
