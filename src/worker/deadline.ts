import type { Clock } from "../ports/clock.ts";
import { FlowError } from "../schema/words/errors.ts";
import { failed, type ToolResult } from "../schema/words/outcome.ts";

/** How long a tool may take to stop before it is abandoned. */
const STOP_GRACE_MS = 5_000;

/**
 * Runs work with a time limit. At the deadline, or when `signal` aborts, the work is asked to stop; the outcome is then that of
 * the stop, whatever the work still returns. Work that does not stop within a grace period is abandoned.
 */
export async function withDeadline(
  clock: Clock,
  work: (signal: AbortSignal) => Promise<ToolResult>,
  timeoutMs: number | undefined,
  signal: AbortSignal,
  what: string,
): Promise<ToolResult> {
  if (signal.aborted) return abortedResult(signal);
  if (timeoutMs === undefined) return await untilStopped(clock, work, signal);
  const controller = new AbortController();
  const stop = () => controller.abort(signal.reason);
  signal.addEventListener("abort", stop, { once: true });
  const cancel = after(clock, timeoutMs, () => controller.abort(timedOut(what, timeoutMs)));
  try {
    return await untilStopped(clock, work, controller.signal);
  } finally {
    cancel();
    signal.removeEventListener("abort", stop);
  }
}

async function untilStopped(
  clock: Clock,
  work: (signal: AbortSignal) => Promise<ToolResult>,
  signal: AbortSignal,
): Promise<ToolResult> {
  let endGrace = () => {};
  let wait = () => {};
  const leftBehind = new Promise<ToolResult>((resolve) => {
    wait = () => {
      endGrace = after(clock, STOP_GRACE_MS, () => resolve(abortedResult(signal)));
    };
    signal.addEventListener("abort", wait, { once: true });
  });
  try {
    const result = await Promise.race([work(signal), leftBehind]);
    // What the work gathered before it was stopped (the output of a shell command) is worth reading.
    return signal.aborted ? { ...abortedResult(signal), data: result.data } : result;
  } catch (error) {
    // A driver may throw when it is stopped; that is expected.
    if (signal.aborted) return abortedResult(signal);
    throw error;
  } finally {
    endGrace();
    signal.removeEventListener("abort", wait);
  }
}

/** Calls `action` once `ms` milliseconds have passed, unless the function that is returned was called before. */
export function after(clock: Clock, ms: number, action: () => void): () => void {
  if (clock.timer !== undefined) return clock.timer(ms, action);
  const controller = new AbortController();
  clock.sleep(ms, controller.signal).then(action, () => undefined);
  return () => controller.abort();
}

/** The reason with which work is aborted when its time is over. */
export function timedOut(what: string, timeoutMs: number): FlowError {
  return new FlowError("TIMEOUT", `${what} did not end within ${timeoutMs / 1000} s and was stopped`);
}

/** The outcome of work that was stopped from outside: by a time-out or by a cancellation. */
export function abortedResult(signal: AbortSignal): ToolResult {
  const { reason } = signal;
  if (reason instanceof FlowError && reason.code === "TIMEOUT") return failed("timeout", "TIMEOUT", reason.message);
  return failed("cancelled", "CANCELLED", reason instanceof FlowError ? reason.message : "The work was cancelled");
}
