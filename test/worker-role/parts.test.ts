import assert from "node:assert/strict";
import { test } from "node:test";
import { commandOf, documentOf, startFakeServer } from "./support/fake-server.ts";
import { startTestWorker } from "./support/worker.ts";

const CHILD = "{kind: playbook, path: some/child, args: {n: 5}}";

test("a sub-playbook is started once with its parent and a key of its task run, and waited for until it ends", async (t) => {
  const fake = await startFakeServer(t);
  fake.documents.set("2", documentOf(CHILD));
  let asked = 0;
  const execute: { body: unknown; key: unknown }[] = [];
  fake.script = ({ url, body, headers }) => {
    if (url === "/api/execute") {
      execute.push({ body: JSON.parse(body), key: headers["idempotency-key"] });
      return execute.length === 1
        ? { status: 503, body: { error: "busy", code: "UNAVAILABLE" } }
        : {
            status: 200,
            body: { execution_id: "77", status: "RUNNING", path: "some/child", version: 1, catalog_id: "9" },
          };
    }
    if (!url.startsWith("/api/executions/77/result")) return undefined;
    asked += 1;
    const open = { execution_id: "77", path: "some/child", status: "RUNNING", result: null, error: null };
    return { status: 200, body: asked === 1 ? open : { ...open, status: "COMPLETED", result: { value: { x: 1 } } } };
  };
  fake.offer(commandOf(1, "2"));
  startTestWorker(fake);
  await fake.until(() => fake.eventsOf("1").includes("command.completed"));
  // Its start is reported apart where the end does not follow soon.
  const told = fake.eventsOf("1").filter((name) => name !== "command.started");
  assert.deepEqual(told, ["call.done", "task.done", "command.completed"]);
  const done = await fake.untilEvent("task.done");
  const { value } = (done["result"] as { context: { value: unknown } }).context;
  assert.deepEqual(value, { status: "completed", execution_id: "77", x: 1 });
  assert.deepEqual(execute[0], execute[1], "tried again with the same key");
  const body = { path: "some/child", workload: { n: 5 }, parent_execution_id: "1000001", parent_step: "only" };
  assert.deepEqual(execute[0], { body, key: "1-0-0-1" });
});

test("a command that waits for its child leaves its slot to others: the child runs on a worker of one slot", async (t) => {
  const fake = await startFakeServer(t);
  fake.documents.set("2", documentOf(CHILD));
  fake.script = ({ url }) => {
    if (url === "/api/execute") {
      fake.offer(commandOf(50));
      return {
        status: 200,
        body: { execution_id: "77", status: "RUNNING", path: "some/child", version: 1, catalog_id: "9" },
      };
    }
    if (!url.startsWith("/api/executions/77/result")) return undefined;
    const ended = fake.until(() => fake.eventsOf("50").includes("command.completed")).then(() => undefined);
    const body = {
      execution_id: "77",
      path: "some/child",
      status: "FAILED",
      result: null,
      error: { code: "X", message: "no" },
    };
    return { status: 200, body, after: ended };
  };
  fake.offer(commandOf(1, "2"));
  startTestWorker(fake, { FLOW_WORKER_CAPACITY: "1" });
  const failure = await fake.untilEvent("command.failed");
  assert.match((failure["error"] as { message: string }).message, /'some\/child' \(execution 77\) failed: no/);
});

test("a task whose time is over cancels its child; a worker that stops does not", async (t) => {
  const fake = await startFakeServer(t);
  fake.documents.set("2", documentOf(`{kind: playbook, path: some/child, timeout_seconds: 1}`));
  fake.documents.set("3", documentOf(CHILD));
  const never = new Promise<void>(() => {});
  fake.script = ({ url, body }) => {
    if (url === "/api/execute") {
      const id = body.includes('"1000001"') ? "77" : "78";
      return {
        status: 200,
        body: { execution_id: id, status: "RUNNING", path: "some/child", version: 1, catalog_id: "9" },
      };
    }
    if (url.includes("/cancel")) return { status: 200, body: {} };
    return url.includes("/result") ? { status: 200, after: never } : undefined;
  };
  fake.offer(commandOf(1, "2"), commandOf(2, "3"));
  const worker = startTestWorker(fake, { FLOW_WORKER_DRAIN_SECONDS: "0.05" });
  await fake.until(() => fake.calls.includes("POST /api/executions/77/cancel"));
  await fake.until(() => fake.calls.includes("GET /api/executions/78/result"));
  await worker.stop();
  assert.equal(fake.calls.includes("POST /api/executions/78/cancel"), false);
});

test("a result beyond the inline limit goes to the server's store, with the claim that it comes from", async (t) => {
  const fake = await startFakeServer(t);
  const task = `\n    kind: noop\n    result: {text: "${"x".repeat(100)}"}\n    spec: {result: {inline_max_bytes: 10, store: {scope: execution, ttl: 1h}}}`;
  fake.documents.set("2", documentOf(task));
  const stored: { query: Record<string, string>; body: string }[] = [];
  fake.script = ({ url, body }) => {
    if (!url.startsWith("/api/results?")) return undefined;
    stored.push({ query: Object.fromEntries(new URL(url, "http://x").searchParams), body });
    const expires_at = "2030-01-01T00:00:00.000Z";
    const ref = "noetl://execution/1000001/step/only";
    const kept = { ref, store: "disk", bytes: 111, sha256: "ab", content_type: "application/json", compression: null };
    return { status: 200, body: { status: "ok", ...kept, expires_at, meta: {} } };
  };
  fake.offer(commandOf(1, "2", { attempt: 3 }));
  startTestWorker(fake);
  await fake.until(() => fake.eventsOf("1").includes("command.completed"));
  const ref = "noetl://execution/1000001/step/only/task/only/run/1-0-0";
  assert.deepEqual(stored[0]?.query, {
    ref,
    worker: stored[0]?.query["worker"],
    command_id: "1",
    attempt: "3",
    scope: "execution",
    ttl: "1h",
  });
  assert.equal(stored[0]?.body, JSON.stringify({ text: "x".repeat(100) }));
  const done = await fake.untilEvent("task.done");
  const { reference } = done["result"] as { reference: Record<string, unknown> };
  assert.deepEqual(
    [reference["ref"], reference["store"], reference["expires_at"]],
    [ref, "disk", "2030-01-01T00:00:00.000Z"],
  );
});

test("a result that the server refuses because the claim is lost ends the work without a report", async (t) => {
  const fake = await startFakeServer(t);
  fake.documents.set(
    "2",
    documentOf(
      `\n    kind: noop\n    result: {text: "long"}\n    spec: {result: {inline_max_bytes: 1, store: {scope: execution}}}`,
    ),
  );
  fake.script = ({ url }) =>
    url.startsWith("/api/results?") ? { status: 409, body: { error: "lost", code: "CONFLICT" } } : undefined;
  fake.offer(commandOf(1, "2"));
  const worker = startTestWorker(fake);
  await worker.untilLog("a command is given up");
  await worker.stop();
  assert.deepEqual(fake.eventsOf("1"), []);
});

for (const [status, said, kind] of [
  [413, { error: "64 MiB is the most", code: "TOO_LARGE" }, "storage_quota"],
  [507, { error: "ENOSPC: no space left on device", code: "NOT_STORED" }, "storage_quota"],
  [507, { error: "The store s3 is not configured: set FLOW_S3_ENDPOINT", code: "NOT_STORED" }, "storage_access"],
] as const) {
  test(`a result that cannot be stored (${said.error}) fails its task with the server's reason`, async (t) => {
    const fake = await startFakeServer(t);
    fake.documents.set(
      "2",
      documentOf(
        `\n    kind: noop\n    result: {text: "long"}\n    spec: {result: {inline_max_bytes: 1, store: {scope: execution}}}`,
      ),
    );
    fake.script = ({ url }) => (url.startsWith("/api/results?") ? { status, body: said } : undefined);
    fake.offer(commandOf(1, "2"));
    startTestWorker(fake);
    const failure = await fake.untilEvent("command.failed");
    const error = failure["error"] as Record<string, string>;
    assert.deepEqual([error["code"], error["kind"]], [said.code, kind]);
    assert.ok(error["message"]?.startsWith(said.error), error["message"]);
  });
}

test("a payload that templates read is loaded from the server", async (t) => {
  const fake = await startFakeServer(t);
  fake.documents.set("2", documentOf(`{kind: noop, result: {n: "{{ before.list | length }}"}}`));
  const reference = {
    kind: "result_ref",
    ref: "noetl://execution/1000001/step/before/task/t/run/9-0-0",
    store: "kv",
    scope: "permanent",
    meta: { content_type: "application/json", bytes: 9, sha256: "ab" },
    extracted: {},
    preview: { truncated: true, bytes: 9, sample: "" },
  };
  fake.script = ({ url }) =>
    url.startsWith("/api/results/resolve?ref=noetl") ? { status: 200, body: { list: [1, 2, 3] } } : undefined;
  const context = { workload: {}, vars: {}, steps: { before: { ref: reference } }, input: {} };
  fake.offer(commandOf(1, "2", { context }));
  startTestWorker(fake);
  await fake.until(() => fake.eventsOf("1").includes("command.completed"));
  const done = await fake.untilEvent("task.done");
  assert.deepEqual((done["result"] as { context: { value: unknown } }).context.value, { n: 3 });
});

test("a catalog entry that is not there fails the command; one that cannot be read now is asked for again", async (t) => {
  const fake = await startFakeServer(t);
  let tries = 0;
  fake.script = ({ url }) => {
    if (url !== "/api/catalog/entries/1") return undefined;
    tries += 1;
    return tries < 3 ? { status: 503, body: { error: "no database", code: "UNAVAILABLE" } } : undefined;
  };
  fake.offer(commandOf(1), commandOf(2, "404"));
  startTestWorker(fake);
  await fake.until(() => fake.eventsOf("2").includes("command.failed"));
  await fake.until(() => fake.eventsOf("1").includes("command.completed"));
  const failure = await fake.untilEvent("command.failed");
  assert.equal((failure["error"] as { code: string }).code, "NOT_FOUND");
  assert.equal(fake.calls.filter((call) => call === "GET /api/catalog/entries/1").length, 3);
});
