import assert from "node:assert/strict";
import { test } from "node:test";
import { unavailable } from "../../../src/repositories/database/error-codes.ts";
import { FlowError } from "../../../src/schema/words/errors.ts";
import type { Orchestrator, ReportRequest } from "../../../src/services/orchestration/orchestrator.ts";
import type { ClaimedCommand } from "../../../src/services/orchestration/rounds/types.ts";
import { openOrchestrator } from "../../support/engine/orchestrator.ts";

// A report that is not written: what its sender is told.

const TWO_STEPS = `apiVersion: flow/v2
kind: Playbook
metadata: { name: two, path: two }
workflow:
  - { step: one, tool: { kind: noop }, next: two }
  - { step: two, tool: { kind: noop } }
`;
const cut = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });

async function claimed(orchestrator: Orchestrator): Promise<ClaimedCommand> {
  const claim = { worker: "w", limit: 1, kinds: undefined, labels: {}, waitMs: 1_000 };
  const [command] = await orchestrator.claim(claim);
  assert.ok(command);
  return command;
}

/** The report of a command's start; without its execution, as a worker of another make may send it. */
function started({ command, attempt }: ClaimedCommand, more: Partial<ReportRequest> = {}): ReportRequest {
  const { command_id, step } = command;
  const event = { type: "command.started" as const, at: 1, command_id, attempt, step, worker: "w" };
  const events = [{ executionId: undefined, event }];
  return { caller: "w", idempotencyKey: null, bodySha256: "a", isAwaited: true, events, ...more };
}

test("events that leave out their execution belong to that of their command", async () => {
  const { orchestrator, start, view } = openOrchestrator();
  const executionId = await start(TWO_STEPS);
  await orchestrator.report(started(await claimed(orchestrator)));
  assert.equal(Object.values((await view(executionId))?.state.commands ?? {})[0]?.running, true);
  await orchestrator.close();
});

test("an event of an unknown command refuses the whole batch, and nothing is written", async () => {
  const { orchestrator, start, store } = openOrchestrator();
  const executionId = await start(TWO_STEPS);
  const command = await claimed(orchestrator);
  const before = store.executions.get(executionId)?.lastEventId;
  const [known] = started(command).events;
  assert.ok(known);
  const unknown = { ...known, event: { ...known.event, command_id: "7" } };
  await assert.rejects(orchestrator.report(started(command, { events: [known, unknown] })), (error: unknown) => {
    assert.ok(error instanceof FlowError);
    assert.equal(error.code, "CONFLICT");
    assert.deepEqual(error.detail, { events: [{ index: 1, command_id: "7", reason: "unknown" }] });
    return true;
  });
  assert.equal(store.executions.get(executionId)?.lastEventId, before);
  await orchestrator.close();
});

test("a batch that cannot be written because the database is away is refused with enqueue_error", async () => {
  for (const key of [null, "k"]) {
    const { orchestrator, start, store } = openOrchestrator({ unavailable });
    await start(TWO_STEPS);
    const command = await claimed(orchestrator);
    const { flush } = store;
    store.flush = () => Promise.reject(cut);
    await assert.rejects(orchestrator.report(started(command, { idempotencyKey: key })), (error: unknown) => {
      assert.ok(error instanceof FlowError);
      assert.equal(error.code, "enqueue_error");
      assert.match(error.message, /could not be written: The database cannot be reached.*its idempotency key$/);
      return true;
    });
    store.flush = flush;
    await orchestrator.report(started(command, { idempotencyKey: key }));
    await orchestrator.close();
  }
});

test("every other refusal stays unchanged", async () => {
  const { orchestrator, start } = openOrchestrator({ unavailable });
  await start(TWO_STEPS);
  const command = await claimed(orchestrator);
  const late = { ...command, attempt: 9 };
  await assert.rejects(orchestrator.report(started(late)), { code: "CONFLICT" });
  await orchestrator.close();
  await assert.rejects(orchestrator.report(started(command)), { code: "worker_unavailable" });
});
