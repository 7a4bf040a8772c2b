import type { EventRecord } from "../../api/types.ts";
import { type Fields, type TaskRun, takeTask } from "../summary/task-runs.ts";

/** One claim of a command of a step. */
export interface Attempt {
  key: string;
  commandId: string;
  attempt: number;
  /** Of the step's run; its events name it. */
  stepRunId: string | undefined;
  /** When it was issued; of one whose beginning was not read, its first event that was. */
  issuedAt: number;
  claimedAt: number | undefined;
  endedAt: number | undefined;
  worker: string | undefined;
  failed: boolean;
  cancelled: boolean;
  /** It waits for its time; the claim that goes on stands in its place. */
  parked: boolean;
  /** Of its failure. */
  message: string | undefined;
  /** `0–40`, of a loop. */
  iterations: string | undefined;
  /** The first of them. */
  iteration: number | undefined;
  tasks: TaskRun[];
}

/** The attempts of a step, newest first. `events` in the order of the log. */
export function attemptsOf(events: readonly EventRecord[], step: string): Attempt[] {
  const attempts = new Map<string, Attempt>();
  for (const event of events as readonly Fields[]) {
    const commandId = event["command_id"];
    if (typeof commandId !== "string" || event.node_id !== step) continue;
    const number = typeof event["attempt"] === "number" ? event["attempt"] : 1;
    const key = `${commandId}/${number}`;
    const first = attempts.get(`${commandId}/1`);
    const attempt = attempts.get(key) ?? fresh(commandId, number, first, Date.parse(event.created_at));
    attempts.set(key, attempt);
    take(attempt, event);
  }
  const goesOn = ({ commandId, attempt, parked }: Attempt) => parked && attempts.has(`${commandId}/${attempt + 1}`);
  return [...attempts.values()].filter((attempt) => !goesOn(attempt)).reverse();
}

/** The state of an attempt, as states of steps are called. */
export function stateOf({ failed, cancelled, parked, endedAt, claimedAt, worker }: Attempt): string {
  if (failed) return "FAILED";
  if (cancelled) return "CANCELLED";
  if (endedAt !== undefined) return "COMPLETED";
  if (parked) return "WAITING";
  // Of one that writes much its claim may not have been read.
  return claimedAt === undefined && worker === undefined ? "QUEUED" : "RUNNING";
}

function take(attempt: Attempt, event: Fields): void {
  const at = Date.parse(event.created_at);
  if (typeof event["worker"] === "string") attempt.worker = event["worker"];
  if (typeof event["step_run_id"] === "string") attempt.stepRunId = event["step_run_id"];
  switch (event.event_type) {
    case "command.issued":
      attempt.issuedAt = at;
      takeIterations(attempt, event);
      return;
    case "command.claimed":
      attempt.claimedAt = at;
      return;
    case "command.parked":
      attempt.parked = true;
      return;
    case "command.completed":
    case "command.failed":
    case "command.cancelled":
      attempt.endedAt = at;
      // A command of a loop is completed too when its iteration failed.
      attempt.failed ||= event.event_type === "command.failed";
      attempt.cancelled = event.event_type === "command.cancelled";
      attempt.message = messageOf(event) ?? attempt.message;
      return;
    case "loop.iteration.failed":
      attempt.failed = true;
      attempt.message = messageOf(event);
      if (attempt.iteration === undefined && typeof event["iteration"] === "number") {
        attempt.iteration = event["iteration"];
        attempt.iterations = String(event["iteration"]);
      }
      return;
    default:
      takeTask(attempt.tasks, event);
  }
}

function takeIterations(attempt: Attempt, event: Fields): void {
  const iterations = isRecord(event.meta) ? event.meta["iterations"] : undefined;
  if (!isRecord(iterations)) return;
  const [from, to] = [Number(iterations["from"]), Number(iterations["to"])];
  attempt.iteration = from;
  attempt.iterations = to - from === 1 ? String(from) : `${from}–${to - 1}`;
}

function messageOf(event: Fields): string | undefined {
  if (isRecord(event.error) && typeof event.error["message"] === "string") return event.error["message"];
  const reason = isRecord(event.meta) ? event.meta["reason"] : undefined;
  return typeof reason === "string" ? reason : undefined;
}

function fresh(commandId: string, attempt: number, first: Attempt | undefined, at: number): Attempt {
  return {
    key: `${commandId}/${attempt}`,
    commandId,
    attempt,
    stepRunId: first?.stepRunId,
    issuedAt: first?.issuedAt ?? at,
    claimedAt: undefined,
    endedAt: undefined,
    worker: undefined,
    failed: false,
    cancelled: false,
    parked: false,
    message: undefined,
    iterations: first?.iterations,
    iteration: first?.iteration,
    tasks: [],
  };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
