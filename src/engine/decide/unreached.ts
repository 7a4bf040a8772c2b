import type { FlowEvent } from "../../schema/words/event.ts";
import type { EngineEnv } from "../env.ts";
import type { Program, ProgramStep } from "../program/program.ts";
import { type ExecutionState, knownStep } from "../state/state.ts";

/**
 * The steps that can no longer be reached after a step has ended: no running or waiting step leads to them, over arcs forward
 * or back. They become SKIPPED, so that people see what did not run. All at once, including those behind skipped steps only:
 * the skips themselves have no further effect.
 */
export function unreachedSteps(
  state: ExecutionState,
  program: Program,
  ended: ProgramStep,
  env: EngineEnv,
): FlowEvent[] {
  if (state.failure !== null) return [];
  const targets = pendingTargets(state, program, ended.index);
  // Most steps end with a token for every target: the graph is walked only if a target got no token.
  if (targets.length === 0) return [];
  const alive = reachableSteps(state, program);
  const unreached = new Set(targets.filter((target) => !alive.has(target)));
  for (const step of unreached) {
    for (const target of pendingTargets(state, program, step)) if (!alive.has(target)) unreached.add(target);
  }
  const names = [...unreached].flatMap((index) => program.playbook.steps[index]?.name ?? []);
  return names.map((step) => ({ type: "step.skipped", at: env.now, step, reason: "unreached", set: [], next: [] }));
}

/** Targets to which nothing has happened. */
function pendingTargets(state: ExecutionState, program: Program, from: number): number[] {
  return program.graph.targets(from).filter((target) => {
    const name = program.playbook.steps[target]?.name;
    if (name === undefined) return false;
    const known = knownStep(state, name);
    return known === undefined || (known.status === "PENDING" && known.token === null && known.run === null);
  });
}

/** The steps that run, wait or are still to run at the end, and all that may follow them. */
function reachableSteps(state: ExecutionState, program: Program): Set<number> {
  const alive = new Set<number>();
  const final = finalStep(state, program);
  for (const name of [...state.active, ...state.waiting, ...(final === undefined ? [] : [final.step.name])]) {
    const step = program.steps.get(name);
    if (step !== undefined) alive.add(step.index);
  }
  // A set may grow while it is iterated: added elements are visited too.
  for (const step of alive) for (const target of program.graph.targets(step)) alive.add(target);
  return alive;
}

/** The final step, if the run has no target. */
export function finalStep(state: ExecutionState, program: Program): ProgramStep | undefined {
  const name = program.playbook.executor.finalStep;
  if (name === undefined || state.target !== null) return undefined;
  const known = knownStep(state, name);
  const isDone = known !== undefined && (known.runs > 0 || known.endedAt !== null);
  return isDone ? undefined : program.steps.get(name);
}
