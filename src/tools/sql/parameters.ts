import type { Json } from "../../schema/words/json.ts";
import { type SqlStatement, sqlPlaceholders } from "./split-statements.ts";

/**
 * The parameters that a statement names, and its text with their numbers counted from `$1` without a gap: PostgreSQL cannot
 * determine the type of a parameter that is sent and not used. The length of the text does not change, so that the position of
 * an error is still the author's.
 */
export function namedParameters(statement: SqlStatement, params: readonly Json[]): { text: string; values: Json[] } {
  const found = sqlPlaceholders(statement.text, "postgres").filter(({ number }) => number !== undefined);
  const numbers = [...new Set(found.map(({ number }) => number ?? 0))].sort((left, right) => left - right);
  const values = numbers.map((number) => params[number - 1] ?? null);
  if (numbers.at(-1) === numbers.length || numbers.length === 0) return { text: statement.text, values };
  let text = "";
  let copied = 0;
  for (const { start, end, number } of found) {
    const renumbered = `$${numbers.indexOf(number ?? 0) + 1}`;
    text += statement.text.slice(copied, start) + renumbered.padEnd(end - start);
    copied = end;
  }
  return { text: text + statement.text.slice(copied), values };
}
