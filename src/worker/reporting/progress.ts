import type { Clock } from "../../ports/clock.ts";
import {
  LOG_BYTES_MAX,
  LOG_LINE_CHARS_MAX,
  LOG_LINES_MAX,
  type ProgressNumbers,
  type TaskLog,
} from "../../schema/words/event.ts";
import { after } from "../deadline.ts";

/** How long a task runs before its progress is reported: shorter tasks save the row, as they save that of `command.started`. */
const FIRST_AFTER_MS = 250;
/** Shortest time between two events about one run of a task: often enough for people, and 1,800 rows an hour. */
const INTERVAL_MS = 2_000;

/** How far one run of a task is, on its way from the tool to the log. */
export interface TaskProgress {
  /** Takes the newest numbers and returns at once. What could not be reported by then is forgotten for them. */
  report(numbers: ProgressNumbers): void;
  /** There are new lines in the run's log. */
  wrote(): void;
  /**
   * Reports nothing from here on. Resolves when the report under way is done, so that the task's end follows it, or when the
   * signal aborts.
   */
  end(signal: AbortSignal): Promise<void> | undefined;
}

/**
 * Reports a tool's newest numbers, and the lines that it has written since: the first 250 ms after this call, then one every 2
 * s at most and one at a time, so that neither a slow receiver nor a chatty tool makes anything pile up. Costs no timer until
 * the first. `news` returns the new lines.
 */
export function openProgress(
  clock: Clock,
  report: (numbers: ProgressNumbers, log?: TaskLog) => Promise<void>,
  news: () => TaskLog | undefined = () => undefined,
): TaskProgress {
  let nextAt = clock.now() + FIRST_AFTER_MS;
  let newest: ProgressNumbers = {};
  let hasNews = false;
  let underWay: Promise<void> | undefined;
  let cancelTimer: (() => void) | undefined;
  let isOver = false;

  const send = () => {
    cancelTimer = undefined;
    if (isOver || !hasNews) return;
    hasNews = false;
    nextAt = clock.now() + INTERVAL_MS;
    // If a report fails, the next report throws, as the task's end does.
    underWay = report(newest, news())
      .catch(() => undefined)
      .then(() => {
        underWay = undefined;
        look();
      });
  };
  const look = () => {
    if (isOver || !hasNews || underWay !== undefined || cancelTimer !== undefined) return;
    const waitMs = nextAt - clock.now();
    if (waitMs <= 0) send();
    else cancelTimer = after(clock, waitMs, send);
  };

  return {
    report(numbers) {
      if (isOver) return;
      newest = numbers;
      hasNews = true;
      look();
    },
    wrote() {
      // The numbers are repeated with the lines: this report may replace the one that had them.
      hasNews = true;
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

/** The log of a task run, on its way into events: the last lines, whatever their number. */
export interface RunLog {
  /** Adds a line without secrets. True: {@link news} has it. */
  add(line: string): boolean;
  /** The lines since the last call; undefined if there are none. */
  news(): TaskLog | undefined;
  /** The last lines of the run; undefined when it wrote nothing. */
  whole(): TaskLog | undefined;
}

/**
 * An empty log. With `isHidden` the lines are counted and not kept: what a task of a sensitive result writes is as sensitive as
 * that. A line of plain text costs about a microsecond, whether it is kept or makes room for a later one.
 */
export function createRunLog(isHidden: boolean): RunLog {
  /** Made with the first line: most runs write none. */
  let kept: { line: string; bytes: number }[] | undefined;
  let bytes = 0;
  let total = 0;
  let reported = 0;

  const from = () => total - (kept?.length ?? 0);
  return {
    add(text) {
      total += 1;
      if (isHidden) return false;
      const line = cut(text);
      const size = bytesOf(line);
      kept ??= [];
      kept.push({ line, bytes: size });
      bytes += size;
      while (kept.length > LOG_LINES_MAX || bytes > LOG_BYTES_MAX) bytes -= kept.shift()?.bytes ?? 0;
      return true;
    },
    news() {
      if (isHidden || kept === undefined || reported === total) return undefined;
      const first = Math.max(reported, from());
      reported = total;
      const lines = kept.slice(first - from()).map(({ line }) => line);
      return first === 0 ? { lines } : { lines, from: first };
    },
    whole() {
      if (total === 0) return undefined;
      const lines = (kept ?? []).map(({ line }) => line);
      const dropped = from();
      return dropped === 0 ? { lines } : { lines, dropped };
    },
  };
}

/** As it stands in an event: within quotes, with a comma. */
function bytesOf(line: string): number {
  return Buffer.byteLength(JSON.stringify(line)) + 1;
}

/** A line that is too long ends in `…`, and never in half a character. */
function cut(line: string): string {
  if (line.length <= LOG_LINE_CHARS_MAX) return line;
  const begin = line.slice(0, LOG_LINE_CHARS_MAX - 1);
  const last = begin.charCodeAt(begin.length - 1);
  return `${last >= 0xd800 && last <= 0xdbff ? begin.slice(0, -1) : begin}…`;
}
