import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { availableParallelism } from "node:os";
import { after, test } from "node:test";
import { Worker } from "node:worker_threads";
import { PLAYBOOKS } from "./playbooks.ts";
import { playbookOf, runSeed, type SeedRange, type Summary } from "./run-seeds.ts";
import type { Answer, Task } from "./seeds-thread.ts";

/*
 * Servers (`createAdvance`) and workers (`createWorker`) as they are, on a store, a broker and a network that lose, double, delay
 * and reorder, in one process and in virtual time. Servers and workers crash at any await point and start again with nothing
 * in memory; clocks jump (see faults.ts for all of it, invariants.ts for what must hold afterwards). Each run is compared
 * with the same playbook in the local runtime.
 *
 * `npm test` runs 200 seeds that are always the same, eight of each playbook, and 100 that no run had before: a fault that one run in
 * 20,000 shows is found within weeks, and the many thousands between are not run again and again. `npm run simulate` runs ten thousand.
 * FLOW_SIMULATOR_SEEDS=100000 runs more seeds, FLOW_SEED=4711 only that one.
 *
 * All run in threads, because there are two processors, and because the test runner's own tracking of promises, which costs as much as the
 * simulation, does not reach into them.
 */

/** Seeds that are always the same. */
const SEEDS_ALWAYS = 200;
const SEEDS = Number(process.env["FLOW_SIMULATOR_SEEDS"] ?? SEEDS_ALWAYS);
/** Seeds of this run alone. */
const FRESH = 100;
/** More executions with a command that is lost too often, and more faults of each kind, must be among them all. */
const LOST_MIN = 5;
const FAULTS_MIN = 10;
const only = process.env["FLOW_SEED"];

/** Seeds that failed once, with the playbook that they ran. */
const REGRESSIONS: [seed: number, playbook: string, why: string][] = [
  [15, "loop with results in parts", "two servers stored different results of a loop under one reference"],
  [33, "sub-playbook and final step", "a server wrote events with smaller ids than another one had written"],
  [33, "sub-playbook and final step", "a batch was recovered on a state that was older than it, and nothing followed"],
  [63, "cursor", "a command of another server was given up before the execution was loaded anew"],
  [37, "pages joined by a manifest", "what a failed run had given was stored late, over what the next one gave"],
  [123, "local loop that writes", "iterations that had ended under a lost claim were refused under the next, forever"],
  [1_079_791_086, "rounds over a join", "a task whose input could not be made, after a skipped step, counted as lost"],
  [
    1_887_922_461,
    "cursor",
    "a store that was away while commands went on after a pause counted as a fault of the server",
  ],
  [385, "sub-playbook and final step", "a rerun of the final step alone ran nothing"],
  [443, "rounds over a join", "a rerun of a rerun named an event that is not there as the end of a step"],
  [
    454,
    "approvals, and retries that are parked",
    "an approval was opened after its time had come and its step had ended",
  ],
  [153, "chain with retries", "two rounds claimed for one waiting worker, and one of the answers was lost"],
];

for (const playbook of PLAYBOOKS) {
  test(`simulated without faults: ${playbook.name}`, async () => {
    await carriedOut({ kind: "run", playbook: playbook.name });
  });
}

for (const [seed, playbook, why] of REGRESSIONS) {
  test(`seed ${seed} of ${playbook}: ${why}`, async () => {
    await carriedOut({ kind: "run", playbook, seed });
  });
}

/** Those that wait; each runs under as many seeds, whose servers' clocks are hours apart and jump by hours. */
const WAITING = [
  "waits",
  "signals",
  "retries that are parked",
  "approvals, and retries that are parked",
  "people who decide",
];
const SEEDS_OF_HOURS = Number(process.env["FLOW_SIMULATOR_HOURS"] ?? 6);

for (const playbook of WAITING) {
  test(`clocks that jump by hours move no wait: ${playbook}`, async () => {
    for (let seed = 1; seed <= SEEDS_OF_HOURS; seed += 1) {
      await carriedOut({ kind: "run", playbook, seed, clocks: "hours" }).catch((error: unknown) => {
        throw new Error(`Seed ${seed}`, { cause: error });
      });
    }
  });
}

test("a seed gives the same run every time", async () => {
  for (const { name } of PLAYBOOKS.slice(0, 5)) await carriedOut({ kind: "twice", playbook: name, seed: 4711 });
});

test("whatever fails, every run ends once, with the result of a run without faults", async (context) => {
  if (only !== undefined) return await runSeed(Number(only), playbookOf(Number(only)));
  const first = Number(process.env["FLOW_SIMULATOR_FRESH"] ?? randomInt(1_000_000, 2_000_000_000));
  context.diagnostic(`Seeds 1 to ${SEEDS}, and ${first} to ${first + FRESH - 1}`);
  const ranges: SeedRange[] = [
    { first: 1, last: SEEDS },
    { first, last: first + FRESH - 1 },
  ];
  const threads = Math.min(2, availableParallelism());
  const shares = Array.from({ length: threads }, (_, index) => carriedOut({ kind: "seeds", ranges, index, threads }));
  const summaries = (await Promise.all(shares)).map((summary) => summary ?? assert.fail("A thread has no summary"));
  const total = (pick: (summary: Summary) => number) => summaries.reduce((sum, summary) => sum + pick(summary), 0);
  const failures = summaries.flatMap((summary) => summary.failures);
  const told = failures.map(({ seed, playbook, message }) => `FLOW_SEED=${seed} (${playbook}): ${message}`);
  assert.equal(failures.length, 0, told.join("\n\n"));
  context.diagnostic(`${total(({ runs }) => runs)} runs, ${total(({ reclaims }) => reclaims)} commands claimed again`);
  context.diagnostic(`${total(({ lost }) => lost)} executions with a command that was lost too often`);
  assert.ok(SEEDS < SEEDS_ALWAYS || total(({ lost }) => lost) > LOST_MIN, "Hardly a command was lost too often");
  // A simulator in which nothing breaks shows nothing.
  for (const kind of Object.keys(summaries[0]?.faults ?? {}) as (keyof Summary["faults"])[]) {
    const count = total(({ faults }) => faults[kind]);
    context.diagnostic(`${kind}: ${count}`);
    assert.ok(SEEDS < SEEDS_ALWAYS || count > FAULTS_MIN, `There were only ${count} faults of kind '${kind}'`);
  }
});

/** Threads that have nothing to do. */
const idle: Worker[] = [];
after(async () => {
  for (const thread of idle) await thread.terminate();
});

/** Has a thread do this. Throws what failed. */
async function carriedOut(task: Task): Promise<Summary | undefined> {
  // Without the map of each file's lines, which every error would look up. FLOW_SEED runs a seed with them.
  const thread = idle.pop() ?? new Worker(new URL("./seeds-thread.js", import.meta.url), { execArgv: [] });
  const over = new AbortController();
  const answered = once(thread, "message", { signal: over.signal }) as Promise<[Answer]>;
  const ended = once(thread, "exit", { signal: over.signal }).then(([code]) => {
    throw new Error(`A thread of the simulator ended with ${code} and said nothing: ${JSON.stringify(task)}`);
  });
  thread.postMessage(task);
  const [answer] = await Promise.race([answered, ended]).finally(() => over.abort());
  idle.push(thread);
  if ("error" in answer) throw new Error(answer.error);
  return answer.summary;
}
