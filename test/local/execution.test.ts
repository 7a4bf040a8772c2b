import assert from "node:assert/strict";
import { test } from "node:test";
import { FlowError } from "../../src/schema/words/errors.ts";
import { setup } from "../worker/support/bench.ts";
import { ok } from "../worker/support/scripted-tools.ts";

// One execution in this process: what it is started with, how much it does at a time, and faults that must not hang it.

test("no more commands run at a time than the capacity", async (t) => {
  let now = 0;
  let most = 0;
  const bench = setup(t, {
    capacity: 3,
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
    loop: { in: 20, spec: { mode: parallel } }
    tool: { kind: http, name: work }
`);
  assert.equal(most, 3);
});

test("a run stops at its target, and one whose target is no step is refused", async (t) => {
  const text = "workflow: [{ step: a, next: [{ step: b }] }, { step: b, next: [{ step: c }] }, { step: c }]";
  const bench = setup(t);
  const { state } = await bench.run(text, { target: "b" });
  assert.deepEqual(
    [state.status, state.steps["b"]?.status, state.steps["c"]?.status],
    ["COMPLETED", "COMPLETED", "SKIPPED"],
  );
  await assert.rejects(bench.run(text, { target: "x" }), /There is no step 'x' to stop at; the steps are: a, b, c/);
});

test("a workload that cannot be rendered refuses the run", async (t) => {
  const work = setup(t).run('workload: { a: "{{ 1 < {} }}" }\nworkflow: [{ step: a }]');
  await assert.rejects(work, (error) => error instanceof FlowError && error.code === "TEMPLATE_ERROR");
});

test("an event whose consequences cannot be stored ends the run with the cause instead of hanging it", async (t) => {
  for (const exec of ["local", "distributed"]) {
    const bench = setup(t);
    bench.runtime.results.save = () => Promise.reject(new FlowError("INTERNAL", "no space left on the device"));
    const work = bench.run(`
workflow:
  - step: each
    loop: { in: 3000, spec: { policy: { exec: ${exec} } } }
    tool: { kind: noop, result: { text: "some text that fills the results of this loop" } }
`);
    await assert.rejects(work, /no space left on the device/);
  }
});

test("runs of one runtime are apart from each other", async (t) => {
  const bench = setup(t);
  const text = 'workflow: [{ step: a, set: { x: "{{ n }}" } }]';
  const signal = new AbortController().signal;
  const playbook = bench.compile(text);
  const runs = [1, 2, 3].map((n) => bench.runtime.run(playbook, { input: { n } }, signal));
  const states = await bench.clock.runUntil(Promise.all(runs));
  assert.deepEqual(
    states.map(({ vars }) => vars["x"]),
    [1, 2, 3],
  );
  assert.equal(new Set(states.map(({ executionId }) => executionId)).size, 3);
});
