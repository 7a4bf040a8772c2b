import assert from "node:assert/strict";
import { test } from "node:test";
import type { Database } from "../../../src/repositories/database/database.ts";
import {
  awaitResult,
  type ExecutionResult,
  type ResultRequest,
} from "../../../src/services/executions/await-result.ts";
import { buildApi, openApi } from "../../support/service/api.ts";
import { type Claimed, ONE_STEP, workWith } from "../../support/service/api-work.ts";

const api = await openApi();
const { orchestrator } = api.service;
const work = workWith(api);
await work.register("runs/awaited", ONE_STEP);

const reader = { read: () => assert.fail("no state is read"), program: () => assert.fail("no program is read") };

/** Waits as a caller does, and counts the statements that it makes. */
function waiting(executionId: string, request: ResultRequest) {
  const counted = { statements: 0 };
  const sql = new Proxy(api.database.sql, {
    apply(target, self, parts) {
      counted.statements += 1;
      return Reflect.apply(target, self, parts);
    },
  });
  const database: Database = { ...api.database, sql };
  const result = awaitResult({ database, orchestrator, reader }, executionId, request, AbortSignal.timeout(60_000));
  return { counted, result };
}

/** Starts an execution and takes its command, which stays open. */
async function started(): Promise<Claimed> {
  const id = await work.execute("runs/awaited");
  const [command] = await work.claim("awaiting");
  assert.equal(command?.execution_id, id);
  return command as Claimed;
}

/** What a caller gets who comes after the end: what the row says. */
async function late(executionId: string): Promise<ExecutionResult> {
  const { counted, result } = waiting(executionId, { waitMs: 0 });
  const found = await result;
  assert.equal(counted.statements, 1);
  return found;
}

const FRESH = { waitMs: 60_000, isFresh: true };

for (const [how, status, end] of [
  [
    "completes",
    "COMPLETED",
    (command: Claimed) => work.finish("awaiting", command, { "9": 1, a: [null, -0, "\u0000"] }),
  ],
  [
    "fails",
    "FAILED",
    ({ command_id, attempt, step }: Claimed) => {
      const error = { kind: "server_error", code: "HTTP_500", message: "it broke", retryable: true };
      const event = { command_id, attempt, step, event_type: "command.failed", error };
      return work.post("/api/events/batch", { worker: "awaiting", events: [event] });
    },
  ],
  [
    "is cancelled",
    "CANCELLED",
    ({ execution_id }: Claimed) => work.post(`/api/executions/${execution_id}/cancel`, { reason: "wrong day" }),
  ],
] as const) {
  test(`who started an execution that ${how} gets its end without a statement, as its row has it`, async () => {
    const command = await started();
    const { counted, result } = waiting(command.execution_id, FRESH);
    const other = waiting(command.execution_id, { waitMs: 60_000 });
    await end(command);
    const found = await result;
    assert.deepEqual([found.status, counted.statements], [status, 0]);
    assert.deepEqual(found, await late(command.execution_id));
    assert.deepEqual(await other.result, found);
    assert.equal(other.counted.statements, 1, "to find the execution; the end is known");
  });
}

test("an execution that has ended before its caller waits is read", async () => {
  const command = await started();
  await work.finish("awaiting", command, 1);
  await work.runToEnd(command.execution_id);
  const { counted, result } = waiting(command.execution_id, FRESH);
  assert.deepEqual([(await result).status, counted.statements], ["COMPLETED", 1]);
});

test("when the time is over the row says how far it is", async () => {
  const command = await started();
  const { counted, result } = waiting(command.execution_id, { waitMs: 1, isFresh: true });
  const { status, hasEnded } = await result;
  assert.deepEqual([status, hasEnded, counted.statements], ["RUNNING", false, 1]);
  await work.finish("awaiting", command);
});

test("an end that another server wrote is read when a notice of it comes, also one that says less than it could", async () => {
  const command = await started();
  const { counted, result } = waiting(command.execution_id, FRESH);
  const other = await buildApi(api.database);
  const there = workWith(other);
  await there.finish("awaiting", command, "from elsewhere");
  await there.runToEnd(command.execution_id);
  assert.equal(counted.statements, 0);
  orchestrator.wake(command.execution_id, false);
  orchestrator.wake(command.execution_id, true);
  const { status, result: value } = await result;
  assert.deepEqual([status, counted.statements], ["COMPLETED", 1]);
  assert.deepEqual(value, (await late(command.execution_id)).result);
  await other.service.orchestrator.close();
  await other.service.results.close();
});

test("an execution that was deleted meanwhile is unknown, and so is one that never was", async () => {
  const command = await started();
  const { result } = waiting(command.execution_id, FRESH);
  const gone = assert.rejects(result, { code: "NOT_FOUND" });
  await api.database.sql`delete from flow.execution where execution_id = ${command.execution_id}`;
  orchestrator.wake(command.execution_id, true);
  await gone;
  await assert.rejects(waiting("1", FRESH).result, { code: "NOT_FOUND" });
});
