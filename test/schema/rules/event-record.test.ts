import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { fromRecord, toRecord } from "../../../src/schema/rules/event-record.ts";
import type { FlowEvent } from "../../../src/schema/words/event.ts";
import type { StoredResult } from "../../../src/schema/words/result.ts";
import { anyEvent, eventTypes } from "../../support/engine/any-event.ts";

// Decisions, "Event types" and "Event batches": the wire shape of each event, and the way back.

const PLACE = { eventId: 7, executionId: "10", catalogId: "20", path: "jobs/nightly" };
const AT = 1_767_225_600_123;

for (const type of eventTypes()) {
  test(`a stored ${type} gives the event back`, () => {
    const property = fc.property(anyEvent(type, AT), (event) => {
      const record = JSON.parse(JSON.stringify(toRecord(event, PLACE)));
      assert.deepEqual(plain(fromRecord(record)), plain(event));
    });
    // On failure fast-check prints the seed and the path with which the run is repeated.
    fc.assert(property, { numRuns: 200 });
  });
}

/** fast-check makes maps without prototype; JSON does not tell them apart. */
function plain(event: FlowEvent): unknown {
  return JSON.parse(JSON.stringify(event));
}

function record(event: FlowEvent): Record<string, unknown> {
  return toRecord(event, PLACE);
}

const COMMAND = { command_id: "1", attempt: 2, step: "load", worker: "w1" };

test("every record has the fields that all have", () => {
  const { event_id, execution_id, catalog_id, event_type, created_at } = record({ type: "workflow.completed", at: AT });
  assert.deepEqual(
    { event_id, execution_id, catalog_id, event_type, created_at },
    {
      event_id: 7,
      execution_id: "10",
      catalog_id: "20",
      event_type: "workflow.completed",
      created_at: "2026-01-01T00:00:00.123Z",
    },
  );
});

test("the node of an event is the playbook, the step, or the step with its task", () => {
  const node = ({ node_id, node_name, node_type }: Record<string, unknown>) => [node_type, node_id, node_name];
  assert.deepEqual(node(record({ type: "workflow.completed", at: AT })), ["playbook", "jobs/nightly", "jobs/nightly"]);
  assert.deepEqual(node(record({ type: "command.claimed", at: AT, ...COMMAND })), ["step", "load", "load"]);
  const call = record({ type: "call.done", at: AT, ...COMMAND, task: "fetch" });
  assert.deepEqual(node(call), ["task", "load", "fetch"]);
});

test("a result travels in the reference envelope: inline in its context, or as a reference", () => {
  const base = {
    type: "task.done" as const,
    at: AT,
    ...COMMAND,
    task: "fetch",
    task_run_id: "1-0-0",
    run: 1,
    final: true,
    duration_ms: 5,
  };
  const inline = record({ ...base, status: "ok", result: { value: { n: 1 } }, bytes: 7 });
  assert.deepEqual(inline["result"], {
    status: "ok",
    context: { task: "fetch", value: { n: 1 }, run: 1, final: true, bytes: 7 },
  });
  const ref = { kind: "result_ref" as const, ref: "noetl://x" } as NonNullable<StoredResult["ref"]>;
  const error = { kind: "timeout" as const, code: "T", message: "m", retryable: true };
  const kept = record({ ...base, status: "error", result: { ref }, error });
  assert.deepEqual(kept["result"], {
    status: "error",
    reference: ref,
    context: { task: "fetch", run: 1, final: true },
  });
  assert.deepEqual(kept["error"], error);
});

test("what has no column of its own is in meta, and nowhere twice", () => {
  const skipped = record({ type: "step.skipped", at: AT, step: "load", reason: "when", set: [["x", 1]], next: [] });
  assert.deepEqual(skipped["meta"], { reason: "when", set: [["x", 1]], next: [] });
  const issued = record({ type: "command.issued", at: AT, command_id: "1", step: "load", step_run_id: "3" });
  assert.deepEqual([issued["command_id"], issued["step_run_id"], issued["meta"]], ["1", "3", undefined]);
});

test("how far a task is stands in meta, and the record is the task's", () => {
  const told = { type: "task.progress", at: AT, ...COMMAND, task: "copy", task_run_id: "1-0-0", run: 1 } as const;
  const { node_type, node_name, task_run_id, meta, result } = record({ ...told, progress: { rows_read: 12 } });
  assert.deepEqual([node_type, node_name, task_run_id], ["task", "copy", "1-0-0"]);
  assert.deepEqual([meta, result], [{ run: 1, progress: { rows_read: 12 } }, undefined]);
});

for (const [event, status] of [
  [{ type: "playbook.initialized", execution_id: "1", catalog_id: "2", path: "p", workload: {}, input: {} }, "RUNNING"],
  [{ type: "command.issued", command_id: "1", step: "s", step_run_id: "2" }, "PENDING"],
  [{ type: "command.claimed", ...COMMAND }, "CLAIMED"],
  [{ type: "command.started", ...COMMAND }, "RUNNING"],
  [{ type: "task.progress", ...COMMAND, task: "t", task_run_id: "1", run: 1, progress: { rows: 1 } }, "RUNNING"],
  [{ type: "command.completed", ...COMMAND }, "COMPLETED"],
  [{ type: "command.cancelled", command_id: "1", step: "s", reason: "r" }, "CANCELLED"],
  [{ type: "call.done", ...COMMAND, task: "t" }, "COMPLETED"],
  [{ type: "step.skipped", step: "s", reason: "when", set: [], next: [] }, "SKIPPED"],
  [{ type: "loop.done", step: "s", step_run_id: "1", stats: { total: 1, success: 1, failed: 0 } }, "COMPLETED"],
  [{ type: "playbook.failed", error: { kind: "unknown", code: "C", message: "m", retryable: false } }, "FAILED"],
  [{ type: "execution.cancelled", reason: "r" }, "CANCELLED"],
] as const) {
  test(`after ${event.type} the status is ${status}`, () => {
    assert.equal(record({ at: AT, ...event } as unknown as FlowEvent)["status"], status);
  });
}
