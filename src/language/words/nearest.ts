import { distance } from "fastest-levenshtein";

/**
 * The candidate that `word` was probably meant to be, or undefined when none is close: at most one edit per three
 * letters (and at least one edit allowed), letter case ignored. The same letters in another order are one edit. Ties go
 * to the earlier candidate.
 */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  if (word.length > WORD_MAX) return undefined;
  const wanted = word.toLowerCase();
  let editsAllowed = Math.max(1, Math.floor(word.length / 3));
  let best: string | undefined;
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - word.length) > editsAllowed) continue;
    const edits = editsBetween(wanted, candidate.toLowerCase());
    if (edits > editsAllowed || (best !== undefined && edits === editsAllowed)) continue;
    best = candidate;
    editsAllowed = edits;
    if (edits === 0) break;
  }
  return best;
}

/**
 * True if `word` is very likely `candidate` mistyped: the same letters in another case or order, or one edit after the first
 * letter of words of four letters and more. A shorter word, or one with a different beginning, may be a different word (`sqs`
 * is not `sql`).
 */
export function isSlip(word: string, candidate: string): boolean {
  if (word.length > WORD_MAX) return false;
  const [typed, meant] = [word.toLowerCase(), candidate.toLowerCase()];
  if (lettersOf(typed) === lettersOf(meant)) return editsBetween(typed, meant) <= 1;
  return typed[0] === meant[0] && Math.min(typed.length, meant.length) >= 4 && distance(typed, meant) === 1;
}

function editsBetween(word: string, other: string): number {
  const edits = distance(word, other);
  return edits === 2 && lettersOf(word) === lettersOf(other) ? 1 : edits;
}

function lettersOf(word: string): string {
  return [...word].sort().join("");
}

/** Longer words are no slip of the hand, and the distance costs length times length. */
const WORD_MAX = 100;
