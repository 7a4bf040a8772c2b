import assert from "node:assert/strict";
import { test } from "node:test";
import type { PendingWanted, ReadyCommand } from "../../../../src/ports/execution-store.ts";
import { createReadyQueue } from "../../../../src/services/orchestration/rounds/ready-queue.ts";
import { createRefill } from "../../../../src/services/orchestration/rounds/refill-ready-queue.ts";
import { openOrchestrator } from "../../../support/engine/orchestrator.ts";

const FEW = { groupMax: 4, readyMax: 8, groupMin: 2 };
const LIMITS = {
  leaseMs: 120_000,
  lostClaims: 3,
  ackMs: 10_000,
  queueMax: 1_024,
  processingMs: 15_000,
  processors: 1,
  ready: FEW,
};
const documentOf = (count: number, spec: string) => `apiVersion: flow/v2
kind: Playbook
metadata: {name: p, path: p}
workflow:
  - step: start
    loop: {in: ${count}, iterator: i, spec: {mode: parallel, max_in_flight: ${count}}}
    tool: {kind: noop}
    spec: {${spec}}
`;
const wanted = (limit: number, labels = {}) => ({ worker: "w", limit, kinds: undefined, labels, waitMs: 30_000 });

test("commands that no worker can take do not keep others from being claimed, however many they are", async () => {
  const { orchestrator, start } = openOrchestrator({ limits: LIMITS });
  for (const gpu of ["a", "b", "c", "d"]) await start(documentOf(50, `labels: {gpu: ${gpu}}`));
  await start(documentOf(1, ""));
  assert.equal((await orchestrator.claim(wanted(5))).length, 1);
});

test("commands that did not fit into memory are read back as workers take those that did", async () => {
  const { orchestrator, start } = openOrchestrator({ limits: LIMITS });
  await start(documentOf(50, ""));
  const ids = new Set<string>();
  while (ids.size < 50) {
    for (const { command } of await orchestrator.claim(wanted(3))) ids.add(command.command_id);
  }
});

test("a server that received no notices reads all commands, a group at a time, even for workers that do not wait", async () => {
  const { another, start } = openOrchestrator({ limits: LIMITS });
  for (const gpu of ["a", "b", "c", "d"]) await start(documentOf(20, `labels: {gpu: ${gpu}}`));
  await start(documentOf(20, ""));
  const other = another();
  const ids = new Set<string>();
  while (ids.size < 20) {
    const claimed = await other.claim({ ...wanted(7, { gpu: "c" }), kinds: [], waitMs: 0 });
    for (const { command } of claimed) ids.add(command.command_id);
    if (claimed.length === 0) break;
  }
  assert.ok(ids.size >= 20, `${ids.size}`);
  assert.deepEqual(
    await other.claim({ ...wanted(1, { gpu: "none" }), kinds: ["sqldb"], waitMs: 0 }).then((c) => c.length),
    1,
  );
});

test("a poll reads what is new and a hundred of what is known, however much that is; a command of an older id is found in its turn", async () => {
  const rows: ReadyCommand[] = [];
  const add = (id: number) =>
    rows.push({ commandId: String(id), executionId: "1", kinds: [], labels: null, attempt: 0 });
  let read = 0;
  const store = {
    pendingRequirements: async () => [{ kinds: [], labels: null }],
    async pendingCommands(wanted: readonly PendingWanted[]) {
      const ordered = rows.toSorted((left, right) => Number(left.commandId) - Number(right.commandId));
      const found = wanted.flatMap(({ after = "0", limit }) =>
        ordered.filter(({ commandId }) => Number(commandId) > Number(after)).slice(0, limit),
      );
      read += found.length;
      return [...new Set(found)];
    },
  };
  const ready = createReadyQueue();
  const failed: unknown[] = [];
  const onFailed = (error: unknown) => void failed.push(error);
  const refill = createRefill({ store, ready, now: () => 0, onFound: () => undefined, onFailed });
  const poll = async () => {
    read = 0;
    return await refill.poll();
  };
  for (let id = 10; id < 910; id += 1) add(id);
  assert.equal(await poll(), 500);
  // The rest is read at once, without a poll.
  while (ready.size() < 900) await new Promise(setImmediate);
  assert.equal(await poll(), 0);
  assert.equal(read, 100);
  add(910);
  assert.equal(await poll(), 1);
  assert.equal(read, 101);
  // Of another server, whose ids were reserved earlier.
  add(1);
  let polls = 1;
  while ((await poll()) === 0) polls += 1;
  assert.ok(ready.has("1"));
  assert.ok(polls <= 10, `found with poll ${polls}`);
  assert.deepEqual(failed, []);
});
