import type { Playbook, Position, Step, Task } from "../../schema/words/playbook.ts";
import { FAILURE_NAMES } from "../views/event-name.ts";

/** A task that calls another playbook by a path that is known before the run. */
export interface ChildCall {
  path: string;
  step: string;
  /** Its place in the workflow. */
  stepIndex: number;
  position: Position;
  /**
   * The run comes to it whatever the values are, and nothing handles its failure: where the playbook is missing, the run cannot
   * succeed. Loops count: over an empty collection nothing would be called.
   */
  isCertain: boolean;
}

/** The literal calls of a playbook; what a template gives, or `catalog_id` names, is left to the run. */
export function childCalls(playbook: Playbook): ChildCall[] {
  const certain = certainSteps(playbook);
  return playbook.steps.flatMap((step, stepIndex) => {
    const isStepCertain = certain.has(step.name) && !handlesFailure(step);
    return step.tasks.flatMap((task, index) => {
      const path = literalPath(task);
      if (path === undefined) return [];
      // A rule may say what follows from the failure, or end the pipeline before it.
      const hasRules = step.tasks.slice(0, index + 1).some(({ policy }) => policy.length > 0);
      return [{ path, step: step.name, stepIndex, position: task.position, isCertain: isStepCertain && !hasRules }];
    });
  });
}

function literalPath({ kind, config }: Task): string | undefined {
  const path = kind === "playbook" ? config["path"] : undefined;
  return typeof path !== "string" || path === "" || isTemplate(path) ? undefined : path;
}

function isTemplate(text: string): boolean {
  return text.includes("{{") || text.includes("{%");
}

/** Steps that every run comes to: from the entry along arcs without a condition. */
function certainSteps(playbook: Playbook): ReadonlySet<string> {
  const steps = new Map(playbook.steps.map((step) => [step.name, step]));
  const reached = new Set<string>();
  const open = [playbook.entryStep];
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    const step = steps.get(name);
    if (step === undefined || reached.has(name) || step.when !== undefined || step.admit.length > 0) continue;
    reached.add(name);
    const { mode, arcs } = step.next;
    const followed = mode === "inclusive" ? arcs : arcs.slice(0, 1);
    for (const arc of followed) if (arc.when === undefined) open.push(arc.step);
  }
  return reached;
}

function handlesFailure({ loop, next }: Step): boolean {
  if (loop?.onError !== undefined && loop.onError !== "stop") return true;
  return next.arcs.some(({ when }) => {
    const text = JSON.stringify(when ?? null);
    return text.includes("loop.done") || FAILURE_NAMES.some((name) => text.includes(name));
  });
}
