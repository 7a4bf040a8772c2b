import assert from "node:assert/strict";
import { test } from "node:test";
import { closedPort, startHttpServer } from "../support/servers/http-server.ts";
import { commandOf, documentOf, startFakeServer } from "./support/fake-server.ts";
import { startGate } from "./support/gate.ts";
import { startTestWorker } from "./support/worker.ts";

const QUICK = { FLOW_WORKER_HEARTBEAT_SECONDS: "0.02" };
const isBeat = (url: string) => url === "/api/worker/pool/heartbeat";

test("a worker makes itself known with what it is, claims nothing before, and says what it runs", async (t) => {
  const fake = await startFakeServer(t);
  const gate = await startGate(t);
  fake.documents.set("2", documentOf(gate.task("a")));
  fake.offer(commandOf(1, "2"));
  startTestWorker(fake, { ...QUICK, FLOW_WORKER_TOOLS: "http,noop", FLOW_WORKER_LABELS: "gpu=yes" });
  await gate.reached("a");
  const [registration] = fake.registrations;
  assert.deepEqual(
    [registration?.["name"], registration?.["capacity"], registration?.["labels"], registration?.["capabilities"]],
    ["w", 64, { gpu: "yes" }, ["http", "noop", "playbook", "workbook"]],
  );
  assert.ok(fake.calls.indexOf("POST /api/worker/pool/register") < fake.calls.indexOf("POST /api/commands/claim"));
  const beat = await fake.until(() => fake.beats.find(({ running }) => running.length > 0));
  const runtime = registration?.["runtime"] as { instance: string } | undefined;
  assert.deepEqual(beat, {
    name: "w",
    instance: runtime?.instance,
    running: [{ command_id: "1", attempt: 1 }],
    wait_ms: 20,
  });
  gate.open("a");
  await fake.until(() => fake.eventsOf("1").includes("command.completed"));
  await fake.until(() => fake.beats.at(-1)?.running.length === 0);
});

test("a worker runs every kind but shell by default", async (t) => {
  const fake = await startFakeServer(t);
  startTestWorker(fake);
  const [claim] = await fake.until(() => fake.claims.length > 0 && fake.claims);
  const kinds = claim?.["kinds"] as string[];
  assert.ok(kinds.includes("http") && kinds.includes("python") && kinds.includes("playbook"));
  assert.equal(kinds.includes("shell"), false);
});

test("a worker that may run all kinds claims whatever there is", async (t) => {
  const fake = await startFakeServer(t);
  startTestWorker(fake, { FLOW_WORKER_TOOLS: "all" });
  const [claim] = await fake.until(() => fake.claims.length > 0 && fake.claims);
  assert.equal(claim?.["kinds"], undefined);
});

test("a worker that the server does not know any more registers again and works on", async (t) => {
  const fake = await startFakeServer(t);
  fake.script = ({ url }) =>
    isBeat(url) && fake.beats.length === 1 ? { status: 404, body: { error: "unknown", code: "unknown" } } : undefined;
  startTestWorker(fake, QUICK);
  await fake.until(() => fake.registrations.length === 2);
  fake.offer(commandOf(1));
  await fake.until(() => fake.eventsOf("1").includes("command.completed"));
});

test("a claim of a worker that the server does not know brings a registration", async (t) => {
  const fake = await startFakeServer(t);
  fake.script = ({ url }) =>
    url === "/api/commands/claim" && fake.claims.length === 1
      ? { status: 404, body: { error: "unknown", code: "unknown" } }
      : undefined;
  startTestWorker(fake);
  await fake.until(() => fake.registrations.length === 2 && fake.claims.length === 2);
});

test("a server that is not there yet is waited for", async (t) => {
  const port = await closedPort();
  const users: (() => Promise<void>)[] = [];
  const worker = startTestWorker({ url: `http://127.0.0.1:${port}`, users });
  t.after(async () => {
    for (const stop of users) await stop();
  });
  // It has tried, and failed, before there is a server.
  await worker.untilLog("registering failed");
  const { server, seen } = await listenOn(port);
  t.after(() => server.close());
  await worker.registered;
  await seen("/api/commands/claim");
});

async function listenOn(port: number) {
  const urls: string[] = [];
  let look = () => {};
  const server = await startHttpServer((request, response) => {
    urls.push(request.url);
    look();
    if (request.url !== "/api/commands/claim") response.end('{"status":"ok"}');
  }, port);
  const seen = (url: string) =>
    new Promise<void>((resolve) => {
      look = () => urls.includes(url) && resolve();
      look();
    });
  return { server, seen };
}

test("a cancelled command is stopped and nothing is reported for it", async (t) => {
  const fake = await startFakeServer(t);
  const gate = await startGate(t);
  fake.documents.set("2", documentOf(gate.task("a")));
  fake.offer(commandOf(1, "2"));
  startTestWorker(fake, QUICK);
  await gate.reached("a");
  fake.script = ({ url }) =>
    isBeat(url) ? { status: 200, body: { status: "ok", cancel: ["1"], lost: [] } } : undefined;
  await gate.left("a");
  fake.script = () => undefined;
  await fake.until(() => fake.beats.at(-1)?.running.length === 0);
  fake.offer(commandOf(2));
  await fake.until(() => fake.eventsOf("2").includes("command.completed"));
  assert.equal(fake.eventsOf("1").includes("command.failed"), false);
});

test("an iteration that was ended by hand is stopped while it runs, and its command goes on", async (t) => {
  const fake = await startFakeServer(t);
  const gate = await startGate(t);
  const document = documentOf(gate.task("a{{ iter.x }}")).replace(
    "tool:",
    "loop: { in: [0, 1], iterator: x }\n  tool:",
  );
  fake.documents.set("2", document);
  const loop = { from: 0, items: [0, 1], total: 2, max_in_flight: 1, stop_on_error: true };
  fake.offer(commandOf(1, "2", { loop }));
  startTestWorker(fake, QUICK);
  await gate.reached("a0");
  const cancel_iterations = [{ command_id: "1", iterations: [0] }];
  fake.script = ({ url }) =>
    isBeat(url) ? { status: 200, body: { status: "ok", cancel: [], cancel_iterations, lost: [] } } : undefined;
  await gate.left("a0");
  await gate.reached("a1");
  gate.open("a1");
  await fake.until(() => fake.eventsOf("1").includes("command.completed"));
  assert.equal(fake.eventsOf("1").filter((type) => type === "loop.iteration.completed").length, 1);
});

test("a lost claim is given up, but not the newer one of the same command", async (t) => {
  const fake = await startFakeServer(t);
  const gate = await startGate(t);
  fake.documents.set("2", documentOf(gate.task("a{{ workload.n }}")));
  const command = (n: number, attempt: number) =>
    commandOf(1, "2", { attempt, context: { workload: { n }, vars: {}, steps: {}, input: {} } });
  fake.offer(command(1, 1));
  let answer = () => {};
  const held = new Promise<void>((resolve) => {
    answer = resolve;
  });
  // The heartbeat that speaks of attempt 1 is answered after the worker has claimed attempt 2.
  fake.script = ({ url, body }) =>
    isBeat(url) && body.includes('"attempt":1')
      ? { status: 200, body: { status: "ok", cancel: [], lost: ["1"] }, after: held }
      : undefined;
  startTestWorker(fake, QUICK);
  await gate.reached("a1");
  await fake.until(() => fake.beats.some(({ running }) => running[0]?.attempt === 1));
  fake.offer(command(2, 2));
  await gate.reached("a2");
  await gate.left("a1");
  answer();
  await fake.until(() => fake.beats.some(({ running }) => running[0]?.attempt === 2));
  gate.open("a2");
  await fake.until(() => fake.eventsOf("1").includes("command.completed"));
  const ends = fake.batches
    .flatMap(({ events }) => events)
    .filter((event) => event["event_type"] === "command.completed");
  assert.deepEqual(
    ends.map((event) => event["attempt"]),
    [2],
  );
});

test("when stopped, a worker claims nothing more, finishes and reports running work, and leaves", async (t) => {
  const fake = await startFakeServer(t);
  const gate = await startGate(t);
  fake.documents.set("2", documentOf(gate.task("a")));
  fake.offer(commandOf(1, "2"));
  const worker = startTestWorker(fake);
  await gate.reached("a");
  const stopped = worker.stop();
  await fake.until(() => fake.beats.some(({ draining }) => draining === true));
  const claims = fake.claims.length;
  gate.open("a");
  await stopped;
  assert.deepEqual(fake.eventsOf("1").slice(-2), ["task.done", "command.completed"]);
  assert.equal(fake.batches.at(-1)?.claim, undefined, "its last report asks for nothing");
  assert.equal(fake.claims.length, claims);
  assert.equal(fake.calls.at(-1), "POST /api/worker/pool/deregister");
  const last = worker.log().at(-1);
  assert.deepEqual([last?.["commands"], last?.["left"]], [1, 0]);
});

test("what does not end in the time for draining is stopped without a report: another worker has it then", async (t) => {
  const fake = await startFakeServer(t);
  const gate = await startGate(t);
  fake.documents.set("2", documentOf(gate.task("a")));
  fake.offer(commandOf(1, "2"));
  const worker = startTestWorker(fake, { FLOW_WORKER_DRAIN_SECONDS: "0.05" });
  await gate.reached("a");
  await worker.stop();
  await gate.left("a");
  assert.equal(
    fake.eventsOf("1").some((type) => type.startsWith("command.f") || type === "task.done"),
    false,
  );
  assert.equal(fake.calls.at(-1), "POST /api/worker/pool/deregister");
  assert.equal(worker.log().at(-1)?.["left"], 1);
});

test("a worker whose name another process has by now gives up what runs, takes nothing more, and says why", async (t) => {
  const fake = await startFakeServer(t);
  const gate = await startGate(t);
  fake.documents.set("2", documentOf(gate.task("a")));
  fake.offer(commandOf(1, "2"));
  const worker = startTestWorker(fake, QUICK);
  await gate.reached("a");
  const error = "Another process has registered as worker 'w' since";
  fake.script = ({ url }) => (isBeat(url) ? { status: 409, body: { error, code: "CONFLICT" } } : undefined);
  await gate.left("a");
  await worker.untilLog(error);
  const beats = fake.beats.length;
  await worker.stop();
  assert.deepEqual([fake.eventsOf("1"), fake.beats.length], [[], beats]);
});
