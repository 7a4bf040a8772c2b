import * as v from "valibot";
import { isJsonObject, type Json } from "../../schema/words/json.ts";
import type { Report } from "./source/findings.ts";
import { didYouMean } from "./source/hints.ts";
import { describe, nameOf, type Place, placeAt } from "./source/place.ts";

/** Reports every required key that is absent and every value of the wrong type, anywhere below `root`. */
export function checkShape(root: Place, schema: v.GenericSchema, report: Report): void {
  const outcome = v.safeParse(schema, root.value);
  for (const issue of outcome.issues ?? []) reportIssue(issue, root, report);
}

function reportIssue(issue: v.BaseIssue<unknown>, root: Place, report: Report): void {
  // The required format of a text is better reported by the rule that reads it (`wrong-api-version`).
  if (issue.kind === "validation") return;
  const keys = (issue.path ?? []).map((item) => item.key as string | number);
  const missing = issue.received === "undefined" ? keys.at(-1) : undefined;
  if (missing !== undefined) {
    const map = placeAt(root, keys.slice(0, -1));
    report("missing-key", map, `${nameOf(map)} has no \`${missing}\``, `add \`${missing}: …\``);
    return;
  }
  const place = placeAt(root, keys);
  const value = place.value;
  if (issue.type === "picklist" && typeof value === "string") {
    const allowed = [...(issue.expected ?? "").matchAll(/"([^"]*)"/g)].map((match) => match[1] ?? "");
    const message = `${nameOf(place)} must be ${allowed.join(" or ")}, not \`${value}\``;
    report("wrong-value", place, message, () => didYouMean(value, allowed));
    return;
  }
  const message = `${nameOf(place)} must be ${expectation(issue.expected ?? "")}, not ${describe(value)}`;
  report("wrong-type", place, message, typeHint(value, issue.expected ?? ""));
}

const TYPE_WORDS: Readonly<Record<string, string>> = {
  string: "text",
  number: "a number",
  boolean: "true or false",
  Array: "a list",
  Object: "a map",
};

/**
 * A description of what valibot expects: `(string
 * Array)` is "text or a list".
 */
function expectation(expected: string): string {
  const words = expected
    .replaceAll(/[()]/g, "")
    .split(/ [|&] /)
    .filter((word) => word !== "null")
    .map((word) => TYPE_WORDS[word] ?? word.replaceAll('"', "`"));
  return [...new Set(words)].join(" or ");
}

function typeHint(value: Json, expected: string): string | undefined {
  if (isJsonObject(value) || Array.isArray(value) || value === null) return undefined;
  return expected.includes("string") ? "put quotes around it" : undefined;
}
