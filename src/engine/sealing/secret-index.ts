/**
 * Where a secret matches: a text everywhere; a number only if no further digit is next to it; a short secret only as a whole
 * `word`, with no letter, digit or underscore next to it, and only in text for people.
 */
export type SecretKind = "text" | "number" | "word";

/** The use: text for people, in which every secret is hidden, or a value that is passed on, in which short texts are no secrets. */
export type Looking = "shown" | "passed";

/** Texts to be searched for together. */
export interface SecretIndex {
  readonly size: number;
  /** Texts shorter than {@link SECRET_CHARS_MIN} are ignored. */
  add(text: string, kind: SecretKind): void;
  /** True if this exact text was added, not only as a part of another. */
  has(text: string, looking: Looking): boolean;
  /** The places in `text` where an added text occurs: from inclusive, to exclusive, in order; overlapping places are merged. */
  find(text: string, looking: Looking): [from: number, to: number][];
  /**
   * Position at the end of `text` where a cut-off secret begins, of which at least four characters are left; -1 if there is
   * none.
   */
  begunAt(text: string): number;
}

/** Shorter texts are not hidden: replacing every `on` or `1` would spoil the message and protect nothing. */
export const SECRET_CHARS_MIN = 4;

/**
 * Shorter secrets are not sealed in values: `demo` occurs in many texts by chance, and an arc over `demographics` must see
 * that text.
 */
export const SEALED_CHARS_MIN = 8;

/** Bits of the filter: in a text without secrets, of a thousand secrets, about one position in sixty needs a second check. */
const FILTER = 0xffff;
/** Eight bits to a byte: an execution keeps an index as long as it is in memory. */
const FILTER_BYTES = (FILTER + 1) >> 3;
const NO_FILTER = new Uint8Array(0);

/**
 * An index by the first four characters, behind a filter: a search is one pass over the text, 3 to 5 milliseconds for 500 KB and
 * 50 secrets with all their variants, 15 for a thousand. (A regular expression of all of them takes as long for twenty secrets
 * and ten times longer for a thousand.)
 */
export function createSecretIndex(): SecretIndex {
  const entries = new Map<string, SecretKind>();
  /** The lengths of texts by their first characters: many secrets begin alike, but with few lengths. */
  const lengths = new Map<string, Set<number>>();
  /** Created with the first secret: most commands have none. */
  let filter = NO_FILTER;

  const lengthAt = (text: string, at: number, looking: Looking): number => {
    let longest = 0;
    for (const length of lengths.get(text.slice(at, at + SECRET_CHARS_MIN)) ?? []) {
      if (length <= longest || at + length > text.length) continue;
      const kind = entries.get(text.slice(at, at + length));
      if (kind !== undefined && counts(kind, text, at, at + length, looking)) longest = length;
    }
    return longest;
  };

  const isBegun = (end: string) => {
    for (const [entry, kind] of entries) if (kind !== "word" && entry.startsWith(end)) return true;
    return false;
  };

  return {
    get size() {
      return entries.size;
    },
    add(text, kind) {
      if (text.length < SECRET_CHARS_MIN) return;
      const before = entries.get(text);
      // The kind that matches in more places counts.
      if (before === undefined || BREADTH[kind] > BREADTH[before]) entries.set(text, kind);
      if (before !== undefined) return;
      const head = text.slice(0, SECRET_CHARS_MIN);
      if (filter === NO_FILTER) filter = new Uint8Array(FILTER_BYTES);
      const hash = hashAt(text, 0);
      filter[hash >> 3] = (filter[hash >> 3] ?? 0) | (1 << (hash & 7));
      const known = lengths.get(head);
      if (known === undefined) lengths.set(head, new Set([text.length]));
      else known.add(text.length);
    },
    has(text, looking) {
      const kind = entries.get(text);
      return kind !== undefined && (kind !== "word" || looking === "shown");
    },
    find(text, looking) {
      const found: [number, number][] = [];
      if (entries.size === 0) return found;
      for (let at = 0; at + SECRET_CHARS_MIN <= text.length; at += 1) {
        const hash = hashAt(text, at);
        if (((filter[hash >> 3] ?? 0) & (1 << (hash & 7))) === 0) continue;
        const length = lengthAt(text, at, looking);
        if (length === 0) continue;
        const last = found.at(-1);
        // One secret may begin within another: both are covered completely.
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

const BREADTH: Readonly<Record<SecretKind, number>> = { word: 0, number: 1, text: 2 };

function counts(kind: SecretKind, text: string, from: number, to: number, looking: Looking): boolean {
  if (kind === "text") return true;
  if (kind === "number") return !isPartOfNumber(text, from, to);
  return looking === "shown" && !WORD.test(text.slice(from - 1, from)) && !WORD.test(text.slice(to, to + 1));
}

const WORD = /[\p{L}\p{N}_]/u;

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
