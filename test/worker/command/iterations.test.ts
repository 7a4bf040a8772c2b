import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import { type Bench, setup } from "../support/bench.ts";
import { bad, type Call, longText, ok, untilStopped } from "../support/scripted-tools.ts";

// Language document, section 6: loops as a worker runs them, all iterations in one command or each in one of its own.

const BOTH = ["local", "distributed"] as const;

function looping(spec: string, tool: string, more = ""): string {
  return `
workflow:
  - step: each
    loop: { in: [a, b, c, d], iterator: letter, spec: { ${spec} } }
    tool: ${tool}
    ${more}
`;
}

/** Answers the letter after a time that makes later iterations overtake earlier ones. */
function slowFirst(bench: () => Bench) {
  const times: Record<string, number> = { a: 400, b: 100, c: 300, d: 200 };
  return async (call: Call) => {
    const letter = String(call.input["letter"] ?? call.config["url"]);
    await bench().clock.sleep(times[letter] ?? 0);
    return letter === call.config["fail"] ? bad("client_error", `BAD_${letter}`) : ok({ letter });
  };
}

for (const mode of ["sequential", "parallel", "parallel, max_in_flight: 2"]) {
  for (const fail of ["", "b"]) {
    test(`a ${mode} loop ${fail === "" ? "" : "with a failure "}gives the same result run local and distributed`, async (t) => {
      const results: unknown[] = [];
      for (const exec of BOTH) {
        const bench: Bench = setup(t, { tools: { work: (call) => slowFirst(() => bench)(call) } });
        const ran = await bench.run(
          looping(
            `mode: ${mode}, policy: { exec: ${exec} }`,
            `{ kind: http, name: work, url: "{{ letter }}", fail: "${fail}", set: { ctx.last: "{{ letter }}" } }`,
            `next: { arcs: [{ step: end, when: "event.name == 'step.failed'" }, { step: end, when: "event.name == 'loop.done'" }] }
  - step: end`,
          ),
        );
        const { status, vars, steps } = ran.state;
        results.push({ result: await ran.step("each"), vars, status, loop: steps["each"]?.loop });
      }
      assert.deepEqual(results[0], results[1]);
    });
  }
}

for (const exec of BOTH) {
  test(`results are in collection order although iterations end in another, run ${exec}`, async (t) => {
    const bench: Bench = setup(t, { tools: { work: (call) => slowFirst(() => bench)(call) } });
    const ran = await bench.completed(
      looping(
        `mode: parallel, policy: { exec: ${exec} }`,
        `{ kind: http, name: work, url: "{{ letter }}", set: { ctx.last: "{{ letter }}" } }`,
      ),
    );
    const result = (await ran.step("each")) as JsonObject;
    assert.deepEqual(result, {
      results: ["a", "b", "c", "d"].map((letter) => ({ letter })),
      stats: { total: 4, success: 4, failed: 0 },
      iterations: 4,
      status: "completed",
    });
    const order = ran.of("loop.iteration.completed").map((event) => [event.iteration, event.set]);
    assert.deepEqual(order, [
      [1, [["last", "b"]]],
      [3, [["last", "d"]]],
      [2, [["last", "c"]]],
      [0, [["last", "a"]]],
    ]);
    assert.deepEqual(ran.state.vars, { last: "a" }, "Writes are applied in the order of completion");
  });

  test(`a sequential loop starts no further iteration after a failure, a parallel one runs all, run ${exec}`, async (t) => {
    const work = (call: Call) => (call.config["url"] === "b" ? bad("client_error", "BAD") : ok({}));
    for (const [mode, count, failures] of [
      ["sequential", 2, 1],
      ["parallel", 4, 1],
      ["sequential, on_error: continue", 4, 1],
    ] as const) {
      const bench = setup(t, { tools: { work } });
      const { state, step } = await bench.failed(
        looping(`mode: ${mode}, policy: { exec: ${exec} }`, '{ kind: http, name: work, url: "{{ letter }}" }'),
      );
      assert.equal(bench.calls.length, count, mode);
      const { stats, results } = (await step("each")) as { stats: JsonObject; results: JsonObject[] };
      assert.deepEqual(stats, { total: 4, success: count - failures, failed: failures });
      assert.equal((results[1]?.["error"] as JsonObject | undefined)?.["code"], "BAD");
      const hint = mode.endsWith("continue")
        ? " (on_error: continue runs them all; on_error: {tolerate: 100%} lets the step complete)"
        : "";
      assert.ok(
        state.error?.message.includes(`1 of 4 iterations of step 'each' failed${hint}; the first: it failed with BAD`),
        state.error?.message,
      );
    }
  });

  test(`each iteration has its own names, and those of a sequential loop see what the one before wrote, run ${exec}`, async (t) => {
    const { completed, calls } = setup(t);
    const shown = {
      bare: "{{ letter }}",
      named: "{{ iter.letter }}",
      index: "{{ [iter.index, iter._index, loop_index] }}",
      edge: "{{ [iter._first, iter._last, iter._total] }}",
      parent: "{{ iter.parent }}",
      before: "{{ seen | default('') }}",
      own: "{{ iter.mark is defined }}",
    };
    await completed(
      looping(
        `policy: { exec: ${exec} }`,
        `{ kind: http, shown: ${JSON.stringify(shown)}, set: { ctx.seen: "{{ (seen | default('')) ~ letter }}", iter.mark: 1 } }`,
      ),
    );
    const seen = calls.map((call) => call.config["shown"]);
    assert.deepEqual(seen, [
      { bare: "a", named: "a", index: [0, 0, 0], edge: [true, false, 4], parent: null, before: "", own: false },
      { bare: "b", named: "b", index: [1, 1, 1], edge: [false, false, 4], parent: null, before: "a", own: false },
      { bare: "c", named: "c", index: [2, 2, 2], edge: [false, false, 4], parent: null, before: "ab", own: false },
      { bare: "d", named: "d", index: [3, 3, 3], edge: [false, true, 4], parent: null, before: "abc", own: false },
    ]);
  });

  test(`what an iteration writes to iter is seen by its later tasks, and by no other iteration, run ${exec}`, async (t) => {
    const { completed, calls } = setup(t);
    const ran = await completed(
      looping(
        `policy: { exec: ${exec} }`,
        `
      - first: { kind: noop, set: { iter.n: "{{ iter.index * 10 }}" }, spec: { policy: { rules: [{ else: { then: { do: continue, set_iter: { m: "{{ letter }}" } } } }] } } }
      - second: { kind: http, url: "{{ iter.n }} {{ iter.m }}" }`,
      ),
    );
    assert.deepEqual(
      calls.map((call) => call.config["url"]),
      ["0 a", "10 b", "20 c", "30 d"],
    );
    assert.deepEqual(ran.state.vars, {});
  });

  test(`the rules of a task hold in each iteration, run ${exec}`, async (t) => {
    let runs = 0;
    const { completed } = setup(t, { tools: { work: () => (++runs % 2 === 1 ? bad("timeout", "T") : ok({ runs })) } });
    const ran = await completed(
      looping(
        `policy: { exec: ${exec} }`,
        "{ kind: http, name: work, spec: { policy: { rules: [{ when: \"output.status == 'error'\", then: { do: retry, attempts: 2 } }] } } }",
      ),
    );
    assert.equal(runs, 8);
    assert.deepEqual(((await ran.step("each")) as JsonObject)["stats"], { total: 4, success: 4, failed: 0 });
  });

  test(`a parallel loop runs no more at a time than max_in_flight, run ${exec}`, async (t) => {
    let now = 0;
    let most = 0;
    const bench: Bench = setup(t, {
      tools: {
        work: async () => {
          now += 1;
          most = Math.max(most, now);
          await bench.clock.sleep(10);
          now -= 1;
          return ok({});
        },
      },
    });
    await bench.completed(`
workflow:
  - step: each
    loop: { in: 20, spec: { mode: parallel, max_in_flight: 3, policy: { exec: ${exec} } } }
    tool: { kind: http, name: work }
`);
    assert.equal(most, 3);
  });

  test(`1,000 results of 1 KB are kept in parts and read back in order, run ${exec}`, async (t) => {
    const { completed } = setup(t, {
      tools: { work: (call) => ok({ n: call.config["n"] ?? null, text: longText(1_000) }) },
    });
    const ran = await completed(`
workflow:
  - step: each
    loop: { in: 1000, spec: { mode: parallel, max_in_flight: 7, policy: { exec: ${exec} } } }
    tool: { kind: http, name: work, n: "{{ iter.index }}" }
    next: [{ step: read }]
  - step: read
    tool:
      kind: noop
      result:
        one: "{{ each.results[777].n }}"
        last: "{{ each.results[-1].n }}"
        data: "{{ each.data[3].n }}"
        length: "{{ each.results | length }}"
        stats: "{{ each.stats.success }}"
        outside: "{{ each.results[1000] is defined }}"
        text: "{{ each.results[500].text | length }}"
`);
    assert.deepEqual(await ran.result(), {
      one: 777,
      last: 999,
      data: 3,
      length: 1_000,
      stats: 1_000,
      outside: false,
      text: 1_000,
    });
    const parts = ran.of("loop.results.stored").length;
    assert.ok(parts >= 14 && parts <= 17, `About 1 MB in parts of 64 KiB: ${parts}`);
    const { results } = (await ran.step("each")) as { results: { n: number }[] };
    assert.deepEqual(
      results.map(({ n }) => n),
      Array.from({ length: 1_000 }, (_, index) => index),
    );
  });
}

test("a cursor's rows are iterations, claim after claim until none is left", async (t) => {
  const claims = [ok({ rows: [{ id: 1 }, { id: 2 }] }), ok({ rows: [{ id: 3 }] }), ok({ rows: [] })];
  const { completed, calls } = setup(t, {
    tools: { claim: claims },
    credentials: { db: { type: "sqldb", data: { host: "h" } } },
  });
  const ran = await completed(`
workload: { table: jobs }
workflow:
  - step: each
    loop:
      cursor: { kind: postgres, auth: db, claim: "update {{ table }} limit {{ __frame_max_rows }}" }
      iterator: row
      spec: { frame: { max_rows: 2 } }
    tool: { kind: http, name: work, url: "{{ row.id }} {{ iter._last }}" }
`);
  const claimed = calls.filter(({ task }) => task === "claim");
  assert.deepEqual(
    claimed.map((call) => [call.config["command"], call.auth["db"]?.data]),
    Array(3).fill(["update jobs limit 2", { host: "h" }]),
  );
  assert.deepEqual(
    calls.flatMap((call) => (call.task === "work" ? [call.config["url"]] : [])),
    ["1 null", "2 null", "3 null"],
  );
  assert.deepEqual(((await ran.step("each")) as JsonObject)["stats"], { total: 3, success: 3, failed: 0 });
});

test("a frame that is processed as a whole is one iteration over the list of its rows", async (t) => {
  const { completed, calls } = setup(t, { tools: { claim: [ok({ rows: [{ id: 1 }, { id: 2 }] }), ok({ rows: [] })] } });
  await completed(`
workflow:
  - step: each
    loop: { cursor: { kind: postgres, claim: x }, iterator: rows, spec: { frame: { max_rows: 2, process: frame } } }
    tool: { kind: http, name: work, ids: "{{ rows }}" }
`);
  assert.deepEqual(calls[1]?.config["ids"], [{ id: 1 }, { id: 2 }]);
});

test("rows that are processed as a whole come in lists of at most max_bytes; a larger row stands alone", async (t) => {
  const rows = [{ id: 1 }, { id: 2 }, { id: 3, text: "x".repeat(100) }, { id: 4 }];
  const { completed, calls } = setup(t, { tools: { claim: [ok({ rows }), ok({ rows: [] })] } });
  await completed(`
workflow:
  - step: each
    loop:
      cursor: { kind: postgres, claim: x }
      iterator: rows
      spec: { frame: { max_rows: 4, process: frame, max_bytes: "{{ 10 * 3 }}", row_concurrency: 2 } }
    tool: { kind: http, name: work, ids: "{{ rows | map(attribute='id') }}" }
`);
  const ids = calls.flatMap((call) => (call.task === "work" ? [call.config["ids"]] : []));
  assert.deepEqual(ids.sort(), [[1, 2], [3], [4]]);
});

test("a claim that gives more than one event may hold fails the step and says what became of the rows", async (t) => {
  const rows = [{ text: "x".repeat(600_000) }, { text: "x".repeat(600_000) }];
  const { failed } = setup(t, { tools: { claim: [ok({ rows })] } });
  const { state } = await failed(`
workflow:
  - step: each
    loop: { cursor: { kind: postgres, claim: x }, iterator: row, spec: { frame: { max_rows: 2 } } }
    tool: { kind: noop }
`);
  assert.equal(state.error?.code, "RESULT_TOO_LARGE");
  assert.match(state.error?.message ?? "", /gave 2 rows.*were claimed, and nothing worked on them.*frame\.max_rows/);
});

test("a claim's text may name the claim and the lease", async (t) => {
  const { completed, calls } = setup(t, { tools: { claim: [ok({ rows: [] })] } });
  await completed(`
workflow:
  - step: each
    loop:
      cursor: { kind: postgres, claim: "{{ __claim_id }} {{ __frame_lease_seconds }} {{ __frame_max_rows }}" }
      iterator: row
      spec: { frame: { lease_seconds: "{{ 6 * 10 }}" } }
    tool: { kind: noop }
`);
  assert.match(String(calls[0]?.config["command"]), /^\d+ 60 1$/);
  assert.ok(calls[0]?.taskRunId.startsWith(`${String(calls[0].config["command"]).split(" ")[0]}-`));
});

for (const exec of BOTH) {
  test(`a frame that takes longer than max_seconds is stopped, and its rows have failed, run ${exec}`, async (t) => {
    const claim = [ok({ rows: [1, 2, 3] }), ok({ rows: [] })];
    const { failed } = setup(t, { tools: { claim, work: (call) => untilStopped(call) } });
    const { state } = await failed(`
workflow:
  - step: each
    loop:
      cursor: { kind: postgres, claim: x }
      iterator: row
      spec: { on_error: continue, policy: { exec: ${exec} }, frame: { max_rows: 3, max_seconds: 5 } }
    tool: { kind: http, name: work }
`);
    assert.deepEqual([state.error?.kind, state.error?.code], ["timeout", "TIMEOUT"]);
    assert.match(state.error?.message ?? "", /3 of 3 iterations.*did not end within its max_seconds/);
  });
}

test("a claim reads the step's own inputs, over those of the arc", async (t) => {
  const { completed, calls } = setup(t, { tools: { claim: [ok({ rows: [] })] } });
  await completed(`
workflow:
  - step: start
    next: { arcs: [{ step: work, set: { state: fresh, top: 9 } }] }
  - step: work
    input: { top: 2, seen: "{{ top }}" }
    loop: { cursor: { kind: postgres, claim: "{{ state }} {{ top }} {{ seen }} {{ input.top }}" }, iterator: row }
    tool: { kind: noop }
`);
  assert.equal(calls[0]?.config["command"], "fresh 2 9 2");
});

test("a claim that fails fails the step and says so", async (t) => {
  const { failed } = setup(t, { tools: { claim: [bad("db_error", "42P01")] } });
  const { state } = await failed(`
workflow:
  - step: each
    loop: { cursor: { kind: postgres, claim: x }, iterator: row }
    tool: { kind: http, name: work }
`);
  assert.deepEqual([state.error?.kind, state.error?.code], ["db_error", "42P01"]);
  assert.equal(state.error?.message, "The claim of step 'each' failed: it failed with 42P01");
});

for (const exec of BOTH) {
  test(`20,000 iterations keep the memory flat, run ${exec}`, () => {
    const script = fileURLToPath(new URL("../support/heap-growth.js", import.meta.url));
    const growth = Number(execFileSync(process.execPath, ["--expose-gc", script, exec], { encoding: "utf8" }));
    // Between iteration 5,000 and 20,000. Their results, 15 bytes each, go to the store; keeping one event each would be 9 MB.
    assert.ok(growth < 5_000_000, `The heap grew by ${growth} bytes over 15,000 iterations`);
  });
}
