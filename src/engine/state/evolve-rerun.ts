import type { EventOf, KeptStep, RerunRef, RestoredStep } from "../../schema/words/event.ts";
import { type JsonObject, own, setOwn } from "../../schema/words/json.ts";
import { type ExecutionState, type StepState, stepState } from "./state.ts";

/*
 * The part of `evolve` that concerns how a rerun begins.
 */

/** What a rerun was asked for, as far as it is not in `workflow.restored`. */
export function beginRerun(state: ExecutionState, rerun: RerunRef): void {
  const { execution_id, from, only, variables = {}, step_input = {} } = rerun;
  state.rerunOf = execution_id;
  if (from === "start") {
    state.vars = { ...variables };
    for (const name of Object.keys(step_input)) stepState(state, name).given = own(step_input, name) as JsonObject;
  } else if (only === true) {
    state.only = from;
  }
}

/** A step of another execution's log: what it came to there. */
export function copied(
  state: ExecutionState,
  event: EventOf<"step.completed"> | EventOf<"step.failed"> | EventOf<"step.skipped">,
  kept: KeptStep,
  status: StepState["status"],
): ExecutionState {
  const step = stepState(state, event.step);
  keep(step, kept, status);
  if (event.reused_from !== undefined) step.reusedFrom = event.reused_from;
  return state;
}

function keep(step: StepState, kept: KeptStep, status: StepState["status"]): void {
  const { order, runs, attempts, started_at, ended_at, result, error, loop } = kept;
  Object.assign(step, { status, order, runs, attempts, result, error, loop });
  step.startedAt = started_at;
  step.endedAt = ended_at;
}

/** What stands between the steps where a rerun begins. */
export function restored(state: ExecutionState, event: EventOf<"workflow.restored">): ExecutionState {
  state.vars = { ...event.vars };
  for (const from of Object.keys(event.taken)) setOwn(state.arcs, from, { ...(own(event.taken, from) as object) });
  state.started = event.started;
  state.lastCompleted = event.last_completed ?? null;
  state.failureAtEnd = event.failure_at_end ?? null;
  state.waiting = [...event.waiting];
  for (const name of Object.keys(event.steps)) {
    const step = stepState(state, name);
    const { kept, token, given, loop } = own(event.steps, name) as RestoredStep;
    if (kept !== undefined) {
      keep(step, kept, kept.status);
      if (kept.reused_from !== undefined) step.reusedFrom = kept.reused_from;
    }
    if (token !== undefined) step.token = token;
    if (given !== undefined) step.given = given;
    if (loop !== undefined) step.kept = loop;
  }
  return state;
}
