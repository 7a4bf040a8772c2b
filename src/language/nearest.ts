import { distance } from "fastest-levenshtein";

/**
 * The candidate that `word` was probably meant to be, or undefined when none is close: at most one edit per three
 * letters (and at least one edit allowed), letter case ignored. Ties go to the earlier candidate.
 */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  if (word.length > WORD_MAX) return undefined;
  const wanted = word.toLowerCase();
  let editsAllowed = Math.max(1, Math.floor(word.length / 3));
  let best: string | undefined;
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - word.length) > editsAllowed) continue;
    const edits = distance(wanted, candidate.toLowerCase());
    if (edits > editsAllowed || (best !== undefined && edits === editsAllowed)) continue;
    best = candidate;
    editsAllowed = edits;
    if (edits === 0) break;
  }
  return best;
}

/** Longer words are no slip of the hand, and the distance costs length times length. */
const WORD_MAX = 100;
