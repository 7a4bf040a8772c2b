import { setTimeout as sleep } from "node:timers/promises";

/** Longest that anything in these tests may take, on a machine that has other things to do too. */
const DEADLINE_MS = 120_000;
const POLL_MS = 25;

/**
 * Asks until there is an answer, and gives it. `undefined`, `false` and an error are none: a server that is away is asked
 * again. Throws when there was none in time, with the last error.
 */
export async function until<T>(
  what: string,
  ask: () => Promise<T | undefined | false> | T | undefined | false,
  { deadlineMs = DEADLINE_MS, pollMs = POLL_MS }: { deadlineMs?: number; pollMs?: number } = {},
): Promise<T> {
  const end = performance.now() + deadlineMs;
  let cause: unknown;
  do {
    try {
      const answer = await ask();
      if (answer !== undefined && answer !== false) return answer;
      cause = undefined;
    } catch (error) {
      cause = error;
    }
    await sleep(pollMs);
  } while (performance.now() < end);
  throw new Error(`Waited ${deadlineMs} ms in vain: ${what}`, { cause });
}
