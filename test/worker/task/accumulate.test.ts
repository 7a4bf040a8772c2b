import assert from "node:assert/strict";
import { test } from "node:test";
import { isJsonObject, type Json, type JsonObject } from "../../../src/schema/words/json.ts";
import type { Manifest } from "../../../src/schema/words/manifest.ts";
import { type Bench, type Ran, setup } from "../support/bench.ts";
import { bad, ok } from "../support/scripted-tools.ts";

// `spec.result.accumulate`: several runs of a task as one result (interface specification, Manifest).

/** Pages of two items each; `next` is null on the last. */
function pages(count: number, text = "") {
  return Array.from({ length: count }, (_, index) => {
    const next = index + 1 < count ? `c${index + 1}` : null;
    return ok({ status_code: 200, data: { items: [2 * index, 2 * index + 1], text: `${text}`, next } });
  });
}

/** A pipeline that reads page after page, with these words about its result. */
function paging(result: string, after = "{ kind: noop, result: { count: '{{ page | length }}' } }"): string {
  return `
workflow:
  - step: fetch
    tool:
      - page:
          kind: http
          cursor: "{{ page.next }}"
          spec:
            result: { select: [{ path: $.data.next, as: next }], ${result} }
      - more:
          kind: noop
          spec: { policy: { rules: [{ when: "{{ page.next is not none }}", then: { do: jump, to: page } }] } }
      - after: ${after}
    next: { arcs: [{ step: end }] }
  - step: end
    tool: { kind: noop, result: { all: "{{ fetch.page }}", next: "{{ fetch.page.next }}", ref: "{{ fetch.page._ref }}" } }
`;
}

async function end(ran: Ran): Promise<JsonObject> {
  const value = await ran.step("end");
  assert.ok(isJsonObject(value));
  return value;
}

async function payload(bench: Bench, ref: Json | undefined): Promise<Json> {
  assert.ok(isJsonObject(ref ?? null), JSON.stringify(ref));
  return await bench.runtime.results.load(String((ref as JsonObject)["ref"]));
}

test("small pages are one inline result, which later tasks and steps read as a whole", async (t) => {
  const bench = setup(t, { tools: { page: pages(3) } });
  const ran = await bench.completed(paging("accumulate: { strategy: concat, merge_path: $.data.items }"));
  assert.deepEqual(await end(ran), { all: [0, 1, 2, 3, 4, 5], next: null, ref: null });
  assert.deepEqual(
    bench.calls.map(({ config }) => config["cursor"]),
    [null, "c1", "c2"],
    "The selected fields are those of the last page",
  );
  assert.deepEqual(ran.state.steps["fetch"]?.result?.tasks?.at(-1)?.[1].value, { count: 6 });
});

test("pages beyond the inline limit are a manifest, stored under a reference of its own", async (t) => {
  const bench = setup(t, { tools: { page: pages(5, "x".repeat(300)) } });
  const ran = await bench.completed(
    paging("inline_max_bytes: 1000, accumulate: { strategy: concat, merge_path: $.data.items }"),
  );
  const { all, ref, next } = await end(ran);
  assert.deepEqual([all, next], [[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], null]);
  assert.match(
    String((ref as JsonObject)["ref"]),
    /^noetl:\/\/execution\/\d+\/step\/fetch\/task\/page\/run\/\d+-0\/manifest$/,
  );
  assert.equal((ref as JsonObject)["kind"], "result_ref");
  const manifest = (await payload(bench, ref)) as Manifest;
  const { parts, ...rest } = manifest;
  const bytes = parts.map((part) => part.bytes ?? 0);
  assert.deepEqual(rest, {
    kind: "manifest",
    strategy: "concat",
    merge_path: "$.data.items",
    total_parts: 5,
    total_bytes: bytes.reduce((sum, size) => sum + size),
  });
  const stored = await Promise.all(parts.map((part) => bench.runtime.results.load(part.ref)));
  assert.deepEqual(
    stored,
    bench.calls.map((_, index) => pages(5, "x".repeat(300))[index]?.data),
  );
});

for (const [strategy, path, value] of [
  [
    "append",
    "",
    [
      { n: 1, seen: { a: 1 } },
      { n: 2, seen: { b: 1 } },
    ],
  ],
  ["append", "$.n", [1, 2]],
  ["merge", "", { n: 2, seen: { a: 1, b: 1 } }],
  ["merge", "$.seen", { a: 1, b: 1 }],
  ["replace", "", { n: 2, seen: { b: 1 } }],
] as const) {
  for (const limit of [65_536, 0]) {
    test(`${strategy} ${path} of runs that are ${limit === 0 ? "stored" : "inline"}`, async (t) => {
      const answers = [ok({ n: 1, seen: { a: 1 } }), ok({ n: 2, seen: { b: 1 } })];
      const bench = setup(t, { tools: { make: answers } });
      const mergePath = path === "" ? "" : `, merge_path: ${path}`;
      const ran = await bench.completed(`
workflow:
  - step: all
    tool:
      - make: { kind: http, spec: { result: { inline_max_bytes: ${limit}, accumulate: { strategy: ${strategy}${mergePath} } } } }
      - again:
          kind: noop
          spec: { policy: { rules: [{ when: "{{ make.n < 2 }}", then: { do: jump, to: make } }] } }
    next: [{ step: end }]
  - { step: end, tool: { kind: noop, result: { all: "{{ all.make }}", n: "{{ all.make.n }}" } } }
`);
      assert.deepEqual(await end(ran), { all: value, n: 2 });
    });
  }
}

test("a successful run that is retried is a part, a failed one is not", async (t) => {
  const answers = [ok({ n: 1, done: false }), bad("timeout", "T"), ok({ n: 2, done: false }), ok({ n: 3, done: true })];
  for (const limit of [65_536, 0]) {
    const bench = setup(t, { tools: { poll: answers } });
    const ran = await bench.completed(`
workflow:
  - step: wait
    tool:
      kind: http
      name: poll
      spec:
        result: { inline_max_bytes: ${limit}, accumulate: { strategy: append, merge_path: $.n } }
        policy: { rules: [{ when: "{{ output.status == 'error' or not output.data.done }}", then: { do: retry, attempts: 9 } }] }
`);
    assert.deepEqual(await ran.result(), [1, 2, 3]);
  }
});

test("what was gathered is left when a page fails the step, and arcs read the error beside it", async (t) => {
  const bench = setup(t, { tools: { page: [...pages(3).slice(0, 2), bad("server_error", "HTTP_500")] } });
  const ran = await bench.completed(`
workflow:
  - step: fetch
    tool:
      - page:
          kind: http
          spec: { result: { accumulate: { strategy: concat, merge_path: $.data.items } } }
      - more: { kind: noop, spec: { policy: { rules: [{ then: { do: jump, to: page } }] } } }
    next:
      arcs: [{ step: end, when: "{{ event.name == 'step.failed' }}", args: { code: "{{ output.error.code }}" } }]
  - { step: end, tool: { kind: noop, result: { got: "{{ fetch.page }}", code: "{{ input.code }}" } } }
`);
  assert.deepEqual(await end(ran), { got: [0, 1, 2, 3], code: "HTTP_500" });
});

test("a task that never went well holds its error", async (t) => {
  const bench = setup(t, { tools: { page: [bad("server_error", "HTTP_500")] } });
  const ran = await bench.completed(`
workflow:
  - step: fetch
    tool:
      - page:
          kind: http
          spec: { result: { accumulate: append }, policy: { rules: [{ then: { do: continue } }] } }
      - after: { kind: noop, result: { code: "{{ page.error.code }}" } }
`);
  assert.deepEqual((await ran.result()) as JsonObject, {
    status: "error",
    error: ran.of("call.error")[0]?.error,
    code: "HTTP_500",
  });
});

test("the rules and the set of the task see the run, later tasks all runs", async (t) => {
  const bench = setup(t, { tools: { page: pages(2) } });
  const ran = await bench.completed(`
workflow:
  - step: fetch
    tool:
      - page:
          kind: http
          set: { ctx.last: "{{ page.data.items }}", ctx.own: "{{ output.data.items }}" }
          spec: { result: { accumulate: { strategy: concat, merge_path: $.data.items } } }
      - more:
          kind: noop
          set: { ctx.all: "{{ page }}", ctx.previous: "{{ _prev.data.items }}" }
          spec: { policy: { rules: [{ when: "{{ page | length < 4 }}", then: { do: jump, to: previous } }] } }
`);
  assert.deepEqual(ran.state.vars, { last: [2, 3], own: [2, 3], all: [0, 1, 2, 3], previous: [2, 3] });
});

test("each run of such a task says which page it was, and of which run of the step", async (t) => {
  const bench = setup(t, { tools: { page: pages(3) } });
  const ran = await bench.completed(paging("accumulate: { strategy: concat, merge_path: $.data.items }"));
  const done = ran.of("task.done").filter(({ task }) => task === "page");
  assert.deepEqual(
    done.map(({ page }) => page),
    [1, 2, 3],
  );
  assert.equal(new Set(done.map(({ task_run_id }) => task_run_id)).size, 3);
  const issued = ran.of("command.issued").find(({ step }) => step === "fetch");
  assert.ok(done.every(({ step_run_id }) => step_run_id === issued?.step_run_id));
  assert.ok(ran.of("task.done").every(({ task, page }) => task === "page" || page === undefined));
});

test("a lost part is a result that is not available, and a rule may make it again", async (t) => {
  const bench = setup(t, { tools: { page: pages(2, "x".repeat(900)) } });
  let lost = 0;
  bench.lose((ref) => {
    if (!/\/task\/page\/run\/\d+-0-\d+$/.test(ref)) return false;
    lost += 1;
    return lost === 1;
  });
  const text = paging(
    "inline_max_bytes: 1000, accumulate: { strategy: concat, merge_path: $.data.items }",
    "{ kind: noop, result: { count: '{{ page | length }}' }, spec: { policy: { rules: [{ when: \"{{ outcome.error.code == 'REFERENCE_NOT_AVAILABLE' }}\", then: { do: retry, attempts: 2 } }] } } }",
  );
  assert.deepEqual((await end(await bench.completed(text)))["all"], [0, 1, 2, 3]);
  assert.ok(lost > 1);
});

test("a sensitive task shows of its runs neither fields nor sizes", async (t) => {
  const bench = setup(t, { tools: { page: pages(2, "canary-77aa") } });
  const ran = await bench.completed(
    paging("sensitive: true, accumulate: { strategy: concat, merge_path: $.data.items }", "{ kind: noop }").replaceAll(
      "page.next is not none",
      "page | length < 4",
    ),
  );
  const [, , bytes] = ran.of("command.completed").flatMap(({ results = [] }) => results)[0] ?? [];
  assert.ok(bytes !== undefined);
  const stored = ran.of("command.completed").flatMap(({ results = [] }) => results)[0]?.[1].ref;
  assert.deepEqual([stored?.extracted, stored?.preview.bytes], [{}, 0]);
  assert.doesNotMatch(JSON.stringify(ran.of("task.done").filter(({ task }) => task === "page")), /canary-77aa/);
});

test("a loop's iterations are joined, whether its step says so or its only task", async (t) => {
  for (const [step, task] of [
    ["output: { accumulate: { strategy: concat, merge_path: $.items } }", ""],
    ["", ", spec: { result: { accumulate: { strategy: concat, merge_path: $.items } } }"],
  ]) {
    const bench = setup(t);
    const ran = await bench.completed(`
workflow:
  - step: each
    loop: { in: [1, 2, 3], iterator: n }
    ${step}
    tool: { kind: noop, result: { items: ["{{ n }}", "{{ n * 10 }}"] } ${task} }
    next: [{ step: end }]
  - step: end
    tool:
      kind: noop
      result: { all: "{{ each.results }}", data: "{{ each.data }}", second: "{{ each.results[1] }}", stats: "{{ each.stats.success }}" }
`);
    const all = [1, 10, 2, 20, 3, 30];
    assert.deepEqual(await end(ran), { all, data: all, second: 10, stats: 3 });
    assert.ok(ran.of("loop.iteration.completed").every(({ results }) => results === undefined));
  }
});

test("pages within iterations, and the iterations, are one list", async (t) => {
  const script = (call: { input: JsonObject; taskRunId: string }) => {
    const serial = Number(call.taskRunId.split("-").at(-1));
    return ok({ items: [`${String(call.input["n"])}.${serial}`], more: serial < Number(call.input["n"]) });
  };
  for (const limit of [65_536, 0]) {
    const bench = setup(t, { tools: { page: script } });
    const ran = await bench.completed(`
workflow:
  - step: each
    loop: { in: [0, 1, 2], iterator: n, spec: { mode: parallel } }
    tool:
      kind: http
      name: page
      input: { n: "{{ n }}" }
      spec:
        result: { inline_max_bytes: ${limit}, accumulate: { strategy: concat, merge_path: $.items } }
        policy: { rules: [{ when: "{{ output.data.more }}", then: { do: jump, to: page } }] }
`);
    const { results } = (await ran.result()) as { results: Json };
    assert.deepEqual(results, ["0.0", "1.0", "1.1", "2.0", "2.1", "2.2"]);
  }
});

test("an iteration that failed is no part of joined results", async (t) => {
  const bench = setup(t, { tools: { get: [ok({ n: [1] }), bad("timeout", "T"), ok({ n: [3] })] } });
  const ran = await bench.failed(`
workflow:
  - step: each
    loop: { in: 3, spec: { mode: sequential, on_error: continue } }
    output: { accumulate: { strategy: concat, merge_path: $.n } }
    tool: { kind: http, name: get }
`);
  assert.deepEqual(((await ran.step("each")) as JsonObject)["results"], [1, 3]);
});
