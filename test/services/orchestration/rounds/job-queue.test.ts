import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createExecutionCache } from "../../../../src/services/orchestration/memory/execution-cache.ts";
import { createJobQueue, type JobQueue } from "../../../../src/services/orchestration/rounds/job-queue.ts";
import type { Job } from "../../../../src/services/orchestration/rounds/round.ts";

/** A queue over executions that do not exist (such need no loading), except those of `loads`. */
function setup(loads: Record<string, Promise<undefined>> = {}) {
  const failed: string[] = [];
  const cache = createExecutionCache((id) => loads[id] ?? Promise.resolve(undefined), Date.now);
  const queue: JobQueue = createJobQueue({
    cache,
    ids: { next: () => 1, ready: () => Promise.resolve(), isReady: () => true },
    onLoaded: () => undefined,
    onFailed: (_, executionId) => void failed.push(...queue.withdraw(executionId).map(nameOf)),
  });
  /** Loads these executions: nothing has to be waited for then. */
  const load = async (...ids: string[]) => {
    await Promise.all(ids.map((id) => cache.load(cache.entry(id))));
  };
  return {
    queue,
    cache,
    failed,
    load,
    push: (name: string, ...ids: string[]) => queue.push(jobOf(name, ids, { bytes: 1 })),
    take: () => queue.take().map(nameOf),
    /** A round works on these executions, until the function that is returned is called. */
    begin(...ids: string[]) {
      for (const id of ids) cache.entry(id).busy = true;
      return () => {
        for (const id of ids) {
          queue.free(cache.entry(id));
          // The execution is still missing, and known to be.
          cache.entry(id).missing = true;
        }
      };
    },
  };
}

interface Named extends Job {
  name: string;
}

function jobOf(name: string, executionIds: string[], more: Partial<Named> = {}): Named {
  const nothing = () => undefined;
  return {
    ...{ name, executionIds, alone: false, isVerified: false, isAbandoned: () => false },
    ...{ check: nothing, apply: async () => {}, settle: nothing, fail: nothing, keepRest: nothing },
    ...more,
  };
}

function nameOf(job: Job): string {
  return (job as Named).name;
}

test("jobs run in order; a later job waits for the executions that an earlier one waits for", async () => {
  const { load, push, take, begin, queue } = setup();
  await load("a", "b", "c");
  const end = begin("b");
  push("1", "a");
  push("2", "a", "b");
  push("3", "a");
  push("4", "c");
  push("5", "b");
  // No request: it follows from one.
  queue.unshift([jobOf("0", ["b"])]);
  assert.deepEqual(take(), ["1", "4"]);
  assert.deepEqual(take(), []);
  assert.deepEqual([queue.length(), queue.waiting("a"), queue.waiting("b"), queue.waiting("c")], [4, 2, 2, 0]);
  end();
  assert.deepEqual(take(), ["0", "2", "3", "5"]);
  assert.deepEqual([queue.length(), queue.waiting("a"), take()], [0, 0, []]);
});

test("a job that finishes other work comes before all others, and two of them in the order given", async () => {
  const { load, push, take, queue, begin } = setup();
  await load("a", "b");
  push("later", "a");
  push("other", "b");
  queue.unshift([jobOf("first", ["a"]), jobOf("second", ["a"])]);
  assert.deepEqual(take(), ["first", "second", "later", "other"]);
  const end = begin("a");
  push("later", "a");
  push("other", "b");
  queue.unshift([jobOf("first", ["a"]), jobOf("third", ["b"])]);
  assert.deepEqual(take(), ["third", "other"]);
  end();
  assert.deepEqual(take(), ["first", "later"]);
});

for (const [count, taken] of [
  [255, 256],
  [256, 257],
  [257, 257],
] as const) {
  test(`an execution with ${count} jobs and one that came after it: a round of 256 has jobs of both`, async () => {
    const { load, push, take } = setup();
    await load("a", "b");
    for (let index = 0; index < count; index += 1) push(`a${index}`, "a");
    push("b", "b");
    const first = take();
    assert.equal(first.length, Math.min(256, taken));
    assert.ok(first.includes("b"));
    assert.deepEqual(
      take(),
      Array.from({ length: count + 1 - first.length }, (_, index) => `a${255 + index}`),
    );
  });
}

test("jobs with callers go before those without, of which each fourth is taken while there are others", async () => {
  const { queue, take, push, load } = setup();
  const names = (prefix: string, count: number) => Array.from({ length: count }, (_, index) => `${prefix}${index}`);
  await load(...names("timer", 300), ...names("call", 300));
  for (const name of names("timer", 300)) queue.push(jobOf(name, [name], { mayWait: true }));
  for (const name of names("call", 10)) push(name, name);
  // The first three are calls, the fourth is a timer.
  const first = take();
  assert.equal(first.length, 256);
  assert.deepEqual(
    first.slice(0, 13).filter((name) => name.startsWith("timer")),
    names("timer", 3),
  );
  assert.equal(take().length, 300 + 10 - 256);
  for (const name of names("call", 300)) push(name, name);
  for (const name of names("timer", 100)) queue.push(jobOf(name, [name], { mayWait: true }));
  assert.equal(take().filter((name) => name.startsWith("timer")).length, 64);
});

test("of one execution jobs keep their order, whether they have callers or not", async () => {
  const { queue, take, push, load } = setup();
  await load("a", "b");
  queue.push(jobOf("timer", ["a"], { mayWait: true }));
  push("call", "a");
  push("other", "b");
  assert.deepEqual(take(), ["other", "timer", "call"]);
});

test("a job that is to run alone has a round of its own, and keeps its place", async () => {
  const { load, push, take, queue } = setup();
  await load("a", "b");
  push("before", "b");
  queue.push(jobOf("alone", ["a"], { alone: true }));
  push("after", "a");
  assert.deepEqual(take(), ["before"]);
  assert.deepEqual(take(), ["alone"]);
  assert.deepEqual(take(), ["after"]);
});

test("a job whose caller has left is dropped, and the next one takes its place", async () => {
  const { load, push, take, queue } = setup();
  await load("a");
  queue.push(jobOf("left", ["a"], { isAbandoned: () => true, bytes: 7 }));
  push("stays", "a");
  assert.equal(queue.bytes(), 8);
  assert.deepEqual([take(), queue.length(), queue.bytes()], [["stays"], 0, 0]);
});

test("a job runs when its execution has been loaded; if that fails, all jobs of the execution are withdrawn", async () => {
  const loads = { good: Promise.resolve(undefined), bad: Promise.reject(new Error("away")) };
  const { push, take, failed, queue, load } = setup(loads);
  await load("other");
  push("1", "good");
  push("2", "bad", "other");
  push("3", "bad");
  push("4", "other");
  assert.deepEqual(take(), []);
  await new Promise(setImmediate);
  assert.deepEqual([take().toSorted(), failed, queue.length()], [["1", "4"], ["2", "3"], 0]);
});

test("a round does not look at jobs whose turn has not come, however many they are", async () => {
  const { load, push, take, begin, queue } = setup();
  await load("slow", "quick");
  const end = begin("slow");
  let looks = 0;
  const isAbandoned = () => {
    looks += 1;
    return false;
  };
  for (let index = 0; index < 10_000; index += 1) queue.push(jobOf("s", ["slow"], { isAbandoned }));
  for (let round = 0; round < 100; round += 1) {
    push("q", "quick");
    assert.deepEqual(take(), ["q"]);
  }
  assert.ok(looks <= 1, `${looks} jobs were looked at`);
  end();
  assert.equal(take().length, 256);
  assert.ok(looks <= 300, `${looks} jobs were looked at`);
});

test("withdrawing all leaves an empty queue", async () => {
  const { load, push, take, queue } = setup();
  await load("a", "b");
  push("1", "a");
  push("2", "a", "b");
  queue.push(jobOf("none", []));
  assert.deepEqual(queue.withdraw().map(nameOf), ["1", "2", "none"]);
  assert.deepEqual([take(), queue.length(), queue.waiting("a")], [[], 0, 0]);
});

const seed = Number(process.env["FLOW_SEED"] ?? Date.now() % 1_000_000_000);
const IDS = ["a", "b", "c", "d"];
/** What happens next: a job of these executions comes, a round begins, or one ends and some of its jobs run again. */
const MOVE = fc.oneof(
  fc.record({ come: fc.subarray(IDS, { minLength: 1 }) }),
  fc.constant({ begin: true }),
  fc.record({ end: fc.nat(), again: fc.nat() }),
);

test("whatever comes and ends in whatever order: no two rounds share an execution, each keeps its order, all jobs run", async (t) => {
  t.diagnostic(`FLOW_SEED=${seed}`);
  const runs = fc.asyncProperty(fc.array(MOVE, { maxLength: 80 }), async (moves) => {
    const { load, queue, begin } = setup();
    await load(...IDS);
    const rounds: { jobs: Named[]; end(): void }[] = [];
    const order = new Map<string, number[]>(IDS.map((id) => [id, []]));
    let pushed = 0;
    let ran = 0;
    const end = (which: number, again: number) => {
      const [round] = rounds.splice(which % Math.max(1, rounds.length), 1);
      const jobs = round?.jobs ?? [];
      // Each of them once: what must run again is then alone.
      const repeated = jobs.filter(({ alone }, index) => !alone && (again >> index) % 2 === 1);
      for (const job of repeated) job.alone = true;
      ran += jobs.length - repeated.length;
      queue.unshift(repeated);
      round?.end();
    };
    const take = () => {
      const jobs = queue.take() as Named[];
      const used = new Set(jobs.flatMap(({ executionIds }) => executionIds));
      for (const other of rounds.flatMap((round) => round.jobs)) {
        for (const id of other.executionIds) assert.ok(!used.has(id), `Two rounds work on ${id}`);
      }
      for (const { name, executionIds } of jobs) for (const id of executionIds) order.get(id)?.push(Number(name));
      if (jobs.length > 0) rounds.push({ jobs, end: begin(...used) });
    };
    for (const move of moves) {
      if ("come" in move) queue.push(jobOf(String(pushed++), move.come));
      else if ("begin" in move) take();
      else end(move.end, move.again);
    }
    while (queue.length() > 0 || rounds.length > 0) {
      take();
      assert.ok(rounds.length > 0, "Jobs wait, and none can run");
      end(0, 0);
    }
    assert.equal(ran, pushed);
    for (const names of order.values()) {
      // One that runs again is there twice; the first time counts.
      const first = [...new Set(names)];
      assert.deepEqual(
        first,
        first.toSorted((left, right) => left - right),
      );
    }
  });
  await fc.assert(runs, { seed, numRuns: Number(process.env["FLOW_PROPERTY_RUNS"] ?? 300) });
});
