import type { EventRecord } from "../api/types.ts";

/** One claim of a command of a step. */
export interface Attempt {
  key: string;
  attempt: number;
  issuedAt: number;
  claimedAt: number | undefined;
  endedAt: number | undefined;
  worker: string | undefined;
  failed: boolean;
  /** `0–40`, of a loop. */
  iterations: string | undefined;
  tasks: TaskRun[];
}

/** One run of a task within an attempt. */
export interface TaskRun {
  eventId: number;
  name: string;
  run: number;
  status: string;
  at: number;
  durationMs: number;
  /** Its result, or its error. */
  shown: unknown;
}

type Fields = EventRecord & Record<string, unknown>;

/** The attempts of a step, of every step when none is named, newest first. */
export function attemptsOf(events: readonly EventRecord[], step: string | undefined): Attempt[] {
  const issued = new Map<string, { at: number; iterations: string | undefined }>();
  const attempts = new Map<string, Attempt>();
  for (const event of events as readonly Fields[]) {
    const commandId = event["command_id"];
    if (typeof commandId !== "string" || (step !== undefined && event.node_id !== step && event.node_type !== "task"))
      continue;
    const at = Date.parse(event.created_at);
    if (event.event_type === "command.issued") {
      if (step !== undefined && event.node_id !== step) continue;
      issued.set(commandId, { at, iterations: iterationsOf(event) });
      attempts.set(`${commandId}/1`, fresh(commandId, 1, at, iterationsOf(event)));
      continue;
    }
    const origin = issued.get(commandId);
    if (origin === undefined) continue;
    const number = typeof event["attempt"] === "number" ? event["attempt"] : 1;
    const key = `${commandId}/${number}`;
    const attempt = attempts.get(key) ?? fresh(commandId, number, origin.at, origin.iterations);
    attempts.set(key, attempt);
    take(attempt, event, at);
  }
  return [...attempts.values()].reverse();
}

function take(attempt: Attempt, event: Fields, at: number): void {
  if (typeof event["worker"] === "string") attempt.worker = event["worker"];
  if (event.event_type === "command.claimed") attempt.claimedAt = at;
  else if (event.event_type === "task.done") attempt.tasks.push(taskRun(event, at));
  else if (event.event_type === "command.completed" || event.event_type === "command.failed") {
    attempt.endedAt = at;
    attempt.failed = event.event_type === "command.failed";
  }
}

function taskRun(event: Fields, at: number): TaskRun {
  const given = isRecord(event.result) ? event.result["context"] : undefined;
  const context: Record<string, unknown> = isRecord(given) ? given : {};
  return {
    eventId: event.event_id,
    name: event.node_name,
    run: typeof context["run"] === "number" ? context["run"] : 1,
    status: event.status.toLowerCase(),
    at,
    durationMs: typeof event["duration_ms"] === "number" ? event["duration_ms"] : 0,
    shown: event.error ?? context["value"] ?? event.result?.["reference"] ?? context,
  };
}

function fresh(commandId: string, attempt: number, issuedAt: number, iterations: string | undefined): Attempt {
  return {
    key: `${commandId}/${attempt}`,
    attempt,
    issuedAt,
    claimedAt: undefined,
    endedAt: undefined,
    worker: undefined,
    failed: false,
    iterations,
    tasks: [],
  };
}

function iterationsOf(event: Fields): string | undefined {
  const iterations = isRecord(event.meta) ? event.meta["iterations"] : undefined;
  return isRecord(iterations) ? `${String(iterations["from"])}–${Number(iterations["to"]) - 1}` : undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
