import type { Needs } from "../../language/template/needs.ts";
import type { CommandContext } from "../../schema/words/command.ts";
import { type JsonObject, own, setOwn } from "../../schema/words/json.ts";
import type { StoredResult } from "../../schema/words/result.ts";
import type { ProgramStep } from "../program/program.ts";
import { type ExecutionState, knownStep, type StepRun } from "../state/state.ts";

/**
 * The names that the templates of a step's commands may read, with their present values. The cost does not grow with the data
 * that the execution has gathered, and later writes do not reach a command that was already issued.
 */
export function commandContext(state: ExecutionState, step: ProgramStep, run: StepRun): CommandContext {
  const pick = picker(state);
  collect(step.needs, pick);
  if (run.from !== null && readsPrevious(step.needs)) pick.step(run.from);
  return {
    workload: pick.workload,
    vars: pick.vars,
    steps: pick.steps,
    input: run.input,
    ...(run.given !== undefined && { given: run.given }),
    ...(run.from !== null && { from: run.from }),
    ...(state.parent !== null && { parent_execution_id: state.parent.execution_id }),
    ...(state.parent?.root_execution_id !== undefined && { root_execution_id: state.parent.root_execution_id }),
    ...(state.parent?.iter !== undefined && { parent_iter: state.parent.iter }),
    ...(step.needs.members.has("keychain") && { keychain: keychainOwner(state) }),
  };
}

function keychainOwner(state: ExecutionState): NonNullable<CommandContext["keychain"]> {
  const { parent, executionId, catalogId, startedAt } = state;
  return {
    root_execution_id: parent?.root_execution_id ?? parent?.execution_id ?? executionId,
    root_catalog_id: parent?.root_catalog_id ?? catalogId,
    execution_started_at: startedAt,
  };
}

type Picker = ReturnType<typeof picker>;

function picker(state: ExecutionState) {
  const workload: JsonObject = {};
  const vars: JsonObject = {};
  const steps: Record<string, StoredResult> = {};
  const copy = (from: JsonObject, to: object, key: string) => {
    const value = own(from, key);
    if (value !== undefined) setOwn(to, key, value);
    return value !== undefined;
  };
  const step = (name: string) => {
    const result = knownStep(state, name)?.result;
    if (result != null) setOwn(steps, name, result);
    return result != null;
  };
  return {
    workload,
    vars,
    steps,
    step,
    workloadKey: (key: string) => copy(state.workload, workload, key),
    variable: (key: string) => copy(state.vars, vars, key),
    allWorkload: () => Object.keys(state.workload).forEach((key) => void copy(state.workload, workload, key)),
    allVars: () => Object.keys(state.vars).forEach((key) => void copy(state.vars, vars, key)),
    allSteps: () => Object.keys(state.steps).forEach((name) => void step(name)),
  };
}

function collect(needs: Needs, pick: Picker): void {
  for (const name of needs.names) first(pick, name);
  for (const [root, members] of needs.members) {
    const isAll = members === "all";
    const keys = isAll ? [] : [...members];
    if (root === "workload" || root === "ctx") isAll && pick.allWorkload();
    if (root === "vars" || root === "ctx") isAll && pick.allVars();
    if (root === "steps" || root === "ctx") isAll && pick.allSteps();
    for (const key of keys) {
      if (root === "workload") pick.workloadKey(key);
      else if (root === "vars") pick.variable(key);
      else if (root === "steps") pick.step(key);
      else if (root === "ctx") first(pick, key);
    }
  }
}

/** Resolves a bare name: a variable, else a step's result, else a workload key. */
function first(pick: Picker, name: string): void {
  if (!pick.variable(name) && !pick.step(name)) pick.workloadKey(name);
}

function readsPrevious(needs: Needs): boolean {
  return needs.names.has("result") || needs.names.has("response");
}
