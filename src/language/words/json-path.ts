import { JSONPathEnvironment } from "json-p3";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import type { Json } from "../../schema/words/json.ts";
import type { PathProblem } from "../../schema/words/merge-path.ts";

/* JSONPath (RFC 9535): the fields of a result that `select` names. */

/** Longest path that is read, in characters. */
const PATH_CHARS_MAX = 1_000;
const ENVIRONMENT = new JSONPathEnvironment();

/** What is wrong with a path; undefined for a good one. */
export function pathProblem(path: string): PathProblem | undefined {
  if (path.length > PATH_CHARS_MAX) {
    return { at: PATH_CHARS_MAX, message: `it is longer than ${PATH_CHARS_MAX.toLocaleString("en")} characters` };
  }
  try {
    ENVIRONMENT.compile(path);
    return undefined;
  } catch (error) {
    const at = (error as { token?: { index?: number } }).token?.index ?? 0;
    // The package ends its messages with the path and the place, which are reported differently here.
    return { at: Math.min(at, path.length), message: messageOf(error).replace(/ \('.*'?:\d+\)$/s, "") };
  }
}

/**
 * The target of a path: for a path to a single place the value there, or null; for any other a list of matches. Throws
 * `FlowError` INVALID_INPUT for a path that does not parse, or that cannot be evaluated.
 */
export function selectValue(path: string, data: Json): Json {
  try {
    const query = ENVIRONMENT.compile(path);
    const values = query.query(data as never).values() as Json[];
    return query.singularQuery() ? (values[0] ?? null) : values;
  } catch (error) {
    const message = `Cannot select by the path "${path}": ${messageOf(error)}`;
    throw new FlowError("INVALID_INPUT", `${message}. A path is RFC 9535 JSONPath, as $.data.items[0].id`);
  }
}
