import { judge, type Verdict } from "../../engine/decide/policy.ts";
import { type TemplatePlace, taskScope } from "../../engine/decide/task-scope.ts";
import type { CompiledAssignment, ProgramStep, ProgramTask } from "../../engine/program/program.ts";
import { taskAccumulate } from "../../engine/state/results.ts";
import type { Outcome } from "../../language/views/output-view.ts";
import type { Scope } from "../../language/views/scope.ts";
import type { Wait, Write } from "../../schema/words/command.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import type { FlowEvent, ProgressNumbers, TaskLog, TaskResult } from "../../schema/words/event.ts";
import { type JsonObject, setOwn } from "../../schema/words/json.ts";
import { forgetJsonText } from "../../schema/words/json-text.ts";
import { failed, type TaskError, type ToolResult } from "../../schema/words/outcome.ts";
import type { ResultAbout, StoredResult } from "../../schema/words/result.ts";
import { TASK_RUNS_MAX } from "../deps.ts";
import { createRunLog } from "../reporting/progress.ts";
import type { TaskRun } from "./command-context.ts";
import {
  aboutOf,
  endRuns,
  isSensitive,
  keep,
  keepFailed,
  keepFilesOfFailed,
  keptError,
  notKept,
  outcomeOf,
} from "./keep-result.ts";
import { failureOf, place, tooManyRuns } from "./pipeline-errors.ts";
import type { PipelineRun, PipelineState, RunTries } from "./pipeline-run.ts";
import { goOn, parksUntil, parkUntil, pauseUntil, stoppedBy } from "./retry-wait.ts";
import type { Kept } from "./store-result.ts";
import { runTask } from "./task.ts";
import { park } from "./wait.ts";

/** How a pipeline ended. */
export interface PipelineEnd {
  /** Labels whose results make up the step's, in order of completion. */
  tasks: string[];
  /** What several runs of a task came to, where its results are joined. */
  results: TaskResult[];
  /** Execution variables written, in order. */
  set: Write[];
  /** Null: it succeeded. */
  error: TaskError | null;
}

/**
 * Runs the tasks of a step, or of one iteration of its loop, in order; after each, its policy says what follows (language
 * document, section 5). Reports every task run as it happens.
 */
export async function runPipeline(run: PipelineRun): Promise<PipelineEnd> {
  const { step } = run;
  const runsMax = run.context.deps.taskRunsMax ?? TASK_RUNS_MAX;
  const set: Write[] = [];
  const { woken } = run;
  let position = woken === undefined ? 0 : jumpTarget(step, 0, woken.resume.task);
  let tries = freshTries(run, position, woken?.resume.serial ?? 0);
  const before = woken === undefined ? 0 : goOn(run, tries, set, woken);
  for (let runs = before + 1; position < step.tasks.length; runs += 1) {
    const task = step.tasks[position];
    if (task === undefined) break;
    if (runs > runsMax) return await ended(run, set, tooManyRuns(run, task, runsMax));
    // The time of its step was over before its next run.
    if (woken?.wait.kind === "retry" && runs === before + 1 && run.signal.aborted)
      return await ended(run, set, place(stoppedBy(run), run, task, tries.runs));
    tries.runs += 1;
    const done = await runOnce(run, task, tries, set);
    if (done.retryAt !== undefined) {
      if (parksUntil(run, done.retryAt)) parkUntil(done.retryAt, run, task, tries, { set, runs });
      const stopped = await pauseUntil(done.retryAt, run);
      if (stopped !== null) return await ended(run, set, place(stopped, run, task, tries.runs));
      continue;
    }
    if (done.error !== null) return await ended(run, set, done.error);
    if (done.verdict.do === "break") break;
    position = done.verdict.do === "jump" ? jumpTarget(step, position, done.verdict.to) : position + 1;
    tries = freshTries(run, position, tries.serial + 1);
  }
  return await ended(run, set, null);
}

function freshTries({ context, step, state }: PipelineRun, position: number, serial: number): RunTries {
  const label = step.tasks[position]?.task.label ?? "";
  const page = (state.pages.get(label) ?? 0) + 1;
  state.pages.set(label, page);
  return { serial, runs: 0, startedAt: context.deps.clock.now(), page };
}

/** The end, with what several runs of a task came to. What of it cannot be kept fails the pipeline. */
async function ended(run: PipelineRun, set: Write[], error: TaskError | null): Promise<PipelineEnd> {
  const tasks = [...run.state.tasks.keys()];
  try {
    return { tasks, results: await endRuns(run), set, error };
  } catch (thrown) {
    if (!(thrown instanceof FlowError)) throw thrown;
    return { tasks, results: [], set, error: error ?? { ...notKept(thrown), step: run.step.step.name } };
  }
}

/** What follows after a run of a task. */
interface TaskRunEnd {
  verdict: Verdict;
  error: TaskError | null;
  retryAt: number | undefined;
}

/** One run of one task: the tool, the verdict, what both write, and the report. */
async function runOnce(run: PipelineRun, task: ProgramTask, tries: RunTries, set: Write[]): Promise<TaskRunEnd> {
  const { context, state, ref } = run;
  const { clock, lease } = context.deps;
  // Nothing is begun that another worker may be doing by now: no first run, no retry, no page, no iteration.
  await lease?.held(run.signal);
  const { woken } = tries;
  delete tries.woken;
  const startedAt = woken?.since ?? clock.now();
  const taskRunId = `${ref.command_id}-${ref.iteration ?? 0}-${tries.serial}`;
  const { input } = context.place.command.context;
  const log = createRunLog(isSensitive(run, task));
  const report = (progress: ProgressNumbers, lines?: TaskLog) =>
    run.report([progressEvent(run, { task: task.task.label, taskRunId, run: tries.runs, progress, log: lines })]);
  const giveBack = (wait: Wait) => park(task.task.label, ref.iteration, tries, wait);
  const taskRun: TaskRun = {
    ...{ task, run: tries.runs, taskRunId, signal: run.signal, report, log, input, park: giveBack },
    ...(woken !== undefined && { woken }),
  };
  const answer = placed(await runTask(context, state, taskRun), run, task, tries.runs);
  try {
    return await conclude(run, taskRun, answer, tries, set, Math.max(0, clock.now() - startedAt));
  } finally {
    await answer.files?.remove();
  }
}

/** The tool has answered: keeps what it gave, asks the task's rules what follows, and reports both. */
async function conclude(
  run: PipelineRun,
  taskRun: TaskRun,
  answer: ToolResult,
  tries: RunTries,
  set: Write[],
  durationMs: number,
): Promise<TaskRunEnd> {
  const { context, state, ref } = run;
  const { clock } = context.deps;
  const { task, taskRunId, log } = taskRun;
  const { result, stored } = await keep(run, taskRun, answer);
  const about = aboutOf(result, tries.runs, durationMs);
  const outcome = outcomeOf(result, stored.result, about);
  const verdict = await judgeOutcome(run, { task, result, outcome, input: taskRun.input }, tries, set);
  const failure =
    verdict.verdict.do === "fail"
      ? place(failureOf(verdict.verdict, verdict.error, task, context.secrets), run, task, tries.runs)
      : null;
  const continued = result.status === "error" && failure === null && verdict.verdict.do !== "retry";
  const isLost = result.status === "error" && failure !== null;
  const plain = continued ? keptError(result) : isLost ? await keepFailed(run, taskRun, result) : stored;
  const described = ref.iteration === undefined && !isSensitive(run, task) ? withAbout(plain, about) : plain;
  const isLastFailure = answer.files !== undefined && answer.status === "error" && verdict.verdict.do !== "retry";
  const kept = isLastFailure ? { ...described, files: await keepFilesOfFailed(run, taskRun, answer) } : described;
  if (verdict.verdict.do !== "retry") settle(state, task, kept.result, outcome, result.status === "ok");
  const retryAt = verdict.verdict.do === "retry" ? clock.now() + verdict.verdict.delayMs : undefined;
  await run.report(reports(run, task, { taskRunId, tries, durationMs, result, kept, retryAt, log: log.whole() }));
  if (result.large === undefined) forgetJsonText(result.data);
  return { verdict: verdict.verdict, error: failure, retryAt };
}

function withAbout(kept: Kept, about: ResultAbout): Kept {
  return { ...kept, result: { ...kept.result, about } };
}

/** A task run that has ended, and what it was given. */
interface Done {
  task: ProgramTask;
  result: ToolResult;
  outcome: Outcome;
  input: JsonObject;
}

/** The verdict, with its own and the task's assignments carried out. An assignment that fails fails the task. */
async function judgeOutcome(
  run: PipelineRun,
  { task, result, outcome, input }: Done,
  tries: RunTries,
  set: Write[],
): Promise<{ verdict: Verdict; error: TaskError | undefined }> {
  const { context, state } = run;
  if (run.signal.aborted) return { verdict: { do: "fail", set: [] }, error: result.error };
  const at = { input: () => input, attempt: tries.runs };
  const { clock, random } = context.deps;
  const { options } = context;
  const elapsedMs = clock.now() - tries.startedAt;
  const policyScope = taskScope(context.place, state, { ...at, output: { outcome, place: "envelope" } });
  const evaluate = context.place.references.evaluate;
  try {
    const verdict = await evaluate(() =>
      judge(task.policy, result, { runs: tries.runs, elapsedMs }, policyScope, options, random),
    );
    await assign(run, verdict.set, policyScope, set, "ctx");
    if (task.set.length > 0 && isPassed(result, verdict)) {
      await assign(run, task.set, ownSetScope(run, task, result, outcome, at), set, "local");
    }
    return { verdict, error: result.error };
  } catch (error) {
    const code = error instanceof FlowError ? error.code : "INTERNAL";
    return {
      verdict: { do: "fail", set: [] },
      error: failed("template", code, messageOf(error)).error,
    };
  }
}

/** A task's own `set` applies after success, and after an error that a rule went on from. */
function isPassed({ status }: ToolResult, verdict: Verdict): boolean {
  return status === "ok" ? verdict.do !== "retry" && verdict.do !== "fail" : verdict.do === "continue";
}

/** In a task's `set`, its own label is in scope already: after an error it holds what later tasks read there. */
function ownSetScope(
  run: PipelineRun,
  task: ProgramTask,
  result: ToolResult,
  outcome: Outcome,
  at: TemplatePlace,
): Scope {
  const own = result.status === "ok" ? outcome.result : keptError(result).result;
  const tasks = new Map(run.state.tasks).set(task.task.label, own);
  return taskScope(run.context.place, { ...run.state, tasks }, { ...at, output: { outcome, place: "raw" } });
}

/** Carries out assignments in order; each sees those before it. */
async function assign(
  run: PipelineRun,
  list: readonly CompiledAssignment[],
  scope: Scope,
  set: Write[],
  bare: "ctx" | "local",
): Promise<void> {
  const { context, state } = run;
  for (const { scope: target, name, value } of list) {
    const rendered = await context.place.references.evaluate(() => value.render(scope, context.options));
    const to = target === "local" ? bare : target;
    if (to === "ctx") {
      set.push([name, rendered]);
      setOwn(state.pending, name, rendered);
    } else if (to === "iter") {
      setOwn(state.iteration?.written ?? state.stepScope, name, rendered);
    } else {
      setOwn(state.locals, name, rendered);
    }
  }
}

/** The task is over: its label now holds what later tasks read, where results are joined all of them so far. */
function settle(state: PipelineState, task: ProgramTask, kept: StoredResult, outcome: Outcome, isGood: boolean): void {
  const { label } = task.task;
  const runs = state.runs.get(label)?.current();
  state.tasks.delete(label);
  state.tasks.set(
    label,
    runs === undefined ? kept : { ...runs, ...(kept.about !== undefined && { about: kept.about }) },
  );
  state.previous = outcome;
  if (isGood) state.lastGood = kept;
}

function progressEvent(
  { ref, context }: PipelineRun,
  report: { task: string; taskRunId: string; run: number; progress: ProgressNumbers; log: TaskLog | undefined },
): FlowEvent {
  const { task, taskRunId, run, progress, log } = report;
  return {
    type: "task.progress",
    at: context.deps.clock.now(),
    ...ref,
    task,
    step_run_id: context.place.command.step_run_id,
    task_run_id: taskRunId,
    run,
    progress,
    ...(log !== undefined && { log }),
  };
}

/** What is reported of one run of a task. */
interface TaskRunReport {
  taskRunId: string;
  tries: RunTries;
  durationMs: number;
  result: ToolResult;
  kept: Kept;
  /** When it runs again, milliseconds since 1970; undefined: the task is over. */
  retryAt: number | undefined;
  log: TaskLog | undefined;
}

function reports(
  run: PipelineRun,
  task: ProgramTask,
  { taskRunId, tries, durationMs, result, kept, retryAt, log }: TaskRunReport,
): FlowEvent[] {
  const { runs, page } = tries;
  const { iteration } = run.ref;
  const stepRunId = run.context.place.command.step_run_id;
  const at = run.context.deps.clock.now();
  const label = task.task.label;
  const isFinal = retryAt === undefined;
  const next = isFinal ? undefined : { next_run_at: new Date(retryAt).toISOString() };
  const done: FlowEvent = {
    type: "task.done",
    at,
    ...run.ref,
    task: label,
    step_run_id: stepRunId,
    task_run_id: taskRunId,
    ...(iteration !== undefined && { iteration_id: `${stepRunId}-${iteration}` }),
    ...(taskAccumulate(run.step.step, task.task) !== undefined && { page }),
    status: result.status,
    run: runs,
    final: isFinal,
    ...(isFinal && { result: kept.result, bytes: kept.bytes }),
    ...(result.error !== undefined && { error: result.error }),
    duration_ms: durationMs,
    ...(kept.files !== undefined && kept.files.length > 0 && { files: [...kept.files] }),
    ...next,
    ...(log !== undefined && { log }),
  };
  if (result.error !== undefined) {
    return [{ type: "call.error", at, ...run.ref, task: label, run: runs, error: result.error, ...next }, done];
  }
  return task.task.kind === "playbook" ? [childDone(run, label, result, at), done] : [done];
}

/** A sub-playbook came back. */
function childDone(run: PipelineRun, task: string, result: ToolResult, at: number): FlowEvent {
  const { childId } = result;
  return { type: "call.done", at, ...run.ref, task, ...(childId !== undefined && { child_execution_id: childId }) };
}

function jumpTarget(step: ProgramStep, position: number, to: string): number {
  if (to === "previous") return Math.max(0, position - 1);
  const index = step.tasks.findIndex((task) => task.task.label === to);
  // An unknown label was refused when the document was loaded.
  return index < 0 ? step.tasks.length : index;
}

/** Marks a result that is the merge of several tasks' results. */
export function pipelineMark({ step }: ProgramStep): { pipeline?: true } {
  return step.pipeline ? { pipeline: true } : {};
}

/** A pipeline before its first task. `parent`: the iteration names of the playbook that called this one. */
export function freshState(
  iteration?: PipelineState["iteration"],
  pending: JsonObject = {},
  parent?: JsonObject,
): PipelineState {
  const stepScope = parent === undefined ? {} : { parent };
  return {
    tasks: new Map(),
    runs: new Map(),
    pages: new Map(),
    locals: {},
    pending,
    previous: null,
    lastGood: null,
    iteration,
    stepScope,
  };
}

function placed(result: ToolResult, run: PipelineRun, task: ProgramTask, attempt: number): ToolResult {
  return result.error === undefined ? result : { ...result, error: place(result.error, run, task, attempt) };
}
