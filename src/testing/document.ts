import * as v from "valibot";
import { createFindings, type Report } from "../language/document/source/findings.ts";
import { didYouMean } from "../language/document/source/hints.ts";
import { createLocator } from "../language/document/source/locator.ts";
import { describe, isMap, nameOf, type Place, placeAt } from "../language/document/source/place.ts";
import { decode } from "../language/document/source/text.ts";
import { readYaml } from "../language/document/source/yaml.ts";
import { TestDocument } from "../schema/documents/test-document.ts";
import type { Diagnostic } from "../schema/words/diagnostic.ts";

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
  checkKeys(TestDocument, root, findings.report);
  const parsed = v.safeParse(TestDocument, root.value);
  for (const issue of parsed.issues ?? []) reportIssue(issue, root, findings.report);
  return parsed.success ? { ...read, root, document: parsed.output } : { ...read, root };
}

/** The reader of YAML knows playbooks only. */
function withStartHint(report: Report): Report {
  return (code, place, message, hint, offset) =>
    report(code, place, message, code === "empty-document" ? START_HINT : hint, offset);
}

/** An unknown key would be an expectation that is never checked. */
function asError(diagnostic: Diagnostic): Diagnostic {
  return diagnostic.code === "unknown-key" ? { ...diagnostic, severity: "error" } : diagnostic;
}

function reportIssue(issue: v.BaseIssue<unknown>, root: Place, report: Report): void {
  const keys = (issue.path ?? []).map((item) => item.key as string | number);
  if (issue.type === "strict_object" && issue.expected === "never") return;
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

/**
 * Reports every key that the schema does not have. (valibot stops at the first of each map.) The list of keys comes from the
 * schema itself.
 */
function checkKeys(schema: unknown, place: Place, report: Report): void {
  const { type, entries, wrapped, item, value, getter } = schema as SchemaParts;
  if (type === "exact_optional") checkKeys(wrapped, place, report);
  if (type === "lazy") checkKeys(getter?.(place.value), place, report);
  if (type === "array") for (const part of place.items) checkKeys(item, part, report);
  if (type === "record") for (const part of place.fields.values()) checkKeys(value, part, report);
  if (type !== "strict_object" || entries === undefined) return;
  for (const [key, part] of place.fields) {
    if (Object.hasOwn(entries, key)) {
      checkKeys(entries[key], part, report);
    } else {
      const hint = () => SIMILAR_KEYS.get(key) ?? didYouMean(key, Object.keys(entries));
      report("unknown-key", part, `\`${key}\` means nothing here`, hint, part.start);
    }
  }
}

/** What a schema of {@link TestDocument} may be made of. A pipe has the parts of its first schema. */
interface SchemaParts {
  type: string;
  entries?: Readonly<Record<string, unknown>>;
  wrapped?: unknown;
  item?: unknown;
  value?: unknown;
  getter?: (value: unknown) => unknown;
}

/** Common wrong names, and the right ones. */
const SIMILAR_KEYS: ReadonlyMap<string, string> = new Map([
  ["input", "inputs of the run are `workload`"],
  ["inputs", "inputs of the run are `workload`"],
  ["delay", "how long a call lasts is `takes`"],
  ["body", "the body of an answer is `data`"],
  ["response", "the answer is `result`, or for http `data`"],
  ["vars", "execution variables are `variables`"],
  ["duration_ms", "the virtual duration is `elapsed_seconds`"],
  ["output", "the run's result is `result`"],
]);

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
