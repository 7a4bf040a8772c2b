import { ReferenceNeeded } from "../../language/views/references.ts";
import { entriesOf } from "../../schema/rules/whole-result.ts";
import type { Command } from "../../schema/words/command.ts";
import type { FlowEvent } from "../../schema/words/event.ts";
import type { Json } from "../../schema/words/json.ts";
import { manifestOf } from "../../schema/words/manifest.ts";
import type { TaskError } from "../../schema/words/outcome.ts";
import type { Loop } from "../../schema/words/playbook.ts";
import type { LoopPart } from "../../schema/words/result.ts";
import type { EngineEnv } from "../env.ts";
import type { ProgramStep } from "../program/program.ts";
import { loopStats } from "../state/evolve-loop.ts";
import { countLeft, nextToRun, rangesOf, reusable, runLength } from "../state/kept-iterations.ts";
import { type Keeping, keepingOf } from "../state/results.ts";
import { type ExecutionState, knownStep, type LoopState, type StepRun } from "../state/state.ts";
import { continueCursor, hasMoreRows } from "./cursor.ts";
import { itemsBetween, onErrorOf } from "./issued-command.ts";
import { type Issuable, issueIterations } from "./loop-commands.ts";

/** Bytes of inline results above which a loop's results move to the store: the default inline limit of a result. */
export const LOOP_INLINE_BYTES_MAX = 65_536;

/** A payload to store before the events are committed. */
export interface StoreWrite {
  ref: string;
  value: Json;
  /** Where and for how long to keep it, as set by the step; absent: as for any result. */
  keeping?: Keeping;
}

/** Decides what follows for one running loop: more iterations, the next claim, or its end. Depends on the state alone. */
export function continueLoop(
  state: ExecutionState,
  step: ProgramStep,
  run: StepRun,
  env: EngineEnv,
): { events: FlowEvent[]; commands: Command[]; writes: StoreWrite[] } {
  const loop = run.loop;
  if (loop === null || loop.done || step.loop === undefined) return NOTHING;
  const [unchecked, ...others] = loop.unchecked ?? [];
  if (unchecked !== undefined) return keepResults(state, step, run, loop, unchecked, others, env);
  if (loop.tailBytes > LOOP_INLINE_BYTES_MAX) return storeTail(state, step, run, loop, env);
  if (run.override !== undefined || !mayContinue(state, step.loop.loop, loop)) {
    if (loop.commands > 0) return NOTHING;
    // If results have already left the state, the last ones follow, so that the manifest is complete.
    const isLeft = loop.parts.length > 0 && loop.tail.length > 0;
    return isLeft ? storeTail(state, step, run, loop, env) : loopDone(state, step, run, loop, env);
  }
  if (loop.cursor !== null) return { ...continueCursor(state, step, run, loop, loop.cursor, env), writes: [] };
  return { ...issueIterations(state, step, run, loop, collectionOf(loop), env), writes: [] };
}

const NOTHING = { events: [], commands: [], writes: [] };

/** False if no further iteration may start: all have started, too many failed, or the run is failing. */
function mayContinue(state: ExecutionState, settings: Loop, loop: LoopState): boolean {
  if (state.failure !== null || mustStop(settings, loop)) return false;
  return loop.cursor === null ? loop.next < (loop.total ?? 0) : hasMoreRows(loop.cursor);
}

function mustStop(settings: Loop, loop: LoopState): boolean {
  if (loop.failed === 0) return false;
  const onError = onErrorOf(settings);
  if (onError === "continue") return false;
  if (onError === "stop") return true;
  // A share of an unknown total (cursor) can only be judged at the end.
  return loop.total !== null && !isTolerated(settings, loop);
}

/** True while the failures of the loop stay within what its `on_error` tolerates. */
function isTolerated(settings: Loop, loop: LoopState): boolean {
  const onError = settings.onError;
  if (typeof onError !== "object") return false;
  if ("tolerate" in onError) return loop.failed <= onError.tolerate;
  return loop.failed <= ((loop.total ?? loop.next) * onError.toleratePercent) / 100;
}

/** The error with which a finished loop fails its step, or null when it succeeded. */
export function loopError(step: ProgramStep, loop: LoopState): TaskError | null {
  const settings = step.loop?.loop;
  if (settings === undefined) return null;
  const { total, failed } = loopStats(loop);
  const name = step.step.name;
  const { firstError } = loop;
  if (firstError !== null && !isTolerated(settings, loop)) {
    // An author who wrote `continue` may have meant that the step does not fail.
    const hint =
      settings.onError === "continue"
        ? " (on_error: continue runs them all; on_error: {tolerate: 100%} lets the step complete)"
        : "";
    const message = `${failed} of ${total} iterations of step '${name}' failed${hint}; the first: ${firstError.message}`;
    return { ...firstError, message, step: name };
  }
  // A failed claim is not a failed row: `on_error` does not tolerate it.
  const claimError = loop.cursor?.error ?? null;
  if (claimError !== null) {
    return { ...claimError, message: `The claim of step '${name}' failed: ${claimError.message}`, step: name };
  }
  return loop.unrun > 0 ? unrunError(name, loop.unrun, total) : null;
}

/** A worker stops early only after a failure; if no iteration failed, the iterations it left out are missing work. */
function unrunError(step: string, unrun: number, total: number): TaskError {
  const message = `${unrun} of ${total} iterations of step '${step}' were not run: the worker ended its command without them`;
  return { kind: "unknown", code: "ITERATIONS_NOT_RUN", message, retryable: true, step };
}

/** The end of a loop, with the manifest of the results in the store (interface specification, Manifest). */
function loopDone(state: ExecutionState, step: ProgramStep, run: StepRun, loop: LoopState, env: EngineEnv) {
  const name = step.step.name;
  const done: FlowEvent = {
    type: "loop.done",
    at: env.now,
    step: name,
    step_run_id: run.stepRunId,
    stats: loopStats(loop),
  };
  if (loop.parts.length === 0) return { ...NOTHING, events: [done] };
  const manifest = `${resultRef(state.executionId, name, `${run.stepRunId}-${env.newId()}`)}/manifest`;
  const value: Json = manifestOf(loop.accumulate ?? { strategy: "append" }, loop.parts);
  return { ...NOTHING, events: [{ ...done, manifest }], writes: [{ ref: manifest, value, ...asStepSays(step) }] };
}

function asStepSays({ step: { result } }: ProgramStep): Pick<StoreWrite, "keeping"> {
  const keeping = keepingOf(result);
  return keeping === undefined ? {} : { keeping };
}

/** The iterations of a collection that were not issued, without those that a rerun takes over. */
function collectionOf(loop: LoopState): Issuable {
  const { next, open } = loop;
  const total = loop.total ?? 0;
  const items = (from: number, to: number) => itemsBetween(loop, from, to);
  const plain = { next, left: total - next, open, openMax: loop.maxInFlight, items };
  if (loop.reused === undefined && loop.endedAhead === undefined) return plain;
  return {
    ...plain,
    left: countLeft(loop, next, total),
    together: (from) => runLength(loop, from, total),
    after: (to) => nextToRun(loop, to),
  };
}

/**
 * Takes over what a stored part of an earlier run has of iterations that succeeded and are the same. A part of which all is taken over
 * stays where it is; of any other what remains is stored anew, as a reader would find the failures in it.
 */
function keepResults(
  state: ExecutionState,
  step: ProgramStep,
  run: StepRun,
  loop: LoopState,
  part: LoopPart,
  others: readonly LoopPart[],
  env: EngineEnv,
) {
  const name = step.step.name;
  const kept = knownStep(state, name)?.kept;
  const payload = env.references.get(part.ref);
  if (payload === undefined)
    throw new ReferenceNeeded(part.ref, others.map(({ ref }) => ref).slice(0, PARTS_AT_A_TIME));
  const entries = entriesOf(payload);
  const good = kept === undefined ? [] : reusable(loop, kept, entries);
  const indexes = good.map(([index]) => index);
  const told = {
    type: "loop.results.kept" as const,
    at: env.now,
    step: name,
    step_run_id: run.stepRunId,
    ref: part.ref,
    iterations: rangesOf(indexes),
  };
  if (good.length === entries.length) return { ...NOTHING, events: [{ ...told, part }] };
  if (good.length === 0) return { ...NOTHING, events: [told] };
  const ref = resultRef(state.executionId, name, `${run.stepRunId}-kept-${env.newId()}`);
  const bytes = Math.ceil((part.bytes * good.length) / entries.length);
  const fresh = { ref, count: good.length, min: Math.min(...indexes), max: Math.max(...indexes), bytes };
  return {
    events: [{ ...told, part: fresh }],
    commands: [],
    writes: [{ ref, value: good as unknown as Json, ...asStepSays(step) }],
  };
}

/** Parts that are loaded together. */
const PARTS_AT_A_TIME = 4;

/** Moves the results gathered so far to the store; the state keeps their references. */
function storeTail(state: ExecutionState, step: ProgramStep, run: StepRun, loop: LoopState, env: EngineEnv) {
  const tail = [...loop.tail].sort(([left], [right]) => left - right);
  // A fresh id: two servers that decide this at the same moment gather different results, and only one of them is committed.
  const ref = resultRef(state.executionId, step.step.name, `${run.stepRunId}-${loop.parts.length}-${env.newId()}`);
  const part = {
    ref,
    count: tail.length,
    min: tail[0]?.[0] ?? 0,
    max: tail.at(-1)?.[0] ?? 0,
    bytes: loop.tailBytes,
  };
  const stored: FlowEvent = {
    type: "loop.results.stored",
    at: env.now,
    step: step.step.name,
    step_run_id: run.stepRunId,
    part,
  };
  return { events: [stored], commands: [], writes: [{ ref, value: tail, ...asStepSays(step) }] };
}

function resultRef(executionId: string, step: string, runId: string): string {
  return `noetl://execution/${executionId}/step/${encodeURIComponent(step)}/task/loop/run/${runId}`;
}
