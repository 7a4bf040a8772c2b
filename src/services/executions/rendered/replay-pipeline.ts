import { type PipelineNames, type PipelinePlace, taskScope } from "../../../engine/decide/task-scope.ts";
import type { CompiledAssignment, ProgramStep, ProgramTask } from "../../../engine/program/program.ts";
import { taskAccumulate } from "../../../engine/state/results.ts";
import { renderKnown } from "../../../language/template/render-known.ts";
import type { Outcome } from "../../../language/views/output-view.ts";
import type { Command } from "../../../schema/words/command.ts";
import { defined } from "../../../schema/words/defined.ts";
import type { EventOf } from "../../../schema/words/event.ts";
import { type Json, type JsonObject, setOwn } from "../../../schema/words/json.ts";
import type { StoredResult } from "../../../schema/words/result.ts";
import { HIDDEN, notKnown, withoutSealed, withoutSecrets } from "./redact-values.ts";

/** A run of a task that has ended. */
export type Done = EventOf<"task.done">;

/** The budget for rendering one text. It is small because people wait for the page, while no run waits for it. */
export const RENDER_LIMITS = { steps: 200_000, text: 1_048_576, items: 50_000 } as const;

/** The place of a task's templates, if known. */
export interface TaskPlace {
  names: PipelineNames;
  /** Its run by its policy, from 1. */
  run: number;
  /** Names that take precedence over all others: the results that the task before it will give. */
  extra: Readonly<Record<string, unknown>>;
}

/**
 * The pipeline of a command, or of one of its iterations, as it was when it last reached `task`. For a task it has not reached
 * yet: as it is now, with the results still to come withheld. `done`: its runs that have ended, in order.
 */
export function placeOf(
  place: PipelinePlace,
  step: ProgramStep,
  iteration: number | undefined,
  done: readonly Done[],
  task: ProgramTask,
): TaskPlace {
  const { label } = task.task;
  const names = freshNames(place.command, step, iteration);
  const last = done.findLast((run) => run.task === label);
  const before = last === undefined ? done : done.slice(0, firstOf(done, last.task_run_id));
  for (const run of before) if (run.final) settle(names, place, step, run);
  if (last !== undefined || isNext(step, before, label)) return { names, run: last?.run ?? 1, extra: {} };
  withholdRest(names, step, label);
  const outcome = notKnown("the task before it");
  return { names, run: 1, extra: { output: outcome, _prev: outcome } };
}

/** Retries belong to the same visit of the task. */
function firstOf(done: readonly Done[], taskRunId: string): number {
  return done.findIndex((run) => run.task_run_id === taskRunId);
}

/** True if a pipeline that continues without a jump reaches this task next. */
function isNext(step: ProgramStep, done: readonly Done[], label: string): boolean {
  const index = step.tasks.findIndex(({ task }) => task.label === label);
  const last = done.at(-1);
  return index === 0 ? last === undefined : last?.final === true && step.tasks[index - 1]?.task.label === last.task;
}

function freshNames({ context, loop }: Command, step: ProgramStep, iteration: number | undefined): PipelineNames {
  const parent = context.parent_iter === undefined ? undefined : withoutSecrets(context.parent_iter);
  const names: PipelineNames = {
    tasks: new Map(),
    locals: {},
    pending: {},
    previous: null,
    lastGood: null,
    iteration: undefined,
    stepScope: parent === undefined ? {} : { parent },
  };
  if (loop === undefined || iteration === undefined) return names;
  names.iteration = {
    iterator: step.step.loop?.iterator ?? "item",
    item: withoutSealed(loop.items[iteration - loop.from] ?? null),
    index: iteration,
    ...defined({ total: loop.total, parent }),
    written: {},
  };
  // The iterations of a command see each other's assignments, in an order that the events do not record.
  if (loop.items.length > 1) {
    for (const name of variablesOf(step)) setOwn(names.pending, name, notKnown(`${name}, which iterations write`));
  }
  return names;
}

/** Execution variables that the step's tasks write. */
function variablesOf(step: ProgramStep): string[] {
  return step.tasks.flatMap((task) => [
    ...task.set.filter(({ scope }) => scope === "ctx").map(({ name }) => name),
    ...task.policy.flatMap((rule) => rule.set.filter(({ scope }) => isVariable(scope)).map(({ name }) => name)),
  ]);
}

function isVariable(scope: CompiledAssignment["scope"]): boolean {
  return scope === "ctx" || scope === "local";
}

/** Records what a finished task leaves to the tasks after it. */
function settle(names: PipelineNames, place: PipelinePlace, step: ProgramStep, done: Done): void {
  const task = step.tasks.find((one) => one.task.label === done.task);
  if (task === undefined) return;
  const result = withoutSealed<StoredResult>(done.result ?? { value: null });
  const { status, error, run } = done;
  const { about } = result;
  const outcome: Outcome = { status, result, ...defined({ error }), ...about };
  // No event records which of its rules matched.
  for (const { set } of task.policy) withholdSet(names, set, "ctx", `a rule of task '${done.task}'`);
  if (status === "ok") setOf(names, place, task, outcome, run);
  // It is applied if a rule continued after the error.
  else withholdSet(names, task.set, "local", `task '${done.task}'`);
  names.tasks.delete(done.task);
  // The combined result of several runs is known at the pipeline's end.
  if (taskAccumulate(step.step, task.task) === undefined) names.tasks.set(done.task, result);
  else setOwn(names.locals, done.task, notKnown(`the joined results of '${done.task}'`));
  names.previous = outcome;
  if (status === "ok") names.lastGood = result;
}

/** The task's own assignments, carried out in order until one needs an unknown value. */
function setOf(names: PipelineNames, place: PipelinePlace, task: ProgramTask, outcome: Outcome, run: number): void {
  const output = { outcome, place: "raw" } as const;
  for (const { scope, name, value } of task.set) {
    const tasks = new Map(names.tasks).set(task.task.label, outcome.result);
    const at = { input: () => place.command.context.input, attempt: run, output };
    const known = { scope: taskScope(place, { ...names, tasks }, at), judge: judgeNothing, limits: RENDER_LIMITS };
    write(names, scope, "local", name, readable(renderKnown(value.source, known)));
  }
}

/** The scope already withholds values that must not be read. */
export function judgeNothing(): { unknown: string[]; secret: boolean } {
  return { unknown: [], secret: false };
}

/** The part of a rendered value that others may read: all of it, or nothing. */
export function readable({ value, unknown, secret, errors }: ReturnType<typeof renderKnown>): Json {
  if (secret !== undefined) return HIDDEN;
  if (unknown !== undefined) return notKnown(...new Set(unknown.flatMap(({ waits_for }) => waits_for)));
  return errors === undefined ? value : notKnown("a value that could not be rendered");
}

function withholdSet(
  names: PipelineNames,
  set: readonly CompiledAssignment[],
  bare: "ctx" | "local",
  writer: string,
): void {
  for (const { scope, name } of set) write(names, scope, bare, name, notKnown(`${name}, which ${writer} may write`));
}

function write(
  names: PipelineNames,
  scope: CompiledAssignment["scope"],
  bare: "ctx" | "local",
  name: string,
  value: Json,
): void {
  const target = scope === "local" ? bare : scope;
  const scopes: Record<"ctx" | "iter" | "local", JsonObject> = {
    ctx: names.pending,
    iter: names.iteration?.written ?? names.stepScope,
    local: names.locals,
  };
  setOwn(target === "ctx" || target === "iter" ? scopes[target] : scopes.local, name, value);
}

/** The results of tasks that are still to come. */
function withholdRest(names: PipelineNames, step: ProgramStep, label: string): void {
  for (const { task, set } of step.tasks) {
    if (task.label === label) break;
    if (names.tasks.has(task.label)) continue;
    withholdSet(names, set, "local", `task '${task.label}'`);
    setOwn(names.locals, task.label, notKnown(task.label));
  }
}
