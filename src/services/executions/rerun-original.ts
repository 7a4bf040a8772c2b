import type { Program } from "../../engine/program/program.ts";
import { type ChosenSteps, chooseSteps, type Original } from "../../engine/rerun/choose-steps.ts";
import { neededReferences, ownerOf, referencesIn } from "../../engine/rerun/needed-references.ts";
import { certainSteps, checkKinds, type PlannedRerunStep, planRerun } from "../../engine/rerun/plan-rerun.ts";
import {
  foldPrefix,
  type PrefixFold,
  type RerunEdits,
  restoringEvents,
  withGiven,
} from "../../engine/rerun/restore-state.ts";
import { type ExecutionState, knownStep } from "../../engine/state/state.ts";
import type { ExecutionStore, StoredExecution } from "../../ports/execution-store.ts";
import { fromRecord } from "../../schema/rules/event-record.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { RerunRef } from "../../schema/words/event.ts";
import { type JsonObject, own, setOwn } from "../../schema/words/json.ts";
import { beginning, eventPages, foldRow, isMarker, startingPointUpTo } from "../orchestration/memory/load-execution.ts";
import type { CommandProgram } from "../orchestration/memory/program-cache.ts";
import type { RerunInput } from "../orchestration/orchestrator.ts";

/** What is known of executions and their results beside the logs. */
export interface OriginalFacts {
  /** Also true for one that is gone. */
  isBeingDeleted(executionId: string): Promise<boolean>;
  /** Of these references those under which nothing can be read any more. */
  findGone(asked: readonly { executionId: string; ref: string }[]): Promise<string[]>;
  /** Of these executions those whose results an execution may read by its own right. */
  findOwnersWithin(executionId: string, owners: readonly string[]): Promise<string[]>;
}

/** What reading an original needs. */
export interface OriginalDeps {
  facts: OriginalFacts;
  store: Pick<ExecutionStore, "find" | "eventsAfter" | "snapshotUpTo">;
  programs(catalogId: string): Promise<CommandProgram>;
}

/** An execution that has ended, in which steps ran. */
export interface OpenedOriginal extends Original {
  stored: StoredExecution;
}

/** What a rerun does, all of it decided. */
export interface PreparedRerun {
  /** Where it goes on. */
  from: string[] | "start";
  reused: number;
  willRun: string[];
  steps: PlannedRerunStep[];
  refersTo: string[];
  /** The execution that was read: the one that is asked for, or one that it repeats. */
  sourceId: string;
  /** Absent: it begins with its first step. */
  restored?: NonNullable<RerunInput["restored"]>;
}

/**
 * Reads an execution with the places of its steps. `permit` is asked for its path before anything is said of it, or read of its log. Throws
 * `FlowError` NOT_FOUND, not_terminal, and what `permit` throws.
 */
export async function openOriginal(
  { store, facts }: OriginalDeps,
  executionId: string,
  permit?: (path: string) => Promise<void>,
): Promise<OpenedOriginal> {
  const stored = await store.find(executionId);
  if (stored === undefined) throw new FlowError("NOT_FOUND", `Execution ${executionId} does not exist`);
  await permit?.(stored.path);
  const { status } = stored;
  if (status !== "COMPLETED" && status !== "FAILED" && status !== "CANCELLED") {
    const message = `Execution ${executionId} was not run again: it has not ended (${status})`;
    throw new FlowError("not_terminal", `${message}. Wait for its end, or cancel it first`);
  }
  const { state, marks } = await foldRow(store, stored);
  await checkWhole(facts, executionId);
  if (marks !== null) return { stored, state, marks };
  // Its snapshots are of a version that did not note where steps began.
  const start = beginning(executionId);
  const folded = await foldRow(store, stored, start);
  await checkWhole(facts, executionId);
  return { stored, state: folded.state, marks: start.marks };
}

/**
 * Throws `FlowError` NOT_FOUND if an execution that was just read is being deleted: of its log there may have been a part. A deletion says so
 * before it begins.
 */
export async function checkWhole(facts: Pick<OriginalFacts, "isBeingDeleted">, executionId: string): Promise<void> {
  if (!(await facts.isBeingDeleted(executionId))) return;
  throw new FlowError("NOT_FOUND", `Execution ${executionId} was not run again: it is being deleted`);
}

/**
 * Where the steps that are asked for ran. A rerun has them of another execution, which alone has what they began with: then that one is run
 * again, with what the rerun had changed, and so are the steps that the rerun itself ran.
 */
async function sourceOf(
  deps: OriginalDeps,
  asked: OpenedOriginal,
  from: readonly string[] | "failed",
  edits: RerunEdits,
): Promise<{ source: OpenedOriginal; from: readonly string[] | "failed"; edits: RerunEdits }> {
  let source = asked;
  let names = from;
  let all = edits;
  for (;;) {
    const { state } = source;
    const isElsewhere = names !== "failed" && names.some((name) => knownStep(state, name)?.reusedFrom !== undefined);
    if (names === "failed" || !isElsewhere || state.rerunOf === undefined) return { source, from: names, edits: all };
    const rerun = await rerunOf(deps, state.executionId);
    const before = await openOriginal(deps, state.rerunOf).catch((error: unknown) => {
      throw error instanceof FlowError && error.code === "NOT_FOUND" ? takenFromGone(state, names) : error;
    });
    const input: JsonObject = {};
    for (const key of rerun.input ?? []) setOwn(input, key, own(state.workload, key) ?? null);
    all = {
      input: { ...input, ...all.input },
      variables: { ...rerun.variables, ...all.variables },
      stepInput: { ...rerun.step_input, ...all.stepInput },
    };
    names = [...new Set([...names, ...(rerun.from === "start" ? [] : rerun.from)])];
    source = before;
  }
}

/** What these steps began with is known of an execution alone that has been deleted. */
function takenFromGone(state: ExecutionState, from: readonly string[] | "failed"): FlowError {
  const { executionId, rerunOf = "" } = state;
  const named = from === "failed" ? [] : from;
  const taken = named.filter((name) => knownStep(state, name)?.reusedFrom !== undefined);
  const names = taken.map((name) => `'${name}'`).join(", ");
  const message = `${names} ran in execution ${rerunOf}, which has been deleted: what they began with is gone`;
  return new FlowError("RESULT_NOT_REUSABLE", `${message}. Rerun ${executionId} from 'start'`, {
    detail: { steps: taken, execution_id: rerunOf },
  });
}

/** What an execution was asked for as a rerun. */
async function rerunOf({ store }: OriginalDeps, executionId: string): Promise<RerunRef> {
  const [first] = await store.eventsAfter(executionId, Number(executionId), 1);
  const event = first === undefined ? undefined : fromRecord(first);
  if (event?.type === "playbook.initialized" && event.rerun !== undefined) return event.rerun;
  throw new FlowError("INTERNAL", `Execution ${executionId} does not say what it repeats`);
}

/** What to run again of an original, with which program. */
export interface RerunChoice {
  from: readonly string[] | "failed" | "start";
  only: boolean;
  edits: RerunEdits;
  reuseIterations: boolean;
  /** That of the rerun. */
  program: Program;
}

/** Decides what a rerun takes over and what it runs, and looks whether that is still there. Throws `FlowError` as it is said in control. */
export async function prepareRerun(
  deps: OriginalDeps,
  asked: OpenedOriginal,
  choice: RerunChoice,
): Promise<PreparedRerun> {
  const { program, only } = choice;
  if (choice.from === "start") {
    const everything = () => true;
    checkStepInput(program, choice.edits);
    return {
      from: "start",
      reused: 0,
      willRun: certainSteps(program, [program.playbook.entryStep], everything),
      steps: planRerun(program, { reused: new Set(), mayRun: everything }),
      refersTo: await ownersOf(deps, asked, [asked.state.input]),
      sourceId: asked.state.executionId,
    };
  }
  const { source, from, edits } = await sourceOf(deps, asked, choice.from, choice.edits);
  checkStepInput(program, edits);
  const chosen = chooseSteps(source, program, { from, only });
  const prefix = await foldedPrefix(deps, source, chosen, choice.reuseIterations);
  await checkWhole(deps.facts, source.state.executionId);
  const at = source.state.endedAt ?? 0;
  const start = restoringEvents(prefix, source, program, { ...chosen, only }, edits, at);
  const before = await deps.programs(source.stored.catalogId);
  checkKinds(before.program, program, start.reused);
  const { mayRun } = start;
  await checkResults(deps, prefix, program, mayRun);
  return {
    from: chosen.roots,
    reused: start.reused.length,
    willRun: certainSteps(program, start.waiting, mayRun),
    steps: planRerun(program, { reused: new Set(start.reused), mayRun }),
    refersTo: await ownersOf(deps, source, [prefix.state, [...prefix.loops.values()]]),
    sourceId: source.state.executionId,
    restored: {
      workload: start.workload,
      events: (now, given) => withGiven(start.events, given).map((event) => ({ ...event, at: now })),
    },
  };
}

function checkStepInput(program: Program, { stepInput }: RerunEdits): void {
  const unknown = Object.keys(stepInput).filter((name) => !program.steps.has(name));
  if (unknown.length === 0) return;
  const names = unknown.map((name) => `'${name}'`).join(", ");
  throw new FlowError("INVALID_INPUT", `step_input names ${names}: there is no such step`, {
    detail: { unknown_steps: unknown },
  });
}

/** Folds the original from the last snapshot before anything that is left out. */
async function foldedPrefix(
  { store }: OriginalDeps,
  source: OpenedOriginal,
  chosen: ChosenSteps,
  keepLoops: boolean,
): Promise<ReturnType<PrefixFold["end"]>> {
  const { stored } = source;
  const { executionId, lastEventId } = stored;
  const first = Math.min(...chosen.again.values(), lastEventId + 1);
  const start = await startingPointUpTo(store, stored, first - 1);
  const fold = foldPrefix(start, source, chosen, keepLoops);
  for await (const page of eventPages(store, executionId, start.lastEventId, lastEventId)) {
    for (const record of page) {
      if (record.event_id > fold.lastEventId && !fold.isOpen()) return fold.end();
      if (!isMarker(record)) fold.next(fromRecord(record), record.event_id);
    }
  }
  return fold.end();
}

/** References of one look-up. */
const REFERENCES_MAX = 1_000;

/** Throws `FlowError` RESULT_NOT_REUSABLE if a step that runs again may read a stored result that is gone. */
async function checkResults(
  { facts }: OriginalDeps,
  { state, loops }: ReturnType<PrefixFold["end"]>,
  program: Program,
  mayRun: (step: string) => boolean,
): Promise<void> {
  const needed = neededReferences(state, program, mayRun);
  for (const [step, loop] of loops) for (const ref of referencesIn([loop.parts, loop.tail])) needed.push({ ref, step });
  const asked = needed.flatMap((one) => {
    const executionId = ownerOf(one.ref);
    return executionId === undefined ? [] : [{ ...one, executionId }];
  });
  for (let from = 0; from < asked.length; from += REFERENCES_MAX) {
    const some = asked.slice(from, from + REFERENCES_MAX);
    const [gone] = await facts.findGone(some);
    const lost = some.find(({ ref }) => ref === gone);
    if (lost !== undefined) throw notReusable(lost.ref, lost.step, mayRun);
  }
}

function notReusable(ref: string, step: string | null, mayRun: (step: string) => boolean): FlowError {
  const producer = step ?? /\/step\/([^/]+)\//.exec(ref)?.[1] ?? null;
  const isOwn = step !== null && mayRun(step);
  const what =
    producer === null
      ? "A stored result"
      : isOwn
        ? `Results of iterations of step '${producer}'`
        : `The result of step '${producer}'`;
  const next = isOwn ? "Run all of its iterations (reuse_iterations: false)" : `Rerun from '${producer ?? "start"}'`;
  const message = `${what}, which the rerun needs, has expired or was deleted`;
  return new FlowError("RESULT_NOT_REUSABLE", `${message}. ${next}`, { detail: { step: producer, ref } });
}

/** The executions whose stored results are referred to, as far as the original itself might read them. */
async function ownersOf({ facts }: OriginalDeps, { state }: Original, recorded: unknown): Promise<string[]> {
  const owners = new Set([...referencesIn(recorded)].flatMap((ref) => ownerOf(ref) ?? []));
  return owners.size === 0 ? [] : await facts.findOwnersWithin(state.executionId, [...owners]);
}
