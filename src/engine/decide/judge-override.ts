import { FlowError } from "../../schema/words/errors.ts";
import type { EventOf } from "../../schema/words/event.ts";
import { jsonSize } from "../../schema/words/json.ts";
import type { Program } from "../program/program.ts";
import { isOverridable, openIterationsOf } from "../state/evolve-override.ts";
import { type ExecutionState, isTerminal, knownStep } from "../state/state.ts";

/** Bytes that a result may come to in all the open iterations that it is given to: they are in the state until their loop has ended. */
const RESULTS_BYTES_MAX = 4 * 1_048_576;

/** Why a step or an iteration cannot be ended in this way, as the `FlowError` to be thrown; undefined if it can. */
export function judgeOverride(
  state: ExecutionState,
  program: Program,
  event: EventOf<"step.overridden">,
): FlowError | undefined {
  const { step: name, iteration } = event;
  const what = iteration === undefined ? `Step '${name}'` : `Iteration ${iteration} of step '${name}'`;
  const refused = (code: FlowError["code"], why: string) =>
    new FlowError(code, `${what} of execution ${state.executionId} was not changed: ${why}`);
  if (isTerminal(state.status)) return refused("already_terminal", `the execution has ended (${state.status})`);
  const step = program.steps.get(name);
  if (step === undefined) {
    return refused("NOT_FOUND", `there is no such step; the steps are: ${[...program.steps.keys()].join(", ")}`);
  }
  if (event.result !== undefined && step.step.result.sensitive) {
    return refused("INVALID_INPUT", "its result is sensitive, and would be in the log as text. Skip it instead");
  }
  if (iteration !== undefined && step.loop === undefined) {
    return refused("INVALID_INPUT", "the step has no loop. Leave out the iteration");
  }
  const known = knownStep(state, name);
  if (isOverridable(state, known, event)) {
    const bytes = jsonSize(event.result?.value ?? null) * (iteration === undefined ? openIterationsOf(state, name) : 1);
    if (bytes <= RESULTS_BYTES_MAX) return undefined;
    return refused("INVALID_INPUT", `the result would be stored for each open iteration, ${bytes} bytes in all`);
  }
  if (iteration !== undefined) {
    const total = known?.run?.loop?.total ?? null;
    if (total !== null && iteration >= total) return refused("NOT_FOUND", `the loop has ${total} iterations`);
    const isBegun = known?.run != null && (known.run.loop?.next ?? 0) > iteration;
    if (!isBegun && known?.endedAt == null)
      return refused("CONFLICT", "it is not known yet. Change the step as a whole");
  }
  return refused("already_terminal", iteration === undefined ? `it has ended (${known?.status})` : "it has ended");
}
