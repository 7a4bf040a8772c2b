import type { ExecutionChange, ExecutionStart, IssuedCommand } from "../../../src/ports/execution-store.ts";
import { type EventRecord, recordOf } from "../../../src/schema/rules/event-record.ts";
import type { FlowEvent } from "../../../src/schema/words/event.ts";

/** Makes changes of executions as advancing makes them: coherent, with fresh ids. */
export interface StoreRows {
  /** A fresh id. */
  next(): number;
  /** An execution that begins. */
  begin(start?: Partial<ExecutionStart>): ExecutionChange;
  /** What follows a change, with these events or one of no meaning. */
  follow(change: ExecutionChange, more?: Partial<ExecutionChange>, events?: readonly FlowEvent[]): ExecutionChange;
  /** An unclaimed command, or as `more` says. */
  issue(change: ExecutionChange, more?: Partial<IssuedCommand>): IssuedCommand;
}

const CATALOG_ID = "1";
const PATH = "jobs/nightly";
const AT = Date.parse("2026-11-21T10:00:00.123Z");
/** Any checksum. */
export const SHA256 = "0".repeat(64);
/** What a claim by `w1` adds to a command. */
export const CLAIMED = { status: "CLAIMED", attempt: 1, worker: "w1", leaseMs: 120_000 } as const;

/** The events of a change as they are read. */
export function recordsOf(change: ExecutionChange): EventRecord[] {
  return change.events.map((entry) => recordOf(entry, change));
}

/** Ids from `first` on. */
export function storeRows(first = 1_000): StoreRows {
  let last = first;
  const next = () => ++last;
  const entries = (events: readonly FlowEvent[]) => events.map((event) => ({ eventId: next(), event }));
  const newest = (events: ExecutionChange["events"]) => events.at(-1)?.eventId ?? 0;
  return {
    next,
    begin(start = {}) {
      const executionId = String(next());
      const events = entries([{ type: "workflow.initialized", at: AT, step: "a" }]);
      return {
        ...{ executionId, catalogId: CATALOG_ID, path: PATH },
        expectedEventId: null,
        lastEventId: newest(events),
        start: {
          catalogId: CATALOG_ID,
          path: PATH,
          version: 3,
          parentExecutionId: null,
          parentStep: null,
          rootExecutionId: executionId,
          idempotency: null,
          deadlineAt: null,
          ...start,
        },
        status: "RUNNING",
        progress: 0,
        events,
        issued: [],
        commands: [],
        ended: [],
      };
    },
    follow(change, more = {}, list = [{ type: "workflow.initialized", at: AT, step: "a" }]) {
      const { executionId, lastEventId } = change;
      const events = entries(list);
      const owner = { executionId, catalogId: CATALOG_ID, path: PATH };
      const base = { ...owner, expectedEventId: lastEventId, lastEventId: newest(events), events };
      return { ...base, status: "RUNNING", progress: 50, issued: [], commands: [], ended: [], ...more };
    },
    issue({ executionId }, more = {}) {
      const commandId = String(next());
      return {
        commandId,
        status: "PENDING",
        attempt: 0,
        worker: null,
        leaseMs: null,
        catalogId: CATALOG_ID,
        step: "a",
        kinds: ["noop", "http"],
        labels: null,
        body: {
          command_id: commandId,
          execution_id: executionId,
          catalog_id: CATALOG_ID,
          step: "a",
          step_run_id: "a-1",
          step_started_at: AT,
          context: { workload: { z: 1, a: "\u0000" }, vars: {}, steps: {}, input: {} },
        },
        ...more,
      };
    },
  };
}
