import { PlaybookDocument } from "../../schema/documents/document.ts";
import type { Diagnostic } from "../../schema/words/diagnostic.ts";
import type { Playbook } from "../../schema/words/playbook.ts";
import { checkGraph } from "../document/graph.ts";
import { readPlaybook } from "../document/playbook.ts";
import { checkShape } from "../document/shape.ts";
import type { DiagnosticCode } from "../document/source/codes.ts";
import { type OpenDocument, openDocument } from "../document/source/open.ts";
import { checkApart, checkTemplates } from "../document/templates.ts";
import { checkVariables } from "../document/variables.ts";

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
  const { value, diagnostics } = openDocument(source, file, readPlaybookDocument);
  return value === undefined ? { diagnostics } : { playbook: value, diagnostics };
}

/**
 * Reads a document that the catalog has: what was valid when it was registered keeps running, so that problems which were
 * warnings once are warnings for ever. Else as {@link loadPlaybook}.
 */
export function loadRegistered(source: string, file: string): Loaded {
  const { value, diagnostics } = openDocument(source, file, readPlaybookDocument, ONCE_WARNINGS);
  return value === undefined ? { diagnostics } : { playbook: value, diagnostics };
}

const ONCE_WARNINGS: ReadonlySet<DiagnosticCode> = new Set([
  "template-syntax",
  "unknown-filter",
  "misspelled-kind",
  "system-call",
]);

/** Everything that {@link loadPlaybook} does with a document once it is open. */
export function readPlaybookDocument({ text, root, reading }: OpenDocument): Playbook {
  const { report } = reading;
  checkShape(root, PlaybookDocument, report);
  const playbook = readPlaybook(reading, root);
  checkGraph(playbook, reading);
  checkVariables(text, playbook, checkTemplates(text, reading.templates, report), report);
  checkApart(text, reading.apart, report);
  return playbook;
}
