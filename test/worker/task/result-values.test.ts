import assert from "node:assert/strict";
import { test } from "node:test";
import type { Json, JsonObject } from "../../../src/schema/words/json.ts";
import { knownJsonText, noteJsonText } from "../../../src/schema/words/json-text.ts";
import { setup } from "../support/bench.ts";
import { http, longText, ok } from "../support/scripted-tools.ts";

// Language document, sections 4.5 and 8 (storage): fields of results are found the same way wherever the result is kept.

/** Runs a `fetch` that answers `data`, and shows what `expressions` give in the next step. */
async function readBack(
  t: Parameters<typeof setup>[0],
  data: Json,
  expressions: Record<string, string>,
  output = "",
): Promise<JsonObject> {
  const { completed } = setup(t, { tools: { fetch: [ok(data)] } });
  const shown = JSON.stringify(Object.fromEntries(Object.entries(expressions).map(([k, e]) => [k, `{{ ${e} }}`])));
  const ran = await completed(`
workflow:
  - step: fetch
    tool: { kind: http ${output} }
    next: [{ step: show }]
  - step: show
    tool: { kind: noop, result: ${shown} }
`);
  return (await ran.result()) as JsonObject;
}

const ANSWER = { status_code: 200, headers: { etag: "x" }, data: { items: [1, 2, 3], name: "n" } };

/** Each expression, and what it gives on {@link ANSWER}. */
const LOOKUPS: Record<string, Json> = {
  "fetch.status_code": 200,
  "fetch.data.items": [1, 2, 3],
  "fetch.body.items": [1, 2, 3],
  "fetch.items": [1, 2, 3],
  "fetch['name']": "n",
  "fetch.result.status_code": 200,
  "fetch.result.data.name": "n",
  "fetch.headers.etag": "x",
  "fetch.items[-1]": 3,
  "fetch.missing": null,
  "fetch.data.missing.deeper": null,
  "fetch.constructor": null,
  "fetch.__proto__": null,
  "steps.fetch.body.name": "n",
  "ctx.fetch.body.name": "n",
  "result.body.name": "n",
};

const BY_REFERENCE = ", spec: { result: { inline_max_bytes: 10 } }";

for (const [where, output] of [
  ["inline", ""],
  ["stored by reference", BY_REFERENCE],
] as const) {
  test(`fields of an http result ${where} are own fields, data, body and fields of data`, async (t) => {
    const expressions = Object.fromEntries(Object.keys(LOOKUPS).map((expression) => [expression, expression]));
    assert.deepEqual(await readBack(t, ANSWER, expressions, output), LOOKUPS);
  });

  test(`a bare list ${where} is its rows, data, result and results`, async (t) => {
    const seen = await readBack(
      t,
      [{ id: 1 }, { id: 2 }],
      {
        rows: "fetch.rows[1].id",
        data: "fetch.data[0].id",
        result: "fetch.result[1].id",
        results: "fetch.results[0].id",
        first: "fetch[0].id",
        last: "fetch[-1].id",
        length: "fetch|length",
        other: "fetch.other",
      },
      output,
    );
    assert.deepEqual(seen, { rows: 2, data: 1, result: 2, results: 1, first: 1, last: 2, length: 2, other: null });
  });

  test(`an object ${where} without data is its own data and result`, async (t) => {
    const seen = await readBack(
      t,
      { n: 1, list: [1] },
      { data: "fetch.data.n", result: "fetch.result.data.n", body: "fetch.body.list", whole: "fetch" },
      output,
    );
    assert.deepEqual(seen, { data: 1, result: 1, body: [1], whole: { n: 1, list: [1] } });
  });

  test(`an own field ${where} wins over the virtual one of its name, null too`, async (t) => {
    const seen = await readBack(
      t,
      { body: "own", result: null, data: { body: "inner", result: "inner" } },
      { body: "fetch.body", result: "fetch.result" },
      output,
    );
    assert.deepEqual(seen, { body: "own", result: null });
  });

  test(`a scalar result ${where} is its own data`, async (t) => {
    const seen = await readBack(
      t,
      "some text that is long",
      { it: "fetch", data: "fetch.data", field: "fetch.x" },
      output,
    );
    assert.deepEqual(seen, { it: "some text that is long", data: "some text that is long", field: null });
  });
}

test("a result beyond the inline limit travels as a reference, and its scalars without loading it", async (t) => {
  const { run, lose } = setup(t, { tools: { fetch: [http(200, { text: longText(70_000) })] } });
  lose(() => true);
  const ran = await run(`
workflow:
  - step: fetch
    tool: { kind: http }
    next: [{ step: show }]
  - step: show
    tool: { kind: noop, result: { code: "{{ fetch.status_code }}", ref: "{{ fetch._ref.kind }}", same: "{{ fetch._ref == fetch.__ref__ }}", store: "{{ fetch._store }}", preview: "{{ fetch._preview.truncated }}" } }
`);
  assert.deepEqual(await ran.result(), { code: 200, ref: "result_ref", same: true, store: "kv", preview: true });
  const done = ran.of("task.done")[0];
  assert.ok(JSON.stringify(done).length < 8_192, "The event carries the payload");
});

test("inline results have no reference", async (t) => {
  const seen = await readBack(t, ANSWER, { ref: "fetch._ref", store: "fetch._store", preview: "fetch._preview" });
  assert.deepEqual(seen, { ref: null, store: null, preview: null });
});

for (const [where, limit] of [
  ["inline", 65_536],
  ["by reference", 10],
] as const) {
  test(`fields chosen by output_select are read by their names from a result kept ${where}`, async (t) => {
    const output = `, output_select: [{path: "$.data.items[0]", as: first}, {path: "$.data.items[*]", as: all}, {path: "$.nothing", as: none}], spec: { result: { inline_max_bytes: ${limit} } }`;
    const seen = await readBack(
      t,
      ANSWER,
      { first: "fetch.first", all: "fetch.all", none: "fetch.none is none" },
      output,
    );
    assert.deepEqual(seen, { first: 1, all: [1, 2, 3], none: true });
  });
}

test("virtual fields of a tool are read by name and are no part of the value", async (t) => {
  const tools = {
    sql: [ok({ rows: [{ n: 2 }] }, { virtual: { command_0: { rows: [{ n: 1 }] }, command_1: { rows: [{ n: 2 }] } } })],
  };
  const { completed, calls } = setup(t, { tools });
  const ran = await completed(`
workflow:
  - step: sql
    tool: { kind: sqldb, query: "select 1; select 2" }
    next: [{ step: show }]
  - step: show
    tool:
      - a: { kind: noop, result: { first: "{{ sql.command_0.rows[0].n }}", whole: "{{ sql }}" } }
      - code: { kind: python, code: "result = 1", input: { given: "{{ sql }}" } }
`);
  const { first, whole } = (await ran.step("show")) as JsonObject;
  assert.equal(first, 1);
  assert.deepEqual(whole, { rows: [{ n: 2 }] });
  // Code reads fields by itself, so that they are real ones there.
  assert.deepEqual((calls.at(-1)?.input["given"] as JsonObject | undefined)?.["command_0"], { rows: [{ n: 1 }] });
});

test("in arcs, output.data is the result's own data wherever the result is kept", async (t) => {
  for (const limit of [65_536, 10]) {
    const { completed } = setup(t, { tools: { fetch: [ok(ANSWER)] } });
    const ran = await completed(`
workflow:
  - step: fetch
    tool: { kind: http, spec: { result: { inline_max_bytes: ${limit} } } }
    next: { arcs: [{ step: end, set: { data: "{{ output.data }}", code: "{{ output.status_code }}", raw: "{{ result.status_code }}" } }] }
  - step: end
`);
    assert.deepEqual(ran.state.vars, { data: ANSWER.data, code: 200, raw: 200 }, `inline up to ${limit} bytes`);
  }
});

test("a lost body is REFERENCE_NOT_AVAILABLE, and a rule may jump back to the task that makes it", async (t) => {
  let attempts = 0;
  const make = () => {
    attempts += 1;
    return ok({ items: [attempts] });
  };
  const { completed, lose } = setup(t, { tools: { make, use: (call) => ok(call.config) } });
  // The first body is lost; that of the second run has another reference.
  lose((ref) => ref.endsWith("-0"));
  const ran = await completed(`
workflow:
  - step: a
    tool:
      - make: { kind: http, spec: { result: { inline_max_bytes: 1 } } }
      - use:
          kind: shell
          cmd: "{{ make.items }}"
          spec: { policy: { rules: [{ when: "output.error.code == 'REFERENCE_NOT_AVAILABLE'", then: { do: jump, to: make } }] } }
`);
  assert.equal(attempts, 2);
  assert.deepEqual(((await ran.step("a")) as JsonObject)["cmd"], [2]);
  assert.equal(ran.of("call.error")[0]?.error.kind, "not_found");
});

test("without such a rule a lost body fails the step, saying which result is lost", async (t) => {
  const { failed, lose } = setup(t, { tools: { make: [ok({ items: [1] })] } });
  lose(() => true);
  const { state } = await failed(`
workflow:
  - step: a
    tool: { kind: http, name: make, spec: { result: { inline_max_bytes: 1 } } }
    next: [{ step: b }]
  - step: b
    tool: { kind: noop, result: { items: "{{ a.items }}" } }
`);
  assert.equal(state.error?.code, "REFERENCE_NOT_AVAILABLE");
  assert.match(state.error?.message ?? "", /noetl:\/\/execution\/\d+\/step\/a\/task\/make\/run\//);
});

test("a rule or an arc that reads a lost body does not match, a set that does fails its step", async (t) => {
  const { completed, failed, lose } = setup(t, { tools: { make: [ok({ items: [1] })] } });
  lose(() => true);
  const make =
    "kind: http, spec: { result: { inline_max_bytes: 1 }, policy: { rules: [{ when: 'output.data.items[0] == 1', then: { do: fail } }] } }";
  const ran = await completed(`
workflow:
  - step: make
    tool: { ${make} }
    next: { arcs: [{ step: read, when: "output.data.items[0] == 1" }, { step: other }] }
  - step: read
  - step: other
`);
  assert.equal(ran.state.steps["other"]?.status, "COMPLETED");
  const { state } = await failed(`
workflow:
  - step: make
    tool: { ${make} }
    set: { items: "{{ output.data.items }}" }
`);
  assert.equal(state.error?.code, "REFERENCE_NOT_AVAILABLE");
  assert.equal(state.error?.step, "make");
});

test("selected fields that are too large for an event fail the task, which its policy may take", async (t) => {
  const make = "kind: http, output_select: [{ path: $.items, as: all }]";
  const { failed, completed } = setup(t, { tools: { make: [ok({ items: ["x".repeat(70_000)] })] } });
  const { state } = await failed(`
workflow:
  - step: make
    tool: { ${make} }
`);
  const { kind, code, task, attempt } = state.error ?? {};
  assert.deepEqual([kind, code, task, attempt], ["configuration", "INVALID_INPUT", "make", 1]);
  assert.match(state.error?.message ?? "", /"all" \(\$\.items\) makes the selected fields .* larger than 65,536 bytes/);
  const rules = "[{ when: \"outcome.error.kind == 'configuration'\", then: { do: continue } }]";
  await completed(`
workflow:
  - step: make
    tool: { ${make}, spec: { policy: { rules: ${rules} } } }
`);
});

test("a path that may find several gives a list, also of one or none", async (t) => {
  const { completed } = setup(t, { tools: { make: [ok({ rows: [{ id: 7 }], none: [] })] } });
  const ran = await completed(`
workflow:
  - step: make
    tool:
      kind: http
      output_select: [{ path: "$.rows[*].id", as: ids }, { path: "$.none[*]", as: none }, { path: "$.rows[0].id", as: id }]
    next: [{ step: end }]
  - { step: end, tool: { kind: noop, result: { ids: "{{ make.ids }}", none: "{{ make.none }}", id: "{{ make.id }}" } } }
`);
  assert.deepEqual(await ran.result(), { ids: [7], none: [], id: 7 });
});

for (const [where, output] of [
  ["inline", ""],
  ["stored by reference", BY_REFERENCE],
] as const) {
  test(`a result that came with its text, ${where}, is read as any other, and its text does not stay with the execution`, async (t) => {
    const text = JSON.stringify(ANSWER);
    const data = JSON.parse(text) as Json;
    noteJsonText(data, text);
    assert.equal(knownJsonText(data), text);
    const expressions = { name: "fetch.name", all: "fetch" };
    assert.deepEqual(await readBack(t, data, expressions, output), await readBack(t, ANSWER, expressions, output));
    assert.equal(knownJsonText(data), undefined);
  });
}
