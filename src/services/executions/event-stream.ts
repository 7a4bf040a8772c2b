import { createWaiter } from "../../platform/concurrency/change-signal.ts";
import type { Database } from "../../repositories/database/database.ts";
import { type EventListQuery, listEvents } from "../../repositories/executions/event-list.ts";
import { findExecution } from "../../repositories/executions/execution-list.ts";
import type { EventRecord } from "../../schema/rules/event-record.ts";
import type { Orchestrator } from "../orchestration/orchestrator.ts";

/** Events read at a time: a slow reader makes a server hold at most one such page. */
const PAGE = 100;
/** Time between two signs that the stream lives. */
const IDLE_MS = 1_000;

/** Where to start following events, and how much of each to return. */
export type FollowRequest = Pick<EventListQuery, "after" | "isShort">;

/**
 * Types of the event with which an execution ends. Other events may follow it, for example the ends of the steps that a
 * cancellation stops.
 */
const ENDS: ReadonlySet<string> = new Set(["playbook.completed", "playbook.failed", "execution.cancelled"]);

/**
 * An execution's events after `after`, in order, as they are written; ends with the execution's last event, which its row
 * names, or when the signal is aborted. Yields `idle` about once a second without events, so that the sender can send a
 * heartbeat. It reads when the execution moved, and the next page only when the last one was consumed.
 */
export async function* followEvents(
  { database, orchestrator }: { database: Database; orchestrator: Pick<Orchestrator, "watch"> },
  executionId: string,
  { after, isShort = false }: FollowRequest,
  signal: AbortSignal,
): AsyncGenerator<EventRecord | "idle"> {
  // Created before the first look, so that a change between a look and the wait after it ends that wait.
  const waiter = createWaiter((listener) => orchestrator.watch(executionId, listener));
  let last = after;
  // What is asked for may lie behind its end.
  let mayHaveEnded = after > 0;
  // Its row said so before the page was read. A mark may be written behind the end at any time, and no notice of it need come.
  let isOver = false;
  try {
    while (!signal.aborted) {
      const { events, next } = await listEvents(database, executionId, { after: last, limit: PAGE, isShort });
      for (const event of events) {
        last = event.event_id;
        yield event;
        mayHaveEnded ||= ENDS.has(event.event_type);
      }
      if (next !== undefined) continue;
      if (isOver) return;
      if (events.length === 0 || mayHaveEnded) {
        const row = await findExecution(database, executionId);
        // Deleted, or all of it is told.
        if (row === undefined || (row.endedAt !== null && row.lastEventId <= last)) return;
        // More was written since the page was read.
        isOver = row.endedAt !== null;
        if (isOver) continue;
        mayHaveEnded = false;
        yield "idle";
      }
      while (!(await waiter.wait(IDLE_MS, signal)) && !signal.aborted) yield "idle";
    }
  } finally {
    waiter.close();
  }
}
