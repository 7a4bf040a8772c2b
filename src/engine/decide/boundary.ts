import { ReferenceNeeded } from "../../language/views/references.ts";
import type { Scope } from "../../language/views/scope.ts";
import type { Write } from "../../schema/words/command.ts";
import { messageOf } from "../../schema/words/errors.ts";
import type { ArcVerdict, Fired, FlowEvent } from "../../schema/words/event.ts";
import { type Json, type JsonObject, setOwn } from "../../schema/words/json.ts";
import type { TaskError } from "../../schema/words/outcome.ts";
import type { StoredResult } from "../../schema/words/result.ts";
import type { EngineEnv } from "../env.ts";
import { templateError } from "../errors.ts";
import type { Program, ProgramArc, ProgramStep } from "../program/program.ts";
import { isOutOfReach } from "../sealing/lost-secret.ts";
import type { ExecutionState, Override } from "../state/state.ts";
import { boundaryScope, holds, isOverBudget, render } from "./scope.ts";

/** The end of a step. */
export interface StepEnd {
  step: ProgramStep;
  stepRunId: string;
  /** Null if it succeeded or was skipped. */
  error: TaskError | null;
  result: StoredResult | null;
  input: JsonObject;
  /** Keys of `input` that a rerun gave. */
  given?: readonly string[] | undefined;
  startedAt: number;
  skipped?: "when" | "admission" | "overridden";
}

/** The mark of a step that a person skips. */
export function skippedBy(override: Override | undefined): Pick<StepEnd, "skipped"> {
  return override?.action === "skip" ? { skipped: "overridden" } : {};
}

/**
 * The events of a step's end, in the order of language document section 5.7: the step's `set`, its arcs, the `set` of each arc
 * that fires. If a `set` or a target cannot be evaluated, a success becomes a failure.
 */
export function endStep(state: ExecutionState, program: Program, end: StepEnd, env: EngineEnv): FlowEvent[] {
  if (end.error !== null) return failStep(state, program, end, end.error, env);
  try {
    return succeedStep(state, program, end, env);
  } catch (error) {
    if (error instanceof ReferenceNeeded) throw error;
    return failStep(state, program, end, templateError(error, end.step.step.name, "set and arcs"), env);
  }
}

function succeedStep(state: ExecutionState, program: Program, end: StepEnd, env: EngineEnv): FlowEvent[] {
  const { step } = end;
  const place = openPlace(state, program, end, env);
  if (end.skipped === undefined) {
    for (const { scope, name, value } of step.set) {
      const rendered = render(value, place.scope(), env);
      // `iter` outside an iteration is the step's own scope, which ends here.
      if (scope !== "iter") place.write(name, rendered);
    }
  }
  const isTarget = state.target === step.step.name;
  const judged = isTarget ? NOTHING_FOLLOWS : evaluateArcs(program, step, place, step.arcs, env);
  if (isStuck(program, step, judged, isTarget)) {
    return failStep(state, program, end, noArcError(step.step.name), env);
  }
  const set = place.writes;
  const name = step.step.name;
  const at = env.now;
  const ended: FlowEvent =
    end.skipped === undefined
      ? {
          type: "step.completed",
          at,
          step: name,
          step_run_id: end.stepRunId,
          set,
          next: followed(state, judged),
          duration_ms: Math.max(0, at - end.startedAt),
        }
      : { type: "step.skipped", at, step: name, reason: end.skipped, set, next: followed(state, judged) };
  return [ended, ...explained(step, judged, "step.done", at)];
}

/** The arcs that lead on: in a rerun of some steps alone those to one of them. */
function followed({ only }: ExecutionState, { fired }: Judged): Fired[] {
  return only === undefined ? fired : fired.filter(({ step }) => only.includes(step));
}

const NOTHING_FOLLOWS: Judged = { fired: [], verdicts: [] };

/** `no_next_is_error`: a step that has arcs must lead to another step. */
function isStuck(program: Program, step: ProgramStep, judged: Judged, isTarget: boolean): boolean {
  if (judged.fired.length > 0 || step.arcs.length === 0 || isTarget) return false;
  return step.step.next.onNoMatch === "error" || program.playbook.executor.noNextIsError;
}

/** On failure, an arc must name the failure; otherwise the run fails. */
function failStep(
  state: ExecutionState,
  program: Program,
  end: StepEnd,
  error: TaskError,
  env: EngineEnv,
): FlowEvent[] {
  const { step } = end;
  const isLoop = step.loop !== undefined;
  const willing = step.arcs.filter((arc) => arc.onFailure || (isLoop && arc.onLoopDone));
  let judged: Judged = NOTHING_FOLLOWS;
  let set: Write[] = [];
  if (willing.length > 0 && state.target !== step.step.name) {
    const place = openPlace(state, program, { ...end, error }, env);
    try {
      judged = evaluateArcs(program, step, place, willing, env);
      set = place.writes;
    } catch (thrown) {
      // If an arc for failures itself fails, it is not taken: the first error is the one to report.
      if (thrown instanceof ReferenceNeeded) throw thrown;
    }
  }
  const at = env.now;
  const failed: FlowEvent = {
    type: "step.failed",
    at,
    step: step.step.name,
    step_run_id: end.stepRunId,
    error,
    handled: handledBy(willing, judged),
    set,
    next: followed(state, judged),
    duration_ms: Math.max(0, at - end.startedAt),
  };
  return [failed, ...explained(step, judged, "step.failed", at)];
}

function handledBy(arcs: readonly ProgramArc[], judged: Judged): "no" | "yes" | "loop.done" {
  if (judged.fired.length === 0) return "no";
  const takers = arcs.filter((_, index) => judged.verdicts[index]?.fired === true);
  return takers.some((arc) => arc.onFailure) ? "yes" : "loop.done";
}

interface Judged {
  fired: Fired[];
  verdicts: ArcVerdict[];
}

/** The scope in which the end of a step is evaluated: later assignments see the values of earlier ones. */
interface Place {
  /** Made at first use: most arcs of most steps have no template. */
  scope(): Scope;
  writes: Write[];
  write(name: string, value: Json): void;
}

function openPlace(state: ExecutionState, program: Program, end: StepEnd, env: EngineEnv): Place {
  const result = end.result ?? { value: null };
  // The envelope of a pipeline is that of the task that ended it.
  const last = result.tasks?.at(-1)?.[1] ?? result;
  const outcome = {
    ...last.about,
    status: end.error === null ? ("ok" as const) : ("error" as const),
    result,
    ...(end.error !== null && { error: end.error }),
  };
  const isLoop = end.step.loop !== undefined && end.skipped === undefined;
  const hasRun = end.result !== null;
  const pending: JsonObject = {};
  const writes: Write[] = [];
  let scope: Scope | undefined;
  return {
    scope() {
      scope ??= boundaryScope(
        state,
        program,
        end.step,
        { outcome, input: end.input, given: end.given, isLoop, hasRun, pending },
        env,
      );
      return scope;
    },
    writes,
    write(name, value) {
      writes.push([name, value]);
      setOwn(pending, name, value);
    },
  };
}

function evaluateArcs(
  program: Program,
  step: ProgramStep,
  place: Place,
  arcs: readonly ProgramArc[],
  env: EngineEnv,
): Judged {
  if (arcs.length === 0) return NOTHING_FOLLOWS;
  const exclusive = step.step.next.mode === "exclusive";
  const verdicts: ArcVerdict[] = [];
  const chosen: { arc: ProgramArc; target: string }[] = [];
  for (const arc of arcs) {
    if (exclusive && chosen.length > 0) {
      verdicts.push({ step: arc.arc.step, fired: false });
      continue;
    }
    const verdict = judgeArc(arc, place, env);
    const target = verdict.matched ? targetOf(arc, place, env) : arc.arc.step;
    verdicts.push({ ...verdict, step: target, fired: verdict.matched });
    if (verdict.matched) chosen.push({ arc, target: knownTarget(program, step, target) });
  }
  const fired = chosen.map(({ arc, target }) => fire(program, step, place, arc, target, env));
  return { fired, verdicts };
}

/** A condition that cannot be evaluated does not match; the reason is recorded in `next.evaluated`. */
function judgeArc(arc: ProgramArc, place: Place, env: EngineEnv): { matched: boolean; error?: string } {
  if (arc.when === undefined) return { matched: true };
  try {
    return { matched: holds(arc.when, place.scope(), env) };
  } catch (error) {
    // A condition on a value that cannot be opened here is not false: another branch would be taken by mistake. So it would be
    // by one for which no budget is left.
    if (error instanceof ReferenceNeeded || isOutOfReach(error) || isOverBudget(error)) throw error;
    return { matched: false, error: messageOf(error) };
  }
}

function targetOf({ target }: ProgramArc, place: Place, env: EngineEnv): string {
  return String(target.constant ? target.source : render(target, place.scope(), env));
}

function knownTarget(program: Program, from: ProgramStep, target: string): string {
  if (program.steps.has(target)) return target;
  throw new Error(`an arc of step '${from.step.name}' leads to step '${target}', which does not exist`);
}

/** The `set` of an arc writes variables, and its inputs are passed to the target. */
function fire(
  program: Program,
  from: ProgramStep,
  place: Place,
  arc: ProgramArc,
  target: string,
  env: EngineEnv,
): Fired {
  const input: JsonObject = {};
  for (const { scope, name, value } of arc.set) {
    const rendered = render(value, place.scope(), env);
    if (scope === "iter") continue;
    setOwn(input, name, rendered);
    place.write(name, rendered);
  }
  const to = program.steps.get(target);
  return { step: target, input, back: to !== undefined && program.graph.isBack(from.index, to.index) };
}

/** `next.evaluated` explains why a step led where it did; without conditions there is nothing to explain. */
function explained(step: ProgramStep, judged: Judged, event: string, at: number): FlowEvent[] {
  const hasCondition = step.arcs.some((arc) => arc.when !== undefined);
  if (!hasCondition || judged.verdicts.length === 0) return [];
  return [{ type: "next.evaluated", at, step: step.step.name, event, arcs: judged.verdicts }];
}

function noArcError(step: string): TaskError {
  return {
    kind: "configuration",
    code: "NO_ARC_MATCHED",
    message: `No arc of step '${step}' matched, and this playbook counts that as an error; add an arc without 'when' or allow the branch to end`,
    retryable: false,
    step,
  };
}
