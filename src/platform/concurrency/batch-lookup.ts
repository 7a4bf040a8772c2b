/**
 * Answers many questions with one statement: those that arrive while one is on its way go together with the next. An idle
 * caller waits for nothing, and under load the statements become few. `ask` is given at most `keysMax` keys, each once.
 */
export function gather<K, V>(
  ask: (keys: readonly K[]) => Promise<ReadonlyMap<K, V>>,
  keysMax = 500,
): (key: K) => Promise<V | undefined> {
  let waiting = new Map<K, { resolve(value: V | undefined): void; reject(error: unknown): void }[]>();
  let isAsking = false;

  const askAll = async () => {
    isAsking = true;
    while (waiting.size > 0) {
      const taken = new Map([...waiting].slice(0, keysMax));
      waiting = new Map([...waiting].slice(keysMax));
      try {
        const found = await ask([...taken.keys()]);
        for (const [key, waiters] of taken) for (const { resolve } of waiters) resolve(found.get(key));
      } catch (error) {
        for (const waiters of taken.values()) for (const { reject } of waiters) reject(error);
      }
    }
    isAsking = false;
  };

  return (key) =>
    new Promise((resolve, reject) => {
      const waiters = waiting.get(key);
      if (waiters === undefined) waiting.set(key, [{ resolve, reject }]);
      else waiters.push({ resolve, reject });
      if (!isAsking) void askAll();
    });
}
