import type { SqlSession } from "./session.ts";

/** How long a cancelled statement may take to end before its connection is given up. */
const CANCEL_GRACE_MS = 3000;

/** Waits for the work; when the signal aborts, cancels it on the server and waits a little more, then throws. */
export async function cancellable<T>(signal: AbortSignal, session: SqlSession, work: Promise<T>): Promise<T> {
  let onAbort = () => {};
  let grace: NodeJS.Timeout | undefined;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => {
      grace = setTimeout(() => reject(signal.reason), CANCEL_GRACE_MS);
      void session.cancel();
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    const result = await Promise.race([work, aborted]);
    // It ended before the cancellation reached it; the task is stopped all the same.
    signal.throwIfAborted();
    return result;
  } finally {
    clearTimeout(grace);
    signal.removeEventListener("abort", onAbort);
  }
}
