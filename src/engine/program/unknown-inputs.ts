import type { Needs } from "../../language/template/needs.ts";
import { nearest } from "../../language/words/nearest.ts";
import { atOnce, type Pieces } from "../../language/words/pieces.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import type { Program, ProgramStep, ProgramTask } from "./program.ts";

/** What is known about the inputs that a program reads. */
interface Known {
  workload: ReadonlySet<string>;
  /** Names that a template or code reads. */
  read: ReadonlySet<string>;
  /** All inputs are read at once somewhere, so that any name may be meant. */
  readsAll: boolean;
}

const known = new WeakMap<Program, Known>();

/**
 * Warnings about inputs that the workload does not have and nothing reads, with the name that was probably meant. Never an
 * error: inputs are merged over the workload whatever they are called. If all of them are read at once somewhere, or there is
 * no workload to compare with, only near misspellings of workload names are reported.
 */
export function unknownInputs(program: Program, input: JsonObject): string[] {
  return atOnce(unknownInputsInPieces(program, input));
}

/** {@link unknownInputs} step by step: collecting what 5,000 steps read takes some 100 ms, once. */
export function* unknownInputsInPieces(program: Program, input: JsonObject): Pieces<string[]> {
  // What a playbook that declares its inputs does not have is refused.
  if (Object.keys(input).length === 0 || program.playbook.inputs !== undefined) return [];
  const names = known.get(program) ?? (yield* collect(program));
  known.set(program, names);
  const warnings: string[] = [];
  let compared = 0;
  for (const name of Object.keys(input)) {
    if (names.workload.has(name) || names.read.has(name)) continue;
    yield;
    compared += 1;
    const near = compared > COMPARED_MAX ? undefined : nearest(name, names.workload);
    if (near === undefined && (names.readsAll || names.workload.size === 0)) continue;
    const hint = near === undefined ? "" : `; did you mean '${near}'?`;
    warnings.push(`The workload of '${program.playbook.path}' has no '${name}', and nothing reads it${hint}`);
  }
  return warnings;
}

/** Inputs that are compared with the workload's names: to compare one with 20,000 names takes 10 ms. */
const COMPARED_MAX = 20;

/** Names whose fields are inputs. */
const ROOTS = ["workload", "ctx", "input", "args"];

function* collect(program: Program): Pieces<Known> {
  const read = new Set<string>();
  let readsAll = false;
  const add = (needs: Iterable<Needs>) => {
    for (const { names, members } of needs) {
      for (const name of names) read.add(name);
      for (const root of ROOTS) {
        const fields = members.get(root);
        if (fields === "all" || ((root === "input" || root === "args") && names.has(root))) readsAll = true;
        else for (const field of fields ?? []) read.add(field);
      }
    }
  };
  add(sharedNeeds(program));
  for (const step of program.steps.values()) {
    yield;
    add(stepNeeds(step));
    // Inputs are globals of Python code.
    for (const { kind, config } of step.step.tasks) {
      const code = kind === "python" ? config["code"] : undefined;
      if (typeof code === "string") for (const word of code.match(/[A-Za-z_]\w*/g) ?? []) read.add(word);
      else if (kind === "python") readsAll = true;
    }
  }
  return { workload: new Set(Object.keys(program.playbook.workload)), read, readsAll };
}

/** The needs outside of steps. */
function* sharedNeeds(program: Program): Iterable<Needs> {
  for (const [, template] of program.workload) yield template.needs;
  for (const { template } of program.keychain) yield template.needs;
  for (const task of program.workbook.values()) yield* taskNeeds(task);
  if (program.timeoutMs !== undefined) yield program.timeoutMs.needs;
  for (const [, template] of program.labels) yield template.needs;
}

function* stepNeeds(step: ProgramStep): Iterable<Needs> {
  // What the worker evaluates, and what code reads.
  yield step.needs;
  const { when, admit, loop, set, arcs, tasks } = step;
  const conditions = [when, ...admit.flatMap((rule) => [rule.when, rule.allow]), ...arcs.map((arc) => arc.when)];
  const templates = [loop?.collection, loop?.maxInFlight, ...arcs.map((arc) => arc.target)];
  for (const one of [...conditions, ...templates]) if (one !== undefined) yield one.needs;
  for (const { value } of [...set, ...arcs.flatMap((arc) => arc.set)]) yield value.needs;
  for (const task of tasks) yield* taskNeeds(task);
}

function* taskNeeds({ config, input, set }: ProgramTask): Iterable<Needs> {
  yield config.needs;
  for (const [, template] of input) yield template.needs;
  for (const { value } of set) yield value.needs;
}
