import assert from "node:assert/strict";
import { test } from "node:test";
import { resultOf } from "../../../src/engine/state/results.ts";
import { entriesOf } from "../../../src/schema/rules/whole-result.ts";
import type { Json } from "../../../src/schema/words/json.ts";
import { compile } from "../support/playbook.ts";
import { type Run, restored, runAll, runOn, type Tool } from "./support.ts";

/* What a failed loop leaves to its rerun. */

const loopOf = (collection: string) => `workflow:
  - step: each
    loop: { in: "${collection}", iterator: item, spec: { mode: parallel, max_in_flight: 5 } }
    tool: { kind: noop }
`;

/** The results of all iterations, from the state and from the store. */
function entriesIn({ state, stored }: Run): [number, Json | undefined][] {
  const loop = resultOf(state)?.loop;
  assert.ok(loop);
  const parts = loop.parts.flatMap(({ ref }) => entriesOf(stored.get(ref) ?? null));
  return [...loop.tail, ...parts]
    .map(([index, { value }]) => [index, value] as [number, Json | undefined])
    .sort(([a], [b]) => a - b);
}

const fails =
  (...indexes: number[]): Tool =>
  ({ iteration, item }) => ({ value: { item, text: "x".repeat(200) }, fails: indexes.includes(iteration) });

test("of 10,000 iterations with 3 failures a rerun runs 3, and has all results, each once", () => {
  const program = compile(loopOf("{{ workload.count }}"));
  const run = runAll(program, fails(17, 4_000, 9_999), { count: 10_000 });
  assert.equal(run.state.status, "FAILED");
  const { start, first } = restored(run.log, program, "failed");
  assert.equal(start.events.length, 1);
  const again = runOn(program, first, fails(), new Map(run.stored));
  assert.deepEqual(again.calls, ["each[17]", "each[4000]", "each[9999]"]);
  assert.equal(again.state.status, "COMPLETED");
  assert.deepEqual(again.state.steps["each"]?.loop, { total: 10_000, done: 10_000, failed: 0 });
  const entries = entriesIn(again);
  assert.equal(entries.length, 10_000);
  entries.forEach(([index, value], place) => {
    assert.equal(index, place);
    assert.equal((value as { item: number }).item, place);
  });
  // What remains of a part with a failure in it is stored anew; all others stay where they are.
  const parts = resultOf(again.state)?.loop?.parts ?? [];
  assert.ok(parts.filter(({ ref }) => ref.includes("execution/7/")).length <= 4);
  assert.ok(parts.some(({ ref }) => ref.includes("execution/1/")));
});

test("an item that changed runs again, also where nothing else did; results of items that are gone are left out", () => {
  const program = compile(loopOf("{{ workload.items }}"));
  const run = runAll(program, fails(2), { items: ["a", "b", "c", "d", "e"] });
  const { first } = restored(run.log, program, "failed", { edits: { input: { items: ["a", "B", "c", "d"] } } });
  const again = runOn(program, first, fails(), new Map(run.stored));
  assert.deepEqual(again.calls, ["each[1]", "each[2]"]);
  assert.deepEqual(
    entriesIn(again).map(([, value]) => (value as { item: string }).item),
    ["a", "B", "c", "d"],
  );
});

test("with large results changed items are left out of the stored parts too", () => {
  const program = compile(loopOf("{{ workload.items }}"));
  const items = Array.from({ length: 1_000 }, (_, index) => `item ${index}`);
  const run = runAll(program, fails(3), { items });
  assert.ok((run.state.steps["each"]?.result?.loop?.parts.length ?? 0) > 1);
  const changed = items.map((item, index) => (index % 100 === 50 ? `${item}!` : item));
  const { first } = restored(run.log, program, "failed", { edits: { input: { items: changed } } });
  const again = runOn(program, first, fails(), new Map(run.stored));
  assert.deepEqual(again.calls, [
    "each[3]",
    ...changed.flatMap((item, index) => (item.endsWith("!") ? [`each[${index}]`] : [])),
  ]);
  assert.deepEqual(
    entriesIn(again).map(([, value]) => (value as { item: string }).item),
    changed,
  );
});

test("iterations that were not run, because the loop was stopped, run; those that succeeded do not", () => {
  const program = compile(
    loopOf("{{ workload.items }}").replace("max_in_flight: 5", "max_in_flight: 1, on_error: stop"),
  );
  const run = runAll(program, fails(2), { items: ["a", "b", "c", "d", "e"] });
  assert.deepEqual(run.calls, ["each[0]", "each[1]", "each[2]"]);
  const again = runOn(program, restored(run.log, program, "failed").first, fails(), new Map(run.stored));
  assert.deepEqual(again.calls, ["each[2]", "each[3]", "each[4]"]);
});

test("all run where they are not to be reused, and where a step before them runs again", () => {
  const program = compile(`workflow:
  - step: list
    tool: { kind: noop }
    next: { arcs: [{ step: each }] }
  - step: each
    loop: { in: [1, 2, 3], iterator: item }
    tool: { kind: noop }
`);
  const run = runAll(program, ({ step, iteration }) => ({ value: 1, fails: step === "each" && iteration === 1 }));
  const all = runOn(program, restored(run.log, program, "failed", { reuseIterations: false }).first, fails());
  assert.deepEqual(all.calls, ["each[0]", "each[1]", "each[2]"]);
  const before = runOn(program, restored(run.log, program, ["list"]).first, fails());
  assert.deepEqual(before.calls, ["list", "each[0]", "each[1]", "each[2]"]);
});

test("a loop that failed twice takes over what both runs of it have", () => {
  const program = compile(loopOf("{{ workload.count }}"));
  const run = runAll(program, fails(1, 400), { count: 500 });
  const second = runOn(program, restored(run.log, program, "failed").first, fails(400), new Map(run.stored));
  assert.equal(second.state.status, "FAILED");
  const third = runOn(program, restored(second.log, program, "failed").first, fails(), new Map(second.stored));
  assert.deepEqual(third.calls, ["each[400]"]);
  assert.equal(entriesIn(third).length, 500);
});
