import type { Database } from "../../repositories/database/database.ts";
import { findExecution, listChildren } from "../../repositories/executions/execution-list.ts";
import type { ExecutionStateName } from "../../schema/api/executions.ts";
import type { Orchestrator } from "../orchestration/orchestrator.ts";

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

/** Children looked up and cancelled at a time. */
const PAGE = 100;

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
      children: await endBelow(database, executionId, (child) => end(child, "The caller was cancelled")),
    };
  };
}

/**
 * Ends every open execution below this one, including those below executions that have ended: a child that was not awaited may
 * still run there.
 */
async function endBelow(
  database: Database,
  executionId: string,
  end: (executionId: string) => Promise<boolean>,
): Promise<number> {
  let count = 0;
  const parents = [executionId];
  for (let parent = parents.pop(); parent !== undefined; parent = parents.pop()) {
    let after = "0";
    for (;;) {
      const children = await listChildren(database, parent, after, PAGE);
      const ended = await Promise.all(children.map(async (child) => child.isOpen && (await end(child.executionId))));
      count += ended.filter(Boolean).length;
      parents.push(...children.map((child) => child.executionId));
      if (children.length < PAGE) break;
      after = children.at(-1)?.executionId ?? after;
    }
  }
  return count;
}
