import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../src/schema/words/json.ts";
import { commandOf, documentOf, type FakeServer, startFakeServer } from "./support/fake-server.ts";
import { startTestWorker } from "./support/worker.ts";

// Large results go behind the report of their task where the server takes them there, and by requests of their own where it does not.

const isReport = (url: string) => url === "/api/events/batch";
const SAVED = {
  ...{ status: "ok", ref: "", store: "s3", bytes: 40, sha256: "a".repeat(64), content_type: "application/json" },
  ...{ compression: null, expires_at: "2027-01-31T12:00:00.000Z", meta: { bucket: "b", key: "k" } },
};

/** A task whose result has these texts, none of which is short enough to stand in an event. */
const task = (name: string, text: string, more = "") =>
  `{name: ${name}, kind: noop, result: {text: "${text}"}, spec: {result: {inline_max_bytes: 10${more}}}}`;

/** A fake server with one command of this tool, and a worker that has got it. */
async function running(context: Parameters<typeof startFakeServer>[0], tool: string): Promise<FakeServer> {
  const fake = await startFakeServer(context);
  fake.documents.set("1", documentOf(tool));
  fake.offer(commandOf(1));
  return fake;
}

interface Envelope {
  reference?: { ref: string; store: string; expires_at?: string; meta: JsonObject };
  context: JsonObject;
}
const envelopeOf = (event: JsonObject | undefined) => event?.["result"] as unknown as Envelope | undefined;
const referenceOf = (event: JsonObject | undefined) => envelopeOf(event)?.reference;

test("the result of a command's last task goes behind its report, in one call", async (t) => {
  const fake = await running(t, task("only", "x".repeat(30)));
  startTestWorker(fake);
  const batch = await fake.until(() => fake.batches[0]);
  assert.equal(batch.attached, `{"text":"${"x".repeat(30)}"}`);
  const [done, completed] = batch.events;
  assert.equal(completed?.["event_type"], "command.completed");
  const ref = referenceOf(done)?.ref;
  assert.deepEqual(batch.attachments, [{ event: 0, ref, bytes: batch.attached.length }]);
  assert.ok(!fake.calls.some((call) => call.startsWith("PUT")));
});

test("results of tasks that others follow, and those for a store or a scope of their own, are stored before they are reported", async (t) => {
  const pipeline = [
    task("first", "a".repeat(30)),
    task("second", "b".repeat(30), ", store: {kind: s3}"),
    task("third", "c".repeat(30), ", store: {scope: step}"),
    task("last", "d".repeat(30)),
  ];
  for (const [place, tool] of [`[${pipeline.join(", ")}]`, pipeline[1], pipeline[2]].entries()) {
    const fake = await running(t, tool ?? assert.fail());
    fake.script = ({ method }) => (method === "PUT" ? { status: 200, body: SAVED } : undefined);
    startTestWorker(fake);
    const done = await fake.until(() => {
      const events = fake.batches.flatMap(({ events }) => events);
      return events.some(({ event_type }) => event_type === "command.completed") ? events : undefined;
    });
    const stores = done.filter(({ event_type }) => event_type === "task.done").map((one) => referenceOf(one)?.store);
    assert.deepEqual(stores, place === 0 ? ["s3", "s3", "s3", "kv"] : ["s3"]);
    assert.equal(fake.calls.filter((call) => call.startsWith("PUT")).length, place === 0 ? 3 : 1);
    assert.deepEqual(
      fake.batches.map(({ attached }) => attached).join(""),
      place === 0 ? `{"text":"${"d".repeat(30)}"}` : "",
    );
  }
});

test("a result that its own task's assignments read is read from memory while it waits", async (t) => {
  const tool = `{name: only, kind: noop, result: {rows: [a, "${"x".repeat(300)}"]}, set: {ctx.first: "{{ only.rows[0] }}"}, spec: {result: {inline_max_bytes: 10}}}`;
  const fake = await running(t, tool);
  startTestWorker(fake);
  const batch = await fake.until(() => fake.batches.find(({ events }) => events.length === 2));
  assert.deepEqual(
    batch.events.map(({ event_type }) => event_type),
    ["task.done", "command.completed"],
  );
  assert.deepEqual(envelopeOf(batch.events[1])?.context["set"], [["first", "a"]]);
  assert.ok(!fake.calls.some((call) => call.startsWith("GET /api/results")));
});

test("a server that refuses them gets the same report without them, after they were uploaded; for a minute all are", async (t) => {
  for (const status of [400, 413, 422]) {
    const fake = await running(t, task("only", "x".repeat(30)));
    fake.script = ({ url, method, headers }) => {
      if (method === "PUT") return { status: 200, body: SAVED };
      const isRefused = isReport(url) && headers["x-flow-report-bytes"] !== undefined;
      return isRefused ? { status, body: { error: "The body is not JSON", code: "INVALID_INPUT" } } : undefined;
    };
    startTestWorker(fake);
    const [first, second] = await fake.until(() => (fake.batches.length >= 2 ? fake.batches : undefined));
    assert.deepEqual([first?.attached.length, second?.attached], [41, ""]);
    const reference = referenceOf(second?.events[0]);
    assert.deepEqual([reference?.store, reference?.expires_at], ["s3", SAVED.expires_at]);
    assert.deepEqual(reference?.meta, {
      ...{ content_type: "application/json", bytes: 40, sha256: SAVED.sha256, bucket: "b", key: "k", fields: ["text"] },
    });
    assert.notEqual(first?.key, second?.key);
    fake.offer(commandOf(2));
    const third = await fake.until(() => fake.batches[2]);
    assert.equal(third.attached, "");
    assert.deepEqual(fake.eventsOf("2"), ["task.done", "command.completed"]);
  }
});

test("a result that is refused behind the report and by the upload fails its command; that of a lost claim is dropped", async (t) => {
  for (const [status, code] of [
    [507, "NOT_STORED"],
    [409, "CONFLICT"],
  ] as const) {
    const fake = await running(t, task("only", "x".repeat(30)));
    fake.script = ({ url, method, headers }) => {
      if (method === "PUT") return { status, body: { error: "no room", code } };
      const isRefused = isReport(url) && headers["x-flow-report-bytes"] !== undefined;
      return isRefused ? { status: 422, body: { error: "no", code: "INVALID_INPUT" } } : undefined;
    };
    const worker = startTestWorker(fake);
    if (status === 409) await worker.untilLog("a command is given up");
    else {
      const second = await fake.until(() => fake.batches[1]);
      assert.deepEqual(
        second.events.map(({ event_type }) => event_type),
        ["command.failed"],
      );
      assert.match(JSON.stringify(second.events), /no room/);
    }
    await worker.stop();
    assert.equal(fake.eventsOf("1").filter((type) => type === "command.completed").length, 1);
  }
});
