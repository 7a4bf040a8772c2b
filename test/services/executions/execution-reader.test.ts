import assert from "node:assert/strict";
import { test } from "node:test";
import type { ExecutionStore } from "../../../src/ports/execution-store.ts";
import { createExecutionReader } from "../../../src/services/executions/execution-reader.ts";
import { createProgramCache } from "../../../src/services/orchestration/memory/program-cache.ts";
import { documents } from "../../support/engine/documents.ts";
import { openOrchestrator } from "../../support/engine/orchestrator.ts";

const TWO_STEPS = `apiVersion: flow/v2
kind: Playbook
metadata: { name: two, path: two }
workflow:
  - { step: one, tool: { kind: noop }, next: two }
  - { step: two, tool: { kind: noop } }
`;

/** A reader over a store whose calls are counted. */
async function setup() {
  const { store, start, orchestrator } = openOrchestrator();
  const finds: string[] = [];
  const pages: number[] = [];
  const counted: Pick<ExecutionStore, "find" | "eventsAfter" | "snapshotUpTo"> = {
    snapshotUpTo: store.snapshotUpTo,
    find: (id) => {
      finds.push(id);
      return store.find(id);
    },
    eventsAfter: (id, after, limit) => {
      pages.push(after);
      return store.eventsAfter(id, after, limit);
    },
  };
  const entry = async () => ({ path: "two", version: 1, content: TWO_STEPS });
  const time = { now: 0 };
  const reader = createExecutionReader({
    store: counted,
    programs: createProgramCache(entry, documents),
    now: () => time.now,
  });
  const executionId = await start(TWO_STEPS);
  const newest = () => store.executions.get(executionId)?.lastEventId ?? 0;
  const read = () => reader.read(executionId, newest());
  return { orchestrator, reader, read, newest, executionId, finds, pages, time };
}

test("a second read folds only the events that were added since the first", async () => {
  const { orchestrator, read, newest, executionId, finds, pages } = await setup();
  const before = newest();
  assert.equal((await read())?.state.status, "RUNNING");
  await read();
  assert.deepEqual([finds.length, pages.length], [1, 1]);
  await orchestrator.inject(executionId, { type: "execution.cancelled", at: 1, reason: "x" });
  assert.equal((await read())?.state.status, "CANCELLED");
  assert.deepEqual([finds.length, pages], [1, [Number(executionId), before]]);
  await orchestrator.close();
});

test("two reads at once of a moving execution fold each event once", async () => {
  const { orchestrator, read, newest, executionId } = await setup();
  const first = read();
  await orchestrator.inject(executionId, { type: "execution.cancelled", at: 1, reason: "x" });
  const [, second] = await Promise.all([first, read(), read()]);
  assert.equal(second?.state.status, "CANCELLED");
  assert.equal(second?.lastEventId, newest());
  await orchestrator.close();
});

test("an execution that was not read for ten seconds is evicted, and loaded again", async () => {
  const { orchestrator, reader, read, finds, time } = await setup();
  await read();
  time.now = 9_999;
  reader.sweep();
  await read();
  assert.equal(finds.length, 1);
  time.now = 20_000;
  reader.sweep();
  await read();
  assert.equal(finds.length, 2);
  await orchestrator.close();
});

test("an execution that does not exist is undefined, each time", async () => {
  const { orchestrator, reader, finds } = await setup();
  assert.equal(await reader.read("7", 7), undefined);
  assert.equal(await reader.read("7", 7), undefined);
  assert.deepEqual(finds, ["7", "7"]);
  await orchestrator.close();
});

test("a reader shares the programs of running executions, and evicts none of them", async () => {
  const texts: string[] = [];
  const entry = async (id: string) => {
    texts.push(id);
    return { path: "two", version: 1, content: TWO_STEPS };
  };
  const running = createProgramCache(entry, documents, 2);
  const read = createProgramCache(entry, documents, 2);
  const programOf = (id: string) => running.peek(id) ?? read(id);
  const [one] = [await running("1"), await running("2")];
  assert.equal(await programOf("1"), one);
  for (const id of ["3", "4", "5"]) await programOf(id);
  assert.deepEqual([await running("1"), texts], [one, ["1", "2", "3", "4", "5"]]);
});
