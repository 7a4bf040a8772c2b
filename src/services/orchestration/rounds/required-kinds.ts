import { calledTask, type Program } from "../../../engine/program/program.ts";
import { RUNNABLE_KINDS } from "../../../schema/words/playbook.ts";

/**
 * Kinds that a worker needs for a command: those of the step's tasks, or of its cursor's claim. What no worker can run (an
 * unknown kind, say) is no requirement: whoever takes it answers with the error that says so, as the local runtime does.
 */
export function requiredKinds(program: Program, name: string, isClaim: boolean): string[] {
  const step = program.steps.get(name);
  if (step === undefined) return [];
  const kinds = isClaim
    ? [step.step.loop?.cursor?.kind ?? "sqldb"]
    : step.tasks.map((task) => (calledTask(program, task) ?? task).task.kind);
  return [...new Set(kinds.filter((kind) => REQUIRED.has(kind)))];
}

/** Every worker runs `noop`, and carries out `playbook` and `workbook` itself. */
const REQUIRED: ReadonlySet<string> = new Set(
  RUNNABLE_KINDS.filter((kind) => kind !== "noop" && kind !== "playbook" && kind !== "workbook"),
);
