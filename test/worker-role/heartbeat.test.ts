import assert from "node:assert/strict";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { createHeartbeat } from "../../src/adapters/server/heartbeat.ts";
import { createRunningTable, RUNNING_ROWS_MAX, readRunningTable } from "../../src/adapters/server/running-table.ts";

test("heartbeats go on while the main thread is blocked, and list what was started right before", async (t) => {
  const memory = new SharedArrayBuffer(2 * BigInt64Array.BYTES_PER_ELEMENT);
  const cells = new BigInt64Array(memory);
  const server = new Worker(new URL("./support/beat-counter.js", import.meta.url), { workerData: memory });
  const port = await new Promise<number>((resolve) => server.once("message", resolve));
  const table = createRunningTable();
  let isRegistered = () => {};
  const registered = new Promise<void>((resolve) => {
    isRegistered = resolve;
  });
  const heartbeat = createHeartbeat({
    url: `http://127.0.0.1:${port}`,
    token: undefined,
    registration: {
      name: "w",
      capacity: 1,
      labels: {},
      capabilities: [],
      runtime: { pid: 1, hostname: "h", version: "0", instance: "i" },
    },
    intervalMs: 10,
    runningTable: table.memory,
    onRegistered: () => isRegistered(),
    onAnswer: () => undefined,
    onRenewed: () => undefined,
    onReplaced: (message) => assert.fail(message),
    onFailed: ({ message }) => assert.fail(message),
  });
  t.after(async () => {
    await heartbeat.leave();
    await server.terminate();
  });
  heartbeat.start("none");
  await registered;
  table.add({ command: { command_id: "9007199254740991" }, attempt: 1 });
  // From here on no callback of this thread runs until five heartbeats have carried the command.
  for (let count = 0n; count < 5n; count = Atomics.load(cells, 0)) {
    assert.notEqual(
      Atomics.wait(cells, 0, count, 10_000),
      "timed-out",
      "no heartbeat came while this thread stood still",
    );
  }
  assert.equal(Atomics.load(cells, 1), 9_007_199_254_740_991n);
});

test("the table of running commands holds what was added and not removed, and reuses rows", () => {
  const table = createRunningTable();
  const add = (id: number, attempt: number) => table.add({ command: { command_id: String(id) }, attempt });
  const first = add(11, 1);
  add(12, 2);
  assert.deepEqual(readRunningTable(table.memory), [
    { command_id: "11", attempt: 1 },
    { command_id: "12", attempt: 2 },
  ]);
  table.remove(first);
  assert.equal(add(13, 7), first);
  assert.deepEqual(readRunningTable(table.memory), [
    { command_id: "13", attempt: 7 },
    { command_id: "12", attempt: 2 },
  ]);
});

test("a full table of running commands takes no more until a row is free", () => {
  const table = createRunningTable();
  const rows = Array.from({ length: RUNNING_ROWS_MAX }, (_, id) =>
    table.add({ command: { command_id: String(id + 1) }, attempt: 1 }),
  );
  const more = () => table.add({ command: { command_id: "1" }, attempt: 1 });
  assert.equal(more(), -1);
  table.remove(-1);
  assert.equal(more(), -1);
  table.remove(rows[5] ?? -1);
  assert.equal(more(), rows[5]);
});
