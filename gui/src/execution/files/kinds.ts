/** How a file is shown; undefined: it can only be downloaded. */
export type PreviewKind = "csv" | "image" | "json" | "page" | "parquet" | "text";

/** Largest picture, page and JSON that is shown. */
const WHOLE_BYTES_MAX = 8 * 1024 * 1024;
/** Rows of a table that are shown at a time. */
export const ROWS_SHOWN = 100;
/** Columns of a table that are shown. */
export const COLUMNS_SHOWN = 50;

/**
 * By the type that its author said: pictures of pixels are decoded and drawn, HTML stands in a frame that nothing in it can leave, everything else is
 * text. SVG, and HTML that is too large, are shown as text.
 */
export function previewKind(contentType: string, bytes: number): PreviewKind | undefined {
  const [type = ""] = contentType.toLowerCase().split(";", 1);
  const isSmall = bytes <= WHOLE_BYTES_MAX;
  if (/^image\/(png|jpeg|gif|webp)$/.test(type)) return isSmall ? "image" : undefined;
  if (/^application\/([\w.-]+\+)?json$/.test(type)) return isSmall ? "json" : "text";
  if (type === "text/html") return isSmall ? "page" : "text";
  if (type === "text/csv") return "csv";
  if (/^application\/(vnd\.apache\.|x-)?parquet$/.test(type)) return "parquet";
  return /^text\/|[/+]xml$|^application\/(x-)?(yaml|javascript|sql)$/.test(type) ? "text" : undefined;
}
