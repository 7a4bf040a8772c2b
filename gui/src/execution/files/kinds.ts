/** How a file is shown; undefined: it can only be downloaded. */
export type PreviewKind = "image" | "json" | "table" | "text";

/** Largest picture, and largest JSON, that is shown. */
const WHOLE_BYTES_MAX = 8 * 1024 * 1024;
/** Rows of a table that are shown. */
const ROWS_MAX = 100;

/** By the type that its author said: pictures of pixels are decoded and drawn, everything else is text. HTML and SVG are shown as text. */
export function previewKind(contentType: string, bytes: number): PreviewKind | undefined {
  const [type = ""] = contentType.toLowerCase().split(";", 1);
  if (/^image\/(png|jpeg|gif|webp)$/.test(type)) return bytes <= WHOLE_BYTES_MAX ? "image" : undefined;
  if (/^application\/([\w.-]+\+)?json$/.test(type)) return bytes <= WHOLE_BYTES_MAX ? "json" : "text";
  if (type === "text/csv") return "table";
  return /^text\/|[/+]xml$|^application\/(x-)?(yaml|javascript|sql)$/.test(type) ? "text" : undefined;
}

/** The rows of a CSV text (RFC 4180), the first of them its heading; of a text that was cut off the last row is left out. */
export function rowsOf(text: string, isWhole: boolean): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  // A field in quotes, with its quotes doubled, or one without; then what ends it.
  for (const [, quoted, bare, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))[^,\r\n]*(,|\r?\n|\r|$)/g)) {
    const value = quoted === undefined ? (bare ?? "") : quoted.replaceAll('""', '"');
    if (end === "" && row.length === 0 && value === "") break;
    row.push(value);
    if (end === ",") continue;
    if (end === "" && !isWhole) break;
    rows.push(row);
    row = [];
    if (end === "" || rows.length > ROWS_MAX) break;
  }
  return rows.slice(0, ROWS_MAX + 1);
}
