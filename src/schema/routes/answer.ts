import * as v from "valibot";
import { ERROR_STATUS, type ErrorCode, FlowError, messageOf } from "../words/errors.ts";
import { isJsonObject, type Json, own } from "../words/json.ts";
import type { AnswerOf, RouteContract } from "./contract.ts";
import type { RouteRequest } from "./request.ts";

/** What a server answered, whatever its status. */
export interface ServerReply {
  status: number;
  /** Undefined for invalid JSON. */
  body: Json | undefined;
  /** When it asks to be called again, in milliseconds from now. */
  retryAfterMs?: number;
}

/**
 * The answer of a call, by the schema of its contract: fields that the schema does not have, a newer server's, are dropped.
 * Throws `FlowError`: the server's own error, and SERVER_UNREACHABLE for what no flow server of this version answers.
 */
export function answerOf<C extends RouteContract>(
  contract: C,
  request: RouteRequest,
  reply: ServerReply,
  place?: Place,
): AnswerOf<C> {
  const { status, body } = reply;
  if (status < 200 || status >= 300) throw refusalIn(reply) ?? strangeAnswer(request, status, place);
  if (contract.answer === undefined) return body as AnswerOf<C>;
  const answer = v.safeParse(contract.answer, body);
  if (answer.success) return answer.output as AnswerOf<C>;
  throw strangeAnswer(request, status, place);
}

/** The error in a server's answer; undefined if flow did not write the body: a proxy's page. */
export function refusalIn({ status, body }: ServerReply): FlowError | undefined {
  if (!isJsonObject(body)) return undefined;
  const [error, code, detail] = [own(body, "error"), own(body, "code"), own(body, "detail")];
  if (typeof error !== "string" || typeof code !== "string") return undefined;
  const known = Object.hasOwn(ERROR_STATUS, code) ? (code as ErrorCode) : codeOf(status);
  return new FlowError(known, error, detail === undefined ? {} : { detail: detail as Json });
}

/** For a code that this version does not know. */
function codeOf(status: number): ErrorCode {
  return CODES[status] ?? (status >= 500 ? "UNAVAILABLE" : "INVALID_INPUT");
}

const CODES: Readonly<Record<number, ErrorCode>> = {
  401: "UNAUTHENTICATED",
  403: "FORBIDDEN",
  404: "NOT_FOUND",
  409: "CONFLICT",
  410: "GONE",
  413: "TOO_LARGE",
  429: "RATE_LIMITED",
};

/** True for an error with which a server refuses a call with this status. */
export function isRefusal(error: unknown, status: number): error is FlowError {
  return error instanceof FlowError && ERROR_STATUS[error.code] === status;
}

/** What was called, in messages. */
export interface Place {
  kind: "server" | "gateway";
  /** Its address. */
  name: string;
}

/** The error for an answer that no flow server of this version gives. */
export function strangeAnswer(
  { method, path }: Pick<RouteRequest, "method" | "path">,
  status: number,
  { kind, name }: Place = { kind: "server", name: "it" },
): FlowError {
  const what = `${method} ${path} was answered with ${status}, not as a flow ${kind} answers`;
  return new FlowError("SERVER_UNREACHABLE", `${what}. Is ${name} a flow ${kind} of this version?`);
}

/** Why there was no answer. `fetch` says "fetch failed"; why stands below it, once per address that was tried. */
export function transportReason(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return transportReason(error.errors[0]);
  return error instanceof Error && error.cause instanceof Error ? transportReason(error.cause) : messageOf(error);
}

/** JSON of an answer; undefined for invalid JSON. */
export function parseReply(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}
