const MINUTE_MS = 60_000;

/** Counts a use of a key: 0 where it is allowed, else the milliseconds until the next one is. */
export type RateLimit = (key: string) => number;

/** What {@link createRateLimit} needs. */
export interface RateLimitOptions {
  /** Uses of one key that are allowed at once, and within each minute. */
  perMinute: number;
  /** Keys in memory, some 200 bytes each. Beyond that the one that was used longest ago is forgotten. */
  keysMax: number;
  /** Milliseconds. */
  now(): number;
}

/** A bucket for each key, refilled evenly: after using it up a key gets its next use after 60/`perMinute` seconds. */
export function createRateLimit({ perMinute, keysMax, now }: RateLimitOptions): RateLimit {
  const buckets = new Map<string, { left: number; at: number }>();
  return (key) => {
    const at = now();
    const known = buckets.get(key) ?? { left: perMinute, at };
    const left = Math.min(perMinute, known.left + ((at - known.at) * perMinute) / MINUTE_MS);
    const isAllowed = left >= 1;
    // Deleted first, so that the map's order is that of use.
    buckets.delete(key);
    buckets.set(key, { left: isAllowed ? left - 1 : left, at });
    if (buckets.size > keysMax) buckets.delete(buckets.keys().next().value ?? "");
    return isAllowed ? 0 : ((1 - left) * MINUTE_MS) / perMinute;
  };
}
