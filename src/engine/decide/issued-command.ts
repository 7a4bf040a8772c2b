import type { Command } from "../../schema/words/command.ts";
import type { EventOf, FlowEvent } from "../../schema/words/event.ts";
import type { Json } from "../../schema/words/json.ts";
import type { Loop } from "../../schema/words/playbook.ts";
import type { Program, ProgramStep } from "../program/program.ts";
import { evolve } from "../state/evolve.ts";
import { type ExecutionState, emptyState, knownStep, type LoopState, type StepRun, stepState } from "../state/state.ts";
import { commandContext } from "./context.ts";

/*
 * What workers are given of a command. It is made when the command is issued, and is no event: of a command that has ended it is made
 * again from the log.
 */

/** The command of a step without a loop. */
export function stepCommand(state: ExecutionState, step: ProgramStep, run: StepRun, id: string): Command {
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

/** Iterations of one command: indexes (`to` is not one of them), their items, and when they must have ended (milliseconds since 1970). */
export interface IterationRange {
  from: number;
  to: number;
  items: Json[];
  endsAt?: number;
}

/** The command of some iterations of a loop. */
export function iterationsCommand(
  state: ExecutionState,
  step: ProgramStep,
  run: StepRun,
  loop: LoopState,
  { from, items, endsAt }: IterationRange,
  id: string,
): Command {
  const settings = step.loop?.loop;
  return {
    ...stepCommand(state, step, run, id),
    loop: {
      from,
      items,
      ...(loop.total !== null && { total: loop.total }),
      max_in_flight: loop.maxInFlight,
      // Within one command only the plain rule can be applied: tolerances are judged by the engine.
      stop_on_error: settings !== undefined && onErrorOf(settings) === "stop",
      ...(items.length > 1 && settings?.exec !== "local" && { at_once: true as const }),
      ...(endsAt !== undefined && { frame_ends_at: endsAt }),
    },
  };
}

/** The command of a cursor's claim. */
export function claimCommand(
  state: ExecutionState,
  step: ProgramStep,
  run: StepRun,
  maxRows: number,
  id: string,
): Command {
  return { ...stepCommand(state, step, run, id), claim: { max_rows: maxRows } };
}

/** The failure rule of a loop (language document, section 6): by default a parallel loop continues. */
export function onErrorOf(settings: Loop): NonNullable<Loop["onError"]> {
  return settings.onError ?? (settings.mode === "parallel" ? "continue" : "stop");
}

/** The items of a collection's iterations `from` up to `to`. */
export function itemsBetween(loop: LoopState, from: number, to: number): Json[] {
  if (loop.items !== null) return loop.items.slice(from, to);
  return Array.from({ length: to - from }, (_, offset) => from + offset);
}

/** An event with its place in the log: its id, and that of the event from which it follows. */
export interface PlacedEvent {
  event: FlowEvent;
  eventId: number;
  cause?: number | undefined;
}

/** Reads a log in its order until a command can be made again. */
export interface CommandRecall {
  /** The command as it was issued, as soon as it is known; undefined: more of the log is needed. */
  next(placed: PlacedEvent): Command | undefined;
  /** The log is at its end. Undefined: it does not issue the command. */
  end(): Command | undefined;
}

/**
 * Makes a command again as it was issued: with the state in which it was decided. Commands of loops were made before the event that
 * announces them was folded; all others after it, and after the events that had been decided until then: those that follow it
 * in the log with an earlier cause. `state` is the fold of the log before the first event that is given; it is changed in place.
 */
export function recallCommand(program: Program, commandId: string, state = emptyState()): CommandRecall {
  let issued: { event: EventOf<"command.issued">; eventId: number } | undefined;
  const made = () => (issued === undefined ? undefined : commandOf(state, program, issued.event));
  return {
    next({ event, eventId, cause }) {
      const wasDecidedBefore =
        issued === undefined || (isDecided(event) && cause !== undefined && cause < issued.eventId);
      if (!wasDecidedBefore) return made();
      const isIssue = event.type === "command.issued" && event.command_id === commandId;
      if (isIssue && (event.iterations !== undefined || event.claim === true)) return commandOf(state, program, event);
      evolve(state, event);
      if (isIssue) issued = { event, eventId };
      return undefined;
    },
    end: made,
  };
}

/** False for what workers report and for claims: their cause is the issue of their command, however long ago that was. */
function isDecided(event: FlowEvent): boolean {
  return event.type === "command.issued" || event.type === "command.cancelled" || !("command_id" in event);
}

function commandOf(state: ExecutionState, program: Program, event: EventOf<"command.issued">): Command | undefined {
  const step = program.steps.get(event.step);
  const run = knownStep(state, event.step)?.run;
  if (step === undefined || run == null) return undefined;
  const { command_id: id, iterations } = event;
  const { loop } = run;
  if (loop === null) return stepCommand(state, step, run, id);
  if (event.claim === true) return claimCommand(state, step, run, loop.cursor?.maxRows ?? 1, id);
  if (iterations === undefined) return undefined;
  const range = rangeOf(loop, iterations);
  return range === undefined ? undefined : iterationsCommand(state, step, run, loop, range, id);
}

function rangeOf(loop: LoopState, { from, to }: { from: number; to: number }): IterationRange | undefined {
  const { cursor } = loop;
  if (cursor === null) return { from, to, items: itemsBetween(loop, from, to) };
  const frame = cursor.frames.find((one) => from >= one.from && from < one.from + one.items.length);
  if (frame === undefined) return undefined;
  const items = frame.items.slice(from - frame.from, to - frame.from);
  return { from, to, items, ...(cursor.frameMs !== null && { endsAt: frame.at + cursor.frameMs }) };
}
