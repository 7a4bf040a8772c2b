import type * as v from "valibot";
import type { ExecutionFilter } from "../../schema/rules/execution-filter.ts";
import { ExecutionFilterObject, type ExecutionsQuery } from "../../schema/rules/execution-filter-schema.ts";
import { queryProblemText, readExecutionQuery } from "../../schema/rules/execution-query.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { setOwn } from "../../schema/words/json.ts";
import { check, invalid } from "../http/validate.ts";

type Parameters = Omit<v.InferOutput<typeof ExecutionsQuery>, "limit" | "cursor">;

/**
 * The filter that a list's parameters say: `q`, parameters by name, and `label.NAME` and `input.NAME`, which only `all` has. Throws
 * `FlowError` INVALID_INPUT for what is not valid, and for what `q` says too.
 */
export function listFilter({ q, ...parameters }: Parameters, all: Readonly<Record<string, string>>): ExecutionFilter {
  const { labels, input, roots_only, ...texts } = parameters;
  const maps = {
    labels: entriesOf(all, /^labels?\.(.+)$/, labels, "labels"),
    input: entriesOf(all, /^input\.(.+)$/, input, "input"),
  };
  const given = {
    ...texts,
    ...(maps.labels !== undefined && { labels: maps.labels }),
    ...(maps.input !== undefined && { input: maps.input }),
    ...(roots_only !== undefined &&
      roots_only !== "false" && { roots_only: roots_only === "true" ? true : roots_only }),
  };
  if (q === undefined) return check(ExecutionFilterObject, given, "The query");
  const typed = filterOf(q);
  const twice = Object.keys(given).find((key) => Object.hasOwn(typed, key));
  if (twice !== undefined) throw invalid("The query", [{ path: twice, message: "stands in 'q' too: say it once" }]);
  return check(ExecutionFilterObject, { ...typed, ...given }, "The query");
}

/** What a text in the query language means. Throws `FlowError` INVALID_INPUT with the place. */
function filterOf(q: string): ExecutionFilter {
  const { filter, problem } = readExecutionQuery(q, Date.now());
  if (filter !== undefined) return filter;
  const { message, from, to } = problem;
  throw new FlowError("INVALID_INPUT", `The search cannot be read: ${queryProblemText(q, problem)}`, {
    detail: { errors: [{ path: "q", message, from, to }] },
  });
}

/** Names and values of `team=data,tier=gold`, and of parameters that are named for them. */
function entriesOf(
  all: Readonly<Record<string, string>>,
  named: RegExp,
  list: string | undefined,
  parameter: string,
): Record<string, string> | undefined {
  const entries: [string, string][] = (list ?? "").split(",").flatMap((part) => {
    if (part.trim() === "") return [];
    const [, name, value] = /^\s*([^=:]+)[=:](.*)$/s.exec(part) ?? [];
    if (name !== undefined && value !== undefined) return [[name, value]];
    throw invalid("The query", [{ path: parameter, message: "must be NAME=VALUE, or several with commas" }]);
  });
  for (const [key, value] of Object.entries(all)) {
    const name = named.exec(key)?.[1];
    if (name !== undefined) entries.push([name, value]);
  }
  if (list === undefined && entries.length === 0) return undefined;
  const map: Record<string, string> = {};
  for (const [name, value] of entries) setOwn(map, name, value);
  return map;
}
