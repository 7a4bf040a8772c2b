import { FlowError } from "../../schema/words/errors.ts";
import type { Program, ProgramStep } from "../program/program.ts";
import { type StepEffect, stepEffect } from "./step-effects.ts";

/** One step of a rerun, before it is begun. */
export interface PlannedRerunStep extends StepEffect {
  step: string;
  action: "reuse" | "run";
}

/** What a rerun reuses and what it may run, in the order of the playbook; steps of which nothing is known are left out. */
export function planRerun(
  program: Program,
  { reused, mayRun }: { reused: ReadonlySet<string>; mayRun: (step: string) => boolean },
): PlannedRerunStep[] {
  return [...program.steps.values()].flatMap((step) => {
    const { name } = step.step;
    const action = mayRun(name) ? "run" : reused.has(name) ? "reuse" : undefined;
    return action === undefined ? [] : [{ step: name, action, ...stepEffect(program, step) }];
  });
}

/**
 * The steps that certainly run, if none fails: those that have all they need, and what unconditional arcs lead to from there. In the order
 * of the playbook.
 */
export function certainSteps(
  program: Program,
  waiting: readonly string[],
  mayRun: (step: string) => boolean,
): string[] {
  const certain = new Set(waiting);
  const isAsked = (step: ProgramStep) => step.when !== undefined || step.admit.length > 0;
  for (const name of certain) {
    const step = program.steps.get(name);
    if (step === undefined) continue;
    for (const target of certainTargets(step)) {
      const to = program.steps.get(target);
      if (to !== undefined && mayRun(target) && !isAsked(to)) certain.add(target);
    }
  }
  const final = program.playbook.executor.finalStep;
  if (final !== undefined && mayRun(final)) certain.add(final);
  return [...program.steps.keys()].filter((name) => certain.has(name));
}

function certainTargets({ arcs, step }: ProgramStep): string[] {
  if (step.next.mode !== "exclusive") return arcs.filter(({ when }) => when === undefined).map(({ arc }) => arc.step);
  const [first] = arcs;
  return first?.when === undefined && first !== undefined ? [first.arc.step] : [];
}

/** Throws `FlowError` INVALID_INPUT if steps whose results are reused are of another kind in this version. */
export function checkKinds(before: Program, program: Program, reused: readonly string[]): void {
  const kindOf = (one: Program, name: string) => {
    const step = one.steps.get(name);
    return step === undefined ? "" : `${step.loop === undefined ? "" : "loop of "}${stepEffect(one, step).kind}`;
  };
  const changed = reused.filter((name) => kindOf(before, name) !== kindOf(program, name));
  if (changed.length === 0) return;
  const names = changed.map((name) => `'${name}' (${kindOf(before, name)}, now ${kindOf(program, name)})`).join(", ");
  const message = `Results of ${names} cannot be reused with this version of '${program.playbook.path}'`;
  throw new FlowError(
    "INVALID_INPUT",
    `${message}: the step is of another kind. Rerun it from there, or from 'start'`,
    {
      detail: { unmatched_steps: changed },
    },
  );
}
