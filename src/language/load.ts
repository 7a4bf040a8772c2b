import type { Diagnostic } from "../schema/diagnostic.ts";
import { PlaybookDocument } from "../schema/document.ts";
import type { Playbook } from "../schema/playbook.ts";
import { createFindings } from "./document/findings.ts";
import { checkGraph } from "./document/graph.ts";
import { createLocator } from "./document/locator.ts";
import { isMap } from "./document/place.ts";
import { readPlaybook } from "./document/playbook.ts";
import { openReading, type Reading } from "./document/reading.ts";
import { checkShape } from "./document/shape.ts";
import { checkTemplates } from "./document/templates.ts";
import { decode } from "./document/text.ts";
import { checkVariables } from "./document/variables.ts";
import { readYaml } from "./document/yaml.ts";

/** A loaded document. */
export interface Loaded {
  /** Present exactly when no diagnostic is an error. */
  playbook?: Playbook;
  /** All problems at once, in the order of the text. */
  diagnostics: Diagnostic[];
}

/**
 * Reads a playbook document (language document, sections 1 to 7, 10 and 12): its text, its shape, and what it means.
 * `file` names it in the diagnostics. Bytes must be UTF-8. Never throws, whatever the text is, and takes bounded time:
 * texts over 1 MiB are refused unread.
 */
export function loadPlaybook(source: string | Uint8Array, file: string): Loaded {
  const findings = createFindings();
  const decoded = decode(source);
  const locate = createLocator(decoded.text);
  let playbook: Playbook | undefined;
  if ("code" in decoded) findings.report(decoded.code, undefined, decoded.message, decoded.hint, decoded.offset);
  else playbook = readText(decoded.text, openReading(findings.report, locate));
  const diagnostics = findings.list(file, locate);
  return playbook === undefined || findings.hasErrors() ? { diagnostics } : { playbook, diagnostics };
}

function readText(text: string, reading: Reading): Playbook | undefined {
  const { report } = reading;
  const root = readYaml(text, report);
  if (root === undefined) return undefined;
  if (!isMap(root)) {
    report("not-a-map", root, "the document is not a map of keys", "a playbook begins with `apiVersion: <vendor>/v2`");
    return undefined;
  }
  checkShape(root, PlaybookDocument, report);
  const playbook = readPlaybook(reading, root);
  checkGraph(playbook, reading);
  checkVariables(text, playbook, checkTemplates(text, reading.templates, report), report);
  return playbook;
}
