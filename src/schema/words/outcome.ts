import type { Json, JsonObject } from "./json.ts";

/** Kinds of task error (language document, 5.4). */
export const TASK_ERROR_KINDS = [
  "connection",
  "timeout",
  "rate_limit",
  "auth",
  "not_found",
  "client_error",
  "server_error",
  "schema",
  "parse",
  "transform",
  "template",
  "configuration",
  "db_connection",
  "db_constraint",
  "db_deadlock",
  "db_timeout",
  "db_error",
  "storage_quota",
  "storage_access",
  "sub_playbook",
  "cancelled",
  "policy",
  "unknown",
] as const;
/** Kind of a {@link TaskError}: one of {@link TASK_ERROR_KINDS}. */
export type TaskErrorKind = (typeof TASK_ERROR_KINDS)[number];

/** Code of the error of a command that was lost with one worker after the other. */
export const WORKER_LOST = "WORKER_LOST";

/** Why a task failed. `message` reaches users: it contains no stack of flow's code and no secret. */
export type TaskError = {
  kind: TaskErrorKind;
  /** `HTTP_<n>`, SQLSTATE, or a symbolic code. */
  code: string;
  message: string;
  /** Trying again may help. */
  retryable: boolean;
  /** HTTP status where there is one. */
  status?: number;
  status_code?: number;
  details?: Json;
  task?: string;
  step?: string;
  /** Run of the task by its policy, from 1 (not the attempt of the command, its fencing token). */
  attempt?: number;
};

/** A large JSON text that was not read as a whole. */
export interface LargeJson {
  /** In ASCII, without escapes, as `JSON.stringify` would write its value. */
  text: Uint8Array<ArrayBuffer>;
  /** The value with an empty list in place of each text of more than 256 characters. */
  outline: Json;
}

/** A file that a task stores beside its result. */
export interface NewArtifact {
  /** The name of a file, without folders. */
  name: string;
  /** Media type, as its author says; never believed where it is shown. */
  contentType: string;
  content: Uint8Array<ArrayBuffer>;
}

/** A file that a task has left in its folder. */
export interface TaskFile {
  /** With `/` between folders. */
  name: string;
  contentType: string;
  /** Its bytes, read when this is called. Throws `FlowError` INVALID_INPUT. */
  content(): Promise<Uint8Array<ArrayBuffer>>;
}

/** Most files of one task run: its report names each. */
export const TASK_FILES_MAX = 100;

/** What a task has left in the folder of `FLOW_ARTIFACTS`. The worker removes them. */
export interface TaskFiles {
  /** Throws `FlowError` INVALID_INPUT for what may not be stored. */
  list(): Promise<TaskFile[]>;
  /** Never throws. */
  remove(): Promise<void>;
}

/** What a tool answers. It never throws for a failure of the work: that is `status: "error"` with an `error`. */
export interface ToolResult {
  status: "ok" | "error";
  /** The result as templates see it; kept on errors too where there is one (an HTTP body). */
  data: Json;
  /** The JSON text of `data`, which is parsed when it is first asked for: not at all where no template of the task reads it. */
  large?: LargeJson;
  /** Fields readable on the result by name although they are not part of it (`command_0`). */
  virtual?: JsonObject;
  error?: TaskError;
  http?: { status: number; headers: JsonObject };
  pg?: { code: string; sqlstate: string };
  py?: { exception: string; traceback: string };
  /** To be stored; `data` then says where. */
  artifact?: NewArtifact;
  /** To be stored besides, whether the task has succeeded or not. */
  files?: TaskFiles;
  /** The execution that a task of kind `playbook` called. Not `data.execution_id`: a child's own result may have a field of that name. */
  childId?: string;
}

/** A {@link ToolResult} that failed with `error` and has no data. */
export function failed(
  kind: TaskErrorKind,
  code: string,
  message: string,
  more: Omit<Partial<TaskError>, "kind" | "code" | "message"> = {},
): ToolResult {
  const { retryable = kind === "connection" || kind === "timeout" || kind === "rate_limit", ...rest } = more;
  // In this order, which is that of errors that travelled: playbooks see the order of keys.
  return { status: "error", data: null, error: { kind, code, message, retryable, ...rest } };
}
