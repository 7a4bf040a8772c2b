import { mergeNeeds, type Needs } from "../../language/template/needs.ts";
import { type Condition, compileCondition, compileTemplate, type Template } from "../../language/template/template.ts";
import { FAILURE_NAMES, LOOP_DONE } from "../../language/views/event-name.ts";
import type { Json, JsonObject } from "../../schema/words/json.ts";
import {
  type Arc,
  type Assignment,
  type KeychainDefinition,
  type Loop,
  type Playbook,
  type PolicyRule,
  RUNNABLE_KINDS,
  type Step,
  type Task,
} from "../../schema/words/playbook.ts";
import { buildGraph, type Graph } from "./graph.ts";
import { atOnce, type Pieces } from "./pieces.ts";

/** A playbook made ready to run: every template compiled once, names resolved to steps. */
export interface Program {
  playbook: Playbook;
  /** By name. */
  steps: ReadonlyMap<string, ProgramStep>;
  graph: Graph;
  /** Tools of the `workbook` section, by name. */
  workbook: ReadonlyMap<string, ProgramTask>;
  /** The `keychain` section in its order. */
  keychain: readonly ProgramKeychainEntry[];
  /** Defaults of the workload in document order. */
  workload: readonly [key: string, value: Template][];
  timeoutMs: Template | undefined;
}

/** A compiled entry of the keychain: its keys may hold templates, which may read earlier entries. */
export interface ProgramKeychainEntry {
  definition: KeychainDefinition;
  template: Template;
}

/** One compiled step. */
export interface ProgramStep {
  index: number;
  step: Step;
  when: Condition | undefined;
  admit: readonly { when: Condition | undefined; allow: Condition }[];
  input: readonly [key: string, value: Template][];
  loop: ProgramLoop | undefined;
  tasks: readonly ProgramTask[];
  set: readonly CompiledAssignment[];
  arcs: readonly ProgramArc[];
  timeoutMs: Template | undefined;
  /** What the step's commands may read. */
  needs: Needs;
}

/** One compiled loop. */
export interface ProgramLoop {
  loop: Loop;
  collection: Template | undefined;
  maxInFlight: Template | undefined;
  claim: ProgramClaim | undefined;
}

/** How a cursor loop claims its rows. */
export interface ProgramClaim {
  statement: Template;
  auth: Template | undefined;
  maxRows: Template;
  rowConcurrency: Template;
  maxSeconds: Template | undefined;
  maxBytes: Template | undefined;
  leaseSeconds: Template;
}

/** One compiled task. */
export interface ProgramTask {
  task: Task;
  config: Template;
  input: readonly [key: string, value: Template][];
  auth: Template | undefined;
  timeoutMs: Template | undefined;
  policy: readonly ProgramRule[];
  set: readonly CompiledAssignment[];
}

/** One compiled policy rule. */
export interface ProgramRule {
  rule: PolicyRule;
  when: Condition | undefined;
  attempts: Template | undefined;
  delay: Template | undefined;
  jitter: Template | undefined;
  maxElapsed: Template | undefined;
  message: Template | undefined;
  code: Template | undefined;
  set: readonly CompiledAssignment[];
}

/** One compiled arc. */
export interface ProgramArc {
  arc: Arc;
  target: Template;
  when: Condition | undefined;
  set: readonly CompiledAssignment[];
  /** Its condition names a failure, so it is tried if the step failed. */
  onFailure: boolean;
  /** Its condition names `loop.done`: it is tried if the step's loop failed. */
  onLoopDone: boolean;
}

/** One compiled assignment. */
export interface CompiledAssignment {
  scope: Assignment["scope"];
  name: string;
  value: Template;
}

/** Compiles a playbook. Templates that do not parse were reported when it was loaded; here they are kept as plain text. */
export function compileProgram(playbook: Playbook): Program {
  return atOnce(compileInPieces(playbook));
}

/** {@link compileProgram} step by step: 5,000 steps take some 100 ms. */
export function* compileInPieces(playbook: Playbook): Pieces<Program> {
  const entry = playbook.steps.findIndex((step) => step.name === playbook.entryStep);
  const keychain = playbook.keychain.map((definition) => ({ definition, template: compileTemplate(definition) }));
  const keychainNeeds = mergeNeeds(...keychain.map(({ template }) => template.needs));
  const steps = new Map<string, ProgramStep>();
  for (const [index, step] of playbook.steps.entries()) {
    steps.set(step.name, compileStep(playbook, step, index, keychainNeeds));
    yield;
  }
  const workbook = new Map<string, ProgramTask>();
  for (const task of playbook.workbook) {
    workbook.set(task.label, compileTask(task));
    yield;
  }
  const workload = entries(playbook.workload);
  yield;
  const graph = yield* buildGraph(playbook, Math.max(entry, 0));
  return { playbook, steps, graph, workbook, keychain, workload, timeoutMs: optional(playbook.executor.timeoutMs) };
}

function compileStep(playbook: Playbook, step: Step, index: number, keychain: Needs): ProgramStep {
  const tasks = step.tasks.map(compileTask);
  const input = entries(step.input);
  const loop = step.loop === undefined ? undefined : compileLoop(step.loop);
  const timeoutMs = optional(step.timeoutMs);
  return {
    index,
    step,
    when: step.when === undefined ? undefined : compileCondition(step.when),
    admit: step.admit.map((rule) => ({
      when: rule.when === undefined ? undefined : compileCondition(rule.when),
      allow: compileCondition(rule.allow),
    })),
    input,
    loop,
    tasks,
    set: assignments(step.set),
    arcs: step.next.arcs.map(compileArc),
    timeoutMs,
    needs: stepNeeds(playbook, step, tasks, keychain, [
      ...input.map(([, template]) => template),
      ...(timeoutMs === undefined ? [] : [timeoutMs]),
      ...(loop?.claim === undefined ? [] : [loop.claim.statement, loop.claim.maxRows]),
      ...[loop?.claim?.auth, loop?.claim?.maxBytes, loop?.claim?.leaseSeconds].filter((one) => one !== undefined),
    ]),
  };
}

/** Everything that the worker evaluates for this step; `when`, collection, step `set` and arcs belong to the engine. */
function stepNeeds(
  playbook: Playbook,
  step: Step,
  tasks: readonly ProgramTask[],
  keychain: Needs,
  own: Template[],
): Needs {
  const called = step.tasks.flatMap((task) => (task.kind === "workbook" ? playbook.workbook : []));
  const all = [...tasks, ...called.map(compileTask)];
  const needs = mergeNeeds(
    ...own.map((template) => template.needs),
    ...all.flatMap((task) => taskTemplates(task).map((template) => template.needs)),
    ...all.map((task) => hiddenNeeds(task.task)),
  );
  // Entries are resolved by the worker, which then renders their own templates.
  return needs.members.has("keychain") ? mergeNeeds(needs, keychain) : needs;
}

function taskTemplates(task: ProgramTask): { needs: Needs }[] {
  const rules = task.policy.flatMap((rule) => [
    rule.when,
    rule.attempts,
    rule.delay,
    rule.jitter,
    rule.maxElapsed,
    rule.message,
    rule.code,
    ...rule.set.map((assignment) => assignment.value),
  ]);
  return [
    task.config,
    ...task.input.map(([, template]) => template),
    task.auth,
    task.timeoutMs,
    ...task.set.map((assignment) => assignment.value),
    ...rules,
  ].filter((template) => template !== undefined);
}

/**
 * The task whose tool a task calls: itself, or the `workbook` entry that it names (by `task`, `name` or its label; language
 * document, section 8). Undefined when there is no such entry.
 */
export function calledTask(program: Program, task: ProgramTask): ProgramTask | undefined {
  return task.task.kind === "workbook" ? program.workbook.get(workbookName(task.task)) : task;
}

/**
 * Kinds that a worker needs for a command: those of the step's tasks, or of its cursor's claim. Kinds that no worker can run
 * (for example an unknown kind) are not required: any worker that takes the command answers with an error that says so, as the
 * local runtime does.
 */
export function requiredKinds(program: Program, name: string, isClaim: boolean): string[] {
  const step = program.steps.get(name);
  if (step === undefined) return [];
  const kinds = isClaim
    ? [step.step.loop?.cursor?.kind ?? "sqldb"]
    : step.tasks.map((task) => (calledTask(program, task) ?? task).task.kind);
  return [...new Set(kinds.filter((kind) => REQUIRED.has(kind)))];
}

/** Kinds that a worker must offer. Every worker runs `noop`, and carries out `playbook` and `workbook` itself. */
const REQUIRED: ReadonlySet<string> = new Set(
  RUNNABLE_KINDS.filter((kind) => kind !== "noop" && kind !== "playbook" && kind !== "workbook"),
);

/** Name of the `workbook` entry that a task of kind `workbook` calls. */
export function workbookName({ config, label }: Task): string {
  return String(config["task"] ?? config["name"] ?? label);
}

/** Compiles one task; workbook tasks are compiled where they are called. */
export function compileTask(task: Task): ProgramTask {
  return {
    task,
    config: compileTemplate(task.config),
    input: entries(task.input),
    auth: optional(task.auth),
    timeoutMs: optional(task.timeoutMs),
    policy: task.policy.map(compileRule),
    set: assignments(task.set),
  };
}

function compileRule(rule: PolicyRule): ProgramRule {
  return {
    rule,
    when: rule.when === undefined ? undefined : compileCondition(rule.when),
    attempts: optional(rule.attempts),
    delay: optional(rule.delay),
    jitter: optional(rule.jitter),
    maxElapsed: optional(rule.maxElapsed),
    message: optional(rule.message),
    code: optional(rule.code),
    set: assignments(rule.set),
  };
}

function compileLoop(loop: Loop): ProgramLoop {
  const { cursor } = loop;
  return {
    loop,
    collection: optional(loop.in),
    maxInFlight: optional(loop.maxInFlight),
    claim:
      cursor === undefined
        ? undefined
        : {
            statement: compileTemplate(cursor.claim),
            auth: optional(cursor.auth),
            maxRows: compileTemplate(cursor.maxRows),
            rowConcurrency: compileTemplate(cursor.rowConcurrency),
            maxSeconds: optional(cursor.maxSeconds),
            maxBytes: optional(cursor.maxBytes),
            leaseSeconds: compileTemplate(cursor.leaseSeconds),
          },
  };
}

function compileArc(arc: Arc): ProgramArc {
  const when = arc.when === undefined ? undefined : compileCondition(arc.when);
  return {
    arc,
    target: compileTemplate(arc.step),
    when,
    set: assignments(arc.set),
    onFailure: when?.mentions(FAILURE_NAMES) ?? false,
    onLoopDone: when?.mentions([LOOP_DONE]) ?? false,
  };
}

function assignments(list: readonly Assignment[]): CompiledAssignment[] {
  return list.map(({ scope, name, value }) => ({ scope, name, value: compileTemplate(value) }));
}

function entries(object: JsonObject): [string, Template][] {
  return Object.keys(object).map((key) => [key, compileTemplate(object[key] ?? null)]);
}

function optional(value: Json | undefined): Template | undefined {
  return value === undefined ? undefined : compileTemplate(value);
}

const NOTHING: Needs = { names: new Set(), members: new Map() };

/** Everything: each root is used as a whole. */
const EVERYTHING: Needs = {
  names: new Set(["workload", "ctx", "vars", "steps", "iter"]),
  members: new Map([
    ["workload", "all"],
    ["ctx", "all"],
    ["vars", "all"],
    ["steps", "all"],
    ["iter", "all"],
  ]),
};

/** The token of a caller, for a server that is otherwise called with the machine's identity. */
const CALLERS_TOKEN: Needs = {
  names: new Set(["workload"]),
  members: new Map([["workload", new Set(["access_token"])]]),
};

/**
 * What a task reads beyond its templates: for Python code see {@link codeNeeds}; a task of kind `mcp` reads
 * `workload.access_token`.
 */
function hiddenNeeds(task: Task): Needs {
  return task.kind === "mcp" ? CALLERS_TOKEN : codeNeeds(task);
}

/**
 * What Python code may read beyond its inputs. `context` and `**kw` give it every name; parameters of `main` are bound by name,
 * so any word of the code may be an input. Code outside the document may read anything.
 */
export function codeNeeds(task: Task): Needs {
  if (task.kind !== "python") return NOTHING;
  const code = task.config["code"];
  if (typeof code !== "string" || /\bcontext\b|\*\*\s*\w/.test(code)) return EVERYTHING;
  if (!/\bdef\s+main\b/.test(code)) return NOTHING;
  return { names: new Set(code.match(/[A-Za-z_]\w*/g) ?? []), members: new Map() };
}
