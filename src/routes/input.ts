import type { MiddlewareHandler } from "hono";
import * as v from "valibot";
import { FlowError, messageOf } from "../schema/errors.ts";
import { BODY_BYTES_MAX, tooLarge } from "./request.ts";

/**
 * The body as JSON of a schema, whatever its content type says: `curl -d` does not say JSON. Throws `FlowError`
 * INVALID_INPUT with every problem, or TOO_LARGE. With `optional` an empty body counts as `{}`.
 */
export function jsonBody<S extends v.GenericSchema>(
  schema: S,
  optional = false,
): MiddlewareHandler<object, string, { in: { json: v.InferInput<S> }; out: { json: v.InferOutput<S> } }> {
  return async (c, next) => {
    const text = await readBody(c.req.raw);
    const value = text.trim() === "" && optional ? {} : parseJson(text);
    c.req.addValidatedData("json", check(schema, value, "The body") as object);
    await next();
  };
}

/** The query by a schema; of a parameter that is given twice the first counts. Throws `FlowError` INVALID_INPUT. */
export function queryOf<S extends v.GenericSchema>(
  schema: S,
): MiddlewareHandler<object, string, { in: { query: v.InferInput<S> }; out: { query: v.InferOutput<S> } }> {
  return async (c, next) => {
    c.req.addValidatedData("query", check(schema, c.req.query(), "The query") as object);
    await next();
  };
}

async function readBody(request: Request): Promise<string> {
  if (request.body === null) return "";
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of request.body as AsyncIterable<Uint8Array>) {
    length += part.byteLength;
    if (length > BODY_BYTES_MAX) throw tooLarge();
    parts.push(part);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(parts));
  } catch (cause) {
    throw new FlowError("INVALID_INPUT", "The body is not UTF-8", { cause });
  }
}

function parseJson(text: string): unknown {
  if (text.trim() === "") throw new FlowError("INVALID_INPUT", "The body is empty; send a JSON object");
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new FlowError("INVALID_INPUT", `The body is not JSON: ${messageOf(cause)}`, { cause });
  }
}

/** Most problems that are listed: the first few are the ones to mend. */
const ISSUES_MAX = 20;

function check<S extends v.GenericSchema>(schema: S, value: unknown, what: string): v.InferOutput<S> {
  const result = v.safeParse(schema, value);
  if (result.success) return result.output;
  const issues = result.issues.slice(0, ISSUES_MAX).map((issue) => ({
    path: v.getDotPath(issue) ?? "",
    message: wordsOf(issue),
  }));
  const told = issues.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`)).join("; ");
  throw new FlowError("INVALID_INPUT", `${what} is not valid: ${told}`, { detail: { errors: issues } });
}

function wordsOf(issue: v.BaseIssue<unknown>): string {
  if (issue.kind === "schema" && issue.received === "undefined") return "is required";
  if (issue.kind === "schema") return `must be ${issue.expected}, got ${issue.received.slice(0, RECEIVED_MAX)}`;
  return issue.message;
}

const RECEIVED_MAX = 60;
