import type { Context } from "hono";
import * as v from "valibot";
import { FlowError } from "../../schema/words/errors.ts";
import { BODY_BYTES_MAX, parseJson, readBody } from "./read-body.ts";

/**
 * The body as JSON of a schema, whatever its content type says: `curl -d` does not say JSON. Throws `FlowError`
 * INVALID_INPUT with every problem, or TOO_LARGE. With `optional` an empty body counts as `{}`.
 */
export async function readJson<S extends v.GenericSchema>(
  c: Context,
  schema: S,
  optional = false,
): Promise<v.InferOutput<S>> {
  const body = await readBody(c.req.raw, BODY_BYTES_MAX);
  const value = optional && body.toString("latin1").trim() === "" ? {} : parseJson(body);
  return check(schema, value, "The body");
}

/**
 * The query by a schema, parsed once for a request: the permission check and the handler have the same value. The first value
 * of a repeated parameter counts. Throws `FlowError` INVALID_INPUT.
 */
export function validQuery<S extends v.GenericSchema>(c: Context, schema: S): v.InferOutput<S> {
  const before = queries.get(c.req.raw);
  if (before?.schema === schema) return before.value as v.InferOutput<S>;
  const value = check(schema, c.req.query(), "The query");
  queries.set(c.req.raw, { schema, value });
  return value;
}

const queries = new WeakMap<Request, { schema: v.GenericSchema; value: unknown }>();

/** The id in a path. What cannot be one is the id of nothing: `FlowError` NOT_FOUND, which calls it a `what`. */
export function pathId(text: string, what: string): string {
  if (/^[1-9]\d{0,15}$/.test(text) && Number(text) <= Number.MAX_SAFE_INTEGER) return text;
  throw new FlowError("NOT_FOUND", `There is no ${what} '${text}': an id is a whole number`);
}

/** One thing that is wrong with an input. */
export interface InputProblem {
  /** Where, as `events.0.attempt`; empty for the whole. */
  path: string;
  message: string;
}

/** Most problems that are listed: the first few are the ones to mend. */
export const PROBLEMS_MAX = 20;

/** The value by a schema. Throws `FlowError` INVALID_INPUT that says what is wrong with `what`. */
export function check<S extends v.GenericSchema>(schema: S, value: unknown, what: string): v.InferOutput<S> {
  const result = v.safeParse(schema, value);
  if (result.success) return result.output;
  throw invalid(what, problemsOf(result.issues));
}

/** What a schema found wrong. */
export function problemsOf(issues: readonly v.BaseIssue<unknown>[]): InputProblem[] {
  return issues.slice(0, PROBLEMS_MAX).map((issue) => ({ path: v.getDotPath(issue) ?? "", message: wordsOf(issue) }));
}

/** The error for an input with problems. */
export function invalid(what: string, problems: readonly (InputProblem & { index?: number })[]): FlowError {
  const told = problems.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`)).join("; ");
  return new FlowError("INVALID_INPUT", `${what} is not valid: ${told}`, {
    detail: { errors: problems.map((problem) => ({ ...problem })) },
  });
}

function wordsOf(issue: v.BaseIssue<unknown>): string {
  if (issue.kind === "schema" && issue.received === "undefined") return "is required";
  if (issue.kind === "schema" && issue.expected === "never") return "is not a known key";
  // A schema of our own says itself what it wants.
  if (issue.kind === "schema" && issue.type === "custom") return issue.message;
  if (issue.kind === "schema") return `must be ${issue.expected}, got ${issue.received.slice(0, RECEIVED_MAX)}`;
  return issue.message;
}

const RECEIVED_MAX = 60;
