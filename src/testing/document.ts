import * as v from "valibot";
import { createFindings, type Report } from "../language/document/findings.ts";
import { didYouMean } from "../language/document/hints.ts";
import { createLocator } from "../language/document/locator.ts";
import { describe, isMap, type Place } from "../language/document/place.ts";
import { decode } from "../language/document/text.ts";
import { readYaml } from "../language/document/yaml.ts";
import type { Diagnostic } from "../schema/diagnostic.ts";
import { TestDocument } from "../schema/test-document.ts";

/** A test document that was read. */
export interface ReadTests {
  /** Absent when the document has an error. */
  document?: TestDocument;
  /** Where its values stand, for problems that are found later. */
  root?: Place;
  report: Report;
  /** Everything reported so far, in the order of the text. Here an unknown key is an error. */
  diagnostics(): Diagnostic[];
}

const START_HINT = "a test document begins with `tests:`, a list of tests";

/** Reads a test document: its text and its shape, all problems at once. `file` names it in the diagnostics. Never throws. */
export function readTests(source: string | Uint8Array, file: string): ReadTests {
  const findings = createFindings();
  const decoded = decode(source);
  const locate = createLocator(decoded.text);
  const read: ReadTests = {
    report: findings.report,
    diagnostics: () => findings.list(file, locate).map(asError),
  };
  if ("code" in decoded) {
    findings.report(decoded.code, undefined, decoded.message, decoded.hint, decoded.offset);
    return read;
  }
  const root = readYaml(decoded.text, withStartHint(findings.report));
  if (root === undefined) return read;
  if (!isMap(root)) {
    findings.report("not-a-map", root, "the document is not a map of keys", START_HINT);
    return read;
  }
  const parsed = v.safeParse(TestDocument, root.value);
  for (const issue of parsed.issues ?? []) reportIssue(issue, root, findings.report);
  return parsed.success ? { ...read, root, document: parsed.output } : { ...read, root };
}

/** The reader of YAML knows playbooks only. */
function withStartHint(report: Report): Report {
  return (code, place, message, hint, offset) =>
    report(code, place, message, code === "empty-document" ? START_HINT : hint, offset);
}

/** A key that nobody reads is an expectation that nobody checks. */
function asError(diagnostic: Diagnostic): Diagnostic {
  return diagnostic.code === "unknown-key" ? { ...diagnostic, severity: "error" } : diagnostic;
}

function reportIssue(issue: v.BaseIssue<unknown>, root: Place, report: Report): void {
  const keys = (issue.path ?? []).map((item) => item.key as string | number);
  if (issue.type === "strict_object" && issue.expected === "never") return reportUnknownKey(keys, root, report);
  if (issue.received === "undefined") {
    const map = placeAt(root, keys.slice(0, -1));
    report("missing-key", map, `${nameOf(map)} has no \`${keys.at(-1)}\``, `add \`${keys.at(-1)}: …\``);
    return;
  }
  const place = placeAt(root, keys);
  if (issue.kind === "validation") {
    report("wrong-value", place, `${nameOf(place)} ${issue.message}`);
    return;
  }
  const { value } = place;
  if (issue.type === "picklist" && typeof value === "string") {
    const allowed = words(issue.expected);
    const hint = () => didYouMean(value, allowed);
    report("wrong-value", place, `${nameOf(place)} must be ${allowed.join(", ")}, not \`${value}\``, hint);
    return;
  }
  report("wrong-type", place, `${nameOf(place)} must be ${expectation(issue.expected)}, not ${describe(value)}`);
}

function reportUnknownKey(keys: readonly (string | number)[], root: Place, report: Report): void {
  const place = placeAt(root, keys);
  const word = String(keys.at(-1));
  const hint = () => didYouMean(word, knownKeys(keys.slice(0, -1))) ?? SIMILAR_KEYS[word];
  report("unknown-key", place, `\`${word}\` means nothing here`, hint, place.start);
}

/** Words that come to mind first for what has another name. */
const SIMILAR_KEYS: Readonly<Record<string, string>> = {
  input: "inputs of the run are `workload`",
  inputs: "inputs of the run are `workload`",
  delay: "how long a call lasts is `takes`",
  body: "the body of an answer is `data`",
  response: "the answer is `result`, or for http `data`",
  vars: "variables are `variables`",
  duration_ms: "the virtual duration is `elapsed_seconds`",
  output: "the result is `result`",
};

/** The keys of the map at a path: found by asking the schema about an empty key in its place. */
function knownKeys(path: readonly (string | number)[]): string[] {
  const last = path.filter((key) => typeof key === "string").at(-1);
  const section = path.includes("mocks") ? (last === "error" ? "error" : "mock") : (last ?? "document");
  return KEYS[section] ?? KEYS["test"] ?? [];
}

const MOCK_KEYS = [
  ...["when", "result", "data", "rows", "status", "headers", "error", "takes"],
  ...["expect_input", "expect_config"],
];
const SURROUNDING_KEYS = ["workload", "env", "credentials", "mocks", "run_real", "now"];
const KEYS: Readonly<Record<string, string[]>> = {
  document: ["playbook", "defaults", "tests"],
  defaults: SURROUNDING_KEYS,
  tests: ["name", ...SURROUNDING_KEYS, "target", "expect"],
  mock: MOCK_KEYS,
  error: ["kind", "code", "message", "retryable", "status", "details", "step", "task"],
  expect: [
    ...["status", "result", "equals", "results", "steps", "skipped", "calls"],
    ...["variables", "error", "elapsed_seconds"],
  ],
  elapsed_seconds: ["min", "max"],
};

/** The place that a path of keys leads to; the last existing one where the path leaves the document. */
export function placeAt(root: Place, keys: readonly (string | number)[]): Place {
  let place = root;
  for (const key of keys) {
    const next = typeof key === "number" ? place.items[key] : place.fields.get(key);
    if (next === undefined) return place;
    place = next;
  }
  return place;
}

function nameOf(place: Place): string {
  if (place.parent === undefined) return "the document";
  if (typeof place.key === "string") return `\`${place.key}\``;
  return `item ${place.key + 1} of \`${place.parent.key}\``;
}

function words(expected: string | null): string[] {
  return [...(expected ?? "").matchAll(/"([^"]*)"/g)].map((match) => match[1] ?? "");
}

const TYPE_WORDS: Readonly<Record<string, string>> = {
  string: "text",
  number: "a number",
  boolean: "true or false",
  Array: "a list",
  Object: "a map",
};

function expectation(expected: string | null): string {
  const parts = (expected ?? "something else").replaceAll(/[()]/g, "").split(" | ");
  return [...new Set(parts.map((word) => TYPE_WORDS[word] ?? word.replaceAll('"', "`")))].join(" or ");
}
