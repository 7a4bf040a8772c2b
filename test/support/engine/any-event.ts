import fc from "fast-check";
import type { EventType, FlowEvent } from "../../../src/schema/words/event.ts";
import type { StoredResult } from "../../../src/schema/words/result.ts";

/** Types of event that {@link anyEvent} knows: all of them. */
export function eventTypes(): EventType[] {
  return Object.keys(EVENTS) as EventType[];
}

/** Any event of a type, at this moment: every field that it may have, there or not, with odd texts in it. */
export function anyEvent(type: EventType, at: number): fc.Arbitrary<FlowEvent> {
  const [must, may = {}] = EVENTS[type];
  const body = fc.record({ ...must, ...may }, { requiredKeys: Object.keys(must) });
  return body.map((fields) => ({ type, at, ...fields }) as FlowEvent);
}

/** Texts that trip parsers, encoders and databases: NUL, a separator, half a character, quotes. */
const odd = fc.constantFrom("\u0000", "a\u001eb", "\ud800", '"', "\\", "{,}", "NULL", "\u{1f600}", "");
const json = fc
  .oneof(
    fc.jsonValue({ maxDepth: 2 }),
    odd,
    odd.map((text) => [text, { [`${text}k`]: text, b: 1, a: 2 }]),
  )
  .map((value) => JSON.parse(JSON.stringify(value)));
const map = fc.dictionary(
  fc.oneof(fc.string({ maxLength: 8 }), odd).filter((key) => key !== "__proto__"),
  json,
  { maxKeys: 3 },
);
/** Any text but U+0000, which a text column cannot hold. */
const name = fc.string({ unit: "binary", minLength: 1, maxLength: 8 }).map((text) => text.replaceAll("\u0000", "0"));
const id = fc.integer({ min: 1 }).map(String);
const count = fc.nat(100);
const timestamp = fc.date({ noInvalidDate: true }).map((date) => date.toISOString());
const approval = { approval_id: id, command_id: id, step: name };
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

const results = fc.array(fc.tuple(name, stored, count), { maxLength: 2 });
const accumulate = fc.record(
  { strategy: fc.constantFrom("append", "concat", "merge", "replace"), merge_path: name },
  { requiredKeys: ["strategy"] },
);

const ref = { command_id: id, attempt: count, step: name };
type Fields = Record<string, fc.Arbitrary<unknown>>;
/** Of a step that a rerun takes over. */
const copied = {
  reused_from: fc.record({ execution_id: id, event_id: count, created_at: timestamp }),
  kept: fc.record({
    order: count,
    runs: count,
    attempts: count,
    started_at: fc.option(count),
    ended_at: fc.option(count),
    result: fc.option(stored),
    error: fc.option(error),
    loop: fc.option(fc.record({ total: fc.option(count), done: count, failed: count })),
  }),
};

/** Fields that each event has, and those that it may have. */
const EVENTS: { [T in EventType]: [must: Fields, may?: Fields] } = {
  "playbook.initialized": [
    { execution_id: id, catalog_id: id, path: name, workload: map, input: map },
    {
      parent: fc.record({ execution_id: id, step: name, iter: map }),
      target: name,
      trace: fc.record({ context: name, parent: name }),
      rerun: fc.record({ execution_id: id, from: fc.array(name), only: fc.constant(true), reason: fc.string() }),
      sealed_under: id,
    },
  ],
  "workflow.initialized": [{ step: name }],
  "workflow.restored": [
    { vars: map, steps: fc.constant({}), waiting: fc.array(name), taken: fc.constant({}), started: count },
    { last_completed: name, failure_at_end: error },
  ],
  "command.issued": [
    { command_id: id, step: name, step_run_id: id },
    { iterations: fc.record({ from: count, to: count }), claim: fc.constant(true) },
  ],
  "command.claimed": [ref, { worker: name }],
  "command.started": [ref, { worker: name }],
  "command.parked": [
    {
      ...ref,
      task: name,
      wait: fc.oneof(
        fc.record({ kind: fc.constant("timer" as const), due: timestamp }),
        fc.record({ kind: fc.constant("signal" as const), name, key: name }),
        fc.constant({ kind: "retry" as const, due: "2026-01-01T00:00:00.000Z" }),
        fc.record({
          ...{ kind: fc.constant("approval" as const), title: name, description: name, form: map },
          approvers: fc.record({ roles: fc.array(name, { maxLength: 2 }), users: fc.array(name, { maxLength: 2 }) }),
          ...{ required: fc.constant(1), rejections: fc.constant(1) },
        }),
      ),
      resume: fc.record({ task: name, run: count, serial: count, started_at: timestamp }),
    },
    { worker: name, iteration: count, wake_at: timestamp, limit: fc.constant(true) },
  ],
  "command.woken": [
    { command_id: id, step: name },
    { signal: id, approval: id },
  ],
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
    {
      worker: name,
      iteration: count,
      iteration_id: name,
      page: count,
      step_run_id: id,
      result: stored,
      bytes: count,
      error,
      next_run_at: timestamp,
      log: fc.record({ lines: fc.array(fc.string()), dropped: count }),
    },
  ],
  "task.progress": [
    { ...ref, task: name, task_run_id: id, run: count, progress: fc.dictionary(fc.stringMatching(/^[a-z]+$/), count) },
    {
      worker: name,
      iteration: count,
      step_run_id: id,
      log: fc.record({ lines: fc.array(fc.string()), from: count }),
    },
  ],
  "call.done": [
    { ...ref, task: name },
    { worker: name, iteration: count, child_execution_id: id },
  ],
  "call.error": [
    { ...ref, task: name, run: count, error },
    { worker: name, iteration: count, next_run_at: timestamp },
  ],
  "command.completed": [
    ref,
    {
      worker: name,
      tasks: fc.array(name),
      pipeline: fc.constant(true),
      iterations: count,
      results,
      set: writes,
      rows: fc.array(json),
    },
  ],
  "command.failed": [
    { ...ref, error },
    { worker: name, tasks: fc.array(name), pipeline: fc.constant(true), results, set: writes },
  ],
  "command.cancelled": [{ command_id: id, step: name, reason: fc.string() }],
  "loop.started": [
    { step: name, step_run_id: id, max_in_flight: count },
    { items: fc.array(json), count, max_rows: count, accumulate },
  ],
  "loop.iteration.completed": [
    { ...ref, iteration: count, tasks: fc.array(name) },
    { worker: name, pipeline: fc.constant(true), results, set: writes },
  ],
  "loop.iteration.failed": [
    { ...ref, iteration: count, tasks: fc.array(name), error },
    { worker: name, pipeline: fc.constant(true), results, set: writes },
  ],
  "loop.results.stored": [
    { step: name, step_run_id: id, part: fc.record({ ref: name, count, min: count, max: count, bytes: count }) },
  ],
  "loop.results.kept": [
    { step: name, step_run_id: id, ref: name, iterations: fc.array(fc.tuple(count, count)) },
    { part: fc.record({ ref: name, count, min: count, max: count, bytes: count }) },
  ],
  "loop.done": [
    { step: name, step_run_id: id, stats: fc.record({ total: count, success: count, failed: count }) },
    { manifest: name },
  ],
  "step.completed": [{ step: name, step_run_id: id, set: writes, next: fired, duration_ms: count }, copied],
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
    copied,
  ],
  "step.skipped": [
    {
      step: name,
      reason: fc.constantFrom("when", "admission", "unreached", "cancelled", "overridden"),
      set: writes,
      next: fired,
    },
    copied,
  ],
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
  "execution.paused": [{}, { reason: fc.string(), by: name, cascade: fc.constant(true) }],
  "execution.resumed": [{}, { reason: fc.string(), by: name }],
  "signal.received": [
    { signal_id: id, name, data: json },
    { key: name, id: name, by: name },
  ],
  "approval.opened": [approval, { iteration: count }],
  "approval.decided": [
    { ...approval, decision: fc.constantFrom("approve", "reject"), by: name },
    { iteration: count, data: json, comment: fc.string(), link: count },
  ],
  "approval.reminded": [approval, { iteration: count }],
  "approval.escalated": [{ ...approval, to: fc.record({ roles: fc.array(name, { maxLength: 2 }) }) }],
  "approval.notified": [
    { ...approval, number: count, reason: fc.constantFrom("opened", "reminder", "escalation") },
    { playbook: name, input: map, error },
  ],
  "approval.closed": [{ ...approval, outcome: fc.constantFrom("approved", "rejected", "expired", "cancelled") }],
  "step.overridden": [
    { step: name, action: fc.constantFrom("skip", "complete", "fail"), reason: fc.string() },
    { iteration: fc.nat(), result: stored, error, by: name },
  ],
};
