import type { Program, ProgramTask } from "../engine/program/program.ts";
import { compileTemplate } from "../language/template/template.ts";
import { isJsonObject, type JsonObject } from "../schema/words/json.ts";
import { MOCKED_PLAYBOOK } from "./answer.ts";

/**
 * Key of a task's config that carries values that a tool does not get and a mock may read. No document can have it: YAML does
 * not allow the character.
 */
const NOTES_KEY = "\u0000test";

/**
 * The program with the iteration noted in each task's config, and with the sub-playbook calls that `isMocked` names turned
 * into calls of a tool. Everything else, and above all what the engine decides by, stays as it is.
 */
export function instrument(program: Program, isMocked: (step: string, task: string) => boolean): Program {
  const steps = [...program.steps].map(([name, step]) => {
    const tasks = step.tasks.map((task) => {
      const noted = withNotes(task);
      if (task.task.kind !== "playbook" || !isMocked(name, task.task.label)) return noted;
      return { ...noted, task: { ...task.task, kind: MOCKED_PLAYBOOK } };
    });
    return [name, { ...step, tasks }] as const;
  });
  const workbook = [...program.workbook].map(([name, task]) => [name, withNotes(task)] as const);
  return { ...program, steps: new Map(steps), workbook: new Map(workbook) };
}

function withNotes(task: ProgramTask): ProgramTask {
  return { ...task, config: compileTemplate({ ...task.task.config, [NOTES_KEY]: "{{ iter }}" }) };
}

/** True of a call of an instrumented program. */
export function hasNotes(config: JsonObject): boolean {
  return Object.hasOwn(config, NOTES_KEY);
}

/** A call's config as the real tool would see it, and the names of its iteration (none outside loops). */
export function takeNotes(config: JsonObject): { config: JsonObject; iter: JsonObject } {
  const { [NOTES_KEY]: iter, ...rest } = config;
  return { config: rest, iter: isJsonObject(iter) ? iter : {} };
}
