import type { Json, JsonObject } from "./json.ts";
import type { Accumulate } from "./manifest.ts";

/*
 * A playbook after loading: every spelling that an author may use is normalised to one form. It is plain JSON data, so
 * that it can be stored, sent and compared. Templates are still text here; `engine/program/program.ts` compiles them.
 */

/** The kinds of task that this program can run. Aliases (`postgres`, `sql`, `result`, `script`) are gone by now. */
export const RUNNABLE_KINDS = [
  "http",
  "shell",
  "python",
  "sqldb",
  "playbook",
  "workbook",
  "noop",
  "artifact",
  "mcp",
  "nats",
  "duckdb",
  "warehouse",
  "transfer",
  "wait",
] as const;

/** A kind of task that this program can run. */
export type RunnableKind = (typeof RUNNABLE_KINDS)[number];

/** Kinds that the language knows and parses, and that fail with kind `configuration` when run: nothing here runs them. */
export const PARSED_ONLY_KINDS = [
  "container",
  "job",
  "agent",
  "subscription",
  "rhai",
  "ducklake",
  "gcs",
  "provider",
] as const;

/** Other spellings of a kind, and the kind they stand for (language document, section 3). */
export const KIND_ALIASES: Readonly<Record<string, string>> = {
  postgres: "sqldb",
  sql: "sqldb",
  snowflake: "warehouse",
  result: "artifact",
  script: "python",
  "script job": "job",
  script_job: "job",
};

/** A place in the document's text; both count from 1. */
export interface Position {
  line: number;
  column: number;
}

/** `kind: Playbook` (or `Agent`), normalised. */
export interface Playbook {
  apiVersion: string;
  kind: string;
  /** `metadata.name`. */
  name: string;
  /** Catalog path: `metadata.path`, else the name. */
  path: string;
  metadata: JsonObject;
  /** Default inputs, with templates. Request inputs replace top-level keys. */
  workload: JsonObject;
  /** Legacy free block, readable as `spec` in templates. */
  spec: JsonObject;
  executor: Executor;
  keychain: KeychainDefinition[];
  /** Named tools for tasks of kind `workbook`; the task's label is the name. */
  workbook: Task[];
  /** Where a run starts: `executor.spec.entry_step`, else step `start`, else the first. */
  entryStep: string;
  /** In document order; never empty. */
  steps: Step[];
  /** It has triggers, which are no part of a run. */
  hasTriggers?: true;
  /** What it declares of its inputs; their defaults are in the workload. Absent: any input is accepted. */
  inputs?: DeclaredInputs;
}

/** An input as a playbook declares it. */
export interface DeclaredInput {
  /** JSON Schema (2020-12) of its value. */
  schema: JsonObject;
  /** A start without it is refused, unless there is a default. */
  required?: true;
  /** Sealed wherever it stands: in events, variables, inputs of others. A text. */
  secret?: true;
}

/** The declared inputs of a playbook by their names, in document order. */
export type DeclaredInputs = Readonly<Record<string, DeclaredInput>>;

/** How the run as a whole behaves. */
export interface Executor {
  profile?: string;
  /** Runs once when nothing else is left to do. */
  finalStep?: string;
  /** A step whose arcs all say no fails the run instead of ending its branch. */
  noNextIsError: boolean;
  /** Longest duration of the run in milliseconds; a template until the run starts. */
  timeoutMs?: Json;
  /** Words to find its executions by, by their names; templates until the run starts. */
  labels?: JsonObject;
}

/** One entry of the `keychain` section, keys as written. */
export interface KeychainDefinition extends JsonObject {
  name: string;
  kind: string;
}

/** One step of the workflow. */
export interface Step {
  name: string;
  desc?: string;
  /** In running order. A step without a tool has one `noop` task. */
  tasks: Task[];
  /**
   * True for several tasks: the result has the fields of all of them, later wins, and each is readable by its label. False for
   * a lone task, however it is written: its result is the step's, unchanged (language document, section 8).
   */
  pipeline: boolean;
  /** Extra inputs of every task, with templates; a task's own input wins. */
  input: JsonObject;
  /** Guard: falsy makes the step SKIPPED. */
  when?: Json;
  /** `spec.policy.admit.rules`: first match decides; empty allows. */
  admit: AdmitRule[];
  loop?: Loop;
  /** Applied after success, before the arcs. */
  set: Assignment[];
  result: ResultConfig;
  /** Milliseconds (number or template) for the step as a whole. */
  timeoutMs?: Json;
  /** `spec.labels`: only workers with these labels run it. A local run is any worker. */
  labels?: Record<string, string>;
  next: Next;
  position: Position;
}

/** One admission rule; without `when` it is the `else`. */
export interface AdmitRule {
  when?: Json;
  allow: Json;
}

/** One task: what a tool is asked to do. */
export interface Task {
  label: string;
  /** Canonical kind: one of {@link RUNNABLE_KINDS}, {@link PARSED_ONLY_KINDS}, or an unknown one (fails when run). */
  kind: string;
  /** The kind's own keys, with templates; no key that stands elsewhere in this record. */
  config: JsonObject;
  /** `args` and `input` merged, with templates. */
  input: JsonObject;
  /** Credential name, `{credential}`, map of aliases, or inline provider. */
  auth?: Json;
  /** Milliseconds, number or template. */
  timeoutMs?: Json;
  /** First match decides; empty means: ok continues, error fails. */
  policy: PolicyRule[];
  set: Assignment[];
  /** Of a wait for a signal: which ones it takes. */
  waitWhen?: Json;
  /** Of a wait for people: the playbook that tells them, with its input. */
  waitNotify?: Json;
  result: ResultConfig;
  position: Position;
  /** Line of the first line of `code`/`script.code` in the document, to translate a traceback. */
  codeLine?: number;
}

/** What a policy rule may do with a task's outcome. */
export const POLICY_ACTIONS = ["continue", "retry", "jump", "break", "fail"] as const;
/** What a policy rule may do: one of {@link POLICY_ACTIONS}. */
export type PolicyAction = (typeof POLICY_ACTIONS)[number];

/** How the delay of a retry grows. */
export const BACKOFFS = ["none", "fixed", "linear", "exponential"] as const;
/** How the delay of a retry grows: one of {@link BACKOFFS}. */
export type Backoff = (typeof BACKOFFS)[number];

/** One rule of `spec.policy.rules`; without `when` it is the `else`. Numbers may still be templates. */
export interface PolicyRule {
  when?: Json;
  do: PolicyAction;
  /** Target label of `jump`; `previous` is the task before. */
  to?: string;
  /** Total runs, default 3. */
  attempts?: Json;
  backoff?: Backoff;
  /** Seconds. */
  delay?: Json;
  /** `true` spreads over the whole delay, a number 0..1 over that share of it. */
  jitter?: Json;
  /** Seconds since the task's first run began after which no further one is made. */
  maxElapsed?: Json;
  /** Of `fail`: the error's message, with templates; absent: the tool's own. */
  message?: Json;
  /** Of `fail`: the error's code, with templates; absent: the tool's own. */
  code?: Json;
  set: Assignment[];
}

/**
 * One assignment. `ctx` writes a variable of the execution, `iter` one of the iteration (outside a loop: of the step), `local`
 * one that only the later tasks of this pipeline see.
 */
export interface Assignment {
  scope: "ctx" | "iter" | "local";
  /** Everything after the scope, dots included. */
  name: string;
  /** With templates. */
  value: Json;
}

/** Where and for how long a payload that is not inline is stored: `spec.result.store`. Absent fields have their defaults. */
export interface StoreConfig {
  /** `auto` (by size) or one of `RESULT_STORES`. */
  kind?: string;
  /** One of `RESULT_SCOPES`. */
  scope?: string;
  /** A duration, as `1h`. */
  ttl?: string;
  /** One of `RESULT_COMPRESSIONS`. */
  compression?: string;
}

/** Storage of a result: `spec.result`, `output` and `output_select`. */
export interface ResultConfig {
  inlineMaxBytes?: number;
  previewMaxBytes?: number;
  store?: StoreConfig;
  /** What the results of several runs of a task, or of a loop's iterations, come to. */
  accumulate?: Accumulate;
  /** Small fields kept beside the reference: JSONPath and the name it is read by. */
  select: { path: string; as: string }[];
  /** Never shown in an event, log or preview. */
  sensitive: boolean;
}

/** `loop` of a step. */
export interface Loop {
  /** Collection, with templates. Exactly one of `in` and `cursor` is present. */
  in?: Json;
  cursor?: Cursor;
  iterator: string;
  mode: "sequential" | "parallel" | "cursor";
  /** Number or template; absent: as many as there are. */
  maxInFlight?: Json;
  /**
   * `distributed`: a command for each iteration; `local`: all in one command; `auto`, without a setting: a command for each, or for
   * a few where they are known to be short.
   */
  exec: "auto" | "distributed" | "local";
  /** Absent: sequential stops at the first failure, parallel runs all. A `tolerate` is a count or a share 0..1. */
  onError?: "stop" | "continue" | { tolerate: number } | { toleratePercent: number };
}

/** A loop over rows that a statement claims, a frame at a time. */
export interface Cursor {
  kind: string;
  auth?: Json;
  /** Statement that claims and returns rows; `__frame_max_rows` is in its scope. */
  claim: Json;
  maxRows: Json;
  /** Longest duration of a frame in seconds. */
  maxSeconds?: Json;
  /** Most bytes of rows in a frame. */
  maxBytes?: Json;
  leaseSeconds: Json;
  heartbeatSeconds: Json;
  rowConcurrency: Json;
  process: "row" | "frame";
}

/** What follows a step. */
export interface Next {
  mode: "exclusive" | "inclusive";
  /** `quiet` suppresses the notice when no arc matches; `error` fails the run. */
  onNoMatch: "notice" | "quiet" | "error";
  arcs: Arc[];
}

/** One arrow from a step to the next. */
export interface Arc {
  /** Name of the target, or a template that gives it. */
  step: string;
  when?: Json;
  /** Set when the arc fires, and at the same time the target's `input`/`args`. */
  set: Assignment[];
  position: Position;
}
