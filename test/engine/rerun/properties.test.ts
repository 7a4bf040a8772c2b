import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { resultOf } from "../../../src/engine/state/results.ts";
import { seededRandom } from "../../simulator/random.ts";
import { compile } from "../support/playbook.ts";
import { workflow } from "../support/workflow.ts";
import { originalOf, restored, runAll, runOn, type Tool } from "./support.ts";

// Reruns of random workflows. A failure prints the seed; `FLOW_SEED=<seed>` runs with it again.

const RUNS = Number(process.env["FLOW_PROPERTY_RUNS"] ?? 60);
const seed = Number(process.env["FLOW_SEED"] ?? Date.now() % 1_000_000_000);

/** The same call has the same end, always. */
const tool: Tool = (call) => {
  let hash = 7;
  for (const char of JSON.stringify(call)) hash = (Math.imul(hash, 31) + char.charCodeAt(0)) >>> 0;
  const random = seededRandom(hash);
  const fails = random.chance(1 / 8);
  return {
    value: { v: random.between(0, 3) },
    fails,
    ...(random.chance(0.3) && { set: [["x", random.between(0, 9)]] }),
  };
};

test("a rerun from any step of a finished run, with tools that give the same again, comes to what the run came to", (context) => {
  context.diagnostic(`FLOW_SEED=${seed}`);
  // Without branches side by side: these would begin with variables that the others have set meanwhile.
  const alone = workflow.map(({ text }) => text.replaceAll('"mode":"inclusive"', '"mode":"exclusive"'));
  const runs = fc.property(alone, (text) => {
    const program = compile(text);
    const run = runAll(program, tool);
    const { marks } = originalOf(run.log);
    for (const [name, { end }] of marks) {
      if (end === "unreached") continue;
      const { first } = restored(run.log, program, [name], { reuseIterations: false });
      const again = runOn(program, first, tool);
      assert.equal(again.state.status, run.state.status, name);
      assert.deepEqual(again.state.vars, run.state.vars, name);
      assert.deepEqual(resultOf(again.state)?.value, resultOf(run.state)?.value, name);
      assert.equal(again.state.error?.message, run.state.error?.message, name);
      const statuses = (state: typeof run.state) =>
        Object.fromEntries(Object.entries(state.steps).map(([step, { status, runs }]) => [step, `${status} ${runs}`]));
      assert.deepEqual(statuses(again.state), statuses(run.state), name);
    }
  });
  fc.assert(runs, { seed, numRuns: RUNS });
});

test("every rerun ends, of runs that were cut off and with branches side by side too, and calls what it says", (context) => {
  context.diagnostic(`FLOW_SEED=${seed}`);
  const runs = fc.property(workflow, fc.nat(40), fc.nat(), fc.boolean(), ({ text }, stopAfter, order, only) => {
    const program = compile(text);
    const random = seededRandom(order);
    const run = runAll(program, tool, {}, { stopAfter, pick: (open) => random.between(0, open - 1) });
    for (const [name, { end }] of originalOf(run.log).marks) {
      if (end === "unreached") continue;
      const { start, first } = restored(run.log, program, [name], { only });
      const again = runOn(program, first, tool, new Map(run.stored));
      const reused = new Set(start.reused);
      for (const call of again.calls) assert.ok(!reused.has(call.split("[", 1)[0] ?? ""), `${name}: ${call} is reused`);
      if (only) for (const call of again.calls) assert.equal(call.split("[", 1)[0], name);
    }
    if (run.state.status === "COMPLETED") return;
    if (![...originalOf(run.log).marks.values()].some(({ end }) => end === "failed" || end === "stopped")) return;
    const fine: Tool = (call) => ({ ...tool(call), fails: false });
    const again = runOn(program, restored(run.log, program, "failed").first, fine, new Map(run.stored));
    assert.ok(["COMPLETED", "FAILED"].includes(again.state.status));
  });
  fc.assert(runs, { seed, numRuns: RUNS });
});
