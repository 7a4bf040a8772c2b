import type { Json, JsonObject } from "../../schema/words/json.ts";
import { noteJsonText } from "../../schema/words/json-text.ts";
import type { LargeJson } from "../../schema/words/outcome.ts";
import { outlineOf } from "./large-value.ts";

/** A task as the harness takes it. */
export interface PythonRequest {
  code: string;
  /** Name of the code's file in tracebacks. */
  label: string;
  /** Line of that file that holds the first line of the code. */
  firstLine: number;
  input: JsonObject;
  /** Alias → module, or what to take `from` a module. */
  libs: Record<string, string | { from: string; import: string }>;
  executionId: string;
}

/** Requests to the caller while a task runs. */
export interface PythonHooks {
  log(line: string): void;
  /** Every name of the playbook: sent only when the code asks for it. */
  names(): JsonObject;
}

/** An exception, as the harness reports it. */
export interface PythonError {
  exception: string;
  code: string;
  message: string;
  traceback: string;
  line: number | null;
  function: string | null;
  retryable: boolean;
}

/** How a task ended. */
export type PythonAnswer =
  | { type: "value"; value: Json }
  | { type: "large"; value: LargeJson }
  | { type: "error"; error: PythonError }
  /** {@link Interpreter.kill} was called. */
  | { type: "stopped" }
  /** The interpreter ended under the code. `code` is `EXIT_<n>` or a signal's name; `how` completes "The interpreter …". */
  | { type: "lost"; code: string; how: string };

/** What an interpreter says. */
export type Message =
  | { type: "ready"; executable: string }
  | { type: "names" }
  | { type: "done"; retire: boolean; value?: Json; error?: PythonError; large?: LargeJson };

/** What stands before the value in a message with one. */
const BEFORE_VALUE = /^\{"type":"done","retire":(?:true|false),"value":/;
const BEFORE_VALUE_CHARS = 64;

/**
 * Parses a message. The value of a result keeps its text: that of most results is what they are reported or stored as. A large one
 * stays as it came, where that is possible.
 */
export function parseMessage(bytes: Buffer<ArrayBuffer>): Message {
  const head = BEFORE_VALUE.exec(bytes.toString("latin1", 0, BEFORE_VALUE_CHARS))?.[0];
  const large = head === undefined ? undefined : outlineOf(bytes.subarray(head.length, -1));
  if (head !== undefined && large !== undefined) return { type: "done", retire: head.includes("true"), large };
  // The harness writes ASCII, which decodes faster as latin1.
  const text = bytes.toString("latin1");
  const message = JSON.parse(text) as Message;
  if (message.type !== "done" || message.value === undefined) return message;
  if (head !== undefined) noteJsonText(message.value, text.slice(head.length, -1));
  return message;
}

/** How the task ended, of its last message. */
export function answerOf({ value = null, error, large }: Extract<Message, { type: "done" }>): PythonAnswer {
  if (error !== undefined) return { type: "error", error };
  return large === undefined ? { type: "value", value } : { type: "large", value: large };
}
