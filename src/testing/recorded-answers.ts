import { fromRecord } from "../schema/rules/event-record.ts";
import type { EventOf } from "../schema/words/event.ts";
import type { Json, JsonObject } from "../schema/words/json.ts";
import type { ToolResult } from "../schema/words/outcome.ts";
import { answerResult } from "./answer.ts";
import { leftOut, type RecordedRun } from "./recorded-run.ts";

/** The answers that tools gave in a recorded run, for its tasks when they are run again. */
export interface RecordedAnswers {
  /** The record has a call of this task, `step.task`. */
  has(task: string): boolean;
  /**
   * What the tool answered to the next call of a task, of one iteration by itself: iterations are not called in the order in which they
   * end. Undefined: the record has no further call; a text: why its answer is not known.
   */
  next(task: string, iteration: number | undefined, kind: string, config: JsonObject): ToolResult | string | undefined;
}

type Done = EventOf<"task.done">;

/** The answers of a run, with `isFinalOnly` without those after which a task was tried again; its sub-playbooks as the answers of the tasks that called them. */
export function recordedAnswers(
  run: RecordedRun,
  { isFinalOnly = false }: { isFinalOnly?: boolean } = {},
): RecordedAnswers {
  const { events, payloads, file } = run;
  const calls = new Map<string, Done[]>();
  const tasks = new Set<string>();
  for (const record of events) {
    if (record.event_type !== "task.done") continue;
    const done = fromRecord(record) as Done;
    if (isFinalOnly && !done.final) continue;
    const task = `${done.step}.${done.task}`;
    tasks.add(task);
    const key = keyOf(task, done.iteration);
    calls.set(key, [...(calls.get(key) ?? []), done]);
  }
  const recordedValue = ({ result }: Done): { value: Json } | string => {
    if (result?.ref === undefined) return { value: result?.value ?? null };
    const { ref } = result.ref;
    const payload = payloads.get(ref)?.payload;
    if (payload !== undefined) return { value: payload };
    return `${file} leaves out the result ${ref}: ${leftOut(run, ref)}, or write a mock`;
  };
  return {
    has: (task) => tasks.has(task),
    next(task, iteration, kind, config) {
      const done = calls.get(keyOf(task, iteration))?.shift();
      if (done === undefined) return undefined;
      if (done.error !== undefined) {
        const { kind: errorKind, code, message, retryable, status, details } = done.error;
        const error = { kind: errorKind, code, message, retryable, ...numbered(status), ...present(details) };
        return answerResult({ error }, kind, config, task);
      }
      const found = recordedValue(done);
      if (typeof found === "string") return found;
      const answer = answerResult({ result: found.value }, kind, config, task);
      return done.result?.virtual === undefined ? answer : { ...answer, virtual: done.result.virtual };
    },
  };
}

function numbered(status: Json | undefined): { status?: number } {
  return typeof status === "number" ? { status } : {};
}

function present(details: Json | undefined): { details?: Json } {
  return details === undefined ? {} : { details };
}

function keyOf(task: string, iteration: number | undefined): string {
  return `${task}\n${iteration ?? ""}`;
}
