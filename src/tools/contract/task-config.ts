import * as v from "valibot";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { isJsonObject, type Json, type JsonObject, own } from "../../schema/words/json.ts";
import { failed, type ToolResult } from "../../schema/words/outcome.ts";

/**
 * The task's own keys by their schema. A key that is null counts as absent, because a template of an undefined name
 * renders to null. Throws FlowError `INVALID_INPUT` that names each wrong key and what it takes.
 */
export function parseConfig<Schema extends v.GenericSchema>(
  kind: string,
  schema: Schema,
  config: JsonObject,
): v.InferOutput<Schema> {
  const present = Object.fromEntries(Object.entries(config).filter(([, value]) => value !== null));
  const parsed = v.safeParse(schema, present);
  if (parsed.success) return parsed.output;
  const problems = parsed.issues.slice(0, 5).map((issue) => {
    const key = v.getDotPath(issue);
    return key === null ? issue.message : `key "${key}": ${issue.message}`;
  });
  throw configurationError(`The ${kind} task is not configured correctly: ${problems.join("; ")}.`);
}

/** The error of a task whose keys cannot be carried out as written; {@link answering} makes it kind `configuration`. */
export function configurationError(message: string, cause?: unknown): FlowError {
  return new FlowError("INVALID_INPUT", message, cause === undefined ? {} : { cause });
}

/**
 * Runs a tool so that it keeps the promise of {@link Tool}: whatever is thrown becomes a failed result. `INVALID_INPUT`
 * is the author's (kind `configuration`), `EGRESS_REFUSED` stays visible by its code.
 */
export async function answering(work: () => Promise<ToolResult>): Promise<ToolResult> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof FlowError)) return failed("unknown", "INTERNAL", messageOf(error));
    if (error.code === "INVALID_INPUT") return failed("configuration", "INVALID_CONFIG", error.message);
    if (error.code === "EGRESS_REFUSED") return failed("client_error", error.code, error.message);
    if (error.code === "UNAUTHENTICATED") return failed("auth", "TOKEN_REFUSED", error.message);
    if (error.code === "UNAVAILABLE") return failed("connection", "TOKEN_UNAVAILABLE", error.message);
    if (error.code === "REFERENCE_NOT_AVAILABLE") return failed("not_found", error.code, error.message);
    return failed(error.code === "INTERNAL" ? "unknown" : "configuration", error.code, error.message);
  }
}

/**
 * The result of a call whose signal was aborted: kind `timeout` when the reason is a time-out (a FlowError `TIMEOUT`, or
 * the `TimeoutError` that `AbortSignal.timeout` gives), else `cancelled`. `what` begins the message: "GET https://…".
 */
export function abortedResult(signal: AbortSignal, what: string): ToolResult {
  const reason: unknown = signal.reason;
  if (reason instanceof Error && (reason.name === "TimeoutError" || own(reason, "code") === "TIMEOUT")) {
    return failed("timeout", "TIMEOUT", `${what} did not finish within the task's time-out and was stopped.`);
  }
  return failed("cancelled", "CANCELLED", `${what} was cancelled.`);
}

/** Any JSON value, as a schema. Only for values that are JSON already: nothing is checked. */
export const AnyJson = v.custom<Json>(() => true);

/** true or false; also as text, since a template with text around it renders to text. */
export const BooleanLike = v.pipe(
  v.union([v.boolean(), v.string(), v.number()], "expects true or false"),
  v.rawTransform(({ dataset, addIssue, NEVER }) => {
    const text = String(dataset.value).toLowerCase();
    if (["true", "1", "yes", "on"].includes(text)) return true;
    if (["false", "0", "no", "off"].includes(text)) return false;
    addIssue({ message: `expects true or false, got ${JSON.stringify(dataset.value)}` });
    return NEVER;
  }),
);

/** Text that is not empty; numbers are accepted as their text. */
export const TextLike = v.pipe(
  v.union([v.string(), v.number()], "expects text"),
  v.transform(String),
  v.nonEmpty("expects text that is not empty"),
);

/** A map, as opposed to text or a list. */
export const MapOfJson = v.custom<JsonObject>(isJsonObject, "expects a map");
