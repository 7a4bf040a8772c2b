import assert from "node:assert/strict";
import type { Body } from "../service/api.ts";

/**
 * Each event says which one it followed from, and that one stands before it: what was reported of a command follows from its
 * `command.issued`. Only what came from outside follows from nothing: the start, a cancellation, markers of batches.
 */
export function assertCaused(events: readonly Body[]): void {
  const before = new Map<unknown, Body>();
  for (const event of events) {
    const { event_type: type, event_id: id, command_id: commandId, parent_event_id: cause } = event;
    const isFirst = /^(playbook\.initialized|execution\.cancelled|batch\..*)$/.test(String(type));
    if (isFirst) assert.equal(cause, undefined, String(type));
    else assert.ok(before.has(cause), `${type} ${id} follows from ${cause}`);
    const reported = /^(command\.(claimed|started|completed|failed)|task\..*|call\..*)$/.test(String(type));
    const { event_type, command_id } = before.get(cause) ?? {};
    if (reported) assert.deepEqual([event_type, command_id], ["command.issued", commandId], `${type} ${id}`);
    before.set(id, event);
  }
}
