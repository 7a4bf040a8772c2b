import { FlowError } from "../schema/errors.ts";
import { failed, type ToolResult } from "../schema/outcome.ts";

/** How long a tool that was told to stop may take before it is left behind. */
const STOP_GRACE_MS = 5_000;

/**
 * Runs work that must end in time. At the deadline, or when `signal` aborts, the work is told to stop; the outcome is then
 * that of the stop, whatever the work still answers. Work that does not stop within a grace is left behind.
 */
export async function withDeadline(
  work: (signal: AbortSignal) => Promise<ToolResult>,
  timeoutMs: number | undefined,
  signal: AbortSignal,
  what: string,
): Promise<ToolResult> {
  if (timeoutMs === undefined) return await untilStopped(work, signal);
  const controller = new AbortController();
  const stop = () => controller.abort(signal.reason);
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  const timer = setTimeout(() => controller.abort(timedOut(what, timeoutMs)), Math.min(timeoutMs, TIMER_MAX_MS));
  try {
    return await untilStopped(work, controller.signal);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }
}

async function untilStopped(
  work: (signal: AbortSignal) => Promise<ToolResult>,
  signal: AbortSignal,
): Promise<ToolResult> {
  let grace: NodeJS.Timeout | undefined;
  let wait = () => {};
  const leftBehind = new Promise<ToolResult>((resolve) => {
    wait = () => {
      grace = setTimeout(() => resolve(abortedResult(signal)), STOP_GRACE_MS);
    };
    signal.addEventListener("abort", wait, { once: true });
  });
  try {
    const result = await Promise.race([work(signal), leftBehind]);
    return signal.aborted ? abortedResult(signal) : result;
  } finally {
    clearTimeout(grace);
    signal.removeEventListener("abort", wait);
  }
}

/** The longest timer there is (2^31 − 1 ms, 24.8 days); a longer one would fire at once. */
const TIMER_MAX_MS = 2_147_483_647;

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
