import { cleanText, fitText, padText, textWidth } from "./text.ts";

/** How a table looks. */
export interface TableOptions {
  /** Colours a cell that is filled up already, so that colours take no columns. */
  paint?: (cell: string, column: number) => string;
  /** Columns of the terminal that a line may take; absent: any. */
  columns?: number;
  /** Headings of the columns that are cut where a line would be longer, the first one first. */
  shrink?: readonly string[];
}

/** What a column that is cut keeps at least. */
const SHRUNK_MIN = 10;

/** How a table fits where it is printed: what is no terminal takes lines of any length. */
export function fitToTerminal(
  { stdout }: { stdout: { isTTY?: boolean; columns?: number } },
  shrink: readonly string[],
): Pick<TableOptions, "columns" | "shrink"> {
  return stdout.isTTY === true ? { columns: stdout.columns || COLUMNS_DEFAULT, shrink } : {};
}

/** For a terminal that does not report its width. */
const COLUMNS_DEFAULT = 80;

/** Prints rows below their headings, each column as wide as its widest cell, two spaces apart. Cells may hold any text. */
export function writeTable(
  stream: { write(text: string): unknown },
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  { paint = (cell) => cell, columns, shrink = [] }: TableOptions = {},
): void {
  const clean = rows.map((row) => row.map(cleanText));
  const widths = headings.map((heading, column) =>
    clean.reduce((widest, row) => Math.max(widest, textWidth(row[column] ?? "")), textWidth(heading)),
  );
  if (columns !== undefined) shrinkColumns(widths, columns, headings, shrink);
  const last = headings.length - 1;
  const line = (row: readonly string[], look: NonNullable<TableOptions["paint"]>) => {
    const cells = row.map((cell, column) => {
      const width = widths[column] ?? 0;
      const text = fitText(cell, width);
      return look(column === last ? text : padText(text, width), column);
    });
    stream.write(`${cells.join("  ").trimEnd()}\n`);
  };
  line(headings, (cell) => cell);
  for (const row of clean) line(row, paint);
}

/** Shrinks columns until a line fits, down to their minimum widths. */
function shrinkColumns(
  widths: number[],
  columns: number,
  headings: readonly string[],
  shrink: readonly string[],
): void {
  for (const heading of shrink) {
    const over = widths.reduce((sum, width) => sum + width + 2, -2) - columns;
    if (over <= 0) return;
    const column = headings.indexOf(heading);
    const width = widths[column] ?? 0;
    widths[column] = Math.min(width, Math.max(SHRUNK_MIN, width - over));
  }
}
