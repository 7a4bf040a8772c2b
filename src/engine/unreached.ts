import type { FlowEvent } from "../schema/event.ts";
import type { EngineEnv } from "./env.ts";
import type { Program, ProgramStep } from "./program.ts";
import { type ExecutionState, knownStep } from "./state.ts";

/**
 * The targets of a step that ended which can no longer be reached: nothing that runs or waits leads to them. They become
 * SKIPPED, so that a step that joins several branches knows what not to wait for, and a person sees what did not run.
 */
export function unreachedSteps(state: ExecutionState, program: Program, ended: ProgramStep, env: EngineEnv): FlowEvent[] {
  if (state.failure !== null) return [];
  const events: FlowEvent[] = [];
  for (const target of program.graph.targets(ended.index)) {
    const step = program.playbook.steps[target];
    if (step === undefined || !isPending(state, step.name) || isReachable(state, program, target)) continue;
    events.push({ type: "step.skipped", at: env.now, step: step.name, reason: "unreached", set: [], next: [] });
  }
  return events;
}

function isPending(state: ExecutionState, name: string): boolean {
  const known = knownStep(state, name);
  return known === undefined || (known.status === "PENDING" && known.token === null && known.run === null);
}

function isReachable(state: ExecutionState, program: Program, target: number): boolean {
  const leadsThere = (name: string) => {
    const step = program.steps.get(name);
    return step !== undefined && program.graph.reaches(step.index, target);
  };
  return state.active.some(leadsThere) || state.waiting.some(leadsThere);
}
