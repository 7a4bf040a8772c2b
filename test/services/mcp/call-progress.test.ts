import assert from "node:assert/strict";
import { test } from "node:test";
import type { EventRecord } from "../../../src/schema/rules/event-record.ts";
import { createCallProgress } from "../../../src/services/mcp/call-progress.ts";

const event = (event_type: string, node_id: string, more: Partial<EventRecord> = {}) =>
  ({ event_type, node_id, node_name: node_id, ...more }) as EventRecord;

test("a step counts half when it begins and whole when it is over", () => {
  const told = createCallProgress(2);
  assert.deepEqual(
    [
      told(event("playbook.initialized", "p")),
      told(event("command.issued", "a")),
      told(event("command.claimed", "a")),
      told(event("command.started", "a")),
      told(event("step.completed", "a")),
      told(event("step.skipped", "b")),
      told(event("playbook.completed", "p")),
    ],
    [
      undefined,
      undefined,
      { progress: 24.75, message: "step 'a' began" },
      undefined,
      { progress: 49.5, message: "step 'a' completed" },
      { progress: 99, message: "step 'b' was skipped" },
      undefined,
    ],
  );
});

test("progress numbers of a running task are reported", () => {
  const told = createCallProgress(1);
  told(event("command.claimed", "a"));
  const numbers = { node_name: "copy", meta: { progress: { rows_read: 12_000, rows_written: 500 } } };
  const { message } = told(event("task.progress", "a", numbers)) ?? {};
  assert.equal(message, "step 'a': copy rows_read 12,000, rows_written 500");
});

test("however often steps run again, each progress value is larger than the one before and below the end", () => {
  const told = createCallProgress(2);
  let last = 0;
  for (let round = 0; round < 20_000; round += 1) {
    for (const type of ["command.claimed", "step.failed"]) {
      const { progress = 0 } = told(event(type, round % 3 === 0 ? "a" : "b")) ?? {};
      assert.ok(progress > last && progress < 100, `${round}: ${last} then ${progress}`);
      last = progress;
    }
  }
});
