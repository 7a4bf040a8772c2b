import assert from "node:assert/strict";
import { test } from "node:test";
import { toPlainJson } from "../../../src/language/template/template.ts";
import { type Outcome, type OutputPlace, OutputView } from "../../../src/language/views/output-view.ts";
import type { Json } from "../../../src/schema/words/json.ts";
import type { StoredResult } from "../../../src/schema/words/result.ts";

// Language document, section 5.2: what `output` is in each place.

const RESULT = { status: "of result", count: 2, data: { n: 1 } };

function view(place: OutputPlace, outcome: Partial<Outcome> = {}): OutputView {
  return new OutputView({ status: "ok", result: { value: RESULT }, ...outcome }, place);
}

function see(place: OutputPlace, key: string | number, outcome: Partial<Outcome> = {}): Json | undefined {
  const value = view(place, outcome).get(key);
  return value === undefined ? undefined : toPlainJson(value);
}

test("in rules and config it is the envelope, whose data is the tool's result", () => {
  assert.equal(see("envelope", "status"), "ok");
  assert.deepEqual(see("envelope", "data"), RESULT);
  assert.deepEqual(see("envelope", "result"), RESULT);
  assert.equal(see("envelope", "count"), 2, "Fields of the result are readable on it");
  assert.equal(see("envelope", "n"), 1);
  assert.equal(see("envelope", "nothing"), undefined);
});

test("`response` is another name of `result`, in every place; a field of that name in the result wins", () => {
  for (const place of ["envelope", "raw", "boundary"] as const) {
    assert.deepEqual(see(place, "response"), RESULT, place);
    assert.equal(see(place, "response", { result: { value: { response: "own" } } }), "own", place);
  }
});

test("in a task's set it is the raw result, the envelope behind it", () => {
  assert.equal(see("raw", "status"), "of result");
  assert.deepEqual(see("raw", "data"), { n: 1 });
  assert.deepEqual(toPlainJson(view("raw")), RESULT);
  const meta = { attempt: 2, duration_ms: 5 };
  assert.deepEqual(see("raw", "meta", { meta }), meta);
});

test("at a step's end its data is the result's own data where it has one", () => {
  assert.equal(see("boundary", "status"), "ok");
  assert.deepEqual(see("boundary", "data"), { n: 1 });
  assert.equal(see("boundary", "count"), 2);
  assert.deepEqual(see("boundary", "data", { result: { value: { n: 1 } } }), { n: 1 });
  assert.deepEqual(see("boundary", "data", { result: { value: { data: null } } }), null);
  assert.deepEqual(see("boundary", "data", { result: { value: [1] } }), [1]);
});

test("at a step's end the own data of a result in the store, a pipeline and a loop count as well", () => {
  const payloads = { r: RESULT as Json };
  const reference = { kind: "result_ref", ref: "r", store: "disk", extracted: { count: 2 } } as unknown as NonNullable<
    StoredResult["ref"]
  >;
  const references = { get: (ref: string) => (ref === "r" ? payloads.r : undefined) };
  const data = (result: StoredResult) =>
    toPlainJson(new OutputView({ status: "ok", result }, "boundary", references).get("data"));
  assert.deepEqual(data({ ref: reference }), { n: 1 });
  assert.deepEqual(
    data({
      tasks: [
        ["a", { value: { x: 1 } }],
        ["b", { ref: reference }],
      ],
    }),
    { n: 1 },
  );
  assert.deepEqual(
    data({
      tasks: [
        ["a", { value: { x: 1 } }],
        ["b", { value: { y: 2 } }],
      ],
    }),
    { x: 1, y: 2 },
  );
  const stats = { total: 1, success: 1, failed: 0 };
  assert.deepEqual(data({ loop: { status: "completed", stats, tail: [[0, { value: 5 }]], parts: [] } }), [5]);
});

test("an error, and what a driver knows, stand in the envelope", () => {
  const error = { kind: "timeout" as const, code: "T", message: "m", retryable: true };
  const http = { status: 503, headers: {} };
  const outcome: Partial<Outcome> = { status: "error", error, http, result: { value: null } };
  for (const place of ["envelope", "raw", "boundary"] as const) {
    assert.equal(see(place, "status", outcome), "error");
    assert.deepEqual(see(place, "error", outcome), error);
    assert.deepEqual(see(place, "http", outcome), http);
    assert.equal(see(place, "pg", outcome), undefined);
  }
});

test("as a whole it is the envelope with null for what it has not", () => {
  assert.deepEqual(toPlainJson(view("envelope")), { status: "ok", data: RESULT, error: null, ref: null, meta: null });
  assert.deepEqual(toPlainJson(view("boundary", { py: { exception: "E", traceback: "t" } })), {
    status: "ok",
    data: { n: 1 },
    error: null,
    ref: null,
    meta: null,
    py: { exception: "E", traceback: "t" },
  });
});

test("items of a list result are read by index", () => {
  const outcome = { result: { value: [10, 20] } };
  assert.deepEqual(
    [see("envelope", 0, outcome), see("raw", 1, outcome), see("boundary", 2, outcome)],
    [10, 20, undefined],
  );
});
