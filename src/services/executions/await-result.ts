import { checkReturnStep } from "../../engine/decide/return-step.ts";
import { resultOf } from "../../engine/state/results.ts";
import { boundedResult } from "../../language/views/bounded-result.ts";
import { createWaiter } from "../../platform/concurrency/change-signal.ts";
import type { Database } from "../../repositories/database/database.ts";
import { type ExecutionRow, findExecution } from "../../repositories/executions/execution-list.ts";
import type { Json } from "../../schema/words/json.ts";
import type { TaskError } from "../../schema/words/outcome.ts";
import { unknownExecution } from "../errors.ts";
import type { Ending } from "../orchestration/memory/subscriptions.ts";
import type { Orchestrator } from "../orchestration/orchestrator.ts";
import type { ExecutionReader } from "./execution-reader.ts";

/** The end of an execution, or its progress so far. */
export interface ExecutionResult {
  executionId: string;
  path: string;
  status: ExecutionRow["status"];
  hasEnded: boolean;
  /**
   * Inline, or by reference if it is large; as stored if the request has `isStored`. Null while it runs, and without a result.
   */
  result: Json;
  error: TaskError | null;
}

/** Which result to wait for, and for how long. */
export interface ResultRequest {
  /** Milliseconds; 0: do not wait. */
  waitMs: number;
  /** A step whose result to return instead of the execution's. */
  step?: string;
  /** Return the result as it is stored: the caller opens its references. */
  isStored?: boolean;
  /** This process has just started it: the execution is known, and its row need not be read before it may have ended. */
  isFresh?: boolean;
}

/** What waiting for an execution needs. */
export interface AwaitDeps {
  database: Database;
  orchestrator: Pick<Orchestrator, "isOpen" | "watch">;
  reader: Pick<ExecutionReader, "read" | "program">;
}

/**
 * Waits for an execution's end and returns its result, or its progress when the time is over or the signal is aborted. Throws
 * `FlowError` NOT_FOUND for an unknown execution or step.
 *
 * The row shows whether it has ended. It is read when the execution may have ended elsewhere: where the notice of that is lost,
 * `Elsewhere.lookAtAll` finds it for all callers at once. An end that this process wrote needs no read: a start that waits was two
 * statements dearer.
 */
export async function awaitResult(
  { database, orchestrator, reader }: AwaitDeps,
  executionId: string,
  request: ResultRequest,
  signal: AbortSignal,
): Promise<ExecutionResult> {
  const until = performance.now() + request.waitMs;
  const known: { ending?: Ending } = {};
  const waiter = createWaiter((listener) =>
    orchestrator.watch(
      executionId,
      (ending) => {
        if (ending !== undefined) known.ending = ending;
        listener();
      },
      "end",
    ),
  );
  const isPlain = request.step === undefined && request.isStored !== true;
  try {
    if (request.isFresh === true && orchestrator.isOpen(executionId)) await waiter.wait(request.waitMs, signal);
    for (let isFirst = true; ; isFirst = false) {
      if (known.ending !== undefined && isPlain) return { ...known.ending, executionId, hasEnded: true };
      const row = await findExecution(database, executionId);
      if (row === undefined) throw unknownExecution(executionId);
      if (isFirst && request.step !== undefined) {
        checkReturnStep((await reader.program(row.catalogId)).program, request.step);
      }
      const rest = until - performance.now();
      if (row.endedAt !== null || rest <= 0 || signal.aborted) return await outcomeOf(reader, row, request);
      await waiter.wait(rest, signal);
    }
  } finally {
    waiter.close();
  }
}

async function outcomeOf(
  reader: Pick<ExecutionReader, "read">,
  row: ExecutionRow,
  request: ResultRequest,
): Promise<ExecutionResult> {
  const { executionId, path, status } = row;
  const hasEnded = row.endedAt !== null;
  const outcome = { executionId, path, status, hasEnded, error: row.error as TaskError | null };
  if (!hasEnded) return { ...outcome, result: null };
  // The row has the result of the whole run as shown to people.
  if (request.step === undefined && request.isStored !== true) return { ...outcome, result: row.result ?? null };
  const view = await reader.read(executionId, row.lastEventId);
  if (view === undefined) throw unknownExecution(executionId);
  const stored = resultOf(view.state, request.step);
  if (request.isStored === true) return { ...outcome, result: stored as unknown as Json };
  return { ...outcome, result: stored === null ? null : boundedResult(stored) };
}
