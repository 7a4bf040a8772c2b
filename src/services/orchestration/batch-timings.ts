import type { Json } from "../../schema/words/json.ts";
import type { Committed } from "./rounds/round.ts";

/**
 * `result.context` of `batch.completed` (interface specification, "Events"). A round writes everything with one statement:
 * `commit_ms` is that statement, persisting and saving included; what it holds cannot be timed apart.
 *
 * - `lock_acquire_ms`: how long the events waited for their execution: its turn in memory, not a lock of the database, is what keeps
 *   rounds apart within a server.
 * - `pool_checkout_ms`: 0, the connections that write are not shared with anything else.
 */
export function batchTimings(
  requestId: string,
  { timings }: Committed,
  batch: { arrivedAt: number; endedAt: number; commandsGenerated: number },
): Record<string, Json> {
  const processing = Math.max(0, batch.endedAt - batch.arrivedAt);
  const waited = Math.max(0, processing - timings.engineMs - timings.flushMs);
  return {
    request_id: requestId,
    processing_ms: processing,
    pool_checkout_ms: 0,
    lock_acquire_ms: waited,
    state_load_ms: 0,
    engine_total_ms: timings.engineMs,
    save_state_ms: timings.flushMs,
    save_state_calls: 1,
    save_state_terminal_lightweight_ms: 0,
    save_state_terminal_lightweight_calls: 0,
    persist_event_compat_ms: timings.flushMs,
    persist_event_compat_calls: 1,
    save_state_coalesced_count: Math.max(0, timings.events - timings.executions),
    commit_ms: timings.flushMs,
    transaction_ms: timings.engineMs + timings.flushMs,
    issue_commands_ms: 0,
    actionable_event: true,
    commands_generated: batch.commandsGenerated,
  };
}
