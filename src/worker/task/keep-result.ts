import type { ProgramTask } from "../../engine/program/program.ts";
import { taskAccumulate } from "../../engine/state/results.ts";
import type { Outcome } from "../../language/views/output-view.ts";
import type { WritableResultStore } from "../../ports/result-store.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { TaskResult } from "../../schema/words/event.ts";
import { isJsonObject, type Json, own, setOwn } from "../../schema/words/json.ts";
import { failed, type TaskError, type TaskErrorKind, type ToolResult } from "../../schema/words/outcome.ts";
import type { ResultConfig } from "../../schema/words/playbook.ts";
import type { ResultAbout, StoredResult } from "../../schema/words/result.ts";
import { type Accumulation, createAccumulation } from "./accumulate.ts";
import type { TaskRun } from "./command-context.ts";
import type { PipelineRun } from "./pipeline-run.ts";
import { type Kept, type ResultPlace, storeArtifact, storeLarge, storeResult } from "./store-result.ts";

/** Bytes that an error takes in the state, roughly. */
const ERROR_BYTES = 256;

/**
 * Stores a run's result before its policy judges it: a result that cannot be stored fails the task. The result of a failed run
 * stays in memory until it is known whether another run follows ({@link keepFailed}), so that no reference is written twice
 * under one claim: a late repetition of the first request could overwrite the second.
 */
export async function keep(
  run: PipelineRun,
  taskRun: TaskRun,
  answer: ToolResult,
): Promise<{ result: ToolResult; stored: Kept }> {
  if (answer.status === "error") return { result: answer, stored: inMemory(answer) };
  try {
    const files = await keepFiles(run, taskRun, answer);
    const stored = await store(run, taskRun, answer);
    return { result: answer, stored: files.length === 0 ? stored : { ...stored, files } };
  } catch (error) {
    if (!(error instanceof FlowError)) throw error;
    const at = { step: run.step.step.name, task: taskRun.task.task.label, attempt: taskRun.run };
    const result = failed(storageKind(error), error.code, storageMessage(error), at);
    return { result, stored: keptError(result) };
  }
}

/** Keeps what a failed run gave that fails its step: the HTTP body of a 404 can be read by the arcs. */
export async function keepFailed(run: PipelineRun, taskRun: TaskRun, result: ToolResult): Promise<Kept> {
  try {
    return await store(run, taskRun, result);
  } catch (error) {
    if (!(error instanceof FlowError)) throw error;
    // The failure itself is what counts.
    return keptError(result);
  }
}

/** Stores what a run has left in its folder, and gives the references. Throws `FlowError` of the store, and INVALID_INPUT. */
async function keepFiles(run: PipelineRun, { task, taskRunId }: TaskRun, { files }: ToolResult): Promise<string[]> {
  if (files === undefined) return [];
  if (isSensitive(run, task)) {
    const what =
      "The files of the task in FLOW_ARTIFACTS were not stored: its result is sensitive, and a file is not sealed";
    throw new FlowError("INVALID_INPUT", what);
  }
  const refs: string[] = [];
  // One file in memory at a time.
  for (const { name, contentType, content } of await files.list()) {
    const artifact = { name, contentType, content: await content() };
    refs.push((await storeArtifact(run.context.deps.results, placeOf(run, task, taskRunId), artifact)).ref);
  }
  return refs;
}

/** The same for a run that has failed, and is not followed by another. What cannot be stored is only said in its log. */
export async function keepFilesOfFailed(run: PipelineRun, taskRun: TaskRun, answer: ToolResult): Promise<string[]> {
  try {
    return await keepFiles(run, taskRun, answer);
  } catch (error) {
    if (!(error instanceof FlowError)) throw error;
    taskRun.log.add(run.context.secrets.hide(error.message));
    return [];
  }
}

async function store(run: PipelineRun, { task, taskRunId }: TaskRun, answer: ToolResult): Promise<Kept> {
  const runs = accumulationOf(run, task);
  const where = placeOf(run, task, runs?.nextId(taskRunId) ?? taskRunId);
  const results = isLastOf(run, task) ? travelling(run.context.deps.results) : run.context.deps.results;
  const config = configOf(run, task);
  if (answer.artifact !== undefined) {
    const data = await storeArtifact(run.context.deps.results, where, answer.artifact);
    return await storeResult(results, where, data, undefined, { ...config, sensitive: false });
  }
  const kept =
    (await storeLarge(results, where, answer, config)) ??
    (await storeResult(results, where, dataOf(answer), answer.virtual, config));
  // Its value is asked for only where runs are joined.
  if (answer.status === "ok") await runs?.add(kept, where, dataOf(answer));
  return kept;
}

/**
 * True where the command ends with this run of the task, if it succeeds: nothing else of the command reads what it gave, so it may travel
 * with the report.
 */
function isLastOf({ step }: PipelineRun, task: ProgramTask): boolean {
  return step.tasks.at(-1) === task && task.policy.length === 0 && taskAccumulate(step.step, task.task) === undefined;
}

/** The same store; what is stored may travel with the report of its task. */
function travelling(results: WritableResultStore): WritableResultStore {
  return { ...results, save: (ref, json, keeping) => results.save(ref, json, { ...keeping, withReport: true }) };
}

function dataOf(answer: ToolResult): Json {
  return answer.status === "error" && answer.data === null ? errorValue(answer) : answer.data;
}

function inMemory(answer: ToolResult): Kept {
  const virtual: Record<string, StoredResult> = {};
  for (const key of Object.keys(answer.virtual ?? {})) setOwn(virtual, key, { value: answer.virtual?.[key] ?? null });
  return { result: { value: dataOf(answer), virtual }, bytes: 0 };
}

/** What several runs of the pipeline's tasks came to, for its report. Throws `FlowError` of the store. */
export async function endRuns({ state }: PipelineRun): Promise<TaskResult[]> {
  const ended: TaskResult[] = [];
  for (const [label, runs] of state.runs) {
    const kept = await runs.end();
    const about = state.tasks.get(label)?.about;
    if (kept === undefined) continue;
    ended.push([label, about === undefined ? kept.result : { ...kept.result, about }, kept.bytes]);
  }
  return ended;
}

function accumulationOf(run: PipelineRun, task: ProgramTask): Accumulation | undefined {
  const { step, state, ref } = run;
  const accumulate = taskAccumulate(step.step, task.task);
  if (accumulate === undefined) return undefined;
  const known = state.runs.get(task.task.label);
  if (known !== undefined) return known;
  const runs = createAccumulation({
    store: run.context.deps.results,
    accumulate,
    config: configOf(run, task),
    place: placeOf(run, task, `${ref.command_id}-${ref.iteration ?? 0}`),
    // The loop has this rule too, if the step or the task has none.
    withinLoop: ref.iteration !== undefined && isLoopsRule(run, task),
  });
  state.runs.set(task.task.label, runs);
  return runs;
}

function isLoopsRule({ step: { step } }: PipelineRun, { task }: ProgramTask): boolean {
  return step.tasks.length === 1 && (step.result.accumulate === undefined || task.result.accumulate === undefined);
}

/** What the step says of its results and, key by key, what the task says. */
function configOf({ step }: PipelineRun, { task }: ProgramTask): ResultConfig {
  const { result } = step.step;
  return {
    ...result,
    ...task.result,
    select: [...result.select, ...task.result.select],
    sensitive: result.sensitive || task.result.sensitive,
  };
}

/** True for a task whose result must not be shown. */
export function isSensitive({ step }: PipelineRun, { task }: ProgramTask): boolean {
  return step.step.result.sensitive || task.result.sensitive;
}

function placeOf({ context }: PipelineRun, { task }: ProgramTask, taskRunId: string): ResultPlace {
  const { execution_id: executionId, step } = context.place.command;
  return { executionId, step, task: task.label, taskRunId };
}

/** The store says what is wrong and, mostly, what helps. Against a size that no store takes only the playbook can do something. */
function storageMessage({ code, message }: FlowError): string {
  const hint = "Give several smaller results, or write it to a table or a file in the task itself";
  return code === "TOO_LARGE" ? `${message}. ${hint}` : message;
}

/** What kind of failure it is that a result could not be kept. */
function storageKind(error: FlowError): TaskErrorKind {
  if (error.code === "INVALID_INPUT") return "configuration";
  if (error.code === "TOO_LARGE") return "storage_quota";
  const said = isJsonObject(error.detail) ? own(error.detail, "kind") : undefined;
  return said === "storage_quota" || NO_ROOM.test(error.message) ? "storage_quota" : "storage_access";
}

/** What file systems, databases and object stores say when they are full. */
const NO_ROOM = /\b(ENOSPC|EDQUOT|EntityTooLarge|QuotaExceeded)\b|no space left|quota|disk (is )?full/i;

/** What is kept of a run that failed. */
export function keptError(result: ToolResult): Kept {
  return { result: { value: errorValue(result) }, bytes: ERROR_BYTES };
}

function errorValue(result: ToolResult): Json {
  return { status: "error", error: result.error ?? null };
}

/** The error of a pipeline whose joined results could not be kept. */
export function notKept(error: FlowError): TaskError {
  return { kind: storageKind(error), code: error.code, message: storageMessage(error), retryable: false };
}

/** What is reported of a task run besides its result. */
export function aboutOf(result: ToolResult, attempt: number, durationMs: number): ResultAbout {
  return {
    meta: { attempt, duration_ms: durationMs },
    ...(result.http !== undefined && { http: result.http }),
    ...(result.pg !== undefined && { pg: result.pg }),
    ...(result.py !== undefined && { py: result.py }),
  };
}

/** A task run as the policy and the next task see it. */
export function outcomeOf(result: ToolResult, stored: StoredResult, about: ResultAbout): Outcome {
  return {
    status: result.status,
    result: stored,
    ...(result.error !== undefined && { error: result.error }),
    ...about,
  };
}
