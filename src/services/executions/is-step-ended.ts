import { knownStep, type StepStatus } from "../../engine/state/state.ts";
import type { Database } from "../../repositories/database/database.ts";
import { findExecution } from "../../repositories/executions/execution-list.ts";
import type { ExecutionReader } from "./execution-reader.ts";

const OVER: ReadonlySet<StepStatus> = new Set(["COMPLETED", "FAILED", "SKIPPED"]);

/**
 * Whether a step of an execution has ended and has not started again, as of the newest event; true for an execution that has
 * ended or was deleted.
 */
export async function isStepOver(
  { database, reader }: { database: Database; reader: Pick<ExecutionReader, "read"> },
  executionId: string,
  step: string,
): Promise<boolean> {
  const row = await findExecution(database, executionId);
  if (row === undefined || row.endedAt !== null) return true;
  const view = await reader.read(executionId, row.lastEventId);
  const status = view && knownStep(view.state, step)?.status;
  return status !== undefined && OVER.has(status);
}
