import { EVENT_BYTES_MAX, isReported, type ReportedEvent, toInput } from "../../schema/api/event-input.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { FlowEvent } from "../../schema/words/event.ts";
import { knownJsonText } from "../../schema/words/json-text.ts";
import type { TaskError } from "../../schema/words/outcome.ts";
import type { Text } from "./outbox.ts";

/** Longest error message in place of an error that is too large to send. */
const MESSAGE_CHARS_MAX = 2_000;

/**
 * The JSON text of an event. Throws `FlowError` TOO_LARGE for one that is larger than an event may be, except `command.failed`:
 * that one is sent with a shortened error, because a command must get its end.
 */
export function eventText(event: FlowEvent, executionId: string): Text {
  if (!isReported(event)) throw new FlowError("INTERNAL", `A worker does not report ${event.type}`);
  const json = inputText(event, executionId);
  const bytes = Buffer.byteLength(json);
  if (event.type === "task.progress") return { json, bytes, newestOf: `${event.task_run_id}/${event.run}` };
  if (bytes <= EVENT_BYTES_MAX) return { json, bytes };
  // A result that just fits must not fail because of what its task has logged.
  if (event.type === "task.done" && event.log !== undefined && event.log.lines.length > 0) {
    const { lines, dropped = 0 } = event.log;
    return eventText({ ...event, log: { lines: [], dropped: dropped + lines.length } }, executionId);
  }
  if (event.type !== "command.failed") throw tooLarge(event.type, event.step, bytes);
  const { kind, code, message, retryable } = event.error;
  const error = { kind, code, message: message.slice(0, MESSAGE_CHARS_MAX), retryable };
  const { set: _, ...rest } = event;
  return eventText({ ...rest, error }, executionId);
}

/** {@link toInput} as text. The value of a result goes into it as the text that it came as, where that is known. */
function inputText(event: ReportedEvent, executionId: string): string {
  const result = event.type === "task.done" && event.result?.ref === undefined ? event.result : undefined;
  const text = knownJsonText(result?.value);
  if (result === undefined || text === undefined) return JSON.stringify(toInput(event, executionId));
  const { value: _, ...rest } = result;
  const without = JSON.stringify(toInput({ ...event, result: rest } as ReportedEvent, executionId));
  // `result.context` is the last of all, and never empty: it has `run` and `final`.
  const end = "}}}";
  return `${without.slice(0, -end.length)},"value":${text}${end}`;
}

/** The end of a command whose own events could not be sent. */
export function failureText(
  { command, attempt }: { command: { command_id: string; execution_id: string; step: string }; attempt: number },
  error: TaskError,
  at: number,
): Text {
  const { command_id, execution_id, step } = command;
  const message = error.message.slice(0, MESSAGE_CHARS_MAX);
  return eventText(
    { type: "command.failed", at, command_id, attempt, step, error: { ...error, message } },
    execution_id,
  );
}

function tooLarge(type: string, step: string, bytes: number): FlowError {
  const what = `Step '${step}' has ${bytes} bytes to tell in one event (${type}), and ${EVENT_BYTES_MAX} is the most`;
  const hint =
    "Keep large results out of events: lower spec.result.inline_max_bytes, set smaller variables, claim fewer rows";
  return new FlowError("TOO_LARGE", `${what}. ${hint}`);
}
