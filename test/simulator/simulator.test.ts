import assert from "node:assert/strict";
import { test } from "node:test";
import type { Json } from "../../src/schema/json.ts";
import { assertInvariants, outcomeOf } from "./invariants.ts";
import { PLAYBOOKS, type Simulated } from "./playbooks.ts";
import { simulate } from "./simulate.ts";

const SEEDS = Number(process.env["FLOW_SIMULATOR_SEEDS"] ?? 10_000);
const only = process.env["FLOW_SEED"];

test("simulated", async () => {
  const expected = new Map<string, Json>();
  for (const playbook of PLAYBOOKS) {
    const run = await simulate(playbook);
    assertInvariants(run);
    expected.set(playbook.name, outcomeOf(run));
    console.log(playbook.name, run.lastedMs, JSON.stringify(outcomeOf(run)).slice(0, 300));
  }
  const first = only === undefined ? 1 : Number(only);
  const last = only === undefined ? SEEDS : first;
  const failures = new Map<string, number>();
  const t0 = performance.now();
  for (let seed = first; seed <= last; seed += 1) {
    const playbook = PLAYBOOKS[seed % PLAYBOOKS.length] as Simulated;
    try {
      const run = await simulate(playbook, seed);
      assertInvariants(run);
      if (!run.isInterfered) assert.deepEqual(outcomeOf(run), expected.get(playbook.name));
    } catch (error) {
      const key = `${playbook.name}: ${error instanceof Error ? error.message.slice(0, 300) : String(error)}`;
      if (!failures.has(key)) console.log(seed, key, only ? error : "");
      failures.set(key, (failures.get(key) ?? 0) + 1);
    }
  }
  console.log("ms per seed", (performance.now() - t0) / (last - first + 1), "failures", [...failures.values()].reduce((a, b) => a + b, 0));
});
