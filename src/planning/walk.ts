import type { Program, ProgramStep } from "../engine/program/program.ts";

/** Whether a step may run: `yes` and `no` with these inputs; `never` with any, because no arc leads there. */
export type Reachability = "yes" | "no" | "never";

/** Whether an arc fires, if its condition is known before the run. */
export type ArcVerdict = "yes" | "no" | "maybe";

/** The way through a playbook. */
export interface Walk {
  /** Steps that may run in an order in which they can, then the final step, then those that are not reached. */
  order: ProgramStep[];
  reach: ReadonlyMap<string, Reachability>;
  /** Verdicts by step, in the order of its arcs. */
  arcs: ReadonlyMap<string, ArcVerdict[]>;
  /** Steps with a forward arc that may fire, by their target. */
  before: ReadonlyMap<string, string[]>;
}

/**
 * Walks from the entry over every arc that may fire. `conditionsOf` gives the values of a step's arc conditions; undefined if
 * known only during the run.
 */
export function walkSteps(program: Program, conditionsOf: (step: ProgramStep) => (boolean | undefined)[]): Walk {
  const arcs = new Map([...program.steps].map(([name, step]) => [name, verdicts(step, conditionsOf(step))]));
  const may = follow(program, (name, index) => arcs.get(name)?.[index] !== "no");
  const ever = follow(program, () => true);
  const reach = new Map<string, Reachability>();
  for (const name of program.steps.keys()) reach.set(name, may.has(name) ? "yes" : ever.has(name) ? "no" : "never");
  return { order: inOrder(program, reach), reach, arcs, before: upstreams(program, may, arcs) };
}

/** An arc that always fires keeps those after it from firing, except after a failure, which only failure arcs take. */
function verdicts(step: ProgramStep, conditions: readonly (boolean | undefined)[]): ArcVerdict[] {
  const isExclusive = step.step.next.mode === "exclusive";
  let isTaken = false;
  let isMaybeTaken = false;
  return step.arcs.map(({ onFailure, onLoopDone }, index) => {
    const value = conditions[index];
    if (onFailure || onLoopDone) return value === false ? "no" : "maybe";
    if (value === false || (isExclusive && isTaken)) return "no";
    const verdict = value === undefined || (isExclusive && isMaybeTaken) ? "maybe" : "yes";
    if (value === true) isTaken = true;
    else isMaybeTaken = true;
    return verdict;
  });
}

/** Names of the steps that the entry and the final step lead to. A target that is a template may be any step. */
function follow(program: Program, mayFire: (step: string, arc: number) => boolean): Set<string> {
  const { entryStep, executor } = program.playbook;
  const open = [entryStep, ...(executor.finalStep === undefined ? [] : [executor.finalStep])];
  const reached = new Set<string>();
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    const step = program.steps.get(name);
    if (step === undefined || reached.has(name)) continue;
    reached.add(name);
    for (const [index, arc] of step.arcs.entries()) {
      if (!mayFire(name, index)) continue;
      if (program.steps.has(arc.arc.step)) open.push(arc.arc.step);
      else open.push(...program.steps.keys());
    }
  }
  return reached;
}

/** A step comes after every step that reaches it over forward arcs; among others the document's order holds. */
function inOrder(program: Program, reach: ReadonlyMap<string, Reachability>): ProgramStep[] {
  const { finalStep } = program.playbook.executor;
  const left = [...program.steps.values()];
  const rank = (step: ProgramStep) => {
    if (reach.get(step.step.name) !== "yes") return 2;
    return step.step.name === finalStep && !isTarget(program, step.step.name) ? 1 : 0;
  };
  const { entryStep } = program.playbook;
  const entry = program.steps.get(entryStep);
  const depth = depths(program);
  const depthOf = (step: ProgramStep) => (step === entry ? -1 : (depth.get(step.index) ?? 0));
  return left.sort((a, b) => rank(a) - rank(b) || (rank(a) === 2 ? 0 : depthOf(a) - depthOf(b)) || a.index - b.index);
}

function isTarget(program: Program, name: string): boolean {
  return program.playbook.steps.some(({ next }) => next.arcs.some((arc) => arc.step === name));
}

/** Longest way over forward arcs to each step, so that a join stands after all its branches. */
function depths(program: Program): Map<number, number> {
  const { graph, playbook } = program;
  const waiting = playbook.steps.map(() => 0);
  const forward = playbook.steps.map((_, from) => graph.targets(from).filter((to) => !graph.isBack(from, to)));
  for (const targets of forward) for (const to of targets) waiting[to] = (waiting[to] ?? 0) + 1;
  const depth = new Map<number, number>();
  const open = [...waiting.keys()].filter((index) => waiting[index] === 0);
  for (let from = open.shift(); from !== undefined; from = open.shift()) {
    for (const to of forward[from] ?? []) {
      depth.set(to, Math.max(depth.get(to) ?? 0, (depth.get(from) ?? 0) + 1));
      waiting[to] = (waiting[to] ?? 0) - 1;
      if (waiting[to] === 0) open.push(to);
    }
  }
  return depth;
}

function upstreams(
  program: Program,
  reached: ReadonlySet<string>,
  arcs: ReadonlyMap<string, ArcVerdict[]>,
): Map<string, string[]> {
  const before = new Map<string, string[]>();
  for (const [name, step] of program.steps) {
    if (!reached.has(name)) continue;
    for (const [index, { arc }] of step.arcs.entries()) {
      const target = program.steps.get(arc.step);
      if (target === undefined || arcs.get(name)?.[index] === "no" || program.graph.isBack(step.index, target.index))
        continue;
      const list = before.get(arc.step) ?? [];
      if (!list.includes(name)) before.set(arc.step, [...list, name]);
    }
  }
  return before;
}
