import type { Program, ProgramTask } from "../engine/program.ts";
import { compileTemplate } from "../language/template.ts";
import { isJsonObject, type Json, type JsonObject } from "../schema/json.ts";
import { MOCKED_PLAYBOOK } from "./answer.ts";

/** Key of a task's config that carries {@link CallNotes}. No document can have it: YAML does not allow the character. */
const NOTES_KEY = "\u0000test";

/** What a mock is told of its call besides what a tool is told. */
export interface CallNotes {
  /** The task's own time-out; absent: the kind's. */
  timeoutMs?: number;
  /** Names of the iteration (`index`, the iterator, …); empty outside loops. */
  iter: JsonObject;
}

/**
 * The program with notes in each task's config, and with the sub-playbook calls that `isMocked` names turned into calls of
 * a tool. Everything else, and above all what the engine decides by, stays as it is.
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
  const notes = { timeout_ms: task.task.timeoutMs ?? null, iter: "{{ iter }}" };
  return { ...task, config: compileTemplate({ ...task.task.config, [NOTES_KEY]: notes }) };
}

/** A call's config as the real tool would see it, and the notes that came with it. */
export function takeNotes(config: JsonObject): { config: JsonObject; notes: CallNotes } {
  const { [NOTES_KEY]: given, ...rest } = config;
  const notes = isJsonObject(given) ? given : {};
  const timeoutMs = milliseconds(notes["timeout_ms"]);
  const iter = isJsonObject(notes["iter"]) ? notes["iter"] : {};
  return { config: rest, notes: { iter, ...(timeoutMs !== undefined && { timeoutMs }) } };
}

/** What cannot be used as a time-out is left to the worker, which says so. */
function milliseconds(value: Json | undefined): number | undefined {
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) && number > 0 ? number : undefined;
}
