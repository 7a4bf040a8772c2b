import type { EventRecord } from "../../api/types.ts";

/** An event with the fields that only some have. */
export type Fields = EventRecord & Record<string, unknown>;

/** Why a task failed: the fields that the page reads. */
export interface TaskFailure {
  code: string;
  message: string;
  kind?: string;
  retryable?: boolean;
  status?: number;
  details?: unknown;
  step?: string;
  task?: string;
  attempt?: number;
}

/** Lines that a task wrote; `dropped`: earlier lines that were not kept. */
export interface TaskLines {
  lines: string[];
  dropped: number;
}

/** One run of a task within an attempt. */
export interface TaskRun {
  /** Of its end; while it runs, of its latest event. */
  eventId: number;
  name: string;
  run: number;
  status: string;
  at: number;
  durationMs: number;
  iteration: number | undefined;
  /** Its result, or its error. */
  shown: unknown;
  failure: TaskFailure | undefined;
  /** Its result was left out of the answer, because it is long. */
  isOmitted: boolean;
  /** Custom progress numbers of the task. */
  progress: Readonly<Record<string, unknown>> | undefined;
  log: TaskLines | undefined;
  /** When it is run again, RFC 3339. */
  nextRunAt: string | undefined;
  /** The execution that it called. */
  childId: string | undefined;
}

/** Adds an event of a task's run to the runs of its attempt. Other events are ignored. */
export function takeTask(runs: TaskRun[], event: Fields): void {
  const isEnd = event.event_type === "task.done";
  if (!isEnd && event.event_type !== "task.progress" && !event.event_type.startsWith("call.")) return;
  const context = contextOf(event);
  const number = typeof context["run"] === "number" ? context["run"] : 1;
  const run = runOf(runs, event, number);
  run.eventId = event.event_id;
  run.at = Date.parse(event.created_at);
  if (typeof context["next_run_at"] === "string") run.nextRunAt = context["next_run_at"];
  if (typeof context["child_execution_id"] === "string") run.childId = context["child_execution_id"];
  if (isRecord(context["progress"])) run.progress = context["progress"];
  takeLines(run, context["log"], isEnd);
  if (isEnd) takeEnd(run, event, context);
}

/** The last run of this name, iteration and number that has not ended, or a new one. */
function runOf(runs: TaskRun[], event: Fields, number: number): TaskRun {
  const iteration = typeof event["iteration"] === "number" ? event["iteration"] : undefined;
  const known = runs.findLast(
    (run) =>
      run.name === event.node_name && run.iteration === iteration && (run.run === number || run.status === RUNNING),
  );
  if (known?.status === RUNNING) {
    known.run = number;
    return known;
  }
  const made: TaskRun = {
    eventId: event.event_id,
    name: event.node_name,
    run: number,
    status: RUNNING,
    at: Date.parse(event.created_at),
    durationMs: 0,
    iteration,
    shown: undefined,
    failure: undefined,
    isOmitted: false,
    progress: undefined,
    log: undefined,
    nextRunAt: undefined,
    childId: undefined,
  };
  runs.push(made);
  return made;
}

const RUNNING = "running";

function takeEnd(run: TaskRun, event: Fields, context: Readonly<Record<string, unknown>>): void {
  run.status = event.status.toLowerCase();
  run.durationMs = typeof event["duration_ms"] === "number" ? event["duration_ms"] : 0;
  const omitted = event["omitted"];
  run.isOmitted = Array.isArray(omitted) && (omitted.includes("result") || omitted.includes("error"));
  if (isRecord(event.error)) run.failure = event.error as unknown as TaskFailure;
  run.shown = event.error ?? event.result?.["reference"] ?? context["value"];
}

/** While a task runs its lines come one after another; its end has those that are kept. */
function takeLines(run: TaskRun, log: unknown, isEnd: boolean): void {
  if (!isRecord(log) || !Array.isArray(log["lines"])) return;
  const lines = log["lines"].filter((line) => typeof line === "string");
  const before = isEnd ? undefined : run.log;
  const from = typeof log["from"] === "number" ? log["from"] : (before?.lines.length ?? 0);
  const dropped = typeof log["dropped"] === "number" ? log["dropped"] : 0;
  if (isEnd || before === undefined) run.log = { lines, dropped: isEnd ? dropped : from };
  else run.log = { lines: [...before.lines, ...lines].slice(-LINES_MAX), dropped: cutOff(before, lines) };
}

/** Lines of a running task that are kept in the page. */
const LINES_MAX = 2_000;

function cutOff(before: TaskLines, lines: readonly string[]): number {
  return before.dropped + Math.max(0, before.lines.length + lines.length - LINES_MAX);
}

/** The data of an event: in its result if it has one, else in its meta. */
function contextOf(event: Fields): Readonly<Record<string, unknown>> {
  const context = isRecord(event.result) ? event.result["context"] : undefined;
  if (isRecord(context)) return context;
  return isRecord(event.meta) ? event.meta : {};
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
