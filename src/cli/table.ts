import { cleanText, padText, textWidth } from "./text.ts";

/**
 * Prints rows below their headings, each column as wide as its widest cell, two spaces apart. Cells may hold any text.
 * `paint` colours a cell that is filled up already, so that colours take no columns.
 */
export function writeTable(
  stream: { write(text: string): unknown },
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  paint: (cell: string, column: number) => string = (cell) => cell,
): void {
  const clean = rows.map((row) => row.map(cleanText));
  const widths = headings.map((heading, column) =>
    clean.reduce((widest, row) => Math.max(widest, textWidth(row[column] ?? "")), textWidth(heading)),
  );
  const last = headings.length - 1;
  const line = (row: readonly string[], look: typeof paint) => {
    const cells = row.map((cell, column) => look(column === last ? cell : padText(cell, widths[column] ?? 0), column));
    stream.write(`${cells.join("  ").trimEnd()}\n`);
  };
  line(headings, (cell) => cell);
  for (const row of clean) line(row, paint);
}
