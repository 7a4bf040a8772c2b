/**
 * Joins calls for one key that come while one is under way: the next call is made for all of them at once. Each caller gets
 * what was read after it asked. For reads that are writes too (they count), which would wait for each other's commits in the
 * database one by one.
 *
 * @param read is given the callers of one key, `groupMax` at most.
 */
export function coalesce<Asker, Found>(
  read: (key: string, askers: readonly [Asker, ...Asker[]]) => Promise<Found>,
  groupMax = GROUP_MAX,
): (key: string, asker: Asker) => Promise<Found> {
  const groups = new Map<string, Waiting<Asker, Found>[]>();
  const run = async (key: string, waiting: Waiting<Asker, Found>[]) => {
    for (let [first, ...others] = waiting.splice(0, groupMax); first !== undefined; ) {
      const group = [first, ...others];
      try {
        const found = await read(key, [first.asker, ...others.map(({ asker }) => asker)]);
        for (const { resolve } of group) resolve(found);
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
      [first, ...others] = waiting.splice(0, groupMax);
    }
    groups.delete(key);
  };
  return (key, asker) =>
    new Promise((resolve, reject) => {
      const waiting = groups.get(key);
      const one = { asker, resolve, reject };
      if (waiting !== undefined) {
        waiting.push(one);
        return;
      }
      const first = [one];
      groups.set(key, first);
      void run(key, first);
    });
}

/**
 * Looks up many keys with one statement: lookups that arrive while a statement runs share the next one. An idle caller waits
 * for nothing; with 64 callers and a statement of 2 ms, 6,400 lookups take some 240 statements. `find` is given at most
 * `keysMax` keys, each once.
 */
export function batchLookup<K, V>(
  find: (keys: readonly K[]) => Promise<ReadonlyMap<K, V>>,
  keysMax = GROUP_MAX,
): (key: K) => Promise<V | undefined> {
  const lookup = coalesce((_, keys: readonly [K, ...K[]]) => find([...new Set(keys)]), keysMax);
  return async (key) => (await lookup("", key)).get(key);
}

/** Most callers of one group, unless told otherwise. */
export const GROUP_MAX = 500;

interface Waiting<Asker, Found> {
  asker: Asker;
  resolve(found: Found): void;
  reject(error: unknown): void;
}
