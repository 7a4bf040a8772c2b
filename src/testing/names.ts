import { calledTask, type Program, type ProgramStep } from "../engine/program/program.ts";
import { didYouMean } from "../language/document/source/hints.ts";
import type { LocalPlaybook } from "../local/catalog.ts";

/**
 * The names of steps and tasks in a test: `step`, `step.task`, and within a sub-playbook the same after the step that calls it:
 * `enrich/lookup`.
 */
export interface TaskNames {
  /** Name of a step → kinds of its tasks. */
  steps: Map<string, string[]>;
  /** `step.task` → kind. A cursor's claim is `step.claim`. */
  tasks: Map<string, string>;
  /** Steps whose sub-playbook is known only when they run: any name within it may be right. */
  open: string[];
}

/** Finds the sub-playbook that a task's `path` names. */
export type FindChild = (path: string, parentFile: string) => Promise<LocalPlaybook>;

/** Sub-playbooks within sub-playbooks whose names are collected; deeper ones are taken on trust. */
const DEPTH_MAX = 8;

/** All names of a playbook and of the sub-playbooks that it calls by a fixed path. */
export async function taskNames(playbook: LocalPlaybook, findChild: FindChild): Promise<TaskNames> {
  const names: TaskNames = { steps: new Map(), tasks: new Map(), open: [] };
  await collect(playbook, "", 0, findChild, names);
  return names;
}

async function collect(
  playbook: LocalPlaybook,
  prefix: string,
  depth: number,
  findChild: FindChild,
  names: TaskNames,
): Promise<void> {
  for (const step of playbook.program.steps.values()) {
    const name = prefix + step.step.name;
    const kinds = kindsOf(playbook.program, step);
    names.steps.set(name, kinds);
    for (const [index, { task }] of step.tasks.entries())
      names.tasks.set(`${name}.${task.label}`, kinds[index] ?? task.kind);
    const { cursor } = step.step.loop ?? {};
    if (cursor !== undefined) names.tasks.set(`${name}.claim`, cursor.kind);
    for (const path of childPaths(step)) {
      const child =
        path !== "" && depth < DEPTH_MAX ? await findChild(path, playbook.file).catch(() => undefined) : undefined;
      if (child === undefined) names.open.push(`${name}/`);
      else await collect(child, `${name}/`, depth + 1, findChild, names);
    }
  }
}

/** Kinds of a step's tasks; a workbook task has that of the tool that it names. */
function kindsOf(program: Program, step: ProgramStep): string[] {
  return step.tasks.map((task) => (calledTask(program, task) ?? task).task.kind);
}

/** Paths of the step's sub-playbooks; empty text for a path that is only known during a run. */
function childPaths(step: ProgramStep): string[] {
  return step.tasks
    .filter(({ task }) => task.kind === "playbook")
    .map(({ task }) => {
      const path = task.config["path"];
      return typeof path === "string" && !path.includes("{{") && !path.includes("{%") ? path : "";
    });
}

/** Why `name` is not a step or task, with the most similar name; undefined if it is one. */
export function nameProblem(name: string, names: TaskNames, also: readonly string[] = []): NameProblem | undefined {
  const isKnown = names.steps.has(name) || names.tasks.has(name) || also.includes(name);
  if (isKnown || names.open.some((prefix) => name.startsWith(prefix))) return undefined;
  const candidates = [...names.steps.keys(), ...names.tasks.keys(), ...also];
  const known = [...names.steps.keys()].slice(0, 20).join(", ");
  return {
    message: `the playbook has no step \`${name}\``,
    hint: didYouMean(name, candidates) ?? `its steps are: ${known}`,
  };
}

/** A name that means nothing, and what to write instead. */
export interface NameProblem {
  message: string;
  hint: string;
}
