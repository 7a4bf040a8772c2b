import { type EventRecord, fromRecord } from "../../schema/rules/event-record.ts";
import { defined } from "../../schema/words/defined.ts";
import type { TaskLog } from "../../schema/words/event.ts";

/** A line that a task wrote, or how many are missing in its place. */
export interface TaskLine {
  step: string;
  task: string;
  iteration?: number;
  /** Run of the task by its retry policy, from 1. */
  run: number;
  /** When the event with it was written, RFC 3339. */
  at: string;
  /** Lines of the run before it. */
  number: number;
  text?: string;
  /** Lines that no event has. */
  missing?: number;
}

/** Joins the task output in an execution's events: each line once, in order for each run. */
export interface TaskLines {
  take(record: EventRecord): TaskLine[];
}

/** Nothing joined yet. A run that is over is forgotten. */
export function createTaskLines(): TaskLines {
  /** How many lines of a run were given, by run. */
  const given = new Map<string, number>();
  return {
    take(record) {
      if (record.event_type !== "task.progress" && record.event_type !== "task.done") return [];
      const event = fromRecord(record);
      if (event.type !== "task.progress" && event.type !== "task.done") return [];
      const { step, task, iteration, run, command_id, attempt, task_run_id } = event;
      const key = JSON.stringify([command_id, attempt, iteration, task_run_id, run]);
      const before = given.get(key) ?? 0;
      const about = { step, task, ...defined({ iteration }), run, at: record.created_at };
      const lines = fresh(event.log, before).map((line) => ({ ...about, ...line }));
      if (event.type === "task.done") given.delete(key);
      else given.set(key, Math.max(before, endOf(event.log)));
      return lines;
    },
  };
}

function startOf({ from, dropped }: TaskLog): number {
  return from ?? dropped ?? 0;
}

function endOf(log: TaskLog | undefined): number {
  return log === undefined ? 0 : startOf(log) + log.lines.length;
}

function fresh(log: TaskLog | undefined, given: number): Pick<TaskLine, "number" | "text" | "missing">[] {
  if (log === undefined) return [];
  const start = startOf(log);
  const lines = log.lines
    .map((text, index) => ({ number: start + index, text }))
    .filter(({ number }) => number >= given);
  return start > given ? [{ number: given, missing: start - given }, ...lines] : lines;
}
