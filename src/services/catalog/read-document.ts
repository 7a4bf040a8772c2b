import { type CatalogDocument, loadCatalogDocument } from "../../language/load/catalog-document.ts";
import { type ChildCall, childCalls } from "../../language/load/child-calls.ts";
import type { Diagnostic } from "../../schema/words/diagnostic.ts";
import { CALLS_MAX } from "./missing-children.ts";

/** What the catalog needs of a valid document: plain data, small enough to be copied from one thread to another. */
export interface ReadDocument extends Omit<CatalogDocument, "payload" | "playbook"> {
  /** The whole document as JSON. A text, because the parts of a large object take longer to copy than to read. */
  payload: string;
  /** Literal calls of other playbooks, the first ones. */
  calls: ChildCall[];
}

/** {@link readDocument}'s answer. */
export interface DocumentRead {
  /** Present exactly when no diagnostic is an error. */
  document?: ReadDocument;
  diagnostics: Diagnostic[];
}

/** Reads a document of the catalog. Computes: 5,000 steps take a second. */
export function readDocument(content: string): DocumentRead {
  const { document, diagnostics } = loadCatalogDocument(content, "document");
  if (document === undefined) return { diagnostics };
  // Normalised it is larger than written, and copying it would take as long as the calls that are wanted of it.
  const { playbook, payload, ...rest } = document;
  const calls = playbook === undefined ? [] : childCalls(playbook).slice(0, CALLS_MAX);
  return { document: { ...rest, payload: JSON.stringify(payload), calls }, diagnostics };
}
