import { accept, endsClaim } from "../../engine/state/accept.ts";
import { hasEnded } from "../../engine/state/evolve-loop.ts";
import { type ExecutionState, isTerminal, openCommand } from "../../engine/state/state.ts";
import type { ReportedEvent } from "../../schema/api/event-input.ts";
import type { LiveExecution } from "./memory/load-execution.ts";

/** An event of a batch that cannot be accepted: its position, its command, and the reason. */
export interface Refusal {
  index: number;
  command_id: string;
  /**
   * `unknown`: no such command is open there; `foreign`: another worker holds it; `stale`: a newer claim took it; `late`: the
   * run has ended; `early`: results that it refers to are missing.
   */
  reason: "unknown" | "foreign" | "stale" | "late" | "early";
}

/** The effects that the earlier events of the batch will have had when an event is folded. */
interface Ahead {
  ended: Set<string>;
  results: Set<string>;
  /** By command. */
  iterations: Map<string, Set<number>>;
}

/**
 * Judges the events of a batch, each as it will be after those before it. Nothing is changed. An event counts only with both
 * the worker and the attempt of its command's claim.
 */
export function judgeReport(
  events: readonly { executionId: string; event: ReportedEvent }[],
  live: (executionId: string) => LiveExecution | undefined,
): Refusal[] {
  const refusals: Refusal[] = [];
  const ahead: Ahead = { ended: new Set(), results: new Set(), iterations: new Map() };
  events.forEach(({ executionId, event }, index) => {
    const execution = live(executionId);
    const reason = execution === undefined ? "unknown" : judge(execution.state, event, ahead);
    if (reason !== undefined) refusals.push({ index, command_id: event.command_id, reason });
    else note(event, ahead);
  });
  return refusals;
}

function judge(state: ExecutionState, event: ReportedEvent, ahead: Ahead): Refusal["reason"] | undefined {
  if (ahead.ended.has(event.command_id)) return "unknown";
  if (isForeign(state, event)) return "foreign";
  const verdict = accept(state, event);
  if (verdict === "accepted" || isRepeated(state, event)) return undefined;
  if (verdict !== "early") return verdict;
  return arrivesBefore(state, event, ahead) ? undefined : "early";
}

/**
 * True for a worker's event about a command that another worker holds, or that is not claimed. An expired claim is reported as
 * such. Every request of a worker names it; only this program's own events name no worker.
 */
function isForeign(state: ExecutionState, { command_id, attempt, worker }: ReportedEvent): boolean {
  const command = openCommand(state, command_id);
  if (isTerminal(state.status) || command === undefined || worker === undefined) return false;
  return command.worker !== worker && attempt === command.attempt;
}

/**
 * True for an event about an iteration that had already ended under an earlier claim of its command. A worker that takes over a
 * lost command starts with the first iteration again, because it does not know which have ended. Such an event is skipped, and
 * is no reason to refuse the rest.
 */
function isRepeated(state: ExecutionState, event: ReportedEvent): boolean {
  const command = openCommand(state, event.command_id);
  if (command?.iterations == null || command.attempt !== event.attempt || !("iteration" in event)) return false;
  const { iteration } = event;
  const { from, to } = command.iterations;
  return iteration !== undefined && iteration >= from && iteration < to && hasEnded(command.iterations, iteration);
}

/** True if what the event refers to is earlier in the batch, or already in the state. */
function arrivesBefore(state: ExecutionState, event: ReportedEvent, ahead: Ahead): boolean {
  const command = openCommand(state, event.command_id);
  if (command === undefined || !("tasks" in event || "iterations" in event)) return false;
  const iteration = "iteration" in event ? (event.iteration ?? 0) : 0;
  const known = command.values[iteration] ?? [];
  const hasResult = (task: string) =>
    known.some(([label]) => label === task) || ahead.results.has(resultKey(event.command_id, iteration, task));
  if (!(event.tasks ?? []).every(hasResult)) return false;
  if (event.type !== "command.completed" || command.iterations === null) return true;
  const { iterations } = command;
  const before = iterations.endedBelow - iterations.from + iterations.endedAbove.length;
  const fresh = [...(ahead.iterations.get(event.command_id) ?? [])].filter((index) => !hasEnded(iterations, index));
  return before + fresh.length >= (event.iterations ?? 0);
}

function note(event: ReportedEvent, ahead: Ahead): void {
  const id = event.command_id;
  if (event.type === "task.done" && event.final) ahead.results.add(resultKey(id, event.iteration ?? 0, event.task));
  if (event.type === "loop.iteration.completed" || event.type === "loop.iteration.failed") {
    const ended = ahead.iterations.get(id) ?? new Set();
    ahead.iterations.set(id, ended.add(event.iteration));
  }
  if (endsClaim(event)) ahead.ended.add(id);
}

function resultKey(command: string, iteration: number, task: string): string {
  return `${command}/${iteration}/${task}`;
}

/**
 * Fills in what a short form of an event leaves out and the execution knows: the step, and, for the end of a command or an
 * iteration, which tasks made up the result and whether the step is a pipeline. Called when the event is about to be folded;
 * fields that depend on the state go into a copy, because the event may have to be folded again into a newer state.
 */
export function completeReport(live: LiveExecution, event: ReportedEvent): ReportedEvent {
  const command = openCommand(live.state, event.command_id);
  if (command === undefined) return event;
  event.step = command.step;
  let values: readonly [string, ...unknown[]][] | undefined;
  switch (event.type) {
    case "command.completed":
    case "command.failed":
      if (command.iterations !== null || command.claim) return event;
      values = command.values[0];
      break;
    case "loop.iteration.completed":
    case "loop.iteration.failed":
      values = command.values[event.iteration];
      break;
    default:
      return event;
  }
  // Taken from the document, whatever the worker sends.
  if (live.source.program.steps.get(command.step)?.step.pipeline === true) event.pipeline = true;
  else delete event.pipeline;
  return event.tasks === undefined ? { ...event, tasks: labels(values) } : event;
}

function labels(values: readonly [label: string, ...unknown[]][] | undefined): string[] {
  return (values ?? []).map(([label]) => label);
}
