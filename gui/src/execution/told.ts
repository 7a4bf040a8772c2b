import type { Execution, OpenCommand } from "../api/types.ts";

/* What servers of this version tell of an execution, and older ones do not: it is read as something that may be missing. */

/** An arrow of the playbook that was taken. */
export interface TakenArc {
  from: string;
  to: string;
  times: number;
}

/** The soonest run of a task that failed and waits to be run again. */
export interface NextRetry {
  step: string;
  task: string;
  /** RFC 3339, by the worker's clock. */
  at: string;
  /** Which run it will be, from 1. */
  run?: number;
  error: { code: string; message: string } | null;
}

/** What an open command waits for. */
export interface CommandNeeds {
  issued_at?: string;
  kinds?: readonly string[];
  labels?: Readonly<Record<string, string>>;
  /** Open executions that it has called. */
  children?: readonly string[];
}

/** The arrows that were taken; undefined where the server does not tell. */
export function takenArcs(execution: Execution): readonly TakenArc[] | undefined {
  return (execution as Execution & { arcs?: readonly TakenArc[] }).arcs;
}

/** The next retry of an open execution. */
export function nextRetry(execution: Execution): NextRetry | undefined {
  return (execution as Execution & { next_retry?: NextRetry | null }).next_retry ?? undefined;
}

/** An open command with what it needs. */
export function needsOf(command: OpenCommand): OpenCommand & CommandNeeds {
  return command;
}
