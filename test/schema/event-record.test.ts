import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { EventType, FlowEvent } from "../../src/schema/event.ts";
import { fromRecord, toRecord } from "../../src/schema/event-record.ts";
import type { StoredResult } from "../../src/schema/result.ts";

// Decisions, "Event types" and "Event batches": the wire shape of each event, and the way back.

const PLACE = { eventId: 7, executionId: "10", catalogId: "20", path: "jobs/nightly" };
const AT = 1_767_225_600_123;

const json = fc.jsonValue({ maxDepth: 2 }).map((value) => JSON.parse(JSON.stringify(value)));
const map = fc.dictionary(
  fc.string({ maxLength: 8 }).filter((key) => key !== "__proto__"),
  json,
  { maxKeys: 3 },
);
const name = fc.string({ minLength: 1, maxLength: 8 });
const id = fc.integer({ min: 1 }).map(String);
const count = fc.nat(100);
const writes = fc.array(fc.tuple(name, json), { maxLength: 3 });
const fired = fc.array(fc.record({ step: name, input: map, back: fc.boolean() }), { maxLength: 2 });
const error = fc.record(
  {
    kind: fc.constantFrom("timeout", "policy", "unknown"),
    code: name,
    message: fc.string(),
    retryable: fc.boolean(),
    details: json,
    step: name,
    task: name,
    attempt: count,
  },
  { requiredKeys: ["kind", "code", "message", "retryable"] },
);
const reference = fc.record({
  kind: fc.constant("result_ref" as const),
  ref: name,
  store: name,
  scope: name,
  meta: fc.record({ content_type: name, bytes: count, sha256: name }),
  extracted: map,
  preview: fc.record({ truncated: fc.boolean(), bytes: count, sample: fc.string() }),
});
const virtual = fc.dictionary(
  name.filter((key) => key !== "__proto__"),
  json.map((value): StoredResult => ({ value })),
);
const stored = fc.oneof(
  json.map((value) => ({ value })),
  reference.map((ref) => ({ ref })),
  fc.record({ value: json, virtual }),
  fc.record({ ref: reference, virtual }),
);

const ref = { command_id: id, attempt: count, step: name };
type Fields = Record<string, fc.Arbitrary<unknown>>;

/** Fields that each event has, and those that it may have. */
const EVENTS: { [T in EventType]: [must: Fields, may?: Fields] } = {
  "playbook.initialized": [
    { execution_id: id, catalog_id: id, path: name, workload: map, input: map },
    { parent: fc.record({ execution_id: id, step: name, iter: map }), target: name },
  ],
  "workflow.initialized": [{ step: name }],
  "command.issued": [
    { command_id: id, step: name, step_run_id: id },
    { iterations: fc.record({ from: count, to: count }), claim: fc.constant(true) },
  ],
  "command.claimed": [ref, { worker: name }],
  "command.started": [ref, { worker: name }],
  "task.done": [
    {
      ...ref,
      task: name,
      task_run_id: id,
      status: fc.constantFrom("ok", "error"),
      run: count,
      final: fc.boolean(),
      duration_ms: count,
    },
    { worker: name, iteration: count, result: stored, bytes: count, error },
  ],
  "call.done": [
    { ...ref, task: name },
    { worker: name, iteration: count, child_execution_id: id },
  ],
  "call.error": [
    { ...ref, task: name, run: count, error },
    { worker: name, iteration: count },
  ],
  "command.completed": [
    ref,
    {
      worker: name,
      tasks: fc.array(name),
      pipeline: fc.constant(true),
      iterations: count,
      set: writes,
      rows: fc.array(json),
    },
  ],
  "command.failed": [
    { ...ref, error },
    { worker: name, tasks: fc.array(name), pipeline: fc.constant(true), set: writes },
  ],
  "command.cancelled": [{ command_id: id, step: name, reason: fc.string() }],
  "loop.started": [
    { step: name, step_run_id: id, max_in_flight: count },
    { items: fc.array(json), count, max_rows: count },
  ],
  "loop.iteration.completed": [
    { ...ref, iteration: count, tasks: fc.array(name) },
    { worker: name, pipeline: fc.constant(true), set: writes },
  ],
  "loop.iteration.failed": [
    { ...ref, iteration: count, tasks: fc.array(name), error },
    { worker: name, pipeline: fc.constant(true), set: writes },
  ],
  "loop.results.stored": [
    { step: name, step_run_id: id, part: fc.record({ ref: name, count, min: count, max: count, bytes: count }) },
  ],
  "loop.done": [{ step: name, step_run_id: id, stats: fc.record({ total: count, success: count, failed: count }) }],
  "step.completed": [{ step: name, step_run_id: id, set: writes, next: fired, duration_ms: count }],
  "step.failed": [
    {
      step: name,
      step_run_id: id,
      error,
      handled: fc.constantFrom("no", "yes", "loop.done"),
      set: writes,
      next: fired,
      duration_ms: count,
    },
  ],
  "step.skipped": [{ step: name, reason: fc.constantFrom("when", "admission", "unreached"), set: writes, next: fired }],
  "next.evaluated": [
    {
      step: name,
      event: name,
      arcs: fc.array(
        fc.record(
          { step: name, matched: fc.boolean(), fired: fc.boolean(), error: fc.string() },
          { requiredKeys: ["step", "fired"] },
        ),
      ),
    },
  ],
  "workflow.completed": [{}],
  "workflow.failed": [{ error }],
  "playbook.completed": [{}, { result_step: name }],
  "playbook.failed": [{ error }],
  "execution.cancelled": [{ reason: fc.string() }],
};

for (const [type, [must, may = {}]] of Object.entries(EVENTS)) {
  test(`a stored ${type} gives the event back`, () => {
    const body = fc.record({ ...must, ...may }, { requiredKeys: Object.keys(must) });
    const property = fc.property(body, (fields) => {
      const event = { type, at: AT, ...fields } as FlowEvent;
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

for (const [event, status] of [
  [{ type: "playbook.initialized", execution_id: "1", catalog_id: "2", path: "p", workload: {}, input: {} }, "RUNNING"],
  [{ type: "command.issued", command_id: "1", step: "s", step_run_id: "2" }, "PENDING"],
  [{ type: "command.claimed", ...COMMAND }, "CLAIMED"],
  [{ type: "command.started", ...COMMAND }, "RUNNING"],
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
