/** Longest file that a task stores, bytes. */
export const FILE_BYTES_MAX = 16 * 1024 * 1024;
/** Longest name of a file with its folders, characters. */
export const NAME_CHARS_MAX = 200;

/** Types by the ending of a name. Any other is `application/octet-stream`, or plain text if the content is known to be text. */
const TYPES: Readonly<Record<string, string>> = {
  csv: "text/csv; charset=utf-8",
  gif: "image/gif",
  html: "text/html; charset=utf-8",
  jpeg: "image/jpeg",
  jpg: "image/jpeg",
  json: "application/json",
  log: "text/plain; charset=utf-8",
  md: "text/markdown; charset=utf-8",
  parquet: "application/vnd.apache.parquet",
  pdf: "application/pdf",
  png: "image/png",
  svg: "image/svg+xml",
  txt: "text/plain; charset=utf-8",
  webp: "image/webp",
  xml: "application/xml",
  yaml: "application/yaml",
  yml: "application/yaml",
  zip: "application/zip",
};

/** Whether this is a name that means the same file on every system, and no folder. */
export function isFileName(name: string): boolean {
  if (name.length > NAME_CHARS_MAX || name !== name.trim() || /^\.*$/.test(name)) return false;
  // U+FFFD stands in the place of bytes that are no text.
  return !/[/\\\p{Cc}\p{Cf}\p{Cs}\ufffd]/u.test(name);
}

/** The media type that the ending of a name stands for; undefined for one that is not known. */
export function typeOfName(name: string): string | undefined {
  const ending = /\.([A-Za-z0-9]{1,10})$/.exec(name)?.[1]?.toLowerCase() ?? "";
  return Object.hasOwn(TYPES, ending) ? TYPES[ending] : undefined;
}
