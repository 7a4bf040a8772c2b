import { ROWS_SHOWN } from "./kinds.ts";

/** Rows of a part of a CSV file. */
export interface CsvRows {
  rows: string[][];
  /** Bytes of the part that they take: the next row begins there. */
  end: number;
}

/**
 * The first rows of a part of a CSV file (RFC 4180), in UTF-8. `isLast`: the file ends with it; else a row that is not whole is left for the next
 * part. Quotes, commas and ends of lines are ASCII, so places are counted in bytes.
 */
export function rowsOf(part: Uint8Array, isLast: boolean, rowsMax = ROWS_SHOWN): CsvRows {
  const rows: string[][] = [];
  let end = 0;
  while (rows.length < rowsMax && end < part.length) {
    const row = rowAt(part, end);
    if (!row.isWhole && !isLast) break;
    rows.push(row.cells);
    end = row.end;
  }
  return { rows, end };
}

const [QUOTE, COMMA, CR, LF] = [0x22, 0x2c, 0x0d, 0x0a];

/** The row that begins there, and where the next one does. It is whole where its line has an end. */
function rowAt(part: Uint8Array, from: number): { cells: string[]; end: number; isWhole: boolean } {
  const cells: string[] = [];
  let at = from;
  for (;;) {
    const cell = cellAt(part, at);
    cells.push(cell.text);
    at = cell.end;
    const byte = part[at];
    if (byte === COMMA) {
      at += 1;
      continue;
    }
    if (byte === undefined) return { cells, end: at, isWhole: false };
    const isPair = byte === CR && part[at + 1] === LF;
    // Whether a line feed follows is not known yet.
    const isWhole = byte === LF || isPair || part[at + 1] !== undefined;
    return { cells, end: at + (isPair ? 2 : 1), isWhole };
  }
}

/** A field in quotes, with its quotes doubled, or one without. What follows a closing quote belongs to nothing. */
function cellAt(part: Uint8Array, from: number): { text: string; end: number } {
  if (part[from] !== QUOTE) {
    const end = endOfBare(part, from);
    return { text: textOf(part, from, end), end };
  }
  let at = from + 1;
  for (;;) {
    const quote = part.indexOf(QUOTE, at);
    if (quote < 0) return { text: unquoted(part, from + 1, part.length), end: part.length };
    if (part[quote + 1] !== QUOTE) return { text: unquoted(part, from + 1, quote), end: endOfBare(part, quote + 1) };
    at = quote + 2;
  }
}

function endOfBare(part: Uint8Array, from: number): number {
  let at = from;
  while (at < part.length && part[at] !== COMMA && part[at] !== CR && part[at] !== LF) at += 1;
  return at;
}

function unquoted(part: Uint8Array, from: number, to: number): string {
  return textOf(part, from, to).replaceAll('""', '"');
}

function textOf(part: Uint8Array, from: number, to: number): string {
  return new TextDecoder().decode(part.subarray(from, to));
}
