import { calledTask, type Program, type ProgramStep } from "../../engine/program/program.ts";
import { type ExecutionState, knownStep } from "../../engine/state/state.ts";
import { plainPath } from "../../language/document/catalog-path.ts";
import type { Database } from "../../repositories/database/database.ts";
import { findTakeable, type TakeableChild } from "../../repositories/executions/reruns.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { sealingRoot } from "../orchestration/memory/load-execution.ts";
import type { PreparedRerun } from "./rerun-original.ts";

/** Completed executions whose results a rerun takes in place of calls, and what they are compared with. */
export interface ChildrenRequest {
  /** By calling step, `step[i]` for an iteration of a loop. */
  children: Readonly<Record<string, string>>;
  /** Throws `FlowError` FORBIDDEN if the caller may not see executions of a path. */
  permitView(path: string): Promise<void>;
  /** Of the rerun. */
  program: Program;
  original: ExecutionState;
  prepared: Pick<PreparedRerun, "from" | "steps">;
  /** Something is edited: how many iterations a loop has may be another number than before. */
  isEdited: boolean;
}

/**
 * The executions whose stored results the rerun refers to by these children: they themselves, and those that they refer to. Throws
 * `FlowError` INVALID_INPUT, which names the calling step, for one that cannot be taken.
 */
export async function checkChildren(database: Database, request: ChildrenRequest): Promise<string[]> {
  const entries = Object.entries(request.children);
  if (entries.length === 0) return [];
  const calls = entries.map(([caller, id]) => ({ caller, id, task: callingTask(request, caller, id) }));
  const found = await findTakeable(database, [...new Set(Object.values(request.children))]);
  const rows = new Map(found.map((row) => [row.executionId, row]));
  const visible = await visiblePaths(request, found);
  for (const { caller, id, task } of calls) {
    const row = rows.get(id);
    // Who may not see it does not learn that it exists.
    if (row === undefined || !visible.has(row.path)) throw refused(caller, id, "it does not exist");
    if (row.status !== "COMPLETED") throw refused(caller, id, `it is ${row.status}`);
    const { path } = task.task.config;
    // One that is a template is compared when the step calls.
    if (task.config.constant && typeof path === "string" && plainPath(path) !== row.path) {
      throw refused(caller, id, `it is of '${row.path}', and the step calls '${path}'`);
    }
    if (row.isSealed && row.sealingRoot !== sealingRoot(request.original)) {
      throw refused(
        caller,
        id,
        "it has sealed values, and was not called by this execution: they cannot be opened here",
      );
    }
  }
  return [...new Set(found.flatMap(({ executionId, refersTo }) => [executionId, ...refersTo]))];
}

function refused(caller: string, id: string, why: string): FlowError {
  const message = `reuse_children: the result of execution ${id} cannot be taken for '${caller}': ${why}`;
  return new FlowError("INVALID_INPUT", message, { detail: { caller, execution_id: id } });
}

/** The task that a name means. Throws for one that means none, and for a step or an iteration that does not run. */
function callingTask(request: ChildrenRequest, caller: string, id: string): ProgramStep["tasks"][number] {
  const { program, prepared } = request;
  const [, name, digits] = /^(.*)\[(\d+)\]$/.exec(caller) ?? [];
  const whole = program.steps.get(caller);
  const step = whole ?? (name === undefined ? undefined : program.steps.get(name));
  if (step === undefined) throw refused(caller, id, "there is no step of that name");
  const { name: stepName } = step.step;
  const task = step.tasks.map((one) => calledTask(program, one) ?? one).find((one) => one.task.kind === "playbook");
  if (task === undefined) throw refused(caller, id, `step '${stepName}' calls no playbook`);
  if (step.loop === undefined && whole === undefined) throw refused(caller, id, `step '${stepName}' is no loop`);
  if (step.loop !== undefined && whole !== undefined) {
    throw refused(caller, id, `the step is a loop. Name an iteration, such as '${caller}[0]'`);
  }
  if (prepared.steps.find((one) => one.step === stepName)?.action !== "run") {
    throw refused(caller, id, `step '${stepName}' does not run again`);
  }
  const count = whole === undefined ? countOf(request, stepName) : undefined;
  if (count !== undefined && Number(digits) >= count) throw refused(caller, id, `the loop has ${count} iterations`);
  return task;
}

/** How many iterations a loop will have: as many as before, where nothing before it runs again and nothing is edited. */
function countOf({ original, prepared: { from }, isEdited }: ChildrenRequest, step: string): number | undefined {
  if (isEdited || from === "start" || !from.includes(step)) return undefined;
  return knownStep(original, step)?.loop?.total ?? undefined;
}

/** Those of their paths that the caller may see. */
async function visiblePaths(
  { permitView }: Pick<ChildrenRequest, "permitView">,
  rows: readonly TakeableChild[],
): Promise<ReadonlySet<string>> {
  const visible = new Set<string>();
  for (const path of new Set(rows.map((row) => row.path))) {
    try {
      await permitView(path);
      visible.add(path);
    } catch (error) {
      if (!(error instanceof FlowError && error.code === "FORBIDDEN")) throw error;
    }
  }
  return visible;
}
