import { isMap, isScalar, isSeq, LineCounter, parseDocument } from "yaml";
import { isJsonObject, type Json, type JsonObject } from "../../../../src/schema/words/json.ts";

/** A step of a document, with the stretch of the text that it stands in. */
export interface SourceStep {
  name: string;
  /** Where it begins, with its dash, and where the next one does: UTF-16 units from the start. */
  from: number;
  to: number;
  /** Where its map begins, counted from 1. */
  line: number;
  column: number;
}

/** A document as it is written. */
export interface Source {
  payload: JsonObject;
  steps: SourceStep[];
}

/** What a text says, or where it cannot be read. */
export type SourceRead = { source: Source } | { fault: SourceFault };

/** The first place where a text is no YAML, or no document. */
export interface SourceFault {
  /** Counted from 1. */
  line: number;
  why: string;
}

/** Reads a document with the places of its steps. Only the text is looked at, not whether the document is right. */
export function readSource(text: string): SourceRead {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const [error] = document.errors;
  if (error !== undefined) return { fault: { line: lines.linePos(error.pos[0]).line, why: error.message } };
  const payload = document.toJS({ maxAliasCount: 100 }) as Json;
  if (!isJsonObject(payload)) return { fault: { line: 1, why: "A document is a map" } };
  const workflow = isMap(document.contents) ? document.contents.get("workflow", true) : undefined;
  const items = isSeq(workflow) ? workflow.items : [];
  const steps: SourceStep[] = [];
  for (const item of items) {
    const name = isMap(item) ? item.get("step", true) : undefined;
    if (!isMap(item) || item.range == null || !isScalar(name) || typeof name.value !== "string") continue;
    const [start, , end] = item.range;
    const { line, col: column } = lines.linePos(start);
    const from = withDash(text, start);
    const before = steps.at(-1);
    // What stands between two steps, comments and empty lines, belongs to the first.
    if (before !== undefined) before.to = from;
    steps.push({ name: name.value, from, to: end, line, column });
  }
  return { source: { payload, steps } };
}

/** The step that a place of the text belongs to. */
export function stepAt(steps: readonly SourceStep[], offset: number): string | undefined {
  return steps.find(({ from, to }) => offset >= from && offset < to)?.name ?? lastAt(steps, offset);
}

/** The end of the last step is still of it: there its author writes on. */
function lastAt(steps: readonly SourceStep[], offset: number): string | undefined {
  const last = steps.at(-1);
  return last !== undefined && offset === last.to ? last.name : undefined;
}

function withDash(text: string, start: number): number {
  const line = text.lastIndexOf("\n", start - 1) + 1;
  return /^\s*-\s*$/.test(text.slice(line, start)) ? line : start;
}
