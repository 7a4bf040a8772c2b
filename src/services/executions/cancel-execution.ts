import type { Database } from "../../repositories/database/database.ts";
import { findExecution } from "../../repositories/executions/execution-list.ts";
import type { ExecutionStateName } from "../../schema/rules/execution-filter.ts";
import type { Orchestrator } from "../orchestration/orchestrator.ts";
import { eachOpenBelow } from "./descendants.ts";

/** How to cancel. */
export interface CancelRequest {
  /** The reason given in the events and to the cancelled work. */
  reason: string;
  /** Also cancel the executions that it has called, and those called by them. */
  cascade: boolean;
}

/** The outcome of a cancellation. */
export interface Cancelled {
  /** The status afterwards: not CANCELLED if the execution had ended before. */
  status: ExecutionStateName;
  /** Executions below it that were cancelled. */
  children: number;
}

/**
 * Cancels executions. The execution itself ends first, so that it starts no more children while its descendants are looked up.
 * May be repeated: an execution that was already cancelled and still has open children, because a server died half-way, is
 * processed again. Rejects with `FlowError` NOT_FOUND, UNAVAILABLE.
 */
export function cancelExecutions(deps: {
  database: Database;
  orchestrator: Pick<Orchestrator, "inject">;
  now(): number;
}): (executionId: string, request: CancelRequest) => Promise<Cancelled> {
  const { database, orchestrator, now } = deps;
  const end = async (executionId: string, reason: string) => {
    const verdict = await orchestrator.inject(executionId, { type: "execution.cancelled", at: now(), reason });
    return verdict === "accepted";
  };
  return async (executionId, { reason, cascade }) => {
    await end(executionId, reason);
    const row = await findExecution(database, executionId);
    const status = row?.status ?? "CANCELLED";
    if (!cascade || status !== "CANCELLED") return { status, children: 0 };
    return {
      status,
      children: await eachOpenBelow(database, executionId, (child) => end(child, "The caller was cancelled")),
    };
  };
}
