/** Takes a JSON text apart as it comes: the items of a list, or the one value that is no list. */
export interface JsonItems {
  /** Texts of the items that are complete now. */
  add(part: Uint8Array): string[];
  /** The last one; none of a list. */
  end(): string[];
  /** The text is a list. */
  isList(): boolean;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const SPACES: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d]);

/**
 * Finds the commas of the outermost list, without parsing: the caller checks whether the items are JSON. Bytes with a meaning
 * in JSON are never part of a multi-byte character in UTF-8.
 */
export function createJsonItems(): JsonItems {
  let kind: "unknown" | "list" | "value" = "unknown";
  let depth = 0;
  let isText = false;
  let isEscaped = false;
  let pieces: Uint8Array[] = [];
  let count = 0;

  const take = () => {
    const text = Buffer.concat(pieces).toString("utf8").trim();
    pieces = [];
    return text;
  };
  /** The place in the part where its first byte that is no space stands. */
  const begin = (part: Uint8Array): number => {
    const at = part.findIndex((byte) => !SPACES.has(byte));
    if (at < 0) return part.length;
    kind = part[at] === OPEN_LIST ? "list" : "value";
    if (kind === "value") return at;
    depth = 1;
    return at + 1;
  };
  /** True when the byte ends an item of the outermost list. */
  const isEnd = (byte: number): boolean => {
    if (isText) {
      if (isEscaped) isEscaped = false;
      else if (byte === BACKSLASH) isEscaped = true;
      else if (byte === QUOTE) isText = false;
      return false;
    }
    if (byte === QUOTE) isText = true;
    else if (byte === OPEN_LIST || byte === OPEN_OBJECT) depth += 1;
    else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) depth -= 1;
    return depth === 0 || (depth === 1 && byte === COMMA);
  };

  return {
    add(part) {
      let from = kind === "unknown" ? begin(part) : 0;
      if (kind !== "list") {
        if (kind === "value") pieces.push(part.subarray(from));
        return [];
      }
      const items: string[] = [];
      for (let at = from; at < part.length && depth > 0; at += 1) {
        const byte = part[at] as number;
        if (!isEnd(byte)) continue;
        pieces.push(part.subarray(from, at));
        from = at + 1;
        const text = take();
        // Nothing stands between the brackets of `[]`. What is missing elsewhere, as in `[1,]`, the taker refuses.
        if (text !== "" || byte === COMMA || count > 0) items.push(text);
        count += 1;
      }
      if (depth > 0) pieces.push(part.slice(from));
      return items;
    },
    end: () => (kind === "value" ? [take()] : []),
    isList: () => kind === "list",
  };
}
