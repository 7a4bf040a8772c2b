import { FlowError } from "../../schema/words/errors.ts";
import { own } from "../../schema/words/json.ts";
import type { Program } from "../program/program.ts";
import type { ExecutionState } from "../state/state.ts";
import type { StepMark, StepMarks } from "./step-marks.ts";

/** An execution that has ended, as a rerun of it sees it. */
export interface Original {
  state: ExecutionState;
  marks: StepMarks;
}

/** The steps of an original that run again. */
export interface ChosenSteps {
  /** Where it goes on: the steps asked for, and those that failed or were stopped. */
  roots: string[];
  /** Those of them that others of them lead to. */
  led: ReadonlySet<string>;
  /** Every step that may run again, with the event of the original from which on it is left out. */
  again: ReadonlyMap<string, number>;
}

/**
 * Chooses what runs again: the steps of `from`, those that failed or were open at the end, and all that may follow them, over the arcs of
 * the program and those that were taken. What ran before the first of these began in an earlier turn of a loop of arcs stays. With
 * `only` the steps that failed elsewhere are left out.
 *
 * Throws `FlowError` INVALID_INPUT for unknown steps, nothing_failed.
 */
export function chooseSteps(
  original: Original,
  program: Program,
  { from, only }: { from: readonly string[] | "failed"; only: boolean },
): ChosenSteps {
  const { marks, state } = original;
  const failed = failedSteps(original, program, ["failed", "stopped"]);
  const asked = from === "failed" ? failedSteps(original, program, ["failed", "stopped", "marked"]) : from;
  if (from === "failed" && (asked.length === 0 || state.status === "COMPLETED")) throw nothingFailed(state);
  checkKnown(program, asked);
  const roots = [...new Set(only ? asked : [...asked, ...failed])];
  const beginOf = (name: string) => marks.get(name)?.begun ?? Number.MAX_SAFE_INTEGER;
  const inOrder = (names: readonly string[]) => [...names].sort((left, right) => beginOf(left) - beginOf(right));
  const again = new Map<string, number>();
  const led = new Set<string>();
  for (const root of inOrder(roots)) {
    if (again.has(root)) led.add(root);
    follow(original, program, root, beginOf(root), again);
  }
  // Also where they are not to run: a failure that is left in would end the rerun.
  const besides = new Map<string, number>();
  for (const root of inOrder(failed)) follow(original, program, root, beginOf(root), besides);
  for (const [name, begun] of besides) again.set(name, Math.min(begun, again.get(name) ?? begun));
  const final = program.playbook.executor.finalStep;
  if (final !== undefined && marks.get(final) === undefined) again.set(final, beginOf(final));
  return { roots, led, again };
}

/** With the steps that waited when the original ended, and all that may follow them: these run too, and nothing of them is left out. */
export function withWaiting(
  original: Original,
  program: Program,
  again: ReadonlyMap<string, number>,
  waiting: readonly string[],
): ReadonlyMap<string, number> {
  const all = new Map(again);
  for (const name of waiting) follow(original, program, name, Number.MAX_SAFE_INTEGER, all);
  return all;
}

/** Adds a step and all that may follow it. Those that an earlier begin has added are left out from there on already. */
function follow(
  { state, marks }: Original,
  program: Program,
  root: string,
  begun: number,
  again: Map<string, number>,
): void {
  const open = [root];
  // It runs when nothing else is left.
  const final = program.playbook.executor.finalStep;
  if (final !== undefined && (marks.get(final)?.begun ?? 0) > begun) open.push(final);
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    if (again.has(name)) continue;
    again.set(name, begun);
    const step = program.steps.get(name);
    const targets = step === undefined ? [] : program.graph.targets(step.index);
    for (const target of targets) {
      const to = program.playbook.steps[target]?.name;
      if (to !== undefined) open.push(to);
    }
    open.push(...Object.keys((own(state.arcs, name) as object | undefined) ?? {}));
  }
}

/** Those that ended so, or were open; in the order of the playbook. */
function failedSteps({ marks }: Original, program: Program, ends: readonly StepMark["end"][]): string[] {
  const isFailed = (name: string) => {
    const mark = marks.get(name);
    return mark !== undefined && (mark.ended === null || ends.includes(mark.end));
  };
  const known = [...program.steps.keys()].filter(isFailed);
  return [...known, ...[...marks.keys()].filter((name) => isFailed(name) && !program.steps.has(name))];
}

function nothingFailed({ executionId, status }: ExecutionState): FlowError {
  const what = `Execution ${executionId} is ${status}, and no step of it failed`;
  return new FlowError("nothing_failed", `${what}. Name the steps to run again (from), or 'start'`);
}

function checkKnown(program: Program, asked: readonly string[]): void {
  const unknown = asked.filter((name) => !program.steps.has(name));
  if (unknown.length === 0) return;
  const known = [...program.steps.keys()].join(", ");
  const names = unknown.map((name) => `'${name}'`).join(", ");
  const what = unknown.length === 1 ? `There is no step ${names}` : `There are no steps ${names}`;
  const message = `${what} in '${program.playbook.path}'`;
  throw new FlowError("INVALID_INPUT", `${message}; the steps are: ${known}`, { detail: { unknown_steps: unknown } });
}
