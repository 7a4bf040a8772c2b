import assert from "node:assert/strict";
import { parentPort } from "node:worker_threads";
import { assertInvariants } from "./invariants/invariants.ts";
import { PLAYBOOKS, type Simulated } from "./playbooks.ts";
import { runSeeds, type SeedRange, type Summary } from "./run-seeds.ts";
import { simulate } from "./simulate.ts";

/** What a thread of the simulator is asked for; see there for what the names mean. */
export type Task =
  /** Seeds with the playbooks that they choose; answered with a {@link Summary}. */
  | { kind: "seeds"; ranges: readonly SeedRange[]; index: number; threads: number }
  /** One run, and its invariants; without a seed, without faults. */
  | { kind: "run"; playbook: string; seed?: number; clocks?: "hours" }
  /** A seed two times over: both runs must be the same. */
  | { kind: "twice"; playbook: string; seed: number };

/** What a thread says of a {@link Task}: that it is done, or why it failed. */
export type Answer = { summary?: Summary } | { error: string };

parentPort?.on("message", (task: Task) => {
  void carryOut(task)
    .catch(
      (error: unknown): Answer => ({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
    )
    .then((answer) => parentPort?.postMessage(answer));
});

async function carryOut(task: Task): Promise<Answer> {
  if (task.kind === "seeds") return { summary: await runSeeds(task.ranges, task.index, task.threads) };
  const { seed } = task;
  const playbook = named(task.playbook);
  if (task.kind === "run") {
    await assertInvariants(await simulate(playbook, seed, task.clocks === undefined ? {} : { clocks: task.clocks }));
    return {};
  }
  const [once, twice] = [await simulate(playbook, seed), await simulate(playbook, seed)];
  assert.deepEqual(once.tables.store.events, twice.tables.store.events);
  assert.deepEqual(once.faults.counts, twice.faults.counts);
  return {};
}

function named(name: string): Simulated {
  const found = PLAYBOOKS.find((playbook) => playbook.name === name);
  assert.ok(found, `There is no simulated playbook '${name}'`);
  return found;
}
