import assert from "node:assert/strict";
import { test } from "node:test";
import type { TaskError } from "../../../src/schema/words/outcome.ts";
import { createMemoryStore, type MemoryStore } from "../../support/engine/memory-store.ts";
import { openOrchestrator } from "../../support/engine/orchestrator.ts";

/* A batch over which one server after the other dies. A server that dies is one whose write of what follows never ends. */

const TWO_STEPS = `apiVersion: flow/v2
kind: Playbook
metadata: {name: p, path: p}
workflow:
  - step: one
    tool: {kind: noop}
    next: {arcs: [{step: two}]}
  - step: two
    tool: {kind: noop}
`;

/** A store to which what follows from a batch of this execution is never written. */
function deadlyStore(): { store: MemoryStore; deadly: Set<string> } {
  const store = createMemoryStore(Date.now);
  const deadly = new Set<string>();
  const { flush } = store;
  store.flush = async (changes) => {
    const dies = changes.executions.some(
      ({ executionId, events }) =>
        deadly.has(executionId) && events.some(({ event }) => event.type === "step.completed"),
    );
    return dies ? await new Promise(() => undefined) : await flush(changes);
  };
  return { store, deadly };
}

async function begin() {
  const { store, deadly } = deadlyStore();
  const opened = openOrchestrator({}, store);
  const [bad, good] = [await opened.start(TWO_STEPS), await opened.start(TWO_STEPS)];
  deadly.add(bad);
  const claimed = await opened.orchestrator.claim({ worker: "w1", limit: 2, waitMs: 0, kinds: undefined, labels: {} });
  assert.equal(claimed.length, 2);
  const report = (index: number, more = {}) => {
    const { command, attempt } = claimed[index]!;
    const { command_id, execution_id: executionId, step } = command;
    const event = { type: "command.completed", at: Date.now(), command_id, attempt, step, worker: "w1" } as const;
    const events = [{ executionId, event }];
    return { caller: "w1", idempotencyKey: `key-${index}`, bodySha256: "a", events, ...more };
  };
  const release = () => {
    for (const row of store.batches.values()) Object.assign(row, { updatedAt: 0, leaseUntil: 0 });
  };
  const failure = (id: string) => store.executions.get(id)?.error as TaskError | undefined;
  return { ...opened, bad, good, report, release, failure };
}

test("a batch of which three servers died ends its execution with POISONED, and the others go on", async () => {
  const run = await begin();
  await run.orchestrator.report(run.report(0));
  for (const deaths of [1, 2]) {
    run.release();
    const server = run.another();
    void server.recovery.recover(0);
    await new Promise<void>((resolve) => {
      const look = () => (markers(run.store, run.bad).length === deaths ? resolve() : void setImmediate(look));
      look();
    });
    assert.equal(run.failure(run.bad), undefined, `after ${deaths} deaths`);
  }
  run.release();
  const last = run.another();
  await last.report(run.report(1));
  await last.recovery.recover(0);
  const error = run.failure(run.bad);
  assert.deepEqual([error?.code, run.store.executions.get(run.bad)?.status], ["POISONED", "FAILED"]);
  assert.match(
    error?.message ?? "",
    /event batch \d+ could not be worked out\. Its server stopped in the middle of it, 3 times/,
  );
  assert.deepEqual(markers(run.store, run.bad), [1, 2, 3]);
  const [next] = await last.claim({ worker: "w1", limit: 1, waitMs: 5_000, kinds: undefined, labels: {} });
  assert.equal(next?.command.execution_id, run.good);
});

test("a batch that its own server has not finished yet counts no death", async () => {
  const run = await begin();
  await run.orchestrator.report(run.report(0));
  for (let times = 0; times < 5; times += 1) {
    run.release();
    void run.orchestrator.recovery.recover(0);
    await new Promise(setImmediate);
  }
  assert.deepEqual(markers(run.store, run.bad), []);
  assert.equal(run.failure(run.bad), undefined);
});

test("a report that was sent before without an answer is accepted before anything is decided, and claims nothing", async () => {
  const run = await begin();
  const claim = { worker: "w1", limit: 1, waitMs: 0, kinds: undefined, labels: {} };
  const outcome = await run.orchestrator.report(run.report(0, { claim, isRedelivered: true }));
  assert.deepEqual(outcome.commands, []);
  assert.equal(run.store.batches.get(outcome.requestId)?.state, "accepted");
});

test("a report that was sent before without an answer counts that delivery: three deaths with it", async () => {
  const run = await begin();
  // The first server died over it: nothing of that is in any log. The second one accepts it and dies as well.
  await run.orchestrator.report(run.report(0, { isRedelivered: true }));
  run.release();
  void run.another().recovery.recover(0);
  await new Promise<void>((resolve) => {
    const look = () => (markers(run.store, run.bad).length === 1 ? resolve() : void setImmediate(look));
    look();
  });
  assert.deepEqual(markers(run.store, run.bad), [2]);
  assert.equal(run.failure(run.bad), undefined);
  run.release();
  await run.another().recovery.recover(0);
  assert.deepEqual(markers(run.store, run.bad), [2, 3]);
  assert.equal(run.failure(run.bad)?.code, "POISONED");
});

test("a batch that a living server took over before counts no death, however slow that server is", async () => {
  const run = await begin();
  const { unprocessedBatches } = run.store;
  run.store.unprocessedBatches = async (...asked) =>
    (await unprocessedBatches(...asked)).map((batch) => ({ ...batch, isHeld: true }));
  await run.orchestrator.report(run.report(0));
  for (let times = 0; times < 5; times += 1) {
    run.release();
    void run.another().recovery.recover(0);
    await new Promise(setImmediate);
  }
  assert.deepEqual(markers(run.store, run.bad), []);
  assert.equal(run.failure(run.bad), undefined);
});

function markers(store: MemoryStore, executionId: string): number[] {
  return (store.events.get(executionId) ?? []).flatMap(({ event_type, result }) =>
    event_type === "batch.failed" ? [(result as { context: { delivery: number } }).context.delivery] : [],
  );
}
