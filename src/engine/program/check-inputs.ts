import { nearest } from "../../language/words/nearest.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type Json, type JsonObject, own } from "../../schema/words/json.ts";
import type { DeclaredInput, DeclaredInputs, Playbook } from "../../schema/words/playbook.ts";

/** One thing that is wrong with an input: where, as `window.from`, and what. */
export interface InputProblem {
  path: string;
  message: string;
}

/** Finds what is wrong with a value by a JSON Schema. It is passed in: the engine has no schema checker. */
export type FindProblems = (schema: JsonObject, value: Json) => InputProblem[];

/** The inputs of a start that are checked. */
export interface GivenInputs {
  /** What the start was given. */
  input: JsonObject;
  /** The rendered workload, sealed values opened: what was given, over the defaults. */
  workload: JsonObject;
  /** Of a rerun the keys that were edited: what it has of its original may be of another version. Default: all. */
  edited?: readonly string[];
}

/** Most problems that are listed. */
const PROBLEMS_MAX = 20;

/**
 * Throws `FlowError` INVALID_INPUT if the inputs are not what the playbook declares: one that is required and absent, one whose value its
 * schema refuses, and one that the playbook does not have. The last is refused, not warned of: a name that is misspelt would run with the
 * default of the right one, and a playbook that declares its inputs says which there are. `access_token` is accepted always, as callers of
 * agents pass it.
 */
export function checkInputs(playbook: Playbook, given: GivenInputs, find: FindProblems): void {
  const { path, inputs = {} } = playbook;
  const known = new Set([...Object.keys(inputs), ...Object.keys(playbook.workload)]);
  const problems = [...unknownOnes(known, given), ...wrongOnes(inputs, given, find)].slice(0, PROBLEMS_MAX);
  if (problems.length === 0) return;
  const told = problems.map((problem) => `${problem.path}: ${problem.message}`).join("; ");
  throw new FlowError("INVALID_INPUT", `'${path}' was not started: its inputs are not valid: ${told}`, {
    detail: { errors: problems.map((problem) => ({ ...problem })) },
  });
}

function unknownOnes(known: ReadonlySet<string>, { input, edited = Object.keys(input) }: GivenInputs): InputProblem[] {
  return edited.flatMap((path) => {
    if (known.has(path) || path === "access_token") return [];
    const near = nearest(path, known);
    return [{ path, message: `is no input of it${near === undefined ? "" : `; did you mean '${near}'?`}` }];
  });
}

function* wrongOnes(
  inputs: DeclaredInputs,
  { input, workload }: GivenInputs,
  find: FindProblems,
): Iterable<InputProblem> {
  for (const name of Object.keys(inputs)) {
    const { schema, required } = own(inputs, name) as DeclaredInput;
    const value = own(workload, name) as Json | undefined;
    // A default of null stands for a missing one.
    if (value === undefined || (value === null && !Object.hasOwn(input, name))) {
      if (required === true) yield { path: name, message: "is required" };
      continue;
    }
    for (const { path, message } of find(schema, value))
      yield { path: path === "" ? name : `${name}.${path}`, message };
  }
}
