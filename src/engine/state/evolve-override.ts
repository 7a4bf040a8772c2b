import { defined } from "../../schema/words/defined.ts";
import type { EventOf } from "../../schema/words/event.ts";
import { countersOf, hasEnded, overrideIteration } from "./evolve-loop.ts";
import { isReused } from "./kept-iterations.ts";
import {
  type ExecutionState,
  ITERATIONS_BY_HAND_MAX,
  type LoopState,
  type OpenCommand,
  type Override,
  type StepState,
  stepState,
} from "./state.ts";

/**
 * The part of `evolve` that concerns a step which a person ends. What runs of it has ended with the event: its commands are still open
 * until the decision cancels them, and no report of them changes anything then.
 */
export function evolveOverride(state: ExecutionState, event: EventOf<"step.overridden">): ExecutionState {
  const { type: _, step: name, iteration, ...override } = event;
  const step = stepState(state, name);
  const { run } = step;
  noteByHand(step, iteration, override);
  if (run === null) {
    step.override = override;
    return state;
  }
  if (run.loop === null) {
    run.override = override;
    run.ended = { error: override.error ?? null };
    if (override.action !== "skip") step.result = override.result ?? null;
    return state;
  }
  const { loop } = run;
  if (iteration === undefined) {
    run.override = override;
    for (const command of commandsOf(state, name)) {
      for (const index of openIterations(command)) overrideIteration(loop, index, override, command);
    }
  } else {
    overrideIteration(loop, iteration, override, commandOfIteration(state, name, iteration));
  }
  step.loop = countersOf(loop);
  return state;
}

function noteByHand(step: StepState, iteration: number | undefined, { at, action, by, reason }: Override): void {
  const byHand = { at, action, ...defined({ by }), reason };
  if (iteration === undefined) {
    step.overridden = byHand;
    return;
  }
  step.iterationsByHand ??= [];
  step.iterationsByHand.push({ iteration, ...byHand });
  if (step.iterationsByHand.length > ITERATIONS_BY_HAND_MAX) step.iterationsByHand.shift();
}

/** Folds that nothing further is issued or claimed until it is resumed, and that it goes on. */
export function evolvePause(
  state: ExecutionState,
  event: EventOf<"execution.paused"> | EventOf<"execution.resumed">,
): ExecutionState {
  if (event.type === "execution.paused") {
    if (state.status !== "RUNNING") return state;
    const { type: _, ...pause } = event;
    state.status = "PAUSED";
    state.paused = pause;
    return state;
  }
  if (state.status !== "PAUSED") return state;
  state.status = "RUNNING";
  delete state.paused;
  return state;
}

/** Open iterations of a step's loop. */
export function openIterationsOf(state: ExecutionState, step: string): number {
  return commandsOf(state, step).reduce((sum, command) => sum + openIterations(command).length, 0);
}

/**
 * Whether there is something left to be ended: the step, or the iteration of its loop. A step that has ended and has a token again is one
 * that has not begun.
 */
export function isOverridable(state: ExecutionState, step: StepState | undefined, { step: name, iteration }: Place) {
  if (step === undefined || step.run === null) {
    const isOpen = step === undefined || step.status === "PENDING" || step.token !== null;
    return isOpen && iteration === undefined;
  }
  const { loop, ended, override } = step.run;
  if (override !== undefined || ended !== null || loop?.done === true) return false;
  if (iteration === undefined) return true;
  if (loop === null) return false;
  return commandOfIteration(state, name, iteration) !== undefined || isAhead(loop, iteration);
}

type Place = Pick<EventOf<"step.overridden">, "step" | "iteration">;

/** The iteration is one of a collection, and was not issued. */
function isAhead(loop: LoopState, iteration: number): boolean {
  const { cursor, next, total, endedAhead } = loop;
  if (cursor !== null || endedAhead?.includes(iteration) === true || isReused(loop, iteration)) return false;
  return iteration >= next && iteration < (total ?? 0);
}

function commandsOf(state: ExecutionState, step: string): OpenCommand[] {
  return Object.values(state.commands).filter((command) => command.step === step);
}

function commandOfIteration(state: ExecutionState, step: string, iteration: number): OpenCommand | undefined {
  return commandsOf(state, step).find(({ iterations }) => {
    if (iterations === null || iteration < iterations.from || iteration >= iterations.to) return false;
    return !hasEnded(iterations, iteration);
  });
}

/** Iterations of a command that have not ended. */
export function openIterations({ iterations }: OpenCommand): number[] {
  if (iterations === null) return [];
  const ended = new Set(iterations.endedAbove);
  const open: number[] = [];
  for (let index = iterations.endedBelow; index < iterations.to; index += 1) if (!ended.has(index)) open.push(index);
  return open;
}
