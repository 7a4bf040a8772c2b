import type { Diagnostic } from "../../../schema/words/diagnostic.ts";
import type { DiagnosticCode } from "./codes.ts";
import { createFindings } from "./findings.ts";
import { createLocator } from "./locator.ts";
import { isMap, type Place } from "./place.ts";
import { openReading, type Reading } from "./reading.ts";
import { decode } from "./text.ts";
import { readYaml } from "./yaml.ts";

/** A document that is YAML with a map at its top. */
export interface OpenDocument {
  text: string;
  root: Place;
  reading: Reading;
}

/**
 * Opens a document and hands it to `read`, which reports what it finds wrong. `value` is what `read` made of it, present
 * exactly when no error was reported (problems with a code of `lenient` are warnings); `diagnostics` are all problems in the order of the text. Never throws by itself,
 * whatever the text is, and takes bounded time: texts over 1 MiB are refused unread.
 */
export function openDocument<T>(
  source: string | Uint8Array,
  file: string,
  read: (document: OpenDocument) => T,
  lenient?: ReadonlySet<DiagnosticCode>,
): { value?: T; diagnostics: Diagnostic[] } {
  const findings = createFindings(lenient);
  const { report } = findings;
  const decoded = decode(source);
  const { text } = decoded;
  const locate = createLocator(text);
  let value: { read: T } | undefined;
  if ("code" in decoded) {
    report(decoded.code, undefined, decoded.message, decoded.hint, decoded.offset);
  } else {
    const root = readYaml(text, report);
    if (root !== undefined && isMap(root)) value = { read: read({ text, root, reading: openReading(report, locate) }) };
    else if (root !== undefined) report("not-a-map", root, "the document is not a map of keys", START_HINT);
  }
  const diagnostics = findings.list(file, locate);
  return value === undefined || findings.hasErrors() ? { diagnostics } : { value: value.read, diagnostics };
}

const START_HINT = "a playbook begins with `apiVersion: <vendor>/v2`";
