/** How many places there are. */
export interface PlaceLimits {
  /** Of one key. */
  perKey: number;
  inAll: number;
}

/** A place that was taken: the function gives it back, further calls of it do nothing. Or what is full: the key, or all. */
export type Place = (() => void) | "key" | "all";

/** Takes a place for a key; without a key, one that counts only in all. */
export type Places = (key: string | undefined) => Place;

/** Counts places for each key and in all. A key without a place is forgotten. */
export function createPlaces({ perKey, inAll }: PlaceLimits): Places {
  const taken = new Map<string, number>();
  let count = 0;
  return (key) => {
    const own = key === undefined ? 0 : (taken.get(key) ?? 0);
    if (own >= perKey) return "key";
    if (count >= inAll) return "all";
    count += 1;
    if (key !== undefined) taken.set(key, own + 1);
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      count -= 1;
      if (key === undefined) return;
      const left = (taken.get(key) ?? 1) - 1;
      if (left > 0) taken.set(key, left);
      else taken.delete(key);
    };
  };
}
