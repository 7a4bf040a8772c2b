import { boundedResult, tasksManifest } from "../../language/views/bounded-result.ts";
import type { ResultStore } from "../../ports/result-store.ts";
import { isInline, loading, mergedFields, wholeResult as whole } from "../../schema/rules/whole-result.ts";
import type { Json } from "../../schema/words/json.ts";
import type { ResultRef, StoredResult } from "../../schema/words/result.ts";
import { cleanText, fitText, formatCount } from "../terminal/text.ts";

/** Lines of a result that are printed for people. */
const LINES_MAX = 40;
/** Columns of one of them. */
const LINE_COLUMNS_MAX = 500;

/** A result for people: indented JSON, cut where it is long. Nothing is loaded for it from the store. */
export interface ResultText {
  lines: string[];
  /** What is not shown, and how to see it. */
  missing: string | undefined;
}

/** The result as text. */
export function resultText(stored: StoredResult): ResultText {
  const { ref, loop } = stored;
  if (ref !== undefined) {
    const size = `${formatCount(ref.preview.bytes)} bytes`;
    if (ref.preview.bytes === 0) return { lines: [], missing: "The result is marked sensitive and is not shown." };
    return { lines: cut(ref.preview.sample).lines, missing: `… ${size} in all; --json prints the whole result.` };
  }
  if (loop !== undefined && loop.parts.length > 0) {
    const value = { ...loop.stats, status: loop.status };
    const missing = `The results of ${formatCount(loop.stats.total)} iterations are not shown; --json prints them.`;
    return { lines: cut(indented(value)).lines, missing };
  }
  if (stored.tasks !== undefined && !isInline(stored)) {
    const { parts, total_bytes: bytes } = tasksManifest(stored.tasks);
    // What is known of it without loading: the same fields as the whole has, the large ones left out.
    const known = mergedFields(parts.map((part) => ("ref" in part ? (part.extracted ?? {}) : part.value)));
    return {
      lines: cut(indented(known)).lines,
      missing: `… ${formatCount(bytes)} bytes in all; --json prints the whole result.`,
    };
  }
  const { lines, isCut } = cut(indented(boundedResult(stored)));
  return { lines, missing: isCut ? "… the result is shortened; --json prints the whole." : undefined };
}

function indented(value: Json): string {
  return JSON.stringify(value, null, 2);
}

function cut(text: string): { lines: string[]; isCut: boolean } {
  const all = text.split("\n");
  const lines = all.slice(0, LINES_MAX).map((line) => fitText(cleanText(line), LINE_COLUMNS_MAX));
  return { lines, isCut: all.length > LINES_MAX || all.some((line) => line.length > LINE_COLUMNS_MAX) };
}

/**
 * The whole result, loaded where it is stored by reference. A sensitive result stays a reference: it belongs in the store,
 * not in a terminal or a build log. Throws `FlowError` REFERENCE_NOT_AVAILABLE.
 */
export async function wholeResult(stored: StoredResult, store: ResultStore): Promise<Json> {
  return await loading(
    whole(stored, (ref) => !isSensitive(ref)),
    (ref) => store.load(ref),
  );
}

/** A sensitive result is stored with a reference that shows nothing of its payload, not even its size. */
function isSensitive(ref: ResultRef): boolean {
  return ref.preview.truncated && ref.preview.bytes === 0;
}
