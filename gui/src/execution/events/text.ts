import type { EventRecord } from "../../api/types.ts";

/** Types of events, in the order in which they come to be. */
export const EVENT_TYPES: readonly string[] = [
  "playbook.initialized",
  "workflow.initialized",
  "command.issued",
  "command.claimed",
  "command.started",
  "command.completed",
  "command.failed",
  "command.cancelled",
  "task.progress",
  "task.done",
  "call.done",
  "call.error",
  "loop.started",
  "loop.iteration.completed",
  "loop.iteration.failed",
  "loop.results.stored",
  "loop.done",
  "next.evaluated",
  "step.completed",
  "step.failed",
  "step.skipped",
  "workflow.completed",
  "workflow.failed",
  "playbook.completed",
  "playbook.failed",
  "execution.cancelled",
  "execution.paused",
  "execution.resumed",
  "step.overridden",
  "batch.accepted",
  "batch.completed",
];

/** What is worth knowing of an event in one line. */
export function eventText(event: EventRecord): string {
  const { error, worker, attempt, iteration, duration_ms: durationMs } = event as EventRecord & Record<string, unknown>;
  const parts: string[] = [];
  if (typeof iteration === "number") parts.push(`iteration ${iteration}`);
  if (typeof worker === "string") parts.push(`on ${worker}`);
  if (typeof attempt === "number" && attempt > 1) parts.push(`attempt ${attempt}`);
  if (typeof durationMs === "number") parts.push(`${Math.round(durationMs)} ms`);
  if (isRecord(error) && typeof error["message"] === "string") parts.push(error["message"]);
  if (event.omitted?.includes("result") === true) parts.push("long result");
  return parts.join(", ").slice(0, 300);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
