import assert from "node:assert/strict";
import { test } from "node:test";
import { commandOf, documentOf, type Scripted, startFakeServer } from "./support/fake-server.ts";
import { startGate } from "./support/gate.ts";
import { startTestWorker } from "./support/worker.ts";

const isBatch = (url: string) => url === "/api/events/batch";

/** A promise and the function that resolves it. */
function door(): { opened: Promise<void>; open: () => void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

test("a claimed command is run and its events are reported in order, with the claim for the slot that becomes free", async (t) => {
  const fake = await startFakeServer(t);
  fake.offer(commandOf(1));
  startTestWorker(fake, { FLOW_WORKER_CAPACITY: "3", FLOW_WORKER_LABELS: "zone=a" });
  const batch = await fake.until(() => fake.batches[0]);
  assert.deepEqual(
    [fake.claims[0]?.["worker"], fake.claims[0]?.["limit"], fake.claims[0]?.["labels"]],
    ["w", 3, { zone: "a" }],
  );
  assert.equal(batch.worker, "w");
  assert.deepEqual(fake.eventsOf("1"), ["task.done", "command.completed"]);
  const [done, completed] = batch.events;
  assert.deepEqual(
    [done?.["execution_id"], done?.["attempt"], done?.["step"], done?.["task"]],
    ["1000001", 1, "only", "only"],
  );
  assert.deepEqual(done?.["result"], {
    status: "ok",
    context: {
      run: 1,
      final: true,
      bytes: 15,
      value: { status: "ok" },
      about: { meta: { attempt: 1, duration_ms: (done?.["duration_ms"] as number) ?? -1 } },
    },
  });
  assert.deepEqual(completed?.["result"], { status: "ok", context: { tasks: ["only"] } });
  // Two slots are with the long poll that goes on; the third is the one that this report frees.
  assert.equal(batch.claim?.limit, 1);
  assert.equal(batch.claim?.wait_ms, 0);
});

test("what comes with the answer to a report is run at once: one call per step", async (t) => {
  const fake = await startFakeServer(t);
  fake.offer(commandOf(1));
  startTestWorker(fake, { FLOW_WORKER_CAPACITY: "1" });
  await fake.until(() => fake.batches.length > 0 || undefined);
  fake.script = ({ url }) =>
    isBatch(url) && fake.batches.length < 5
      ? { status: 202, body: { duplicate: false, commands: [commandOf(fake.batches.length + 10)] } }
      : undefined;
  fake.offer(commandOf(2));
  await fake.until(() => fake.eventsOf("14").length === 2);
  const calls = fake.calls.filter((call) => !/\/pool\/|\/catalog\/|\/worker\/connection/.test(call));
  const first = calls.indexOf("POST /api/events/batch", 2);
  assert.deepEqual(
    calls.slice(first, first + 3).filter((call) => call !== "POST /api/events/batch"),
    [],
    "between two reports nothing else was asked",
  );
});

test("commands that end together are reported together", async (t) => {
  const fake = await startFakeServer(t);
  const total = 64;
  fake.offer(...Array.from({ length: total }, (_, index) => commandOf(index + 1)));
  startTestWorker(fake, { FLOW_WORKER_CAPACITY: String(total) });
  await fake.until(() => fake.batches.reduce((sum, { events }) => sum + events.length, 0) === 2 * total);
  assert.ok(fake.batches.length <= 4, `${fake.batches.length} requests for ${total} commands`);
  for (let id = 1; id <= total; id += 1)
    assert.deepEqual(fake.eventsOf(String(id)), ["task.done", "command.completed"]);
});

test("later events of a command wait for the answer to its earlier ones, and those of others do not", async (t) => {
  const fake = await startFakeServer(t);
  const gate = await startGate(t);
  fake.documents.set("2", documentOf(`\n  - first: {kind: noop}\n  - second: ${gate.task("b")}`));
  const { opened, open } = door();
  fake.script = ({ url }) =>
    isBatch(url) && fake.batches.length === 1 ? { status: 202, body: { duplicate: false }, after: opened } : undefined;
  fake.offer(commandOf(1, "2"));
  startTestWorker(fake);
  await gate.reached("b");
  await fake.until(() => fake.batches.length === 1);
  assert.deepEqual(fake.eventsOf("1"), ["task.done"], "it waited for company, and none came");
  gate.open("b");
  fake.offer(commandOf(7));
  await fake.until(() => fake.eventsOf("7").length === 2);
  assert.deepEqual(fake.eventsOf("1"), ["task.done"]);
  open();
  await fake.until(() => fake.eventsOf("1").includes("command.completed"));
  assert.deepEqual(fake.eventsOf("1"), ["task.done", "task.done", "command.completed"]);
});

test("a report that is not answered is sent again under the same key, and a doubled one brings a heartbeat", async (t) => {
  const fake = await startFakeServer(t);
  const answers: (Scripted | undefined)[] = [
    { status: 503, headers: { "retry-after": "0" }, body: { error: "busy", code: "queue_unavailable" } },
    { status: 0, cut: true },
    { status: 500, body: "no JSON of ours" },
    { status: 429, body: { error: "slowly", code: "UNAVAILABLE" } },
    { status: 202, body: { duplicate: true, commands: [] } },
  ];
  fake.script = ({ url }) => (isBatch(url) ? answers.shift() : undefined);
  fake.offer(commandOf(1));
  const worker = startTestWorker(fake);
  await fake.until(() => fake.batches.length === 5);
  assert.equal(new Set(fake.batches.map(({ key }) => key)).size, 1);
  assert.equal(new Set(fake.batches.map(({ text }) => text)).size, 1);
  const beats = fake.beats.length;
  await fake.until(() => fake.beats.length > beats || beats > 1);
  fake.offer(commandOf(2));
  await fake.until(() => fake.batches.length === 6);
  assert.notEqual(fake.batches[5]?.key, fake.batches[0]?.key);
  assert.equal(worker.log().filter(({ level }) => level === "warn").length, 1, "told once, not with every try");
});

test("events of claims that are lost are dropped, their tools stopped, and the others sent again under another key", async (t) => {
  const fake = await startFakeServer(t);
  const gate = await startGate(t);
  fake.documents.set("2", documentOf(`\n  - first: {kind: noop}\n  - second: ${gate.task("b")}`));
  fake.script = ({ url }) => {
    const batch = fake.batches.at(-1);
    const index = batch?.events.findIndex((event) => event["command_id"] === "1") ?? -1;
    if (!isBatch(url) || index < 0) return undefined;
    return {
      status: 409,
      body: { error: "lost", code: "CONFLICT", detail: { events: [{ index, command_id: "1", reason: "stale" }] } },
    };
  };
  fake.offer(commandOf(1, "2"), commandOf(2));
  const worker = startTestWorker(fake);
  await gate.left("b");
  const last = await fake.until(() =>
    fake.batches.find(({ events }) => events.length === 2 && events[0]?.["command_id"] === "2"),
  );
  assert.equal(new Set(fake.batches.map(({ key }) => key)).size, fake.batches.length, "another body, another key");
  assert.deepEqual(
    last.events.map((event) => event["event_type"]),
    ["task.done", "command.completed"],
  );
  await worker.stop();
  assert.equal(fake.eventsOf("1").includes("command.failed"), false, "nothing is reported for it any more");
});

test("a command whose events the server cannot take fails with what the server said, and the others go on", async (t) => {
  const fake = await startFakeServer(t);
  fake.script = ({ url }) => {
    const batch = fake.batches.at(-1);
    const index =
      batch?.events.findIndex((event) => event["command_id"] === "1" && event["event_type"] === "task.done") ?? -1;
    if (!isBatch(url) || index < 0) return undefined;
    const errors = [{ index, path: "result", message: "is of the wrong type" }];
    return { status: 422, body: { error: "The batch is not valid", code: "INVALID_INPUT", detail: { errors } } };
  };
  fake.offer(commandOf(1), commandOf(2));
  startTestWorker(fake);
  const failure = await fake.untilEvent("command.failed");
  assert.equal(failure["command_id"], "1");
  assert.match((failure["error"] as { message: string }).message, /The batch is not valid/);
  await fake.until(() => fake.eventsOf("2").includes("command.completed"));
});

test("where the server does not say which events it cannot take, each command is tried alone", async (t) => {
  const fake = await startFakeServer(t);
  fake.script = ({ url }) => {
    const isBad = fake.batches
      .at(-1)
      ?.events.some((event) => event["command_id"] === "2" && event["event_type"] === "task.done");
    return isBatch(url) && isBad === true
      ? { status: 413, body: { error: "too large", code: "TOO_LARGE" } }
      : undefined;
  };
  fake.offer(commandOf(1), commandOf(2), commandOf(3));
  const worker = startTestWorker(fake);
  await fake.until(() => fake.eventsOf("2").includes("command.failed"));
  await fake.until(() => fake.eventsOf("3").includes("command.completed"));
  assert.equal(fake.eventsOf("1").at(-1), "command.completed");
  assert.equal(worker.log().filter(({ level }) => level === "error").length, 1);
});

test("a server that takes not even the failure is not asked forever: the command is left to its lease", async (t) => {
  const fake = await startFakeServer(t);
  fake.script = ({ url }) => {
    const isBad = fake.batches.at(-1)?.events.some((event) => event["command_id"] === "1");
    return isBatch(url) && isBad === true ? { status: 422, body: { error: "no", code: "INVALID_INPUT" } } : undefined;
  };
  fake.offer(commandOf(1));
  const worker = startTestWorker(fake, { FLOW_WORKER_CAPACITY: "1" });
  await fake.until(() => fake.batches.length === 2);
  // Its slot is free again.
  fake.offer(commandOf(2));
  await fake.until(() => fake.eventsOf("2").includes("command.completed"));
  await worker.stop();
  assert.deepEqual(fake.eventsOf("1"), ["task.done", "command.completed", "command.failed"]);
});
