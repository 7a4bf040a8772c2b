import type { FlowEvent } from "../../schema/words/event.ts";
import { hasEnded } from "./evolve-loop.ts";
import { isOverridable } from "./evolve-override.ts";
import { type ExecutionState, isTerminal, knownStep, type OpenCommand, openCommand } from "./state.ts";

/**
 * Whether a report from outside may be folded:
 *
 * - `accepted`;
 * - `late`: the execution has ended;
 * - `unknown`: no such command is open. It never existed, it has ended, or this is a duplicate. Or a pause of an execution that is
 *   paused already, a resumption of one that is not, or an end for a step or an iteration that has ended;
 * - `stale`: a newer claim took the command; this worker lost it;
 * - `early`: it refers to results that have not arrived. The sender sends again, in order.
 *
 * Only `accepted` changes anything.
 */
export type Acceptance = "accepted" | "late" | "unknown" | "stale" | "early";

/** True for the event with which a worker is done with a command: it reports nothing of it under the same claim afterwards. */
export function endsClaim({ type }: Pick<FlowEvent, "type">): boolean {
  return type === "command.completed" || type === "command.failed" || type === "command.parked";
}

/** Judges an event that a worker or a caller sent. Events that the engine itself decided need no judgement. */
export function accept(state: ExecutionState, event: FlowEvent): Acceptance {
  if (isTerminal(state.status)) return "late";
  if (event.type === "execution.paused" || event.type === "execution.resumed") return acceptSteering(state, event);
  if (event.type === "step.overridden")
    return isOverridable(state, knownStep(state, event.step), event) ? "accepted" : "unknown";
  if (!("command_id" in event) || event.type === "command.issued" || event.type === "command.cancelled")
    return "accepted";
  const command = openCommand(state, event.command_id);
  if (command === undefined) return "unknown";
  if ("approval_id" in event) return command.parked?.approval?.id === event.approval_id ? "accepted" : "unknown";
  if (event.type === "command.woken") return command.parked === undefined ? "unknown" : "accepted";
  if (event.type === "command.claimed")
    return event.attempt > command.attempt && command.parked === undefined ? "accepted" : "stale";
  if (event.attempt !== command.attempt) return "stale";
  if (command.released === true) return "unknown";
  return acceptReport(command, event);
}

/** `unknown`: it is so already. */
function acceptSteering({ status }: ExecutionState, { type }: FlowEvent): Acceptance {
  const isPause = type === "execution.paused";
  return isPause === (status === "PAUSED") ? "unknown" : "accepted";
}

function acceptReport(command: OpenCommand, event: FlowEvent): Acceptance {
  switch (event.type) {
    case "task.progress":
    case "task.done":
      return isOver(command, event.iteration) ? "unknown" : "accepted";
    case "loop.iteration.completed":
    case "loop.iteration.failed":
      if (isOver(command, event.iteration)) return "unknown";
      return hasResults(command, event.iteration, event.tasks) ? "accepted" : "early";
    case "command.completed":
      if (command.iterations !== null) return endedCount(command) >= (event.iterations ?? 0) ? "accepted" : "early";
      return hasResults(command, 0, event.tasks ?? []) ? "accepted" : "early";
    case "command.failed":
      // A failure has a result too, which arcs read: the body of a 404.
      return hasResults(command, 0, event.tasks ?? []) ? "accepted" : "early";
    default:
      return "accepted";
  }
}

function isOver(command: OpenCommand, iteration: number | undefined): boolean {
  if (command.iterations === null) return iteration !== undefined;
  const { from, to } = command.iterations;
  return iteration === undefined || iteration < from || iteration >= to || hasEnded(command.iterations, iteration);
}

function hasResults(command: OpenCommand, iteration: number, tasks: readonly string[]): boolean {
  const values = command.values[iteration] ?? [];
  return tasks.every((label) => values.some(([name]) => name === label));
}

function endedCount(command: OpenCommand): number {
  if (command.iterations === null) return 0;
  const { from, endedBelow, endedAbove } = command.iterations;
  return endedBelow - from + endedAbove.length;
}
