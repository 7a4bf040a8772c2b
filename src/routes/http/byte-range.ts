/** Bytes from `start` up to `end`, which is not in it. */
export interface ByteRange {
  start: number;
  end: number;
}

/** What a request's head asks for of something that has `bytes` bytes. */
export type RequestedRange = ByteRange | "all" | "none";

/**
 * The part that a `Range` header names (RFC 9110, section 14): `bytes=0-99`, `bytes=100-`, `bytes=-100`. `none` for a part that
 * begins beyond the end. Everything is given where there is no such header, where it is of several parts or no range at all,
 * and where `If-Range` names another version than `etag`.
 */
export function requestedRange(
  range: string | undefined,
  ifRange: string | undefined,
  { bytes, etag }: { bytes: number; etag: string },
): RequestedRange {
  const [, first = "", last = ""] = /^bytes *= *(\d{0,15})-(\d{0,15})$/i.exec(range ?? "") ?? [];
  if (first === "" && last === "") return "all";
  if (ifRange !== undefined && ifRange !== etag) return "all";
  if (first === "") {
    const length = Math.min(Number(last), bytes);
    return length === 0 ? "none" : { start: bytes - length, end: bytes };
  }
  const start = Number(first);
  if (last !== "" && Number(last) < start) return "all";
  if (start >= bytes) return "none";
  return { start, end: last === "" ? bytes : Math.min(Number(last) + 1, bytes) };
}

/** Whether an `If-None-Match` header names this version: its client has it. */
export function isKnown(ifNoneMatch: string | undefined, etag: string): boolean {
  const tags = (ifNoneMatch ?? "").split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  return tags.includes(etag) || tags.includes("*");
}
