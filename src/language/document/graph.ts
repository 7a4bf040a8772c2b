import { callRefusal } from "../../schema/rules/access-rules.ts";
import type { Playbook } from "../../schema/words/playbook.ts";
import { plainPath } from "./catalog-path.ts";
import { didYouMean } from "./source/hints.ts";
import type { Reading } from "./source/reading.ts";

/** Reports references that lead nowhere, and steps that no path of arcs reaches (language document, section 10). */
export function checkGraph(playbook: Playbook, reading: Reading): void {
  const { report, steps } = reading;
  for (const { place, name } of reading.targets) {
    if (steps.has(name) || isTemplate(name)) continue;
    report("unknown-step", place, `there is no step \`${name}\``, () => didYouMean(name, steps.keys()));
  }
  for (const { place, name } of reading.calls) {
    const why = callRefusal(playbook.path, plainPath(name));
    if (why !== undefined) report("system-call", place, why, "start it by itself, as a user who may run it");
  }
  const tools = playbook.workbook.map((task) => task.label);
  for (const { place, name } of reading.workbookNames) {
    if (tools.includes(name) || isTemplate(name)) continue;
    report("unknown-workbook", place, `\`workbook\` has no tool \`${name}\``, () => didYouMean(name, tools));
  }
  const reachable = reachableSteps(playbook);
  if (reachable === undefined) return;
  for (const [name, place] of steps) {
    if (reachable.has(name)) continue;
    report("unreachable-step", place, `no arc leads to step \`${name}\``, "add an arc to it, or remove it");
  }
}

/**
 * Names of the steps that a run may come to: from the entry step over arcs, and from the final step. Undefined when that
 * cannot be known, because a target that may be reached is a template, or the entry does not exist.
 */
export function reachableSteps(playbook: Playbook): ReadonlySet<string> | undefined {
  const steps = new Map(playbook.steps.map((step) => [step.name, step]));
  if (!steps.has(playbook.entryStep)) return undefined;
  const open = [playbook.entryStep];
  const { finalStep } = playbook.executor;
  if (finalStep !== undefined) open.push(finalStep);
  const reached = new Set<string>();
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    if (isTemplate(name)) return undefined;
    const step = steps.get(name);
    if (step === undefined || reached.has(name)) continue;
    reached.add(name);
    open.push(...step.next.arcs.map((arc) => arc.step));
  }
  return reached;
}

function isTemplate(name: string): boolean {
  return name.includes("{{") || name.includes("{%");
}
