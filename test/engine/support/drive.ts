import assert from "node:assert/strict";
import { type Advance, beginAdvance, continueAdvance } from "../../../src/engine/decide/advance.ts";
import { startExecution } from "../../../src/engine/decide/start.ts";
import type { EngineEnv } from "../../../src/engine/env.ts";
import type { Program } from "../../../src/engine/program/program.ts";
import { accept } from "../../../src/engine/state/accept.ts";
import { type ExecutionState, emptyState, isTerminal, type OpenCommand } from "../../../src/engine/state/state.ts";
import type { FlowEvent } from "../../../src/schema/words/event.ts";
import { type Random, seededRandom } from "../../simulator/random.ts";
import { countingEnv } from "./given.ts";

/** Steps of the driver within which every run must have ended. */
const MOVES_MAX = 20_000;

/** What a property looks at while a run goes on. */
export interface Watch {
  /** An event from outside was folded, and nothing of what follows from it. */
  onFold?(state: ExecutionState, event: FlowEvent, env: EngineEnv): void;
  /** Everything that follows from an event is decided and folded; the event is the first of those that are added to the log. */
  onAdvanced?(progress: Advance): void;
  /** Everything that followed was folded. */
  onSettled?(state: ExecutionState, log: readonly FlowEvent[]): void;
  /** May replace the state by another that should be as good. */
  replace?(state: ExecutionState): ExecutionState;
}

/**
 * Runs a program to its end with workers that are driven by a seed: they take commands in any order, lose them to another
 * claim, fail one time in six, and end iterations in any order.
 */
export function drive(program: Program, seed: number, watch: Watch = {}): { state: ExecutionState; log: FlowEvent[] } {
  const random = seededRandom(seed);
  const env = countingEnv();
  const log: FlowEvent[] = [];
  let state = emptyState();
  const take = (event: FlowEvent) => {
    const progress = beginAdvance(state, event);
    watch.onFold?.(state, event, env);
    continueAdvance(progress, state, program, env);
    watch.onAdvanced?.(progress);
    log.push(...progress.events);
    watch.onSettled?.(state, log);
    state = watch.replace?.(state) ?? state;
  };
  take(startExecution({ executionId: "1", catalogId: "2", input: {} }, program, env));
  for (let moves = 0; !isTerminal(state.status); moves += 1) {
    assert.ok(moves < MOVES_MAX, `The run does not end: active ${state.active}, waiting ${state.waiting}`);
    env.now += random.between(0, 50);
    for (const event of override(state, program, random, env.now) ?? move(state, random, env.now)) {
      assert.equal(accept(state, event), "accepted", JSON.stringify(event));
      take(event);
    }
  }
  return { state, log };
}

/** Now and then a person ends a step or an iteration, begun or not. */
function override(state: ExecutionState, program: Program, random: Random, now: number): FlowEvent[] | undefined {
  if (!random.chance(0.03)) return undefined;
  const step = random.pick([...program.steps.keys()]);
  const action = random.pick(["skip", "complete", "fail"] as const);
  const error = { kind: "unknown", code: "OVERRIDDEN", message: "by hand", retryable: false } as const;
  const event: FlowEvent = {
    type: "step.overridden",
    at: now,
    step,
    action,
    reason: "tried",
    ...(random.chance(0.5) && { iteration: random.between(0, 5) }),
    ...(action === "complete" && { result: { value: { v: 1 } } }),
    ...(action === "fail" && { error }),
  };
  return accept(state, event) === "accepted" ? [event] : undefined;
}

/** What one worker does next to one of the open commands; or someone pauses the run, or resumes it. */
function move(state: ExecutionState, random: Random, now: number): FlowEvent[] {
  const isPaused = state.status === "PAUSED";
  const open = Object.entries(state.commands).filter(([, { attempt }]) => !isPaused || attempt > 0);
  if (isPaused && (open.length === 0 || random.chance(0.1))) return [{ type: "execution.resumed", at: now }];
  if (!isPaused && random.chance(0.02)) return [{ type: "execution.paused", at: now }];
  assert.ok(open.length > 0, `Nothing can happen any more: active ${state.active}, waiting ${state.waiting}`);
  const [command_id, command] = random.pick(open);
  const { step, attempt } = command;
  if (attempt === 0 || random.chance(0.05)) {
    return [{ type: "command.claimed", at: now, command_id, step, attempt: attempt + 1, worker: "w" }];
  }
  const ref = { command_id, step, attempt, worker: "w" };
  const isFailed = random.chance(1 / 6);
  const error = { kind: "unknown", code: "X", message: "told to fail", retryable: false } as const;
  // One report of a whole command failing, as when a worker could not even prepare it.
  if (isFailed && random.chance(0.2)) return [{ type: "command.failed", at: now, ...ref, error }];
  const iteration = openIteration(command, random);
  if (iteration === undefined && command.iterations !== null) {
    return [
      { type: "command.completed", at: now, ...ref, iterations: command.iterations.to - command.iterations.from },
    ];
  }
  const result = { value: { v: random.between(0, 3) } };
  const done: FlowEvent = {
    type: "task.done",
    at: now,
    ...ref,
    ...(iteration !== undefined && { iteration }),
    task: step,
    task_run_id: `${command_id}-${iteration ?? 0}-0`,
    status: isFailed ? "error" : "ok",
    run: 1,
    final: true,
    result,
    bytes: 10,
    duration_ms: 1,
  };
  const body = {
    at: now,
    ...ref,
    tasks: [step],
    ...(random.chance(0.3) && { set: [["x", random.between(0, 9)] as [string, number]] }),
  };
  if (iteration !== undefined) {
    if (isFailed) return [done, { type: "loop.iteration.failed", ...body, iteration, error }];
    return [done, { type: "loop.iteration.completed", ...body, iteration }];
  }
  return [done, isFailed ? { type: "command.failed", ...body, error } : { type: "command.completed", ...body }];
}

function openIteration({ iterations }: OpenCommand, random: Random): number | undefined {
  if (iterations === null) return undefined;
  const open: number[] = [];
  for (let index = iterations.endedBelow; index < iterations.to; index += 1) {
    if (!iterations.endedAbove.includes(index)) open.push(index);
  }
  return open.length === 0 ? undefined : random.pick(open);
}
