import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import * as v from "valibot";
import { EVENT_BYTES_MAX, EventInput, fromInput, type ReportedEvent } from "../../src/schema/api/event-input.ts";
import { FlowError } from "../../src/schema/words/errors.ts";
import type { Json } from "../../src/schema/words/json.ts";
import { knownJsonText, noteJsonText } from "../../src/schema/words/json-text.ts";
import type { TaskError } from "../../src/schema/words/outcome.ts";
import type { StoredResult } from "../../src/schema/words/result.ts";
import { BATCH_BYTES_MAX } from "../../src/worker/reporting/outbox.ts";
import { eventText } from "../../src/worker/reporting/serialize-event.ts";
import { storeResult } from "../../src/worker/task/store-result.ts";

const ref = { command_id: "12", attempt: 2, step: "a step", worker: "w" };
const error: TaskError = {
  kind: "server_error",
  code: "HTTP_500",
  message: "it\u0000broke",
  retryable: true,
  details: { a: [1] },
};
const about = { meta: { attempt: 1, duration_ms: 3 }, http: { status: 200, headers: { a: "b" } } };
const reference: StoredResult = {
  ref: {
    kind: "result_ref",
    ref: "noetl://execution/1/step/a/task/t/run/12-0-0",
    store: "kv",
    scope: "permanent",
    meta: { content_type: "application/json", bytes: 70_000, sha256: "ab" },
    extracted: { page: 1 },
    preview: { truncated: true, bytes: 70_000, sample: "[1" },
  },
  virtual: { command_0: { value: [1] } },
  about,
};
const done = {
  type: "task.done",
  at: 1_700_000_000_123,
  ...ref,
  task: "t",
  task_run_id: "12-0-0",
  run: 1,
  duration_ms: 5,
} as const;

const EVENTS: ReportedEvent[] = [
  { type: "command.started", at: 1_700_000_000_000, ...ref },
  { ...done, status: "ok", final: true, result: { value: { b: 1, a: null }, about }, bytes: 9 },
  { ...done, status: "ok", final: true, result: { value: null }, bytes: 4, iteration: 7 },
  { ...done, status: "error", final: true, result: reference, bytes: 1_024, error },
  { ...done, status: "error", final: false, bytes: 0, error },
  { type: "task.progress", at: 1, ...ref, task: "t", task_run_id: "5-0-0", run: 1, progress: { rows: 3 } },
  {
    ...done,
    status: "ok",
    final: true,
    result: { value: 1 },
    bytes: 1,
    log: { lines: ["a", "\u001b[1mb"], dropped: 9 },
  },
  { ...done, status: "error", final: false, error, next_run_at: "2026-01-02T00:00:05.000Z" },
  { type: "call.done", at: 1, ...ref, task: "t", run: 1, child_execution_id: "99" } as ReportedEvent,
  { type: "call.error", at: 1, ...ref, task: "t", iteration: 0, run: 2, error },
  { type: "loop.iteration.completed", at: 1, ...ref, iteration: 3, tasks: ["t"], set: [["x", { y: 1 }]] },
  { type: "loop.iteration.failed", at: 1, ...ref, iteration: 3, tasks: [], pipeline: true, error },
  { type: "command.completed", at: 1, ...ref, tasks: ["t", "u"], pipeline: true, set: [["n", null]] },
  { type: "command.completed", at: 1, ...ref, rows: [{ id: 1 }, [2]] },
  { type: "command.completed", at: 1, ...ref, iterations: 4 },
  { type: "command.failed", at: 1, ...ref, tasks: ["t"], error },
];

for (const event of EVENTS) {
  test(`the server makes the same ${event.type} of what is sent: ${JSON.stringify(event).slice(80, 140)}`, () => {
    const { json, bytes } = eventText(event, "1");
    assert.equal(bytes, Buffer.byteLength(json));
    const input = v.parse(EventInput, JSON.parse(json));
    assert.equal(input.execution_id, "1");
    assert.deepEqual(fromInput(input, "w", Date.now()), event);
  });
}

const huge = "é".repeat(BATCH_BYTES_MAX / 2);

test("an event that no request has room for is an error that says what to do", () => {
  const event: ReportedEvent = { type: "command.completed", at: 1, ...ref, rows: [huge] };
  assert.throws(
    () => eventText(event, "1"),
    (thrown) => {
      assert.ok(thrown instanceof FlowError && thrown.code === "TOO_LARGE");
      assert.match(
        thrown.message,
        /^Step 'a step' has \d+ bytes to tell in one event \(command\.completed\).*\.inline_max_bytes/,
      );
      return true;
    },
  );
});

test("a result that has just enough room is sent without the lines that its task wrote", () => {
  const value = "x".repeat(BATCH_BYTES_MAX - 1_000);
  const log = { lines: Array<string>(200).fill("0123456789"), dropped: 5 };
  const { json, bytes } = eventText({ ...done, status: "ok", final: true, result: { value }, log }, "1");
  assert.ok(bytes <= BATCH_BYTES_MAX);
  const event = fromInput(v.parse(EventInput, JSON.parse(json)), "w", Date.now());
  assert.ok(typeof event !== "string" && event.type === "task.done");
  assert.ok(event.result?.value === value);
  assert.deepEqual(event.log, { lines: [], dropped: 205 });
});

test("a failure is shortened until it can be sent: a command must get its end", () => {
  const failure: ReportedEvent = {
    type: "command.failed",
    at: 1,
    ...ref,
    set: [["x", huge]],
    error: { ...error, message: huge },
  };
  const { json, bytes } = eventText(failure, "1");
  assert.ok(bytes < 10_000);
  const sent = JSON.parse(json) as { error: { code: string; message: string } };
  assert.equal(sent.error.code, "HTTP_500");
  assert.equal(sent.error.message, huge.slice(0, 2_000));
});

test("a result whose text is known is stored and reported as one whose text is not, around every limit", async () => {
  const config = { select: [{ path: "$.a", as: "first" }], sensitive: false };
  const place = { executionId: "1", step: "s", task: "t", taskRunId: "r" };
  /** What leaves the worker: the payload that is stored, and the event as the server reads it, or the error that keeps it back. */
  const sent = async (value: Json, inlineMaxBytes: number | undefined) => {
    const saved: string[] = [];
    const store = {
      kind: "kv",
      load: () => Promise.reject(new Error("Nothing is read")),
      save: async (_ref: string, json: string) => {
        saved.push(json);
        return { sha256: "ab", bytes: Buffer.byteLength(json) };
      },
    };
    const limit = inlineMaxBytes === undefined ? {} : { inlineMaxBytes };
    const { result, bytes } = await storeResult(store, place, value, undefined, { ...config, ...limit });
    const event = { ...done, status: "ok", final: true, result: { ...result, about }, bytes } as const;
    try {
      const text = eventText(event, "77");
      const read = fromInput(v.parse(EventInput, JSON.parse(text.json)), "w", Date.now());
      return { saved, bytes: text.bytes, read: JSON.stringify(read) };
    } catch (thrown) {
      return { saved, thrown: String(thrown) };
    }
  };
  const bothWays = async (text: string, inlineMaxBytes?: number) => {
    const value = JSON.parse(text) as Json;
    noteJsonText(value, text);
    assert.deepEqual(await sent(value, inlineMaxBytes), await sent(JSON.parse(text) as Json, inlineMaxBytes));
    return knownJsonText(value) !== undefined;
  };
  let known = 0;
  await fc.assert(
    fc.asyncProperty(fc.jsonValue(), fc.nat(200), async (value, inlineMaxBytes) => {
      for (const text of [JSON.stringify(value), JSON.stringify(value, null, 1)]) {
        if (await bothWays(text, inlineMaxBytes)) known += 1;
      }
    }),
    { numRuns: 300 },
  );
  assert.ok(known > 50, `${known} texts were known`);
  // The limit of a result that is inline, and that of an event.
  const around = (bytes: number) => [-1, 0, 1].map((more) => `{"a":1,"text":"${"x".repeat(bytes - 17 + more)}"}`);
  for (const text of around(65_536)) assert.ok(await bothWays(text));
  for (const text of around(1_048_576)) assert.ok(await bothWays(text, 1_048_576));
  const long = (lines: string) => ({ ...done, log: { lines: Array.from({ length: 200 }, () => lines) } });
  for (const text of [...around(EVENT_BYTES_MAX - 300), ...around(EVENT_BYTES_MAX)]) {
    const [plain, noted] = [JSON.parse(text) as Json, JSON.parse(text) as Json];
    noteJsonText(noted, text);
    const [one, other] = [plain, noted].map((value) => {
      try {
        const { json, bytes } = eventText(
          { ...long("y"), status: "ok", final: true, result: { value }, bytes: 1 },
          "77",
        );
        return { bytes, event: JSON.parse(json) as unknown };
      } catch (thrown) {
        return String(thrown);
      }
    });
    assert.deepEqual(one, other);
  }
});
