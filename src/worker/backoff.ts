/** First and longest delay between two tries, in milliseconds. */
const FIRST_MS = 100;
const LONGEST_MS = 10_000;

/**
 * How long to wait after `tries` failures (from 1), in milliseconds: doubling from 0.1 s to 10 s, of which a random half is
 * taken off so that workers whose server comes back do not all call at once. Never shorter than `atLeastMs`.
 */
export function backOffMs(tries: number, random: () => number, atLeastMs = 0): number {
  const full = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(tries - 1, 30));
  return Math.max(full * (1 - random() / 2), atLeastMs);
}
