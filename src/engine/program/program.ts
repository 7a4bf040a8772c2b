import { mergeNeeds, type Needs } from "../../language/template/needs.ts";
import {
  type Condition,
  compileConditionInPieces,
  compileTemplateInPieces,
  type Template,
} from "../../language/template/template.ts";
import { FAILURE_NAMES, LOOP_DONE } from "../../language/views/event-name.ts";
import { atOnce, type Pieces } from "../../language/words/pieces.ts";
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
  /** `executor.spec.labels`. */
  labels: readonly [name: string, value: Template][];
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
  /** Of a wait for a signal: which ones it takes. The engine evaluates it, with `signal` in scope. */
  waitWhen: Condition | undefined;
  /** Of a wait for people: the playbook that tells them, with its input. The engine renders it, with `approval` in scope. */
  waitNotify: Template | undefined;
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

/** {@link compileProgram} in pieces, the longest of which is one expression: 5,000 steps take some 100 ms. */
export function* compileInPieces(playbook: Playbook): Pieces<Program> {
  const entry = playbook.steps.findIndex((step) => step.name === playbook.entryStep);
  const keychain: ProgramKeychainEntry[] = [];
  for (const definition of playbook.keychain) {
    keychain.push({ definition, template: yield* compileTemplateInPieces(definition) });
  }
  const workbook = new Map<string, ProgramTask>();
  for (const task of playbook.workbook) workbook.set(task.label, yield* compileTask(task));
  const shared: SharedNeeds = {
    keychain: mergeNeeds(...keychain.map(({ template }) => template.needs)),
    workbook: mergeNeeds(...[...workbook.values()].flatMap(taskNeeds)),
  };
  yield;
  const steps = new Map<string, ProgramStep>();
  for (const [index, step] of playbook.steps.entries()) {
    steps.set(step.name, yield* compileStep(step, index, shared));
    yield;
  }
  const workload = yield* entries(playbook.workload);
  yield;
  const graph = yield* buildGraph(playbook, Math.max(entry, 0));
  const timeoutMs = yield* optional(playbook.executor.timeoutMs);
  const labels = yield* entries(playbook.executor.labels ?? {});
  return { playbook, steps, graph, workbook, keychain, workload, timeoutMs, labels };
}

/** What sections of the document need that steps refer to. */
interface SharedNeeds {
  keychain: Needs;
  workbook: Needs;
}

function* compileStep(step: Step, index: number, shared: SharedNeeds): Pieces<ProgramStep> {
  const tasks = yield* each(step.tasks, compileTask);
  const input = yield* entries(step.input);
  const loop = step.loop === undefined ? undefined : yield* compileLoop(step.loop);
  const timeoutMs = yield* optional(step.timeoutMs);
  return {
    index,
    step,
    when: yield* condition(step.when),
    admit: yield* each(step.admit, compileAdmission),
    input,
    loop,
    tasks,
    set: yield* each(step.set, compileAssignment),
    arcs: yield* each(step.next.arcs, compileArc),
    timeoutMs,
    needs: stepNeeds(tasks, shared, [
      ...input.map(([, template]) => template),
      ...(timeoutMs === undefined ? [] : [timeoutMs]),
      ...(loop?.claim === undefined ? [] : [loop.claim.statement, loop.claim.maxRows]),
      ...[loop?.claim?.auth, loop?.claim?.maxBytes, loop?.claim?.leaseSeconds].filter((one) => one !== undefined),
    ]),
  };
}

/** Everything that the worker evaluates for this step; `when`, collection, step `set` and arcs belong to the engine. */
function stepNeeds(tasks: readonly ProgramTask[], { keychain, workbook }: SharedNeeds, own: Template[]): Needs {
  const needs = mergeNeeds(
    ...own.map((template) => template.needs),
    ...tasks.flatMap(taskNeeds),
    ...(tasks.some(({ task }) => task.kind === "workbook") ? [workbook] : []),
  );
  // Entries are resolved by the worker, which then renders their own templates.
  return needs.members.has("keychain") ? mergeNeeds(needs, keychain) : needs;
}

function taskNeeds(task: ProgramTask): Needs[] {
  return [...taskTemplates(task).map((template) => template.needs), hiddenNeeds(task.task)];
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

/** Kinds that a worker must offer. Every worker runs `noop` and `wait`, and carries out `playbook` and `workbook` itself. */
const REQUIRED: ReadonlySet<string> = new Set(
  RUNNABLE_KINDS.filter((kind) => kind !== "noop" && kind !== "wait" && kind !== "playbook" && kind !== "workbook"),
);

/** False for a step that does nothing that a worker has to do: it only evaluates templates, or waits. */
export function hasWork(program: Program, name: string): boolean {
  const tasks = program.steps.get(name)?.tasks ?? [];
  return tasks.some((task) => !PASSIVE.has((calledTask(program, task) ?? task).task.kind));
}

const PASSIVE: ReadonlySet<string> = new Set(["noop", "wait"]);

/** Name of the `workbook` entry that a task of kind `workbook` calls. */
export function workbookName({ config, label }: Task): string {
  return String(config["task"] ?? config["name"] ?? label);
}

/** Compiles one task; workbook tasks are compiled where they are called. */
function* compileTask(task: Task): Pieces<ProgramTask> {
  return {
    task,
    config: yield* compileTemplateInPieces(task.config),
    input: yield* entries(task.input),
    auth: yield* optional(task.auth),
    timeoutMs: yield* optional(task.timeoutMs),
    policy: yield* each(task.policy, compileRule),
    set: yield* each(task.set, compileAssignment),
    waitWhen: yield* condition(task.waitWhen),
    waitNotify: yield* optional(task.waitNotify),
  };
}

function* compileRule(rule: PolicyRule): Pieces<ProgramRule> {
  return {
    rule,
    when: yield* condition(rule.when),
    attempts: yield* optional(rule.attempts),
    delay: yield* optional(rule.delay),
    jitter: yield* optional(rule.jitter),
    maxElapsed: yield* optional(rule.maxElapsed),
    message: yield* optional(rule.message),
    code: yield* optional(rule.code),
    set: yield* each(rule.set, compileAssignment),
  };
}

function* compileLoop(loop: Loop): Pieces<ProgramLoop> {
  const { cursor } = loop;
  return {
    loop,
    collection: yield* optional(loop.in),
    maxInFlight: yield* optional(loop.maxInFlight),
    claim: cursor === undefined ? undefined : yield* compileClaim(cursor),
  };
}

function* compileClaim(cursor: NonNullable<Loop["cursor"]>): Pieces<ProgramClaim> {
  return {
    statement: yield* compileTemplateInPieces(cursor.claim),
    auth: yield* optional(cursor.auth),
    maxRows: yield* compileTemplateInPieces(cursor.maxRows),
    rowConcurrency: yield* compileTemplateInPieces(cursor.rowConcurrency),
    maxSeconds: yield* optional(cursor.maxSeconds),
    maxBytes: yield* optional(cursor.maxBytes),
    leaseSeconds: yield* compileTemplateInPieces(cursor.leaseSeconds),
  };
}

function* compileAdmission(rule: Step["admit"][number]): Pieces<ProgramStep["admit"][number]> {
  return { when: yield* condition(rule.when), allow: yield* compileConditionInPieces(rule.allow) };
}

function* compileArc(arc: Arc): Pieces<ProgramArc> {
  const when = yield* condition(arc.when);
  return {
    arc,
    target: yield* compileTemplateInPieces(arc.step),
    when,
    set: yield* each(arc.set, compileAssignment),
    onFailure: when?.mentions(FAILURE_NAMES) ?? false,
    onLoopDone: when?.mentions([LOOP_DONE]) ?? false,
  };
}

function* compileAssignment({ scope, name, value }: Assignment): Pieces<CompiledAssignment> {
  return { scope, name, value: yield* compileTemplateInPieces(value) };
}

function* each<T, U>(list: readonly T[], compile: (one: T) => Pieces<U>): Pieces<U[]> {
  const compiled: U[] = [];
  for (const one of list) {
    compiled.push(yield* compile(one));
    yield;
  }
  return compiled;
}

function* entries(object: JsonObject): Pieces<[string, Template][]> {
  return yield* each(Object.keys(object), function* (key): Pieces<[string, Template]> {
    return [key, yield* compileTemplateInPieces(object[key] ?? null)];
  });
}

function* optional(value: Json | undefined): Pieces<Template | undefined> {
  return value === undefined ? undefined : yield* compileTemplateInPieces(value);
}

function* condition(value: Json | undefined): Pieces<Condition | undefined> {
  return value === undefined ? undefined : yield* compileConditionInPieces(value);
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
