import type { Command } from "../schema/command.ts";
import type { FlowEvent } from "../schema/event.ts";
import type { Json } from "../schema/json.ts";
import type { TaskError } from "../schema/outcome.ts";
import type { Loop } from "../schema/playbook.ts";
import { commandContext } from "./context.ts";
import type { EngineEnv } from "./env.ts";
import { loopStats } from "./evolve-loop.ts";
import type { ProgramStep } from "./program.ts";
import { type ExecutionState, type LoopState, type StepRun, stepState } from "./state.ts";

/** Bytes of inline results above which a loop's results move to the store: the default inline limit of a result. */
export const LOOP_INLINE_BYTES_MAX = 65_536;

/**
 * Most iterations of one command (`exec: local`); further ones go into the next command, after it. Its items are a list,
 * which a collection that is a number (a billion) would otherwise fill the memory with.
 */
export const COMMAND_ITERATIONS_MAX = 100_000;

/** A payload to store before the events are committed. */
export interface StoreWrite {
  ref: string;
  value: Json;
}

/** What follows for one running loop: more iterations, the next claim, or its end. Looks at the state alone. */
export function continueLoop(
  state: ExecutionState,
  step: ProgramStep,
  run: StepRun,
  env: EngineEnv,
): { events: FlowEvent[]; commands: Command[]; writes: StoreWrite[] } {
  const loop = run.loop;
  if (loop === null || loop.done || step.loop === undefined) return NOTHING;
  if (loop.tailBytes > LOOP_INLINE_BYTES_MAX) return storeTail(state, step, run, loop, env);
  if (!mayContinue(state, step.loop.loop, loop)) {
    return loop.commands > 0 ? NOTHING : { ...NOTHING, events: [loopDone(step, run, loop, env)] };
  }
  if (loop.cursor !== null && needsClaim(loop)) return claimRows(state, step, run, loop, env);
  return issueIterations(state, step, run, loop, env);
}

const NOTHING = { events: [], commands: [], writes: [] };

/** False when no further iteration is to start: all were, too many failed, or the run is failing. */
function mayContinue(state: ExecutionState, settings: Loop, loop: LoopState): boolean {
  if (state.failure !== null || mustStop(settings, loop)) return false;
  return loop.cursor === null ? loop.next < (loop.total ?? 0) : !loop.cursor.exhausted;
}

function mustStop(settings: Loop, loop: LoopState): boolean {
  if (loop.failed === 0) return false;
  const onError = onErrorOf(settings);
  if (onError === "continue") return false;
  if (onError === "stop") return true;
  // A share of an unknown total (cursor) can only be judged at the end.
  return loop.total !== null && !isTolerated(settings, loop);
}

/** What the loop does about failures (language document, section 6): by default a parallel one goes on. */
function onErrorOf(settings: Loop): NonNullable<Loop["onError"]> {
  return settings.onError ?? (settings.mode === "parallel" ? "continue" : "stop");
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
    const message = `${failed} of ${total} iterations of step '${name}' failed; the first: ${firstError.message}`;
    return { ...firstError, message, step: name };
  }
  // A claim is no share of the rows: `on_error` does not tolerate it.
  const claimError = loop.cursor?.error ?? null;
  if (claimError !== null) {
    return { ...claimError, message: `The claim of step '${name}' failed: ${claimError.message}`, step: name };
  }
  return loop.unrun > 0 ? unrunError(name, loop.unrun, total) : null;
}

/** A worker stops early after a failure only; without one, iterations that it left out are work that was not done. */
function unrunError(step: string, unrun: number, total: number): TaskError {
  const message = `${unrun} of ${total} iterations of step '${step}' were not run: the worker ended its command without them`;
  return { kind: "unknown", code: "ITERATIONS_NOT_RUN", message, retryable: true, step };
}

function loopDone(step: ProgramStep, run: StepRun, loop: LoopState, env: EngineEnv): FlowEvent {
  const name = step.step.name;
  return { type: "loop.done", at: env.now, step: name, step_run_id: run.stepRunId, stats: loopStats(loop) };
}

/** A cursor claims again when every row of the last claim has been worked off. */
function needsClaim(loop: LoopState): boolean {
  return loop.cursor !== null && !loop.cursor.claiming && loop.open === 0 && available(loop) === 0;
}

/** Iterations whose items are known and that were not issued. */
function available(loop: LoopState): number {
  if (loop.items === null) return (loop.total ?? 0) - loop.next;
  return loop.base + loop.items.length - loop.next;
}

function claimRows(state: ExecutionState, step: ProgramStep, run: StepRun, loop: LoopState, env: EngineEnv) {
  const issued: FlowEvent = {
    type: "command.issued",
    at: env.now,
    command_id: env.newId(),
    step: step.step.name,
    step_run_id: run.stepRunId,
    claim: true,
  };
  const command: Command = {
    ...commandBase(state, step, run, issued.command_id),
    claim: { max_rows: loop.cursor?.maxRows ?? 1 },
  };
  return { events: [issued], commands: [command], writes: [] };
}

function commandBase(state: ExecutionState, step: ProgramStep, run: StepRun, id: string): Command {
  return {
    command_id: id,
    execution_id: state.executionId,
    catalog_id: state.catalogId,
    step: step.step.name,
    step_run_id: run.stepRunId,
    step_started_at: stepState(state, step.step.name).startedAt ?? 0,
    ...(state.trace !== undefined && { trace: state.trace.context }),
    context: commandContext(state, step, run),
  };
}

function issueIterations(state: ExecutionState, step: ProgramStep, run: StepRun, loop: LoopState, env: EngineEnv) {
  const settings = step.loop?.loop;
  const events: FlowEvent[] = [];
  const commands: Command[] = [];
  const inOne = settings?.exec === "local";
  let next = loop.next;
  let open = loop.open;
  let left = available(loop);
  while (left > 0 && (inOne ? open === 0 : open < loop.maxInFlight)) {
    const size = inOne ? Math.min(left, COMMAND_ITERATIONS_MAX) : 1;
    const id = env.newId();
    const iterations = { from: next, to: next + size };
    events.push({
      type: "command.issued",
      at: env.now,
      command_id: id,
      step: step.step.name,
      step_run_id: run.stepRunId,
      iterations,
    });
    commands.push({
      ...commandBase(state, step, run, id),
      loop: {
        from: next,
        items: itemsBetween(loop, next, next + size),
        ...(loop.total !== null && { total: loop.total }),
        max_in_flight: loop.maxInFlight,
        // Within one command only the plain rule can be applied: a tolerance is judged here.
        stop_on_error: settings !== undefined && onErrorOf(settings) === "stop",
      },
    });
    next += size;
    open += size;
    left -= size;
  }
  return { events, commands, writes: [] };
}

function itemsBetween(loop: LoopState, from: number, to: number): Json[] {
  if (loop.items !== null) return loop.items.slice(from - loop.base, to - loop.base);
  return Array.from({ length: to - from }, (_, offset) => from + offset);
}

/** Moves the results gathered so far to the store; the state keeps where they are. */
function storeTail(state: ExecutionState, step: ProgramStep, run: StepRun, loop: LoopState, env: EngineEnv) {
  const tail = [...loop.tail].sort(([left], [right]) => left - right);
  // A fresh id: two servers that decide this at the same moment gather other results, and only one of them is believed.
  const ref = partRef(state.executionId, step.step.name, `${run.stepRunId}-${loop.parts.length}-${env.newId()}`);
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
  return { events: [stored], commands: [], writes: [{ ref, value: tail }] };
}

function partRef(executionId: string, step: string, runId: string): string {
  return `noetl://execution/${executionId}/step/${encodeURIComponent(step)}/task/loop/run/${runId}`;
}
