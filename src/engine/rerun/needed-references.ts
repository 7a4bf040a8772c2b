import { mergeNeeds, type Needs } from "../../language/template/needs.ts";
import type { Program, ProgramStep } from "../program/program.ts";
import { type ExecutionState, knownStep } from "../state/state.ts";

/** A reference to a stored payload, and the step whose result it belongs to; null: a variable or an input has it. */
export interface NeededReference {
  ref: string;
  step: string | null;
}

const REFERENCE = /^noetl:\/\/execution\/\d+\//;

/** The references within recorded data: of results, of the parts and manifests of loops, of fields that were passed on. */
export function referencesIn(value: unknown, found: Set<string> = new Set()): Set<string> {
  if (typeof value !== "object" || value === null) return found;
  for (const [key, part] of Object.entries(value)) {
    if (typeof part === "object") referencesIn(part, found);
    else if ((key === "ref" || key === "manifest") && typeof part === "string" && REFERENCE.test(part)) found.add(part);
  }
  return found;
}

/**
 * The references that steps which run again may read: those of steps that their templates name, of variables, and of what arrives. Too many
 * rather than too few: code that takes everything may read everything.
 */
export function neededReferences(
  state: ExecutionState,
  program: Program,
  mayRun: (step: string) => boolean,
): NeededReference[] {
  const needed = new Set<string>();
  for (const [name, step] of program.steps) {
    if (!mayRun(name)) continue;
    for (const other of stepsRead(needsOf(step), program)) if (!mayRun(other)) needed.add(other);
    const from = knownStep(state, name)?.token?.from;
    if (from != null && !mayRun(from)) needed.add(from);
  }
  const found: NeededReference[] = [];
  for (const step of needed) {
    for (const ref of referencesIn(knownStep(state, step)?.result)) found.push({ ref, step });
  }
  const tokens = Object.values(state.steps).map(({ token }) => token?.input ?? null);
  for (const ref of referencesIn([state.vars, state.workload, tokens])) found.push({ ref, step: null });
  return found;
}

/** What any template of a step reads, also those that the engine evaluates. */
function needsOf({ needs, when, admit, loop, set, arcs }: ProgramStep): Needs {
  const own: (Needs | undefined)[] = [
    needs,
    when?.needs,
    ...admit.flatMap((rule) => [rule.when?.needs, rule.allow.needs]),
    loop?.collection?.needs,
    loop?.maxInFlight?.needs,
    ...set.map(({ value }) => value.needs),
    ...arcs.flatMap((arc) => [arc.when?.needs, arc.target.needs, ...arc.set.map(({ value }) => value.needs)]),
  ];
  return mergeNeeds(...own.filter((one) => one !== undefined));
}

function stepsRead({ names, members }: Needs, program: Program): Iterable<string> {
  const read = new Set<string>();
  const all = () => [...program.steps.keys()].forEach((name) => void read.add(name));
  for (const name of names) if (program.steps.has(name)) read.add(name);
  for (const root of ["steps", "ctx"]) {
    const fields = members.get(root);
    if (fields === "all") all();
    else for (const field of fields ?? []) if (program.steps.has(field)) read.add(field);
  }
  return read;
}

/** The execution that a reference names. */
export function ownerOf(ref: string): string | undefined {
  return /^noetl:\/\/execution\/(\d+)\//.exec(ref)?.[1];
}
