import type { ProgramTask } from "../../engine/program/program.ts";
import type { KeptPipeline, ResultOf, Woken, Write } from "../../schema/words/command.ts";
import { type Json, jsonSize, setOwn } from "../../schema/words/json.ts";
import type { TaskError } from "../../schema/words/outcome.ts";
import type { StoredResult } from "../../schema/words/result.ts";
import { abortedResult } from "../deadline.ts";
import { isSensitive } from "./keep-result.ts";
import type { PipelineRun, PipelineState, RunTries } from "./pipeline-run.ts";
import { Parked } from "./wait.ts";

/** A command whose task runs again only after more than this is parked: its worker has other things to do. */
const RETRY_PARKS_MS = 10_000;
/** Longest that is kept of a pipeline meanwhile, as JSON: it is in the log and in the execution's state. */
const KEPT_BYTES_MAX = 65_536;

/**
 * Whether the command is parked until then. Not where the pipeline is one of several of its command, joins results of several runs
 * (`accumulate`), or has sensitive results or too many to be kept: then the worker waits.
 */
export function parksUntil(run: PipelineRun, at: number): boolean {
  const { context, state, step, mayPark, signal } = run;
  if (!mayPark || signal.aborted || at - context.deps.clock.now() <= RETRY_PARKS_MS || state.runs.size > 0)
    return false;
  if (state.tasks.size > 0 && step.tasks.some((task) => isSensitive(run, task))) return false;
  return jsonSize(keptOf(state, [], 0) as unknown as Json) <= KEPT_BYTES_MAX;
}

/** Ends the work on the command until then: its next claim goes on with the next run of the task. */
export function parkUntil(
  at: number,
  { ref: { iteration }, state }: PipelineRun,
  { task }: ProgramTask,
  { serial, runs: run, startedAt }: RunTries,
  { set, runs }: { set: readonly Write[]; runs: number },
): never {
  const which = iteration === undefined ? {} : { iteration };
  const resume = { task: task.label, ...which, run: run + 1, serial, started_at: textOf(startedAt) };
  throw new Parked({ kind: "retry", due: textOf(at) }, { ...resume, pipeline: keptOf(state, set, runs) });
}

/** Waits until then. The error with which that was broken off, or null. */
export async function pauseUntil(at: number, run: PipelineRun): Promise<TaskError | null> {
  const { clock } = run.context.deps;
  if (run.signal.aborted) return stoppedBy(run);
  const delayMs = at - clock.now();
  if (delayMs <= 0) return null;
  try {
    await clock.sleep(delayMs, run.signal);
    return null;
  } catch {
    return stoppedBy(run);
  }
}

/** The error of a pipeline that was stopped between two runs. */
export function stoppedBy({ signal }: PipelineRun): TaskError {
  return abortedResult(signal).error as TaskError;
}

/** Puts a pipeline where it was when its command was parked; the task runs that it had made. */
export function goOn({ state }: PipelineRun, tries: RunTries, set: Write[], woken: Woken): number {
  const { resume, wait } = woken;
  const { pipeline: kept } = resume;
  Object.assign(tries, { runs: resume.run - 1, startedAt: Date.parse(resume.started_at) });
  // A wait is the run itself: it goes on with what has come.
  if (wait.kind !== "retry") tries.woken = woken;
  if (kept === undefined) return 0;
  for (const [label, page] of Object.entries(kept.pages)) state.pages.set(label, page);
  tries.page = state.pages.get(resume.task) ?? tries.page;
  for (const [label, result] of kept.tasks ?? []) state.tasks.set(label, result);
  set.push(...(kept.set ?? []));
  const resultOf = (result: StoredResult | ResultOf) =>
    "of" in result ? (state.tasks.get(result.of) ?? { value: null }) : result;
  if (kept.previous !== undefined) {
    const { about: _, ...result } = resultOf(kept.previous.result);
    state.previous = { ...kept.previous, result };
  }
  if (kept.last_good !== undefined) state.lastGood = resultOf(kept.last_good);
  for (const [from, to] of [
    [kept.locals, state.locals],
    [kept.pending, state.pending],
    [kept.iter, writtenTo(state)],
  ] as const) {
    for (const [name, value] of Object.entries(from ?? {})) setOwn(to, name, value);
  }
  return kept.runs;
}

function keptOf(state: PipelineState, set: readonly Write[], runs: number): KeptPipeline {
  const { tasks, pages, previous, lastGood, locals, pending } = state;
  const { parent: _, ...iter } = writtenTo(state);
  const isAny = (values: object) => Object.keys(values).length > 0;
  return {
    runs,
    pages: Object.fromEntries(pages),
    ...(set.length > 0 && { set: [...set] }),
    ...(tasks.size > 0 && { tasks: [...tasks] }),
    ...(previous !== null && { previous: { ...previous, result: once(previous.result, tasks) } }),
    ...(lastGood !== null && { last_good: once(lastGood, tasks) }),
    ...(isAny(locals) && { locals }),
    ...(isAny(pending) && { pending }),
    ...(isAny(iter) && { iter }),
  };
}

/** Most are a task's result, which is kept anyway. */
function once(result: StoredResult, tasks: PipelineState["tasks"]): StoredResult | ResultOf {
  const same = ({ value, ref }: StoredResult) =>
    ref === undefined ? value === result.value && value !== null : ref === result.ref;
  const [label] = [...tasks].find(([, other]) => same(other)) ?? [];
  return label === undefined ? result : { of: label };
}

/** What `iter` has been given: of the iteration, or outside loops of the step. */
function writtenTo({ iteration, stepScope }: PipelineState) {
  return iteration?.written ?? stepScope;
}

function textOf(at: number): string {
  return new Date(at).toISOString();
}
