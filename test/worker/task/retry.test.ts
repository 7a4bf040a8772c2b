import assert from "node:assert/strict";
import { test } from "node:test";
import { setup } from "../support/bench.ts";
import { bad, http, ok } from "../support/scripted-tools.ts";

// Language document, sections 5.5 and 12: how often a task is run again, and when. Time is the bench's clock.

const BUSY = bad("connection", "REFUSED");

/** Runs a task that never succeeds, and tells how many milliseconds passed between its runs. */
async function delaysOf(
  t: Parameters<typeof setup>[0],
  then: string,
  options: { random?: () => number; answers?: (typeof BUSY)[]; takesMs?: number } = {},
): Promise<{ delays: number[]; runs: number; code: string | undefined }> {
  const times: number[] = [];
  const ends: number[] = [];
  const { random, answers = [BUSY], takesMs = 0 } = options;
  const bench = setup(t, {
    ...(random !== undefined && { random }),
    tools: {
      work: async () => {
        times.push(bench.clock.now());
        if (takesMs > 0) await bench.clock.sleep(takesMs);
        ends.push(bench.clock.now());
        return answers[Math.min(times.length, answers.length) - 1] ?? BUSY;
      },
    },
  });
  const ran = await bench.run(`
workflow:
  - step: work
    tool: { kind: http, spec: { policy: { rules: [{ when: "output.status == 'error'", then: { do: retry, ${then} } }] } } }
`);
  const delays = times.slice(1).map((time, index) => time - (ends[index] ?? 0));
  return { delays, runs: times.length, code: ran.state.error?.code };
}

test("three runs without a delay are the default", async (t) => {
  assert.deepEqual(await delaysOf(t, ""), { delays: [0, 0], runs: 3, code: "REFUSED" });
});

for (const [then, delays] of [
  ["attempts: 4, delay: 2", [2_000, 2_000, 2_000]],
  ["attempts: 3, backoff: none, delay: 5", [0, 0]],
  ["attempts: 3, backoff: fixed", [1_000, 1_000]],
  ["attempts: 3, backoff: constant, delay: 0.5", [500, 500]],
  ["attempts: 4, backoff: linear, delay: 2", [2_000, 4_000, 6_000]],
  ["attempts: 5, backoff: exponential", [1_000, 2_000, 4_000, 8_000]],
  ["attempts: 4, backoff: exponential, delay: 200", [200_000, 300_000, 300_000]],
  ["max_attempts: 2, initial_delay: 3", [3_000]],
  ['attempts: "{{ 1 + 1 }}", delay: "{{ 0.25 * 4 }}"', [1_000]],
  ["attempts: 1, delay: 9", []],
] as const) {
  test(`retry with ${then} waits ${delays.join(", ") || "for nothing"}`, async (t) => {
    assert.deepEqual((await delaysOf(t, then)).delays, delays);
  });
}

test("a sub-playbook that lost its workers is not run again, whatever the rule says: that would multiply the limit", async (t) => {
  const lost = bad("sub_playbook", "WORKER_LOST");
  assert.deepEqual(await delaysOf(t, "attempts: 9", { answers: [lost] }), { delays: [], runs: 1, code: "WORKER_LOST" });
  const other = bad("sub_playbook", "WORKER_LOST_IT");
  assert.equal((await delaysOf(t, "attempts: 9", { answers: [other] })).runs, 9);
});

test("jitter true spreads a delay down to nothing, a share spreads that share of it", async (t) => {
  const half = () => 0.5;
  const full = await delaysOf(t, "attempts: 2, delay: 10, jitter: true", { random: half });
  assert.deepEqual(full.delays, [5_000]);
  const fifth = await delaysOf(t, "attempts: 2, delay: 10, jitter: 0.2", { random: half });
  assert.deepEqual(fifth.delays, [9_000]);
  const none = await delaysOf(t, "attempts: 2, delay: 10, jitter: false", { random: half });
  assert.deepEqual(none.delays, [10_000]);
});

test("retry-after of an answer is honoured when it is larger than the delay", async (t) => {
  const busy = http(503, null, { "retry-after": "7" });
  assert.deepEqual((await delaysOf(t, "attempts: 2, delay: 1", { answers: [busy] })).delays, [7_000]);
  assert.deepEqual((await delaysOf(t, "attempts: 2, delay: 9", { answers: [busy] })).delays, [9_000]);
  const never = http(503, null, { "retry-after": "99999" });
  assert.deepEqual(
    (await delaysOf(t, "attempts: 2", { answers: [never] })).delays,
    [300_000],
    "capped as all delays are",
  );
});

for (const [name, text, delay] of [
  ["a date is waited for", "Thu, 01 Jan 2026 00:00:09 GMT", 9_000],
  ["a date that is nearer than the delay", "Thu, 01 Jan 2026 00:00:01 GMT", 2_000],
  ["a date that is past", "Wed, 31 Dec 2025 23:00:00 GMT", 2_000],
  ["what is neither seconds nor a date", "soon", 2_000],
  ["an empty text", " ", 2_000],
  ["a negative number", "-5", 2_000],
] as const) {
  // The bench's clock begins with the year 2026.
  test(`retry-after: ${name}`, async (t) => {
    const busy = http(503, null, { "retry-after": text });
    assert.deepEqual((await delaysOf(t, "attempts: 2, delay: 2", { answers: [busy] })).delays, [delay]);
  });
}

test("max_elapsed ends the attempts although some are left", async (t) => {
  // Runs end at 1 s, 6 s and 11 s; the next ones would begin at 5 s, 10 s and 15 s.
  const ten = await delaysOf(t, "attempts: 100, delay: 4, max_elapsed: 10", { takesMs: 1_000 });
  assert.deepEqual([ten.runs, ten.delays], [3, [4_000, 4_000]]);
  const less = await delaysOf(t, "attempts: 100, delay: 4, max_elapsed: 9.9", { takesMs: 1_000 });
  assert.deepEqual(
    [less.runs, less.delays],
    [2, [4_000]],
    "No run begins that late, although the last one ended in time",
  );
});

test("when the attempts are used up the task fails with its last error", async (t) => {
  const { failed } = setup(t, { tools: { work: [BUSY, bad("server_error", "HTTP_502")] } });
  const { state } = await failed(`
workflow:
  - step: work
    tool: { kind: http, spec: { policy: { rules: [{ else: { then: { do: retry, attempts: 2 } } }] } } }
`);
  assert.deepEqual([state.error?.code, state.error?.attempt], ["HTTP_502", 2]);
});

test("when the attempts are used up the task fails even if its last outcome was ok", async (t) => {
  const { failed, calls } = setup(t, { tools: { poll: [ok({ ready: false })] } });
  const { state } = await failed(`
workflow:
  - step: poll
    tool: { kind: http, spec: { policy: { rules: [{ when: "not output.data.ready", then: { do: retry, attempts: 3, delay: 1 } }] } } }
`);
  assert.equal(calls.length, 3);
  assert.deepEqual([state.error?.kind, state.error?.attempt], ["policy", 3]);
});

test("a retry that succeeds goes on, and every run but the last is marked as not final", async (t) => {
  const { completed, calls } = setup(t, { tools: { work: [BUSY, BUSY, ok({ n: 1 })] } });
  const ran = await completed(`
workflow:
  - step: work
    tool: { kind: http, retry: { max_attempts: 5, initial_delay: 1, backoff: exponential } }
`);
  const runs = ran.of("task.done").map(({ run, final, status }) => [run, final, status]);
  assert.deepEqual(runs, [
    [1, false, "error"],
    [2, false, "error"],
    [3, true, "ok"],
  ]);
  assert.deepEqual(await ran.result(), { n: 1 });
  assert.equal(new Set(calls.map(({ taskRunId }) => taskRunId)).size, 1, "All runs share the key of the task run");
});

test("inputs and config are rendered anew for every run", async (t) => {
  const { completed, calls } = setup(t, { tools: { work: [BUSY, ok({})] } });
  await completed(`
workload: { page: 1 }
workflow:
  - step: work
    tool: { kind: http, url: "{{ page }}", spec: { policy: { rules: [{ when: "output.status == 'error'", then: { do: retry, set: { page: 2 } } }] } } }
`);
  assert.deepEqual(
    calls.map((call) => call.config["url"]),
    [1, 2],
  );
});
