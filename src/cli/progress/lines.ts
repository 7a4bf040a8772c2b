import type { LoopCounters } from "../../engine/state/state.ts";
import type { EventOf, FlowEvent, ReusedFrom } from "../../schema/words/event.ts";
import { cleanText, formatCount, formatDuration, plural } from "../terminal/text.ts";
import { logLine, type Progress, placeOf } from "./progress.ts";
import type { ExecutionRow, RunModel, StepRow } from "./run-model.ts";
import { awaitedText, progressText } from "./text.ts";

/** Shortest time between two lines about one loop. */
const LOOP_LINE_MS = 1_000;
/** Longest time without a line about a running loop; also the shortest time between two lines about a task's progress. */
const SILENCE_MS = 10_000;

/**
 * Progress for pipes and logs: one line for each thing that happened, nothing redrawn, no escape sequences. The steps of
 * sub-playbooks that a loop calls are left out unless `verbose`; their failures are printed.
 */
export function createLineProgress(model: RunModel, verbose: boolean, write: (line: string) => void): Progress {
  const reported = new WeakMap<StepRow, LoopReport>();
  const reportedProgress = new WeakMap<StepRow, ProgressReport>();
  return {
    observe(execution, events) {
      for (const event of events) {
        const line =
          stepLine(execution, event) ??
          loopLine(execution, event, reported) ??
          taskLine(execution, event, reportedProgress);
        if (line !== undefined && (verbose || event.type === "step.failed" || !isWithinLoop(execution))) write(line);
        const detail = verbose ? detailLine(execution, event) : undefined;
        if (detail !== undefined) write(detail);
      }
    },
    log: (line) => write(logLine(model, line)),
    notice: (text) => write(cleanText(text)),
    cancelling: () => write(CANCELLING),
    stop: () => undefined,
  };
}

/** Shown between Ctrl-C and the end. */
export const CANCELLING = "cancelling: waiting for tools to stop; Ctrl-C again leaves at once";

function isWithinLoop(execution: ExecutionRow): boolean {
  const { caller } = execution;
  return caller !== undefined && (caller.state.loop !== null || isWithinLoop(caller.execution));
}

function stepLine(execution: ExecutionRow, event: FlowEvent): string | undefined {
  switch (event.type) {
    case "playbook.initialized":
      return execution.caller === undefined
        ? `${cleanText(event.path)}: execution ${event.execution_id} started`
        : undefined;
    case "loop.started":
      return `${nameOf(execution, event.step)}: started${loopSize(event)}`;
    case "command.issued":
      // Commands of a loop come after its `loop.started`.
      if (event.iterations !== undefined || event.claim === true) return undefined;
      return `${nameOf(execution, event.step)}: started`;
    case "command.parked":
      if (event.iteration !== undefined) return undefined;
      return `${nameOf(execution, event.step)}: waits ${cleanText(awaitedText(event))}`;
    case "step.completed":
      if (event.reused_from !== undefined) return reusedLine(execution, event.step, event.reused_from);
      return `${nameOf(execution, event.step)}: completed in ${formatDuration(event.duration_ms)}${loopEnd(execution, event)}`;
    case "step.failed":
      if (event.reused_from !== undefined) return reusedLine(execution, event.step, event.reused_from);
      return failedLine(execution, event);
    case "step.skipped":
      if (event.reused_from !== undefined) return undefined;
      return `${nameOf(execution, event.step)}: skipped, ${SKIP_REASONS[event.reason]}`;
    case "task.done":
      return retryLine(execution, event);
    default:
      return undefined;
  }
}

/** Why a step did not run, in words. */
export const SKIP_REASONS = {
  when: "its guard says no",
  admission: "not admitted",
  unreached: "no path leads to it",
  cancelled: "cancelled before it began",
  overridden: "by a person",
} as const;

function reusedLine(execution: ExecutionRow, step: string, { execution_id }: ReusedFrom): string {
  return `${nameOf(execution, step)}: taken over from execution ${execution_id}`;
}

function nameOf(execution: ExecutionRow, step: string): string {
  return placeOf(execution) + cleanText(step);
}

function loopSize(event: EventOf<"loop.started">): string {
  const total = event.items?.length ?? event.count;
  return total === undefined ? "" : `, ${plural(total, "iteration")}`;
}

function loopEnd(execution: ExecutionRow, event: EventOf<"step.completed">): string {
  const loop = execution.byName.get(event.step)?.state.loop;
  return loop == null ? "" : `, ${plural(loop.done, "iteration")}${failures(loop)}`;
}

function failedLine(execution: ExecutionRow, event: EventOf<"step.failed">): string {
  const after = formatDuration(event.duration_ms);
  if (event.error.kind === "cancelled") return `${nameOf(execution, event.step)}: cancelled after ${after}`;
  const handled = event.handled === "yes" ? " (handled by an arc)" : "";
  return `${nameOf(execution, event.step)}: failed after ${after}${handled}: ${firstLine(event.error.message)}`;
}

function retryLine(execution: ExecutionRow, event: EventOf<"task.done">): string | undefined {
  if (event.final || event.iteration !== undefined) return undefined;
  const cause = event.error === undefined ? "its rule asks for another run" : firstLine(event.error.message);
  return `${nameOf(execution, event.step)}: task ${cleanText(event.task)}, attempt ${event.run + 1} follows: ${cause}`;
}

/** The first line of a message that may have many (a traceback, a statement). */
export function firstLine(message: string): string {
  return cleanText(message.trimStart().split("\n", 1)[0] ?? "");
}

/** The last line about a loop. */
interface LoopReport {
  stepRunId: string;
  at: number;
  /** Whole tenths. */
  share: number;
}

function loopLine(
  execution: ExecutionRow,
  event: FlowEvent,
  reported: WeakMap<StepRow, LoopReport>,
): string | undefined {
  if (event.type !== "loop.iteration.completed" && event.type !== "loop.iteration.failed") return undefined;
  const row = execution.byName.get(event.step);
  const loop = row?.state.loop;
  if (row === undefined || loop == null || loop.done === loop.total) return undefined;
  const last = reported.get(row);
  const share = loop.total === null ? 0 : Math.floor((loop.done * 10) / loop.total);
  if (last?.stepRunId === row.stepRunId) {
    const silentMs = event.at - last.at;
    if (silentMs < LOOP_LINE_MS || (share === last.share && silentMs < SILENCE_MS)) return undefined;
  }
  reported.set(row, { stepRunId: row.stepRunId, at: event.at, share });
  // The first iteration prints nothing: the step's start was just printed.
  return last?.stepRunId === row.stepRunId ? `${nameOf(execution, event.step)}: ${loopProgress(loop)}` : undefined;
}

/** The last line about a running task. */
interface ProgressReport {
  stepRunId: string;
  at: number;
}

/** A task's progress, at most every ten seconds for each step. */
function taskLine(
  execution: ExecutionRow,
  event: FlowEvent,
  reported: WeakMap<StepRow, ProgressReport>,
): string | undefined {
  if (event.type !== "task.progress" || event.iteration !== undefined) return undefined;
  if (Object.keys(event.progress).length === 0) return undefined;
  const row = execution.byName.get(event.step);
  if (row === undefined) return undefined;
  const last = reported.get(row);
  if (last?.stepRunId === row.stepRunId && event.at - last.at < SILENCE_MS) return undefined;
  reported.set(row, { stepRunId: row.stepRunId, at: event.at });
  return `${nameOf(execution, event.step)}: ${progressText(event.progress)}`;
}

/** `1,234/100,000 (3 failed)`; without a total while a cursor goes on. */
export function loopProgress(loop: LoopCounters): string {
  const total = loop.total === null ? "" : `/${formatCount(loop.total)}`;
  return `${formatCount(loop.done)}${total}${failures(loop)}`;
}

function failures(loop: LoopCounters): string {
  return loop.failed === 0 ? "" : ` (${formatCount(loop.failed)} failed)`;
}

/** The lines that `--verbose` adds: tasks, iterations and taken arcs. */
export function detailLine(execution: ExecutionRow, event: FlowEvent): string | undefined {
  switch (event.type) {
    case "task.done": {
      const index = event.iteration === undefined ? "" : `[${event.iteration}]`;
      const end = event.status === "ok" ? "ok" : `error: ${firstLine(event.error?.message ?? "")}`;
      const run = event.run > 1 ? `, attempt ${event.run}` : "";
      return `${nameOf(execution, event.step)}${index} · task ${cleanText(event.task)}${run}: ${end} in ${formatDuration(event.duration_ms)}`;
    }
    case "loop.iteration.failed":
      return `${nameOf(execution, event.step)}[${event.iteration}]: failed`;
    case "step.completed":
    case "step.failed":
    case "step.skipped":
      if (event.next.length === 0) return undefined;
      return `${nameOf(execution, event.step)} → ${event.next.map((fired) => cleanText(fired.step)).join(", ")}`;
    default:
      return undefined;
  }
}
