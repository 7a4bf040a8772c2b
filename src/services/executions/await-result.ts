import { checkReturnStep } from "../../engine/decide/return-step.ts";
import { resultOf } from "../../engine/state/results.ts";
import { type ExecutionState, isTerminal } from "../../engine/state/state.ts";
import { createWaiter } from "../../platform/concurrency/change-signal.ts";
import type { Database } from "../../repositories/database/database.ts";
import { findExecution } from "../../repositories/executions/execution-list.ts";
import type { TaskError } from "../../schema/words/outcome.ts";
import type { StoredResult } from "../../schema/words/result.ts";
import { unknownExecution } from "../errors.ts";
import type { ExecutionView, Orchestrator } from "../orchestration/orchestrator.ts";

/** The end of an execution, or how far it is. */
export interface ExecutionResult {
  executionId: string;
  path: string;
  status: ExecutionState["status"];
  /** As stored; null while it runs, and without a result. */
  result: StoredResult | null;
  error: TaskError | null;
}

/** Whose result, and how long to wait for it. */
export interface ResultRequest {
  /** Milliseconds; 0: not at all. */
  waitMs: number;
  /** A step whose result is wanted instead of the execution's. */
  step?: string;
}

/** Polling interval, in case another server moved the execution and its notice was lost. */
const LOOK_MS = 1_000;

/**
 * Waits for an execution's end, and gives its result, or how far it is when the time is over or the signal is aborted. Throws
 * `FlowError` NOT_FOUND for an unknown execution or step.
 *
 * The state in memory is looked at when it has ended here, or may have ended elsewhere. The row is asked only where that may be
 * out of date: when it has not moved for a second, and before saying "not yet".
 */
export async function awaitResult(
  { database, orchestrator }: { database: Database; orchestrator: Pick<Orchestrator, "view" | "watch"> },
  executionId: string,
  request: ResultRequest,
  signal: AbortSignal,
): Promise<ExecutionResult> {
  const until = performance.now() + request.waitMs;
  const waiter = createWaiter((listener) => orchestrator.watch(executionId, listener, "end"));
  try {
    let wasNotified = true;
    for (let seen = 0; ; ) {
      const rest = until - performance.now();
      const isLast = rest <= 0 || signal.aborted;
      let view = await orchestrator.view(executionId);
      const moves = wasNotified || (view !== undefined && view.lastEventId > seen);
      seen = view?.lastEventId ?? 0;
      if (view === undefined || (!isTerminal(view.state.status) && (isLast || !moves))) {
        const row = await findExecution(database, executionId);
        view = row && (await orchestrator.view(executionId, row.lastEventId));
      }
      if (view === undefined) throw unknownExecution(executionId);
      checkReturnStep(view.source.program, request.step);
      if (isLast || isTerminal(view.state.status)) return outcomeOf(executionId, view, request.step);
      wasNotified = await waiter.wait(Math.min(rest, LOOK_MS), signal);
    }
  } finally {
    waiter.close();
  }
}

function outcomeOf(executionId: string, { state }: ExecutionView, step: string | undefined): ExecutionResult {
  const { path, status, error } = state;
  return { executionId, path, status, error, result: isTerminal(status) ? resultOf(state, step) : null };
}
