import assert from "node:assert/strict";
import { test } from "node:test";
import type { ReportedEvent } from "../../../src/schema/api/event-input.ts";
import { FlowError } from "../../../src/schema/words/errors.ts";
import type { ClaimedCommand } from "../../../src/services/orchestration/rounds/types.ts";
import { createMemoryStore } from "../../support/engine/memory-store.ts";
import { openOrchestrator } from "../../support/engine/orchestrator.ts";

// What the simulator has found, each as small as it gets.

const TWO_STEPS = `apiVersion: flow/v2
kind: Playbook
metadata: { name: two, path: two }
workflow:
  - { step: one, tool: { kind: noop }, next: two }
  - { step: two, tool: { kind: noop } }
`;
const FAN_OUT = `apiVersion: flow/v2
kind: Playbook
metadata: { name: fan, path: fan }
workflow:
  - { step: each, loop: { in: 4, spec: { mode: parallel, max_in_flight: 4 } }, tool: { kind: noop } }
`;

const ask = (worker: string, limit = 1, waitMs = 0) => ({ worker, limit, kinds: undefined, labels: {}, waitMs });

/** What a worker reports of a command that went well. */
function endOf({ command, attempt }: ClaimedCommand): { executionId: string; event: ReportedEvent }[] {
  const { command_id, step, execution_id } = command;
  const event: ReportedEvent = { type: "command.completed", at: Date.now(), command_id, attempt, step, tasks: [] };
  return [{ executionId: execution_id, event }];
}

let keys = 0;
function batch(events: ReturnType<typeof endOf>, more: object = {}) {
  keys += 1;
  return { caller: "w", idempotencyKey: `k${keys}`, bodySha256: "a", events, ...more };
}

test("work spreads: each waiting worker gets one command before any worker gets two", async () => {
  const { orchestrator, start } = openOrchestrator();
  const answers = ["w1", "w2", "w3"].map((worker) => orchestrator.claim(ask(worker, 4, 5_000)));
  await start(FAN_OUT);
  const counts = (await Promise.all(answers)).map((commands) => commands.length);
  assert.deepEqual(
    counts.toSorted((left, right) => left - right),
    [1, 1, 2],
  );
  await orchestrator.close();
});

test("commands that a report claimed reach the worker also when the report had to be run again", async () => {
  const { orchestrator, another, start, store } = openOrchestrator();
  const other = another();
  const executionId = await start(TWO_STEPS);
  const [first] = await other.claim(ask("w1"));
  assert.ok(first);
  // Something else to claim, which is written although the report itself is behind.
  await start(TWO_STEPS);
  const { commands } = await orchestrator.report(batch(endOf(first), { claim: ask("w1", 2) }));
  const held = [...store.commands.values()].filter(({ worker, status }) => worker === "w1" && status === "CLAIMED");
  assert.deepEqual(
    commands.map(({ command }) => command.command_id).sort(),
    held.map(({ commandId }) => commandId).sort(),
  );
  assert.ok(commands.some(({ command }) => command.execution_id === executionId && command.step === "two"));
  await Promise.all([orchestrator.close(), other.close()]);
});

test("commands claimed for a report that is refused in the end are available to others at once", async () => {
  const { orchestrator, another, start } = openOrchestrator();
  const other = another();
  const executionId = await start(TWO_STEPS);
  const [first] = await orchestrator.claim(ask("w1"));
  assert.ok(first);
  const waiting = await start(TWO_STEPS);
  await other.inject(executionId, { type: "execution.cancelled", at: Date.now(), reason: "enough" });
  await assert.rejects(orchestrator.report(batch(endOf(first), { claim: ask("w1") })), /the execution has ended/);
  const [given] = await orchestrator.claim(ask("w2", 1, 5_000));
  assert.deepEqual([given?.command.execution_id, given?.attempt], [waiting, 2]);
  await Promise.all([orchestrator.close(), other.close()]);
});

test("a command that another server issued is claimed here, although the state in memory is older", async () => {
  const { orchestrator, another, start } = openOrchestrator();
  const other = another();
  await start(TWO_STEPS);
  const [first] = await other.claim(ask("w1"));
  assert.ok(first);
  await other.report(batch(endOf(first)));
  await other.close();
  assert.equal(await orchestrator.recovery.poll(), 1);
  const [second] = await orchestrator.claim(ask("w2", 1, 5_000));
  assert.equal(second?.command.step, "two");
  await orchestrator.close();
});

test("a claim whose command cannot be read is answered later and not lost", async () => {
  const store = createMemoryStore(Date.now);
  const away = new Error("away");
  let failures = 1;
  const { commandBodies } = store;
  store.commandBodies = async (ids) => {
    failures -= 1;
    if (failures >= 0) throw away;
    return await commandBodies(ids);
  };
  const unavailable = (error: unknown) => (error === away ? new FlowError("UNAVAILABLE", "away") : undefined);
  const { another, start, orchestrator, faults } = openOrchestrator({ unavailable }, store);
  await start(TWO_STEPS);
  const other = another();
  await other.recovery.poll();
  const [claimed] = await other.claim(ask("w1", 1, 5_000));
  assert.equal(claimed?.attempt, 2);
  assert.equal(failures, -1);
  assert.deepEqual(faults, []);
  await Promise.all([orchestrator.close(), other.close()]);
});

test("a batch of several executions is written in two parts when another server moves one, and answered as one", async () => {
  const { orchestrator, another, start, store } = openOrchestrator();
  const other = another();
  const ids = [await start(TWO_STEPS), await start(TWO_STEPS)];
  const claims = await orchestrator.claim(ask("w1", 2));
  assert.equal(claims.length, 2);
  // The other server gives the second one an event of its own, which this one does not know of.
  const { command, attempt } = claims[1] ?? assert.fail();
  const started: ReportedEvent = {
    type: "command.started",
    at: Date.now(),
    command_id: command.command_id,
    attempt,
    step: "one",
  };
  await other.report(batch([{ executionId: command.execution_id, event: started }]));
  await other.close();
  const outcome = await orchestrator.report(batch(claims.flatMap(endOf)));
  assert.equal(outcome.eventIds.length, 2);
  assert.equal(outcome.commandsGenerated, 2);
  const row = store.batches.get(outcome.requestId);
  assert.deepEqual([row?.state, row?.accept.eventIds, row?.accept.executionIds], ["completed", outcome.eventIds, ids]);
  await orchestrator.close();
});

test("a refusal names the position in the batch as sent, even if a part of it is already written", async () => {
  const { orchestrator, start } = openOrchestrator();
  await start(TWO_STEPS);
  const [first] = await orchestrator.claim(ask("w1"));
  assert.ok(first);
  const unknown = endOf({ ...first, command: { ...first.command, command_id: "999" } });
  await assert.rejects(orchestrator.report(batch([...endOf(first), ...unknown])), (error: unknown) => {
    assert.ok(error instanceof FlowError);
    assert.deepEqual(error.detail, { events: [{ index: 1, command_id: "999", reason: "unknown" }] });
    return true;
  });
  await orchestrator.close();
});

test("a batch is recovered by a server whose state in memory is from before the batch", async () => {
  const { orchestrator, another, start, store } = openOrchestrator();
  const dying = another();
  const executionId = await start(TWO_STEPS);
  const [first] = await orchestrator.claim(ask("w1"));
  assert.ok(first);
  // Accepted by the other server, which then dies: nothing follows.
  const { flush } = store;
  const died = new Promise<void>((resolve) => {
    store.flush = async (changes) => {
      store.flush = () => {
        resolve();
        return new Promise(() => {});
      };
      return await flush(changes);
    };
  });
  void dying.report(batch(endOf(first)));
  await died;
  store.flush = flush;
  assert.equal([...store.batches.values()][0]?.state, "accepted");
  assert.equal(await orchestrator.recovery.recover(0), 1);
  const [second] = await orchestrator.claim(ask("w1", 1, 5_000));
  assert.equal(second?.command.step, "two");
  assert.equal(second?.command.execution_id, executionId);
  assert.equal([...store.batches.values()][0]?.state, "completed");
  await orchestrator.close();
});

test("a batch without events does not keep others from being recovered", async () => {
  const { orchestrator, store } = openOrchestrator();
  const accept = { caller: "w", idempotencyKey: "k", bodySha256: "a", executionIds: ["1"], eventIds: [] };
  const about = { state: "accepted" as const, commandsGenerated: 0, executionIds: ["1"], updatedAt: 0, leaseUntil: 0 };
  store.batches.set("5", { requestId: "5", accept, ...about });
  assert.equal(await orchestrator.recovery.recover(0), 1);
  assert.equal(store.batches.get("5")?.state, "completed");
  await orchestrator.close();
});

test("an execution that cannot be ended at its deadline does not keep others open", async () => {
  const { store, start, another, orchestrator, faults } = openOrchestrator();
  const [broken, unaffected] = [await start(TWO_STEPS), await start(TWO_STEPS)];
  for (const row of store.executions.values()) row.deadlineAt = 0;
  const { find } = store;
  store.find = async (id) => {
    if (id === broken) throw new Error("unreadable");
    return await find(id);
  };
  const other = another();
  assert.equal(await other.recovery.expire(), 2);
  assert.deepEqual(
    [broken, unaffected].map((id) => store.executions.get(id)?.status),
    ["RUNNING", "FAILED"],
  );
  assert.equal(faults.length, 1);
  await Promise.all([orchestrator.close(), other.close()]);
});

test("decisions are not visible before they are written, and reading does not wait for that", async () => {
  const { orchestrator, start, store, view } = openOrchestrator();
  const executionId = await start(TWO_STEPS);
  const [first] = await orchestrator.claim(ask("w1"));
  assert.ok(first);
  const { flush } = store;
  let fail: (error: Error) => void = () => {};
  const asked = new Promise<void>((resolve) => {
    store.flush = () => {
      resolve();
      return new Promise((_, reject) => {
        fail = reject;
      });
    };
  });
  const reported = orchestrator.report(batch(endOf(first), { claim: ask("w1") }));
  await asked;
  const viewed = await view(executionId);
  store.flush = flush;
  fail(new Error("broken"));
  await assert.rejects(reported, /broken/);
  assert.deepEqual(viewed?.state.steps["two"], undefined);
  await orchestrator.close();
});

test("a start that is sent twice at once creates one execution and no fault", async () => {
  const store = createMemoryStore(Date.now);
  const { orchestrator, start, faults } = openOrchestrator({}, store);
  await start(TWO_STEPS);
  const idempotency = { caller: "c", key: "k", bodySha256: "a" };
  const input = { entry: { catalogId: "1", path: "two", version: 1 }, input: {}, idempotency };
  const [one, two] = await Promise.all([orchestrator.start(input), orchestrator.start(input)]);
  assert.equal(one.executionId, two.executionId);
  assert.deepEqual([one.duplicate, two.duplicate].sort(), [false, true]);
  await assert.rejects(
    orchestrator.start({ ...input, idempotency: { ...idempotency, bodySha256: "b" } }),
    /another body/,
  );
  assert.equal(store.executions.size, 2);
  assert.deepEqual(faults, []);
  await orchestrator.close();
});

test("a server that stops answers all waiting claims and accepts nothing new", async () => {
  const { orchestrator, start } = openOrchestrator();
  await start(TWO_STEPS);
  await orchestrator.claim(ask("w1"));
  const waiting = orchestrator.claim(ask("w2", 1, 30_000));
  await orchestrator.close();
  assert.deepEqual(await waiting, []);
  await assert.rejects(orchestrator.claim(ask("w2")), /stopping/);
  await assert.rejects(orchestrator.report(batch([])), /stopping/);
  await orchestrator.close();
});
