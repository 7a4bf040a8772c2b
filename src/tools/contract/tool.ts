import type { ResultStore } from "../../ports/result-store.ts";
import type { TokenOptions } from "../../ports/secret-source.ts";
import type { ProgressNumbers } from "../../schema/words/event.ts";
import type { Json, JsonObject } from "../../schema/words/json.ts";
import type { ToolResult } from "../../schema/words/outcome.ts";

/** A credential with its decrypted data. Lives only while the task runs; never logged. */
export interface Credential {
  name: string;
  /** `sqldb`, `oauth2`, `bearer`, `basic`, `api_key`, `service_account`, `warehouse`, `broker`, `analytics_db`, `custom`. */
  type: string;
  data: JsonObject;
  /** An operator has stored it. Absent: it is written in the playbook. */
  isStored?: true;
}

/** OAuth tokens of credentials without a stored token, cached by the worker for all its tasks. */
export interface CredentialTokens {
  /** Throws `FlowError` UNAUTHENTICATED where it was refused, UNAVAILABLE without an answer, INVALID_INPUT. */
  of(credential: Credential, wish?: TokenOptions): Promise<string>;
  /** Whom it was for did not take it: the next one is a fresh one. */
  forget(token: string): void;
}

/** One call of a tool: everything it needs, already rendered and resolved. */
export interface ToolCall {
  /** The task's own keys, templates rendered. The tool parses it; what does not fit is an error of kind `configuration`. */
  config: JsonObject;
  /** Inputs by name: what arrived over the arc, the step's, the task's; later wins. */
  input: JsonObject;
  /** Credentials of the task's `auth`, by alias; a single one stands under its own name and under `default`. */
  auth: Readonly<Record<string, Credential>>;
  /** Absent: nothing here requests tokens. */
  tokens?: CredentialTokens;
  executionId: string;
  /**
   * Whose code this is, and in whose name it runs: the code of two domains never shares a process. Any text; equal for all that
   * one person runs on a machine of their own.
   */
  trustDomain: string;
  step: string;
  task: string;
  /** 1-based run of this task by its retry policy. */
  attempt: number;
  /** The same for every attempt of this task run: the default idempotency key of unsafe calls. */
  taskRunId: string;
  /** Aborted by a time-out, a cancellation or a shutdown. The tool then stops what it started and returns soon. */
  signal: AbortSignal;
  /** One line of the tool's own output, for the task's log. */
  log(line: string): void;
  /**
   * Reports progress as an event of the execution, at most every 2 s. Returns at once and never throws, so that a tool may call
   * it after every chunk. Absent: progress is not reported.
   */
  progress?(numbers: ProgressNumbers): void;
  /** Every name that templates could read here, for tools that run code (`context` of python). Built when called. */
  names(): JsonObject;
  /** Opens sealed texts in a stored payload; absent for tools that read no payloads. */
  open?(payload: Json): Promise<Json>;
  /** Where stored results are read, for tools that read any; absent: where the tool itself does. */
  stored?: ResultStore;
  /** W3C `traceparent` of this run, for calls over the network; absent without a trace. */
  traceparent?: string;
  /** Document that the task stands in, and the line of its code there, for error messages. */
  source: { file: string; codeLine?: number };
}

/** A kind of task that can be run. A failure of the work is a result with `status: "error"`, never an exception. */
export interface Tool {
  /** Used if the task sets no time-out; absent: no limit. */
  readonly defaultTimeoutMs?: number;
  run(call: ToolCall): Promise<ToolResult>;
  /** Frees what the tool holds: pools, processes, connections. */
  close?(): Promise<void>;
}
