import { excerpt } from "../../language/expression/parsing/fault.ts";
import { type Names, nameScope } from "../../language/template/names.ts";
import type { Condition, RenderOptions, Template } from "../../language/template/template.ts";
import { EventName } from "../../language/views/event-name.ts";
import { type Outcome, OutputView } from "../../language/views/output-view.ts";
import { ResultView } from "../../language/views/result-view.ts";
import type { Scope } from "../../language/views/scope.ts";
import { View } from "../../language/views/view.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type Json, type JsonObject, setOwn } from "../../schema/words/json.ts";
import type { StoredResult } from "../../schema/words/result.ts";
import type { EngineEnv } from "../env.ts";
import type { Program, ProgramStep } from "../program/program.ts";
import { type ExecutionState, knownStep, type LoopState, type StepRun } from "../state/state.ts";

/** The names that are visible everywhere in an execution. */
function baseNames(state: ExecutionState, program: Program, env: EngineEnv): Omit<Names, "input"> {
  return {
    executionId: state.executionId,
    catalogId: state.catalogId,
    ...(state.parent !== null && { parentExecutionId: state.parent.execution_id }),
    workload: state.workload,
    vars: state.vars,
    spec: program.playbook.spec,
    steps: {
      get: (name) => knownStep(state, name)?.result ?? undefined,
      names: () => stepsWithResult(state),
    },
    references: env.references,
    ...(env.sealing !== undefined && { open: env.sealing.open }),
    env: env.env,
    reserved: {
      keychain: KEYCHAIN_OUT_OF_REACH,
      // Outside its own loops, a called playbook still sees the iteration of its caller.
      ...(state.parent?.iter !== undefined && { iter: { parent: opened(state.parent.iter, env) } }),
    },
  };
}

function* stepsWithResult(state: ExecutionState): Iterable<string> {
  for (const name of Object.keys(state.steps)) if (knownStep(state, name)?.result != null) yield name;
}

/** The entries of a step's `input` that are rendered: all but those that a rerun gave. */
export function ownInputs(
  { input }: Pick<ProgramStep, "input">,
  given: readonly string[] | undefined,
): ProgramStep["input"] {
  return given === undefined ? input : input.filter(([key]) => !given.includes(key));
}

/** A step's own inputs: those of the arc, then its `input`, rendered at first use. */
export function stepInput(
  step: ProgramStep,
  { input: arcInput, given }: { input: JsonObject; given?: readonly string[] | undefined },
  names: Omit<Names, "input">,
  env: EngineEnv,
): () => JsonObject {
  const entries = ownInputs(step, given);
  if (entries.length === 0) return () => arcInput;
  let merged: JsonObject | undefined;
  return () => {
    if (merged !== undefined) return merged;
    merged = { ...arcInput };
    const scope = nameScope({ ...names, input: () => arcInput });
    for (const [key, template] of entries) setOwn(merged, key, render(template, scope, env));
    return merged;
  };
}

/** Scope of a step's guard, admission and collection: the step is not running yet. */
export function guardScope(
  state: ExecutionState,
  program: Program,
  step: ProgramStep,
  token: { input: JsonObject; from: string | null; given?: readonly string[] | undefined },
  env: EngineEnv,
): Scope {
  const names = { ...baseNames(state, program, env), ...(token.from !== null && { from: token.from }) };
  return nameScope({ ...names, input: stepInput(step, token, names, env) });
}

/** Scope of a step that waits, or of one iteration of it: of the condition under which it takes a signal, with `names` besides. */
export function waitScope(
  state: ExecutionState,
  program: Program,
  step: ProgramStep,
  run: StepRun,
  { iteration: index, names: given }: { iteration: number | undefined; names: JsonObject },
  env: EngineEnv,
): Scope {
  const base = baseNames(state, program, env);
  const { from, loop } = run;
  const isIteration = index !== undefined && loop !== null;
  // The caller's iteration is the `parent` of its own.
  const { iter: _iter, ...reserved } = base.reserved;
  const names = {
    ...base,
    ...(from !== null && { from }),
    ...(isIteration && { iteration: iterationNames(state, step, loop, index, env) }),
    reserved: {
      ...(isIteration ? reserved : base.reserved),
      ...opened(given, env),
    },
  };
  return nameScope({ ...names, input: stepInput(step, run, names, env) });
}

function iterationNames(state: ExecutionState, step: ProgramStep, loop: LoopState, index: number, env: EngineEnv) {
  return {
    iterator: step.step.loop?.iterator ?? "item",
    item: loop.items === null ? index : opened(loop.items[index] ?? null, env),
    index,
    ...(loop.total !== null && { total: loop.total }),
    ...(state.parent?.iter !== undefined && { parent: opened(state.parent.iter, env) }),
    written: {},
  };
}

/** The step that ended, for its `set` and its arcs. */
export interface BoundaryPlace {
  outcome: Outcome;
  input: JsonObject;
  /** Keys of `input` that a rerun gave. */
  given?: readonly string[] | undefined;
  isLoop: boolean;
  /** False for a step that was skipped, or failed before it ran: its tasks have no results. */
  hasRun: boolean;
  /** Writes that are decided but not yet in the state; read at each look-up. */
  pending: JsonObject;
}

/** Scope of a step's `set` and arcs. */
export function boundaryScope(
  state: ExecutionState,
  program: Program,
  step: ProgramStep,
  place: BoundaryPlace,
  env: EngineEnv,
): Scope {
  const { isLoop, hasRun, pending } = place;
  const outcome = openedOutcome(place.outcome, env);
  const name = new EventName(outcome.status === "error", isLoop);
  const base = baseNames(state, program, env);
  const names = {
    ...base,
    steps: hasRun ? withResult(base.steps, step.step.name, outcome.result) : base.steps,
    pending,
  };
  const result = new ResultView(outcome.result, env.references);
  const output = new OutputView(outcome, "boundary", env.references);
  return nameScope({
    ...names,
    input: stepInput(step, place, names, env),
    tasks: isLoop || !hasRun ? new Map() : ownTasks(step, outcome.result),
    reserved: {
      ...names.reserved,
      event: { name, step: step.step.name, type: name },
      output,
      result,
      response: result,
    },
  });
}

/** The outcome as templates read it: the tool's result, with sealed values opened. */
function openedOutcome(outcome: Outcome, env: EngineEnv): Outcome {
  if (env.sealing === undefined) return outcome;
  const { result, http } = outcome;
  return { ...outcome, result: opened(result, env), ...(http !== undefined && { http: opened(http, env) }) };
}

function opened<T>(value: T, env: EngineEnv): T {
  return env.sealing === undefined ? value : env.sealing.open(value);
}

/** The results of steps, including the step that ends here: the state has a loop's result only after its end was folded. */
function withResult(steps: Names["steps"], name: string, result: StoredResult): Names["steps"] {
  return {
    get: (wanted) => (wanted === name ? result : steps.get(wanted)),
    names: () => new Set([...steps.names(), name]),
  };
}

/** Labels of the step's own tasks. (A loop has no single result of a task.) */
function ownTasks(step: ProgramStep, result: StoredResult): ReadonlyMap<string, StoredResult> {
  if (result.tasks !== undefined) return new Map(result.tasks);
  const only = step.tasks.length === 1 ? step.tasks[0] : undefined;
  return only === undefined ? new Map() : new Map([[only.task.label, result]]);
}

/** Renders with the engine's clock and account. */
export function render(template: Template, scope: Scope, env: EngineEnv): Json {
  return charged(template, (options) => template.render(scope, options), env);
}

/** Evaluates a condition with the engine's clock and account. */
export function holds(condition: Condition, scope: Scope, env: EngineEnv): boolean {
  return charged(condition, (options) => condition.test(scope, options), env);
}

/** The error of an account that is used up names the template that was evaluated then. */
function charged<T>({ source }: { source: Json }, evaluate: (options: RenderOptions) => T, env: EngineEnv): T {
  const { account } = env;
  try {
    return evaluate({ now: () => env.now, ...(account !== undefined && { account }) });
  } catch (error) {
    if (!isOverBudget(error)) throw error;
    const text = typeof source === "string" ? source : JSON.stringify(source);
    throw new FlowError("DECISION_BUDGET", `${error.message}. It was used up at ${excerpt(text)}`, { cause: error });
  }
}

/** The error of a template for which nothing is left in its decision's account. */
export function isOverBudget(error: unknown): error is FlowError {
  return error instanceof FlowError && error.code === "DECISION_BUDGET";
}

/**
 * `keychain` in templates that the engine evaluates: guards, collections, arcs, a step's `set`. Only workers resolve entries,
 * so reading one here is an error and not undefined.
 */
class NoKeychain extends View {
  override get(key: string | number): unknown {
    throw noKeychain(String(key));
  }

  override plain(): unknown {
    throw noKeychain("…");
  }
}

function noKeychain(name: string): FlowError {
  return new FlowError(
    "KEYCHAIN",
    `KEYCHAIN: Entry '${name}' can be read in a step's input and tasks only, not in guards, collections, arcs or a step's set`,
  );
}

/** The one value of `keychain` in the engine's scopes. */
const KEYCHAIN_OUT_OF_REACH: View = new NoKeychain();
