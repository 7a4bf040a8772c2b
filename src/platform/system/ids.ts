/** Ids count milliseconds from here (2024-01-01 UTC): 41 bits of them last until 2093. */
export const FIRST_ID_MS = 1_704_067_200_000;
/** Ids within one millisecond: 12 bits. Together 53 bits, the largest integer that JavaScript counts exactly. */
export const IDS_PER_MS = 4_096;

/**
 * A source of ids that grow in time and fit in 53 bits, so that a client that reads JSON numbers loses no digit. A clock
 * that steps back does not make them shrink.
 */
export function createIds(now: () => number): () => string {
  let last = 0;
  return () => {
    last = Math.max(last + 1, firstIdAt(now()));
    return String(last);
  };
}

/** The smallest id of a moment, in milliseconds since 1970: ids from then on are not below it. 0 before 2024. */
export function firstIdAt(ms: number): number {
  return Math.max(0, (ms - FIRST_ID_MS) * IDS_PER_MS);
}
