import assert from "node:assert/strict";
import { test } from "node:test";
import { type Body, openApi } from "../../support/service/api.ts";
import { ONE_STEP, TWO_STEPS, workWith } from "../../support/service/api-work.ts";

const work = workWith(await openApi());

test("with wait_ms the start is answered with the end, or with how far it is when the time is over", async () => {
  await work.register("runs/waited", TWO_STEPS);
  const waiting = work.post("/api/execute", { path: "runs/waited", wait_ms: 30_000 });
  const [first] = await work.claim("waited");
  assert.ok(first !== undefined);
  await work.finish("waited", first, { step: "start" });
  await work.runToEnd(first.execution_id, "waited");
  const { status, body } = await waiting;
  assert.deepEqual(
    [status, body["execution_id"], body["status"], body["result"], body["error"]],
    [200, first.execution_id, "COMPLETED", { step: "end" }, null],
  );
  const early = await work.post("/api/execute", { path: "runs/waited", wait_ms: 1 });
  assert.deepEqual([early.status, early.body["status"], "result" in early.body], [200, "RUNNING", false]);
  await work.runToEnd(String(early.body["execution_id"]), "waited");
});

test("with wait_ms a failure is an answer too, and the same key gives the end of the execution that it started", async () => {
  await work.register("runs/failing", ONE_STEP);
  const key = { "idempotency-key": "waited-1" };
  const waiting = work.post("/api/execute", { path: "runs/failing", wait_ms: 30_000 }, key);
  const [command] = await work.claim("failing");
  assert.ok(command !== undefined);
  const { command_id, attempt, step } = command;
  const error = { kind: "server_error", code: "HTTP_500", message: "it broke", retryable: true };
  const failed = { command_id, attempt, step, event_type: "command.failed", error };
  await work.post("/api/events/batch", { worker: "failing", events: [failed] });
  for (const answer of [
    await waiting,
    await work.post("/api/execute", { path: "runs/failing", wait_ms: 30_000 }, key),
  ]) {
    const { status, body } = answer;
    assert.deepEqual(
      [status, body["execution_id"], body["status"], body["result"], (body["error"] as Body)["message"]],
      [200, command.execution_id, "FAILED", null, "it broke"],
    );
  }
});

test("what is sealed in a result is masked in the answer to wait_ms as in every other", async () => {
  await work.register("runs/sealed", ONE_STEP);
  const sealed = "Bearer [sealed:k1:Zm9vYmFy]";
  const waiting = work.post("/api/execute", { path: "runs/sealed", wait_ms: 30_000 });
  const [command] = await work.claim("sealed");
  assert.ok(command !== undefined);
  await work.finish("sealed", command, { header: sealed, [sealed]: 1 });
  const { body } = await waiting;
  assert.deepEqual(body["result"], { header: "Bearer [secret]", "Bearer [secret]": 1 });
  const { body: detail } = await work.get(`/api/executions/${command.execution_id}`);
  assert.deepEqual(detail["result"], body["result"]);
});
