import type { Clock } from "../ports/clock.ts";
import type { ProgressNumbers } from "../schema/event.ts";
import { after } from "./deadline.ts";

/** How long a task runs before anything is told of it: shorter work saves the row, as it does that of `command.started`. */
const FIRST_AFTER_MS = 250;
/** Shortest time between two events about one run of a task: often enough for people, and 1,800 rows an hour. */
const INTERVAL_MS = 2_000;

/** How far one run of a task is, on its way from the tool to the log. */
export interface TaskProgress {
  /** Takes the newest numbers and returns at once. What could not be reported by then is forgotten for them. */
  tell(numbers: ProgressNumbers): void;
  /**
   * Nothing is reported from here on. Resolves when the report that is under way is, so that the task's end comes after it, or
   * when the signal aborts: then nobody waits for that end.
   */
  end(signal: AbortSignal): Promise<void> | undefined;
}

/**
 * Reports the newest numbers that a tool tells: the first 250 ms after this call, then one every 2 s at most and one at a
 * time, so that neither a slow receiver nor a tool that tells much makes anything pile up. Costs no timer until the first.
 */
export function openProgress(clock: Clock, report: (numbers: ProgressNumbers) => Promise<void>): TaskProgress {
  let nextAt = clock.now() + FIRST_AFTER_MS;
  let newest: ProgressNumbers | undefined;
  let underWay: Promise<void> | undefined;
  let cancelTimer: (() => void) | undefined;
  let isOver = false;

  const send = () => {
    cancelTimer = undefined;
    if (isOver || newest === undefined) return;
    const numbers = newest;
    newest = undefined;
    nextAt = clock.now() + INTERVAL_MS;
    // A report that fails is told to whoever reports next, as the task's end does.
    underWay = report(numbers)
      .catch(() => undefined)
      .then(() => {
        underWay = undefined;
        look();
      });
  };
  const look = () => {
    if (isOver || newest === undefined || underWay !== undefined || cancelTimer !== undefined) return;
    const waitMs = nextAt - clock.now();
    if (waitMs <= 0) send();
    else cancelTimer = after(clock, waitMs, send);
  };

  return {
    tell(numbers) {
      if (isOver) return;
      newest = numbers;
      look();
    },
    end(signal) {
      isOver = true;
      cancelTimer?.();
      return underWay === undefined || signal.aborted ? undefined : untilOver(underWay, signal);
    },
  };
}

function untilOver(work: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const stop = () => resolve();
    signal.addEventListener("abort", stop, { once: true });
    void work.then(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    });
  });
}
