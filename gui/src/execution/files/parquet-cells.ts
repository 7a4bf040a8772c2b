/** Longest text of a cell. */
const CELL_CHARS_MAX = 1_000;
/** Bytes of a binary value that are shown. */
const CELL_BYTES_MAX = 32;

/** An element of a Parquet schema, a list of all levels: the root first, after each element its children. */
interface Element {
  name: string;
  num_children?: number;
}

/** The names of the columns at the top of a schema. */
export function columnsOf(schema: readonly Element[]): string[] {
  const names: string[] = [];
  let at = 1;
  for (let left = schema[0]?.num_children ?? 0; left > 0 && at < schema.length; left -= 1) {
    names.push(schema[at]?.name ?? "");
    at = afterElement(schema, at);
  }
  return names;
}

function afterElement(schema: readonly Element[], at: number): number {
  let next = at + 1;
  for (let left = schema[at]?.num_children ?? 0; left > 0 && next < schema.length; left -= 1)
    next = afterElement(schema, next);
  return next;
}

/** A value of a Parquet file as text: numbers with all digits, moments in RFC 3339, lists and maps in JSON, bytes in hexadecimal. */
export function cellText(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "string") return cut(value);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? "invalid date" : value.toISOString();
  if (value instanceof Uint8Array) return bytesText(value);
  if (typeof value === "object") return cut(JSON.stringify(value, plain) ?? "");
  return String(value);
}

function plain(_key: string, value: unknown): unknown {
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  return value instanceof Uint8Array ? bytesText(value) : value;
}

function bytesText(bytes: Uint8Array): string {
  const hex = Array.from(bytes.subarray(0, CELL_BYTES_MAX), (byte) => byte.toString(16).padStart(2, "0")).join("");
  return bytes.length > CELL_BYTES_MAX ? `${hex}…` : hex;
}

function cut(text: string): string {
  return text.length <= CELL_CHARS_MAX ? text : `${text.slice(0, CELL_CHARS_MAX)}…`;
}
