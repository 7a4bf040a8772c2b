import assert from "node:assert/strict";
import { before, test } from "node:test";
import { type Body, openApi } from "../../support/service/api.ts";
import { ONE_STEP, workWith } from "../../support/service/api-work.ts";

// A heartbeat whose answer waits for something to stop (Worker protocol).

const api = await openApi();
const work = workWith(api);
before(async () => {
  await work.register("p", ONE_STEP);
  for (const name of ["w", "v"]) await work.post("/api/worker/pool/register", { name, capacity: 4 });
});

const beat = (body: Body) => work.post("/api/worker/pool/heartbeat", { running: [], ...body });
const LONG_MS = 30_000;

/** Cancels the execution, and tells what the broker would bring back. */
async function cancel(executionId: string, commandId: string, worker: string): Promise<void> {
  const { status } = await work.post(`/api/executions/${executionId}/cancel`, {});
  assert.equal(status, 200);
  await api.service.cancelNotices.tell([{ commandId, worker }]);
}

test("a heartbeat that waits is answered as soon as a command of its worker is cancelled", async () => {
  await work.execute("p");
  const [command] = await work.claim("w", 1);
  assert.ok(command);
  const running = [{ command_id: command.command_id, attempt: command.attempt }];
  const waiting = beat({ name: "w", running, wait_ms: LONG_MS });
  await beat({ name: "w", running });
  await cancel(command.execution_id, command.command_id, "w");
  assert.deepEqual((await waiting).body, { status: "ok", cancel: [command.command_id], lost: [], lease_ms: 120_000 });
});

test("a command claimed after the heartbeat began is reported too, and not to another worker", async () => {
  const waiting = beat({ name: "w", wait_ms: LONG_MS });
  const other = beat({ name: "v", wait_ms: 300 });
  await work.execute("p");
  const [command] = await work.claim("w", 1);
  assert.ok(command);
  await cancel(command.execution_id, command.command_id, "w");
  assert.deepEqual((await waiting).body["cancel"], [command.command_id]);
  assert.deepEqual((await other).body["cancel"], []);
});

test("a command to stop is answered without a wait, and so is a heartbeat that does not wait", async () => {
  await work.execute("p");
  const [command] = await work.claim("w", 1);
  assert.ok(command);
  await work.post(`/api/executions/${command.execution_id}/cancel`, {});
  const running = [{ command_id: command.command_id, attempt: command.attempt }];
  const { body } = await beat({ name: "w", running, wait_ms: LONG_MS });
  assert.deepEqual(body["cancel"], [command.command_id]);
  assert.deepEqual((await beat({ name: "w" })).body, { status: "ok", cancel: [], lost: [], lease_ms: 120_000 });
});

test("an unknown worker is answered without a wait, and a wait that is too long is 422", async () => {
  assert.equal((await beat({ name: "nobody", wait_ms: LONG_MS })).status, 404);
  assert.equal((await beat({ name: "w", wait_ms: LONG_MS + 1 })).status, 422);
});

test("a server that stops answers at once", async () => {
  const waiting = beat({ name: "v", wait_ms: LONG_MS });
  await beat({ name: "v" });
  api.stopping.abort();
  assert.deepEqual((await waiting).body, { status: "ok", cancel: [], lost: [], lease_ms: 120_000 });
});
