import * as v from "valibot";
import { type FlowEvent, LOG_LINE_CHARS_MAX, LOG_LINES_MAX, PROGRESS_NUMBERS_MAX } from "../words/event.ts";
import { isJsonObject, type Json, type JsonObject, own } from "../words/json.ts";
import { TASK_FILES_MAX } from "../words/outcome.ts";
import { placeOfArtifact, type StoredResult } from "../words/result.ts";
import { IdInput, storableText, Timestamp } from "../words/wire.ts";
import { currentRef, REF_MAX } from "./results.ts";
import { isOpenEnded, ResumeInput, WaitInput } from "./waits/wait-input.ts";

/*
 * Events as workers send them (interface specification, Event batches): the fields of an event record that a worker knows.
 * Events come from another process, perhaps from another program: `fromInput` gives an event that is safe to
 * fold, or says what is wrong with it.
 */

/** Types of event that a worker may send. All others are decided by the engine. */
export const REPORTED_TYPES = [
  "command.started",
  "command.parked",
  "task.progress",
  "task.done",
  "call.done",
  "call.error",
  "loop.iteration.completed",
  "loop.iteration.failed",
  "command.completed",
  "command.failed",
] as const;
/** One of {@link REPORTED_TYPES}. */
export type ReportedType = (typeof REPORTED_TYPES)[number];
/** An event that a worker sends. */
export type ReportedEvent = Extract<FlowEvent, { type: ReportedType }>;

const count = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(Number.MAX_SAFE_INTEGER));
const shortText = storableText(1_024);
const object = v.record(v.string(), v.unknown());

/**
 * Most bytes of one event, as JSON. Events carry envelopes, never raw large bodies (interface specification, Standing rules):
 * a result that is kept inline has 1 MiB at most, the rest is room for its further fields. However large a batch may be.
 */
export const EVENT_BYTES_MAX = 1_572_864;

/** Why something failed. */
export const ErrorInput = v.looseObject({
  kind: v.exactOptional(shortText, "unknown"),
  code: v.exactOptional(shortText, "UNKNOWN"),
  message: v.string(),
  retryable: v.exactOptional(v.boolean(), false),
});

/** The reference envelope: a status, a reference where the payload is in a store, bounded context. */
export const EnvelopeInput = v.strictObject({
  status: v.picklist(["ok", "error"]),
  reference: v.exactOptional(v.nullable(object)),
  context: v.exactOptional(object),
});

/** One event of a batch. */
export const EventInput = v.object({
  event_type: v.picklist(REPORTED_TYPES),
  execution_id: v.exactOptional(IdInput),
  command_id: IdInput,
  attempt: v.pipe(
    v.number(),
    v.integer(),
    v.minValue(1),
    v.maxValue(2_147_483_647),
    v.description("Of the claim, as its answer said."),
  ),
  step: v.exactOptional(shortText),
  task: v.exactOptional(shortText),
  status: v.exactOptional(shortText),
  iteration: v.exactOptional(count),
  page: v.exactOptional(count),
  task_run_id: v.exactOptional(shortText),
  step_run_id: v.exactOptional(shortText),
  duration_ms: v.exactOptional(v.pipe(v.number(), v.minValue(0), v.maxValue(Number.MAX_SAFE_INTEGER))),
  result: v.exactOptional(EnvelopeInput),
  error: v.exactOptional(v.nullable(ErrorInput)),
  meta: v.exactOptional(v.nullable(object)),
  created_at: v.exactOptional(
    v.pipe(
      v.string(),
      v.check((text) => !Number.isNaN(Date.parse(text)), "must be a time"),
    ),
  ),
});
/** One event of a batch, validated. */
export type EventInput = v.InferOutput<typeof EventInput>;

/**
 * An event of a worker in the form in which it is sent: what {@link fromInput} needs to make the same event again, and nothing
 * that it knows otherwise, such as the worker's name. Every step passes through here twice: one walk over the event's keys.
 */
export function toInput(event: ReportedEvent, executionId: string): JsonObject {
  const fields = event as unknown as JsonObject;
  const input: JsonObject = {
    execution_id: executionId,
    event_type: event.type,
    created_at: new Date(event.at).toISOString(),
  };
  const body: JsonObject = {};
  let isBodyEmpty = true;
  for (const key of Object.keys(fields)) {
    if (HEAD_FIELDS.has(key)) {
      input[key] = fields[key] as Json;
    } else if (!OTHERWISE_SENT.has(key)) {
      body[key] = fields[key] as Json;
      isBodyEmpty = false;
    }
  }
  if (RESULT_TYPES.has(event.type)) input["result"] = toEnvelope(fields, body);
  else if (!isBodyEmpty) input["meta"] = body;
  return input;
}

function toEnvelope(fields: JsonObject, context: JsonObject): JsonObject {
  const stored = own(fields, "result") as StoredResult | undefined;
  if (stored?.value !== undefined) context["value"] = stored.value;
  if (stored?.virtual !== undefined) context["virtual"] = stored.virtual as unknown as Json;
  if (stored?.about !== undefined) context["about"] = stored.about as unknown as Json;
  const status = own(fields, "status") ?? (own(fields, "error") === undefined ? "ok" : "error");
  const envelope: JsonObject = { status: status as Json, context };
  if (stored?.ref !== undefined) envelope["reference"] = stored.ref as unknown as Json;
  return envelope;
}

/**
 * The event, or the reason why it is invalid. `now` (milliseconds since 1970) replaces a missing time, and bounds a
 * given one. What only the execution's state can supply may still be absent: `step` is empty then, and a command's end has no
 * `tasks`. Only known fields are taken over: whatever else a body holds can become no part of an event.
 */
export function fromInput(input: EventInput, worker: string, now: number): ReportedEvent | string {
  const context = input.result?.context ?? {};
  const event: Record<string, unknown> = {};
  for (const from of [input.meta ?? {}, context]) {
    for (const key of BODY_FIELDS) if (own(from, key) !== undefined) event[key] = own(from, key);
  }
  for (const key of INPUT_FIELDS) if (own(input, key) != null) event[key] = own(input, key);
  event["type"] = input.event_type;
  event["at"] = input.created_at === undefined ? now : Math.min(Math.max(Date.parse(input.created_at), 0), now);
  event["step"] = input.step ?? "";
  event["worker"] = worker;
  // The specification has a task's label in the result's context.
  const task = input.task ?? own(context, "task");
  if (task !== undefined && /^(task|call|command\.parked)/.test(input.event_type)) event["task"] = task;
  const problem = complete(event, input);
  return problem ?? (event as unknown as ReportedEvent);
}

/** Fields of reported events that travel in `result.context` or `meta`. */
const BODY_FIELDS = [
  "iteration_id",
  "run",
  "final",
  "progress",
  "log",
  "files",
  "next_run_at",
  "bytes",
  "tasks",
  "pipeline",
  "results",
  "set",
  "rows",
  "iterations",
  "child_execution_id",
  "wait",
  "resume",
  "wake_at",
  "limit",
] as const;
/** Fields that the input has under the event's own names. */
const INPUT_FIELDS = [
  "command_id",
  "attempt",
  "iteration",
  "page",
  "task_run_id",
  "step_run_id",
  "duration_ms",
  "error",
] as const;
/** Fields of an event that its input has at the top, under the same names. */
const HEAD_FIELDS: ReadonlySet<string> = new Set(["step", "task", ...INPUT_FIELDS]);
/** Fields that stand elsewhere: in the envelope, or once for all events of a request. */
const OTHERWISE_SENT: ReadonlySet<string> = new Set(["type", "at", "status", "result", "worker"]);
/** Events with a reference envelope: what a piece of work gave, and not what is to know about it. */
const RESULT_TYPES: ReadonlySet<string> = new Set<ReportedType>([
  "task.done",
  "loop.iteration.completed",
  "loop.iteration.failed",
  "command.completed",
  "command.failed",
]);

/** Fills what has a default, and says what is missing or of the wrong shape. */
function complete(event: Record<string, unknown>, input: EventInput): string | undefined {
  switch (input.event_type) {
    case "command.started":
      return undefined;
    case "command.parked":
      return (
        wrong(event, "task", isText) ??
        wrong(event, "wait", (value) => v.is(WaitInput, value)) ??
        wrong(event, "resume", (value) => v.is(ResumeInput, value)) ??
        wrong(event, "wake_at", isOpenEnded(event["wait"]) ? isOptional(isTimestamp) : isTimestamp) ??
        wrong(
          event,
          "limit",
          isOptional((value) => value === true),
        )
      );
    case "task.progress":
      event["run"] ??= 1;
      event["task_run_id"] ??= "";
      // A task that only logs has no numbers to report.
      if (event["log"] !== undefined) event["progress"] ??= {};
      return (
        wrong(event, "task", isText) ??
        wrong(event, "run", isCount) ??
        wrong(event, "log", isOptional(isLog)) ??
        wrong(event, "progress", (value) => isProgress(value, event["log"] !== undefined))
      );
    case "call.done":
      return wrong(event, "task", isText);
    case "call.error":
      event["run"] ??= 1;
      if (input.error == null) return "error: is required";
      return (
        wrong(event, "task", isText) ??
        wrong(event, "run", isCount) ??
        wrong(event, "next_run_at", isOptional(isTimestamp))
      );
    case "task.done":
      return completeTask(event, input);
    case "loop.iteration.completed":
    case "loop.iteration.failed":
      if (input.iteration === undefined) return "iteration: is required";
      event["tasks"] ??= [];
      return completeEnd(event, input);
    case "command.completed":
    case "command.failed":
      return wrong(event, "rows", isOptional(Array.isArray)) ?? completeEnd(event, input);
  }
}

function completeTask(event: Record<string, unknown>, input: EventInput): string | undefined {
  if (input.result === undefined) return "result: is required";
  const result = storedResult(input.result);
  event["status"] = input.result.status;
  event["run"] ??= 1;
  event["final"] ??= true;
  event["task_run_id"] ??= "";
  event["duration_ms"] ??= 0;
  // A run that is followed by another one keeps no result.
  if (event["final"] === true || result !== undefined) {
    event["result"] = result ?? { value: null };
    event["bytes"] ??= result === undefined ? 0 : JSON.stringify(result).length;
  }
  return (
    wrong(event, "task", isText) ??
    wrong(event, "run", isCount) ??
    wrong(event, "final", (value) => typeof value === "boolean") ??
    wrong(event, "iteration_id", isOptional(isText)) ??
    wrong(event, "bytes", isOptional(isCount)) ??
    wrong(event, "next_run_at", isOptional(isTimestamp)) ??
    wrong(event, "log", isOptional(isLog)) ??
    wrong(event, "files", isOptional(isFiles)) ??
    wrong(event, "result", isOptional(isStoredResult))
  );
}

/** The result within an envelope; undefined when it has none. */
function storedResult({ reference, context = {} }: v.InferOutput<typeof EnvelopeInput>): JsonObject | undefined {
  const value = own(context, "value") as Json | undefined;
  if (value === undefined && reference == null) return undefined;
  const result: JsonObject = {};
  if (value !== undefined) result["value"] = value;
  if (reference != null) result["ref"] = currentRef(reference as JsonObject);
  for (const key of ["virtual", "about"]) {
    const field = own(context, key) as Json | undefined;
    if (field !== undefined) result[key] = field;
  }
  return result;
}

function completeEnd(event: Record<string, unknown>, input: EventInput): string | undefined {
  const failed = input.event_type.endsWith(".failed");
  if (failed && input.error == null) return "error: is required";
  if (!failed) delete event["error"];
  if (event["pipeline"] !== true) delete event["pipeline"];
  return (
    wrong(
      event,
      "tasks",
      isOptional((value) => Array.isArray(value) && value.every(isText)),
    ) ??
    wrong(
      event,
      "set",
      isOptional((value) => Array.isArray(value) && value.every(isWrite)),
    ) ??
    wrong(event, "iterations", isOptional(isCount)) ??
    wrong(
      event,
      "results",
      isOptional((value) => Array.isArray(value) && value.every(isTaskResult)),
    )
  );
}

function wrong(event: Record<string, unknown>, key: string, is: (value: unknown) => boolean): string | undefined {
  const value = own(event, key);
  if (is(value)) return undefined;
  return `${key}: ${value === undefined ? "is required" : "is of the wrong type"}`;
}

const isOptional = (is: (value: unknown) => boolean) => (value: unknown) => value === undefined || is(value);
const isText = (value: unknown) => typeof value === "string" && value !== "";
const isCount = (value: unknown) => typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
const isTimestamp = (value: unknown) => v.is(Timestamp, value);
/** A run's output for people, bounded as flow's own workers bound it. */
const isLog = (value: unknown) => {
  if (!isJsonObject(value)) return false;
  const lines = own(value, "lines");
  return (
    Array.isArray(lines) &&
    lines.length <= LOG_LINES_MAX &&
    lines.every((line) => typeof line === "string" && line.length <= LOG_LINE_CHARS_MAX) &&
    isOptional(isCount)(own(value, "from")) &&
    isOptional(isCount)(own(value, "dropped"))
  );
};
const isFiles = (value: unknown) =>
  Array.isArray(value) &&
  value.length <= TASK_FILES_MAX &&
  value.every((ref) => typeof ref === "string" && ref.length <= REF_MAX && placeOfArtifact(ref) !== undefined);
/** What people are shown: few numbers, under names that a terminal and a database take as they are. */
const isProgress = (value: unknown, mayBeEmpty: boolean) => {
  if (!isJsonObject(value)) return false;
  const entries = Object.entries(value);
  return (
    (mayBeEmpty || entries.length > 0) &&
    entries.length <= PROGRESS_NUMBERS_MAX &&
    entries.every(([name, number]) => typeof number === "number" && /^[a-z][a-z0-9_]{0,63}$/.test(name))
  );
};
const isTaskResult = (entry: unknown) =>
  Array.isArray(entry) && entry.length === 3 && isText(entry[0]) && isStoredResult(entry[1]) && isCount(entry[2]);
const isWrite = (value: unknown) => Array.isArray(value) && value.length === 2 && typeof value[0] === "string";

/** Fields of a stored result that are read without a look at their shape. Workers send values and references only. */
function isStoredResult(value: unknown): boolean {
  if (!isJsonObject(value)) return false;
  const reference = own(value, "ref");
  const virtual = own(value, "virtual");
  const about = own(value, "about");
  return (
    (reference === undefined || isReference(reference as Json)) &&
    (virtual === undefined || (isJsonObject(virtual) && Object.values(virtual).every(isStoredResult))) &&
    (about === undefined || (isJsonObject(about) && isJsonObject(own(about, "meta"))))
  );
}

function isReference(value: Json): boolean {
  if (!isJsonObject(value) || typeof value["ref"] !== "string") return false;
  return isJsonObject(value["meta"]) && isJsonObject(value["extracted"]) && isJsonObject(value["preview"]);
}

/** True for an event that a worker may send. */
export function isReported(event: FlowEvent): event is ReportedEvent {
  return (REPORTED_TYPES as readonly string[]).includes(event.type);
}
