/** Counts a use of a key: 0 where it is allowed, else the milliseconds until the next one is. */
export type RateLimit = (key: string) => number;

/** What {@link createRateLimit} needs. */
export interface RateLimitOptions {
  /** Uses of one key that are allowed at once, and within each such time. */
  uses: number;
  /** Milliseconds. */
  withinMs: number;
  /** Keys in memory, some 200 bytes each. Beyond that the one that was used longest ago is forgotten. */
  keysMax: number;
  /** Milliseconds. */
  now(): number;
}

/** A bucket for each key, refilled evenly: after using it up a key gets its next use after `withinMs`/`uses`. */
export function createRateLimit({ uses, withinMs, keysMax, now }: RateLimitOptions): RateLimit {
  const buckets = new Map<string, { left: number; at: number }>();
  return (key) => {
    const at = now();
    const known = buckets.get(key) ?? { left: uses, at };
    const left = Math.min(uses, known.left + ((at - known.at) * uses) / withinMs);
    const isAllowed = left >= 1;
    // Deleted first, so that the map's order is that of use.
    buckets.delete(key);
    buckets.set(key, { left: isAllowed ? left - 1 : left, at });
    if (buckets.size > keysMax) buckets.delete(buckets.keys().next().value ?? "");
    return isAllowed ? 0 : ((1 - left) * withinMs) / uses;
  };
}
