import type { Execution, OpenCommand, WaitingFor } from "../../api/types.ts";
import { durationText } from "../../parts/time.ts";
import { isQueued } from "../traced/step-state.ts";

/** What an execution does now, or how it ended. */
export type Situation =
  | "completed"
  | "failed"
  | "cancelled"
  | "paused"
  | "running"
  | "retrying"
  | "waiting"
  | "queued"
  | "deciding";

/** Names the situation of an execution: of several things at once, what keeps it busy comes first. */
export function situationOf(execution: Execution): Situation {
  const { status, ended_at, paused, next_retry } = execution;
  if (ended_at !== null || status === "COMPLETED" || status === "FAILED" || status === "CANCELLED") {
    return status === "FAILED" ? "failed" : status === "CANCELLED" ? "cancelled" : "completed";
  }
  if (paused !== undefined || status === "PAUSED") return "paused";
  const busy = busyCommands(execution);
  const isRetrying = next_retry != null && busy.every(({ step }) => step === next_retry.step) && busy.length <= 1;
  if (isRetrying && queuedCommands(execution).length === 0) return "retrying";
  if (busy.length > 0) return "running";
  if (queuedCommands(execution).length > 0) return "queued";
  return ownWaits(execution).length > 0 ? "waiting" : "deciding";
}

/** Commands that a worker has. */
export function busyCommands({ commands = [] }: Execution): OpenCommand[] {
  return commands.filter(({ worker }) => worker !== null);
}

/** Commands that no worker has, though one could. */
export function queuedCommands({ commands = [] }: Execution): OpenCommand[] {
  return commands.filter(isQueued);
}

/** What it waits for by itself: times and signals, not retries. */
export function ownWaits({ waiting_for = [] }: Execution): WaitingFor[] {
  return waiting_for.filter(({ kind }) => kind !== "retry");
}

/** The status in words: `Failed after 18.4 s`, `Waiting for signal paid for 2 h 05 min`, `Queued for 3.0 s`. */
export function statusText(execution: Execution, now: number): string {
  const { started_at, ended_at, paused, next_retry } = execution;
  const began = Date.parse(started_at);
  const took = durationText(Math.max(0, (ended_at === null ? now : Date.parse(ended_at)) - began));
  const since = (at: string | undefined) => durationText(Math.max(0, now - Date.parse(at ?? started_at)));
  switch (situationOf(execution)) {
    case "completed":
      return `Completed in ${took}`;
    case "failed":
      return `Failed after ${took}`;
    case "cancelled":
      return `Cancelled after ${took}`;
    case "paused":
      return `Paused for ${since(paused?.since)}`;
    case "retrying":
      return retryText(next_retry?.at, now);
    case "waiting": {
      const [first] = ownWaits(execution);
      const what =
        first?.kind === "signal" ? `for signal ${first.name} ` : first?.kind === "approval" ? "for approval " : "";
      return `Waiting ${what}for ${since(first?.since)}`;
    }
    case "queued":
      return `Queued for ${since(queuedCommands(execution)[0]?.issued_at)}`;
    case "running":
    case "deciding":
      return `Running for ${took}`;
  }
}

/** `Retrying in 12 s`. */
export function retryText(at: string | undefined, now: number): string {
  const left = at === undefined ? 0 : Date.parse(at) - now;
  return left > 0 ? `Retrying in ${durationText(Math.ceil(left / 1_000) * 1_000)}` : "Retrying now";
}

/** A situation as a state of `Status`, for its sign and colour. */
export function stateOfSituation(situation: Situation): string {
  if (situation === "retrying" || situation === "queued") return "WAITING";
  return situation === "deciding" ? "RUNNING" : situation.toUpperCase();
}
