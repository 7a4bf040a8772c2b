import assert from "node:assert/strict";
import { test } from "node:test";
import { setup } from "../worker/support/bench.ts";

// Waits in one process, in virtual time: no worker and no timer of the machine is used up, however long they are.

const DAY_MS = 86_400_000;

function wait(task: string, more = ""): string {
  return `workflow: [{ step: a, tool: { kind: wait, ${task} }${more} }]`;
}

for (const [task, ms] of [
  ["for: 0", 0],
  ["for: 250ms", 250],
  ["for: 1h30m", 5_400_000],
  // Longer than any timer of the runtime.
  ["for: 100d", 100 * DAY_MS],
] as const) {
  test(`a wait '${task}' lasts ${ms} ms`, async (t) => {
    const bench = setup(t);
    const began = bench.clock.now();
    const { state } = await bench.run(wait(task));
    assert.equal(state.status, "COMPLETED");
    assert.equal((state.endedAt ?? 0) - began, ms);
    assert.deepEqual(state.steps["a"]?.result?.value, {
      outcome: "elapsed",
      at: new Date(began + ms).toISOString(),
    });
    assert.equal(state.steps["a"]?.attempts, 1);
  });
}

test("a moment that is past is not waited for", async (t) => {
  const { state } = await setup(t).run(wait('until: "2001-01-01T00:00:00Z"'));
  assert.equal(state.status, "COMPLETED");
  assert.equal(state.startedAt, state.endedAt);
});

test("of more waits than there is room for commands all wait at once", async (t) => {
  const bench = setup(t, { capacity: 1 });
  const began = bench.clock.now();
  const loop = ", loop: { in: 50, spec: { mode: parallel } }";
  const { state } = await bench.run(wait("for: 10s", loop));
  assert.equal((state.endedAt ?? 0) - began, 10_000);
  assert.equal(state.steps["a"]?.loop?.done, 50);
});

test("a sequential loop waits for one iteration after the other", async (t) => {
  const bench = setup(t);
  const began = bench.clock.now();
  const { state } = await bench.run(wait('for: "{{ item }}"', ", loop: { in: [1, 2, 3] }"));
  assert.equal((state.endedAt ?? 0) - began, 6_000);
});

test("a time-out of the wait has its own code, and a retry waits the whole time again", async (t) => {
  const bench = setup(t);
  const rules = `spec: { policy: { rules: [{ when: "{{ output.error.code == 'WAIT_TIMEOUT' }}", then: { do: retry, attempts: 3, delay: 5 } }] } }`;
  const began = bench.clock.now();
  const { state } = await bench.run(wait(`for: 1h, timeout: 60, ${rules}`));
  assert.deepEqual([state.status, state.error?.kind, state.error?.code], ["FAILED", "timeout", "WAIT_TIMEOUT"]);
  assert.equal((state.endedAt ?? 0) - began, 3 * 60_000 + 2 * 5_000);
});

test("the time of the step ends a wait with the code of that", async (t) => {
  const bench = setup(t);
  const began = bench.clock.now();
  const { state } = await bench.run(wait("for: 1h, timeout: 60", ", spec: { timeout: 30 }"));
  assert.deepEqual([state.status, state.error?.code], ["FAILED", "TIMEOUT"]);
  assert.equal((state.endedAt ?? 0) - began, 30_000);
});

test("the time of the execution ends a wait", async (t) => {
  const bench = setup(t);
  const { state } = await bench.run(`executor: { spec: { timeout: 20 } }\n${wait("for: 1h")}`);
  assert.equal(state.status, "FAILED");
});

for (const [task, message] of [
  ['for: "{{ 1 / 3 }}x"', /takes `for` as 250ms/],
  ['until: "{{ 12 }}"', /takes `until` as 2026/],
  ['until: "2026-01-01T00:00", timezone: "{{ \'Mars\' }}"', /knows no time zone "Mars"/],
] as const) {
  test(`a wait '${task}' fails as configuration`, async (t) => {
    const { state } = await setup(t).run(wait(task));
    assert.deepEqual([state.status, state.error?.kind], ["FAILED", "configuration"]);
    assert.match(state.error?.message ?? "", message);
  });
}
