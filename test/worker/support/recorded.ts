import assert from "node:assert/strict";
import { evolve } from "../../../src/engine/state/evolve.ts";
import { type ExecutionState, emptyState, isTerminal } from "../../../src/engine/state/state.ts";
import { type EventRecord, fromRecord, toRecord } from "../../../src/schema/rules/event-record.ts";
import type { FlowEvent } from "../../../src/schema/words/event.ts";

/** The events of one execution as they would be stored, having been through JSON. */
export function recordsOf(state: ExecutionState, events: readonly FlowEvent[]): EventRecord[] {
  const place = { executionId: state.executionId, catalogId: state.catalogId, path: state.path };
  const records = events.map((event, index) => toRecord(event, { eventId: index + 1, ...place }));
  return JSON.parse(JSON.stringify(records));
}

/**
 * What holds for every run: a stored event is the event, the fold of the stored events is the state that the run had, and
 * a run that has ended leaves nothing open and nothing running.
 */
export function assertRecorded(state: ExecutionState, events: readonly FlowEvent[]): void {
  const stored = recordsOf(state, events).map(fromRecord);
  assert.deepEqual(stored, events, "An event is not what was stored of it");
  assert.deepEqual(stored.reduce(evolve, emptyState()), state, "The stored events do not give the state");
  if (!isTerminal(state.status)) return;
  assert.deepEqual(state.commands, {}, "A command is open after the end");
  assert.deepEqual(state.active, [], "A step runs after the end");
}
