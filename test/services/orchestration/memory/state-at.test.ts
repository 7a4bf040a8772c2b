import assert from "node:assert/strict";
import { test } from "node:test";
import { evolve } from "../../../../src/engine/state/evolve.ts";
import { emptyState } from "../../../../src/engine/state/state.ts";
import { fromRecord } from "../../../../src/schema/rules/event-record.ts";
import { isMarker, stateAt } from "../../../../src/services/orchestration/memory/load-execution.ts";
import { openOrchestrator } from "../../../support/engine/orchestrator.ts";

const LOOP = `apiVersion: flow/v2
kind: Playbook
metadata: { name: p }
workflow:
  - step: each
    loop: { in: 1200, iterator: n, spec: { mode: parallel } }
    tool: { kind: python, code: "return 1" }
`;

/** A loop that has been run to its end, with two snapshots or more. */
async function ran() {
  const { orchestrator, store, start } = openOrchestrator();
  const executionId = await start(LOOP);
  while (store.executions.get(executionId)?.status === "RUNNING") {
    const claim = { worker: "w", limit: 100, kinds: undefined, labels: {}, waitMs: 1_000 };
    const events = (await orchestrator.claim(claim)).flatMap(({ command, attempt }) => {
      const { command_id, step, loop } = command;
      const ref = { at: Date.now(), command_id, attempt, step, worker: "w" };
      const iteration = loop?.from ?? 0;
      return [
        { executionId, event: { type: "loop.iteration.completed" as const, ...ref, iteration, tasks: [] } },
        { executionId, event: { type: "command.completed" as const, ...ref, iterations: 1 } },
      ];
    });
    await orchestrator.report({ caller: "w", idempotencyKey: null, bodySha256: "", events });
  }
  return { orchestrator, store, executionId, log: store.events.get(executionId) ?? [] };
}

test("the state after any event is the fold of all events up to it, from the last snapshot before it", async () => {
  const { orchestrator, store, executionId, log } = await ran();
  const snapshots = store.snapshots.get(executionId)?.map(({ eventId }) => eventId) ?? [];
  assert.ok(snapshots.length >= 2, `${snapshots.length} snapshots of ${log.length} events`);
  const looked = new Set([...snapshots, ...[0, 1, 2_000, log.length - 1].map((at) => log[at]?.event_id)]);
  const folded = emptyState();
  for (const record of log) {
    if (!isMarker(record)) evolve(folded, fromRecord(record));
    if (!looked.has(record.event_id)) continue;
    const pages: number[] = [];
    const read = {
      ...store,
      eventsAfter: (id: string, after: number, limit: number) => {
        pages.push(after);
        return store.eventsAfter(id, after, limit);
      },
    };
    const found = await stateAt(read, executionId, record.event_id);
    assert.deepEqual(JSON.parse(JSON.stringify(found?.state)), JSON.parse(JSON.stringify(folded)));
    assert.equal(found?.lastEventId, record.event_id);
    const before = snapshots.filter((eventId) => eventId <= record.event_id).at(-1);
    if (before !== record.event_id) assert.equal(pages[1], before ?? Number(executionId));
  }
  await orchestrator.close();
});

test("an event of another execution, one between two events, and an execution that is gone have no state", async () => {
  const { orchestrator, store, start } = openOrchestrator();
  const [one, two] = [await start(LOOP), await start(LOOP)];
  const idsOf = (id: string) => (store.events.get(id) ?? []).map(({ event_id }) => event_id);
  const [first = 0] = idsOf(one);
  const [other = 0] = idsOf(two);
  assert.equal((await stateAt(store, one, first))?.lastEventId, first);
  assert.equal(await stateAt(store, one, other), undefined);
  assert.equal(await stateAt(store, one, Number(one)), undefined, "the execution's own id");
  assert.equal(await stateAt(store, one, Number.MAX_SAFE_INTEGER), undefined);
  assert.equal(await stateAt(store, "1", first), undefined);
  await orchestrator.close();
});

test("what is in memory to be advanced is not changed by the look at an earlier state", async () => {
  const { orchestrator, store, start } = openOrchestrator();
  const executionId = await start(LOOP);
  const [first] = store.events.get(executionId) ?? [];
  const found = await stateAt(store, executionId, first?.event_id ?? 0);
  assert.ok(found !== undefined);
  found.state.status = "FAILED";
  await orchestrator.inject(executionId, { type: "execution.cancelled", at: 1, reason: "x" });
  assert.equal(store.executions.get(executionId)?.status, "CANCELLED");
  await orchestrator.close();
});
