/* Whether the server answers, as the calls of this page have it. */

/** Since when nothing answers, milliseconds since 1970; undefined while something does. */
let lostSince: number | undefined;
const listeners = new Set<() => void>();

function change(since: number | undefined): void {
  lostSince = since;
  for (const listener of listeners) listener();
}

/** Something answered. */
export function reached(): void {
  if (lostSince !== undefined) change(undefined);
}

/** A call got no answer. */
export function missed(): void {
  if (lostSince === undefined) change(Date.now());
}

/** Since when nothing answers; undefined while something does. */
export function unreachableSince(): number | undefined {
  return lostSince;
}

/** Calls `listener` for each change until the returned function is called. */
export function onReach(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
