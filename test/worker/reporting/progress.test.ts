import assert from "node:assert/strict";
import { test } from "node:test";
import type { ProgressNumbers } from "../../../src/schema/words/event.ts";
import { createSteppedClock } from "../../../src/testing/stepped-clock.ts";
import { openProgress } from "../../../src/worker/reporting/progress.ts";
import { setup } from "../support/bench.ts";
import { type Call, ok, untilStopped } from "../support/scripted-tools.ts";

// `task.progress`: what a tool tells while it works, at most so often, and never after its end. In stepped time.

const TASK = "workflow: [{ step: s, tool: { kind: http, name: copy } }]";
const CALM = new AbortController().signal;

/** Progress whose reports end when the test says so; the first are answered at once. */
function told({ answers = true } = {}) {
  const clock = createSteppedClock(0);
  const reports: [atMs: number, rows: number | undefined][] = [];
  let answer = () => {};
  const progress = openProgress(clock, ({ rows }) => {
    reports.push([clock.now(), rows]);
    if (answers) return Promise.resolve();
    return new Promise((resolve) => {
      answer = resolve;
    });
  });
  return { clock, reports, progress, answer: () => answer() };
}

test("a tool's first numbers are reported after 250 ms, then the newest every two seconds", async () => {
  const { clock, reports, progress } = told();
  for (let rows = 1; rows <= 60; rows += 1) {
    progress.report({ rows });
    await clock.advance(100);
  }
  await clock.advance(10_000);
  assert.deepEqual(reports, [
    [250, 3],
    [2_250, 23],
    [4_250, 43],
    [6_250, 60],
  ]);
});

test("numbers after a long silence are reported at once", async () => {
  const { clock, reports, progress } = told();
  await clock.advance(60_000);
  progress.report({ rows: 1 });
  progress.report({ rows: 2 });
  assert.deepEqual(reports, [[60_000, 1]]);
  await clock.advance(5_000);
  progress.report({ rows: 3 });
  assert.deepEqual(reports.slice(1), [
    [62_000, 2],
    [65_000, 3],
  ]);
});

test("while a report waits to be taken no other one is made, and what follows it is the newest", async () => {
  const { clock, reports, progress, answer } = told({ answers: false });
  await clock.advance(250);
  for (let rows = 1; rows <= 100_000; rows += 1) progress.report({ rows });
  await clock.advance(60_000);
  progress.report({ rows: 100_001 });
  assert.deepEqual(reports, [[250, 1]]);
  answer();
  await clock.advance(0);
  assert.deepEqual(reports.slice(1), [[60_250, 100_001]]);
});

test("after the end nothing is reported, neither waiting nor later numbers", async () => {
  const { clock, reports, progress } = told();
  await clock.advance(300);
  progress.report({ rows: 1 });
  progress.report({ rows: 2 });
  await progress.end(CALM);
  progress.report({ rows: 3 });
  await clock.advance(60_000);
  assert.deepEqual(reports, [[300, 1]]);
});

test("the end follows the report that is under way, unless the run was aborted", async () => {
  for (const isAborted of [false, true]) {
    const { clock, progress, answer } = told({ answers: false });
    await clock.advance(250);
    progress.report({ rows: 1 });
    const stop = new AbortController();
    let isOver = false;
    const ended = Promise.resolve(progress.end(stop.signal)).then(() => {
      isOver = true;
    });
    await clock.advance(1_000);
    assert.equal(isOver, false);
    if (isAborted) stop.abort();
    else answer();
    await ended;
  }
});

test("a report that fails is no end of those that follow", async () => {
  const clock = createSteppedClock(0);
  let tries = 0;
  const progress = openProgress(clock, () => {
    tries += 1;
    return Promise.reject(new Error("the receiver is gone"));
  });
  progress.report({ rows: 1 });
  await clock.advance(250);
  progress.report({ rows: 2 });
  await clock.advance(2_000);
  await progress.end(CALM);
  assert.equal(tries, 2);
});

/** Tells three numbers, a second apart. */
function telling(sleep: (ms: number) => Promise<void>) {
  return async ({ progress }: Call) => {
    for (const rows of [1, 2, 3]) {
      progress?.({ rows });
      await sleep(1_000);
    }
    return ok({});
  };
}

test("the events of a task that reports progress name its run, and precede its end", async (t) => {
  const bench = setup(t, { tools: { copy: telling((ms) => bench.clock.sleep(ms)) } });
  const ran = await bench.completed(TASK);
  const [first, second, ...others] = ran.of("task.progress");
  const [done] = ran.of("task.done");
  assert.deepEqual([first?.progress, second?.progress, others], [{ rows: 1 }, { rows: 3 }, []]);
  for (const key of ["command_id", "attempt", "step", "task", "step_run_id", "task_run_id", "run"] as const) {
    assert.equal(first?.[key], done?.[key], key);
  }
  const types = ran.events.map(({ type }) => type);
  assert.ok(types.lastIndexOf("task.progress") < types.indexOf("task.done"));
});

test("short tasks report no progress", async (t) => {
  const bench = setup(t, {
    tools: {
      async copy({ progress }) {
        progress?.({ rows: 1 });
        await bench.clock.sleep(249);
        return ok({});
      },
    },
  });
  assert.deepEqual((await bench.completed(TASK)).of("task.progress"), []);
});

test("each iteration and each retry reports its own progress", async (t) => {
  const bench = setup(t, { tools: { copy: telling((ms) => bench.clock.sleep(ms)) } });
  const ran = await bench.completed(`
workflow:
  - step: each
    loop: { in: 2, spec: { mode: parallel, policy: { exec: local } } }
    tool: { kind: http, name: copy }
`);
  const all = ran.of("task.progress").map(({ iteration, progress: { rows } }) => [iteration, rows]);
  assert.deepEqual(all.sort(), [
    [0, 1],
    [0, 3],
    [1, 1],
    [1, 3],
  ]);
});

test("progress of a tool that was abandoned at its time-out is ignored", async (t) => {
  let late: ((numbers: ProgressNumbers) => void) | undefined;
  const bench = setup(t, {
    tools: {
      copy(call) {
        late = call.progress;
        return untilStopped(call);
      },
      next: async () => {
        late?.({ rows: 9 });
        await bench.clock.sleep(5_000);
        return ok({});
      },
    },
  });
  const ran = await bench.completed(`
workflow:
  - step: s
    tool: { kind: http, name: copy, timeout: 1, spec: { policy: { rules: [{ else: { then: { do: continue } } }] } } }
    next: [{ step: after }]
  - step: after
    tool: { kind: http, name: next }
`);
  assert.deepEqual(ran.of("task.progress"), []);
});
