import { evolve } from "../../engine/state/evolve.ts";
import { type ExecutionState, emptyState } from "../../engine/state/state.ts";
import { type EventRecord, fromRecord } from "../../schema/rules/event-record.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { EventType, FlowEvent } from "../../schema/words/event.ts";

/** What the engine folds. A server's log holds more, its batches for one, and that of a newer one may, too. */
const FOLDED = {
  "playbook.initialized": true,
  "workflow.initialized": true,
  "workflow.restored": true,
  "command.issued": true,
  "command.claimed": true,
  "command.started": true,
  "command.parked": true,
  "command.woken": true,
  "task.progress": true,
  "task.done": true,
  "call.done": true,
  "call.error": true,
  "command.completed": true,
  "command.failed": true,
  "command.cancelled": true,
  "loop.started": true,
  "loop.iteration.completed": true,
  "loop.iteration.failed": true,
  "loop.results.stored": true,
  "loop.results.kept": true,
  "loop.done": true,
  "step.completed": true,
  "step.failed": true,
  "step.skipped": true,
  "next.evaluated": true,
  "workflow.completed": true,
  "workflow.failed": true,
  "playbook.completed": true,
  "playbook.failed": true,
  "execution.cancelled": true,
  "execution.paused": true,
  "execution.resumed": true,
  "step.overridden": true,
  "signal.received": true,
  "approval.opened": true,
  "approval.decided": true,
  "approval.reminded": true,
  "approval.escalated": true,
  "approval.notified": true,
  "approval.closed": true,
} as const satisfies Record<EventType, true>;

/** An execution whose events come from elsewhere. */
export interface EventFold {
  /** The state that the server's engine has after the same events. */
  state: ExecutionState;
  /** Folds a record and returns its event; undefined for a record that the engine does not fold. Throws SERVER_UNREACHABLE. */
  take(record: EventRecord): FlowEvent | undefined;
}

/** An execution before its first event. */
export function createFold(): EventFold {
  const state = emptyState();
  return {
    state,
    take(record) {
      if (!Object.hasOwn(FOLDED, record.event_type)) return undefined;
      try {
        const event = fromRecord(record);
        evolve(state, event);
        return event;
      } catch (cause) {
        const what = `Event ${record.event_id} (${record.event_type}) of execution ${record.execution_id}`;
        throw new FlowError("SERVER_UNREACHABLE", `${what} is not as this version of flow knows it`, { cause });
      }
    },
  };
}
