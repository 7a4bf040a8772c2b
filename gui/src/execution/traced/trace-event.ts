import type { EventRecord } from "../../../../src/schema/rules/event-record.ts";

/** What the trace keeps of an event: a log of 100,000 of them is some megabytes. */
export interface TraceEvent {
  id: number;
  type: string;
  /** Milliseconds since 1970. */
  at: number;
  step: string;
  /** The task, where it is one's; else the step. */
  task: string;
  commandId: string | undefined;
  stepRunId: string | undefined;
  attempt: number | undefined;
  iteration: number | undefined;
  worker: string | undefined;
  durationMs: number;
  isFailed: boolean;
  /** Which run of its task it is about, from 1. */
  run: number | undefined;
  /** The execution that it called. */
  childId: string | undefined;
  /** Iterations of a command, `to` not among them. */
  iterations: { from: number; to: number } | undefined;
  code: string | undefined;
  message: string | undefined;
  /** When its task is run again, RFC 3339. */
  nextRunAt: string | undefined;
  /** What its task wrote: `from` is the number of the first line; `dropped` earlier ones were not kept. */
  log: { lines: readonly string[]; from: number | undefined; dropped: number } | undefined;
  /** Its values are long and were left out, the log with them. */
  isOmitted: boolean;
}

/** Types that say when something of a step ran, waited or ended; others change nothing in the trace. */
const SHOWN: ReadonlySet<string> = new Set([
  "command.issued",
  "command.claimed",
  "command.parked",
  "command.woken",
  "command.completed",
  "command.failed",
  "command.cancelled",
  "task.done",
  "task.progress",
  "call.done",
  "call.error",
  "loop.iteration.completed",
  "loop.iteration.failed",
]);

/** An event as the trace keeps it; undefined for one that it does not show. */
export function traceEventOf(record: EventRecord): TraceEvent | undefined {
  if (!SHOWN.has(record.event_type)) return undefined;
  const fields: Record<string, unknown> = record;
  const { result, meta, error: failure } = fields;
  const context = isRecord(result) ? result["context"] : undefined;
  const data = isRecord(context) ? context : isRecord(meta) ? meta : {};
  const error = isRecord(failure) ? failure : {};
  return {
    id: record.event_id,
    type: record.event_type,
    at: Date.parse(record.created_at),
    step: record.node_id,
    task: record.node_name,
    commandId: text(fields["command_id"]),
    stepRunId: text(fields["step_run_id"]),
    attempt: number(fields["attempt"]),
    iteration: number(fields["iteration"]),
    worker: text(fields["worker"]),
    durationMs: number(fields["duration_ms"]) ?? 0,
    isFailed: record.status === "FAILED",
    run: number(data["run"]),
    childId: text(data["child_execution_id"]) ?? calledBy(error),
    iterations: rangeOf(data["iterations"]),
    code: text(error["code"]),
    message: text(error["message"]) ?? text(data["reason"]),
    nextRunAt: text(data["next_run_at"]),
    log: linesOf(data["log"]),
    isOmitted:
      Array.isArray(fields["omitted"]) && fields["omitted"].some((field) => field === "result" || field === "meta"),
  };
}

function linesOf(value: unknown): TraceEvent["log"] {
  if (!isRecord(value) || !Array.isArray(value["lines"])) return undefined;
  const lines = value["lines"].filter((line) => typeof line === "string");
  return { lines, from: number(value["from"]), dropped: number(value["dropped"]) ?? 0 };
}

/** Of a call that failed, its error names what was called. */
function calledBy({ kind, details }: Record<string, unknown>): string | undefined {
  return kind === "sub_playbook" && isRecord(details) ? text(details["execution_id"]) : undefined;
}

function rangeOf(value: unknown): TraceEvent["iterations"] {
  if (!isRecord(value)) return undefined;
  const [from, to] = [number(value["from"]), number(value["to"])];
  return from === undefined || to === undefined ? undefined : { from, to };
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function number(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
