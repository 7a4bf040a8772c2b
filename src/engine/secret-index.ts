/** Texts that are looked for all at once. */
export interface SecretIndex {
  readonly size: number;
  /** `isNumber`: found only where no further digit stands beside it. Shorter texts than {@link SECRET_CHARS_MIN} are left out. */
  add(text: string, isNumber?: boolean): void;
  /** The text is looked for as it is, and not as a part of something. */
  has(text: string): boolean;
  /** The places of `text` where one of them stands: from inclusive, to exclusive, in order; those that overlap are one. */
  find(text: string): [from: number, to: number][];
  /** Where at the end of `text` one of them begins that was cut off, four characters of it at least; -1: nowhere. */
  begunAt(text: string): number;
}

/** Shorter texts are not hidden: replacing every `on` or `1` would hide the message and no secret. */
export const SECRET_CHARS_MIN = 4;

/** Bits of the filter: of a text that holds none of a thousand secrets about one place in sixty is looked at twice. */
const FILTER = 0xffff;
const NO_FILTER = new Uint8Array(0);

/**
 * An index by the first four characters, behind a filter: a search is one pass over the text, 3 to 5 milliseconds for 500 KB and
 * 50 secrets with all their variants, 15 for a thousand. (A regular expression of all of them takes as long for twenty secrets
 * and ten times longer for a thousand.)
 */
export function createSecretIndex(): SecretIndex {
  const entries = new Map<string, boolean>();
  /** By head the lengths of the texts that begin so: many secrets begin alike, and few lengths are theirs. */
  const lengths = new Map<string, Set<number>>();
  /** Made with the first secret: most commands have none. */
  let filter = NO_FILTER;

  const lengthAt = (text: string, at: number): number => {
    let longest = 0;
    for (const length of lengths.get(text.slice(at, at + SECRET_CHARS_MIN)) ?? []) {
      if (length <= longest || at + length > text.length) continue;
      const isNumber = entries.get(text.slice(at, at + length));
      if (isNumber === undefined || (isNumber && isPartOfNumber(text, at, at + length))) continue;
      longest = length;
    }
    return longest;
  };

  const isBegun = (end: string) => {
    for (const entry of entries.keys()) if (entry.startsWith(end)) return true;
    return false;
  };

  return {
    get size() {
      return entries.size;
    },
    add(text, isNumber = false) {
      if (text.length < SECRET_CHARS_MIN) return;
      const wasNumber = entries.get(text);
      // Once asked for as a text it is found everywhere.
      if (wasNumber !== undefined) {
        if (wasNumber && !isNumber) entries.set(text, false);
        return;
      }
      entries.set(text, isNumber);
      const head = text.slice(0, SECRET_CHARS_MIN);
      if (filter === NO_FILTER) filter = new Uint8Array(FILTER + 1);
      filter[hashAt(text, 0)] = 1;
      const known = lengths.get(head);
      if (known === undefined) lengths.set(head, new Set([text.length]));
      else known.add(text.length);
    },
    has: (text) => entries.has(text),
    find(text) {
      const found: [number, number][] = [];
      if (entries.size === 0) return found;
      for (let at = 0; at + SECRET_CHARS_MIN <= text.length; at += 1) {
        if (filter[hashAt(text, at)] === 0) continue;
        const length = lengthAt(text, at);
        if (length === 0) continue;
        const last = found.at(-1);
        // One secret may begin within another: none of the two is left over.
        if (last !== undefined && at < last[1]) last[1] = Math.max(last[1], at + length);
        else found.push([at, at + length]);
      }
      return found;
    },
    begunAt(text) {
      const longest = Math.max(0, ...[...entries.keys()].map(({ length }) => length));
      for (let at = Math.max(0, text.length - longest + 1); at <= text.length - SECRET_CHARS_MIN; at += 1) {
        if (isBegun(text.slice(at))) return at;
      }
      return -1;
    },
  };
}

function hashAt(text: string, at: number): number {
  const first = text.charCodeAt(at) ^ (text.charCodeAt(at + 1) << 4);
  return (first ^ (text.charCodeAt(at + 2) << 8) ^ (text.charCodeAt(at + 3) << 11)) & FILTER;
}

function isPartOfNumber(text: string, from: number, to: number): boolean {
  return isDigit(text.charCodeAt(from - 1)) || isDigit(text.charCodeAt(to));
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}
