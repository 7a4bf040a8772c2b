import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../src/schema/words/json.ts";
import { commandOf, documentOf, startFakeServer } from "./support/fake-server.ts";
import { startGate } from "./support/gate.ts";
import { startTestWorker } from "./support/worker.ts";

// Iterations that share a command: how they run, and what they take of a worker's slots.

const LOOP = "  loop: {in: 9, iterator: x, spec: {mode: parallel}}";

/** A command of iterations that begin at once. */
function shared(id: number, items: string[], more: JsonObject = {}): JsonObject {
  const loop = { from: 4, items, total: 9, max_in_flight: 9, stop_on_error: false, at_once: true, ...more };
  return commandOf(id, "2", { loop });
}

test("they begin side by side, and four take a slot until the server has their ends", async (t) => {
  const fake = await startFakeServer(t);
  const gate = await startGate(t);
  fake.documents.set("2", documentOf(gate.task("{{ x }}"), LOOP));
  fake.offer(shared(1, ["a", "b", "c", "d", "e"]));
  startTestWorker(fake, { FLOW_WORKER_CAPACITY: "3" });
  for (const name of ["c", "a", "e", "b", "d"]) await gate.reached(name);
  await fake.until(() => fake.claims.length === 2);
  assert.deepEqual(
    fake.claims.map(({ limit }) => limit),
    [3, 1],
  );
  gate.open("b");
  const isEnd = (event: JsonObject) => event["event_type"] === "loop.iteration.completed";
  const batch = await fake.until(() => fake.batches.find(({ events }) => events.some(isEnd)));
  assert.equal(batch.claim?.limit, 1, "the other slot is with the claim that waits");
  for (const name of ["a", "c", "d", "e"]) gate.open(name);
  await fake.until(() => fake.eventsOf("1").includes("command.completed"));
});

test("a command that counts as more than a worker has slots is run, and nothing else beside it", async (t) => {
  const fake = await startFakeServer(t);
  const gate = await startGate(t);
  fake.documents.set("2", documentOf(gate.task("{{ x }}"), LOOP));
  const names = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
  fake.offer(shared(1, names), commandOf(7));
  startTestWorker(fake, { FLOW_WORKER_CAPACITY: "1" });
  for (const name of names) await gate.reached(name);
  for (const name of names.slice(0, 5)) gate.open(name);
  await fake.until(() => fake.eventsOf("1").filter((type) => type === "loop.iteration.completed").length === 5);
  assert.deepEqual(fake.eventsOf("7"), []);
  for (const name of names.slice(5)) gate.open(name);
  await fake.until(() => fake.eventsOf("7").includes("command.completed"));
});

test("iterations that ended under an earlier claim are not run again", async (t) => {
  const fake = await startFakeServer(t);
  fake.documents.set("2", documentOf("{kind: noop}", LOOP));
  fake.offer(shared(1, ["a", "b", "c", "d"], { ended: { below: 5, above: [6] } }));
  startTestWorker(fake);
  const last = await fake.untilEvent("command.completed");
  const events = fake.batches.flatMap(({ events: sent }) => sent);
  assert.deepEqual(
    events.flatMap(({ event_type, iteration }) => (event_type === "task.done" ? [iteration] : [])),
    [5, 7],
  );
  assert.equal((last["result"] as { context: JsonObject }).context["iterations"], 4);
});

test("what one writes is not seen by the others, as if each had a command of its own", async (t) => {
  const fake = await startFakeServer(t);
  const tool = '{kind: noop, result: {seen: "{{ word | default(\'nothing\') }}"}, set: {ctx.word: "{{ x }}"}}';
  fake.documents.set("2", documentOf(tool, LOOP));
  fake.offer(shared(1, ["a", "b", "c"], { max_in_flight: 1 }));
  startTestWorker(fake);
  await fake.untilEvent("command.completed");
  const results = fake.batches.flatMap(({ events }) =>
    events.flatMap((event) =>
      event["event_type"] === "task.done" ? [(event["result"] as { context: JsonObject }).context["value"]] : [],
    ),
  );
  assert.deepEqual(results, [{ seen: "nothing" }, { seen: "nothing" }, { seen: "nothing" }]);
});
