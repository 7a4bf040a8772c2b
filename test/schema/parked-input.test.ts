import assert from "node:assert/strict";
import { test } from "node:test";
import * as v from "valibot";
import { EventInput, fromInput, type ReportedEvent, toInput } from "../../src/schema/api/event-input.ts";

// `command.parked` as a worker sends it: what it says comes back whole, and nothing of another shape is taken.

const DUE = "2026-01-31T12:00:00.000Z";
const PARKED: ReportedEvent = {
  ...{ type: "command.parked", at: Date.parse(DUE) - 1_000, command_id: "7", attempt: 1, step: "a", worker: "w" },
  ...{ task: "a", iteration: 2, wait: { kind: "timer", due: DUE, expires: DUE, timeout_ms: 5 } },
  resume: { task: "a", iteration: 2, run: 1, serial: 0, started_at: DUE },
  wake_at: DUE,
  limit: true,
};

function received(change: Record<string, unknown> = {}): ReportedEvent | string {
  const input = toInput(PARKED, "5");
  const meta = { ...(input["meta"] as object), ...change };
  return fromInput(v.parse(EventInput, { ...input, meta }), "w", Date.parse(DUE));
}

test("what a worker says of a parked command arrives", () => {
  assert.deepEqual(received(), PARKED);
});

for (const [what, change] of [
  ["no wait", { wait: undefined }],
  ["another kind", { wait: { kind: "wish", due: DUE } }],
  ["no time", { wait: { kind: "timer", due: "soon" } }],
  ["more than is known", { wait: { kind: "timer", due: DUE, more: 1 } }],
  ["no place to go on", { resume: undefined }],
  ["a run that is no number", { resume: { task: "a", run: "1", serial: 0, started_at: DUE } }],
  ["no moment", { wake_at: undefined }],
  ["a limit that is no limit", { limit: false }],
] as const) {
  test(`refused: ${what}`, () => assert.equal(typeof received(change), "string"));
}
