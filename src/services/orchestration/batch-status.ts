import { createWaiter, type Waiter } from "../../platform/concurrency/change-signal.ts";
import type { Database } from "../../repositories/database/database.ts";
import { type BatchRow, findBatch } from "../../repositories/orchestration/batches.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { Orchestrator } from "./orchestrator.ts";

/** The status of a batch, with the number of requests that wait to be written. */
export type BatchState = BatchRow & { queueDepth: number };

/** What senders of event batches query afterwards (interface specification, Event batches). */
export interface Batches {
  /** Throws `FlowError` NOT_FOUND. */
  status(requestId: string): Promise<BatchState>;
  /**
   * The status now, and again after each change, until its processing ends or the signal is aborted; `idle` if a look found no
   * change. Throws `FlowError` NOT_FOUND, at once.
   */
  follow(requestId: string, signal: AbortSignal): Promise<AsyncGenerator<BatchState | "idle">>;
}

/** The batches of a database. `pollMs` is `FLOW_BATCH_STATUS_STREAM_POLL_SECONDS`: changes here are seen at once. */
export function createBatches(deps: {
  database: Database;
  orchestrator: Pick<Orchestrator, "queueDepth" | "watch">;
  pollMs: number;
}): Batches {
  const { database, orchestrator } = deps;
  const status = async (requestId: string) => {
    const row = await findBatch(database, requestId);
    if (row === undefined) throw new FlowError("NOT_FOUND", `There is no event batch ${requestId}`);
    return { ...row, queueDepth: orchestrator.queueDepth() };
  };
  return {
    status,
    async follow(requestId, signal) {
      const first = await status(requestId);
      return changes(first, () => status(requestId), deps, signal);
    },
  };
}

async function* changes(
  first: BatchState,
  look: () => Promise<BatchState>,
  { orchestrator, pollMs }: { orchestrator: Pick<Orchestrator, "watch">; pollMs: number },
  signal: AbortSignal,
): AsyncGenerator<BatchState | "idle"> {
  const waiter = waiterFor(first.executionIds, orchestrator);
  try {
    yield first;
    for (let last = first; !isOver(last) && !signal.aborted; ) {
      await waiter.wait(pollMs, signal);
      const now = await look();
      const isSame = now.state === last.state && now.updatedAt.getTime() === last.updatedAt.getTime();
      last = now;
      yield isSame ? "idle" : now;
    }
  } finally {
    waiter.close();
  }
}

function waiterFor(executionIds: readonly string[], orchestrator: Pick<Orchestrator, "watch">): Waiter {
  return createWaiter((listener) => {
    const ends = executionIds.map((id) => orchestrator.watch(id, listener));
    return () => {
      for (const end of ends) end();
    };
  });
}

function isOver({ state }: BatchState): boolean {
  return state === "completed" || state === "failed";
}
