import assert from "node:assert/strict";
import { access, mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { createDiskPayloads } from "../../../src/adapters/payloads/disk.ts";
import type { ExecutionStore } from "../../../src/ports/execution-store.ts";
import type { PayloadStore } from "../../../src/ports/payload-store.ts";
import type { Database } from "../../../src/repositories/database/database.ts";
import { ensureEventPartitions } from "../../../src/repositories/executions/event-partitions.ts";
import { dropPartition } from "../../../src/repositories/executions/old-partitions.ts";
import type { ExecutionReader } from "../../../src/services/executions/execution-reader.ts";
import { createExecutions } from "../../../src/services/executions/executions.ts";
import { startBackground } from "../../../src/services/maintenance/background.ts";
import {
  createRetention,
  type Removed,
  type Retention,
  type RetentionDeps,
} from "../../../src/services/maintenance/retention.ts";
import type { Orchestrator } from "../../../src/services/orchestration/orchestrator.ts";
import { createResults, type Results } from "../../../src/services/results/results.ts";
import { openServiceDatabase } from "../../repositories/service-database.ts";
import { daysBefore, type OldRows, oldRows } from "../../support/database/old-rows.ts";
import { SHA256 } from "../../support/database/store-rows.ts";

const DAYS = 30;
const INTERVAL_MS = 300_000;
/** Of a month that is over for longer than that, whatever today is. */
const OLD = daysBefore(100);
const NOTHING: Removed = { executions: 0, commands: 0, results: 0, batches: 0, runtimes: 0, drafts: 0, partitions: [] };

let database: Database;
let rows: OldRows;
let disk: PayloadStore;
let folder: string;
let told: Removed[];
let failed: unknown[];
beforeEach(async () => {
  database = await openServiceDatabase();
  rows = oldRows(database);
  folder = await mkdtemp(join(tmpdir(), "flow-retention-"));
  disk = createDiskPayloads(folder);
  told = [];
  failed = [];
});

function openResults(store: PayloadStore = disk): Results {
  const limits = { kvBytesMax: 100, s3BytesMax: 100 };
  return createResults({
    database,
    stores: [store],
    folder,
    limits,
    bytesMax: 1_000,
    filesBytesMax: 1_000,
    ttlMs: 1_000,
    now: Date.now,
  });
}

function open(more: Partial<RetentionDeps> = {}): Retention {
  const results = openResults();
  const onRemoved = (removed: Removed) => void told.push(removed);
  const onFailed = (error: unknown) => void failed.push(error);
  const times = { leaseMs: 60_000, intervalMs: INTERVAL_MS, now: Date.now };
  return createRetention({
    database,
    dropPartition: (name) => dropPartition(database, name),
    results,
    holder: "one",
    days: DAYS,
    ...times,
    onRemoved,
    onFailed,
    ...more,
  });
}

/** The file of a result, and where it is. */
async function file(name: string): Promise<{ name: string; path: string }> {
  const path = join(folder, name.slice(0, 2), `${name}.json`);
  await mkdir(join(folder, name.slice(0, 2)), { recursive: true });
  await writeFile(path, "1");
  return { name, path };
}

const month = (moment: Date) => `event_${moment.toISOString().slice(0, 7).replace("-", "_")}`;

test("expired data are deleted as a whole, once, and reported", async () => {
  await ensureEventPartitions(database, OLD);
  const { name, path } = await file("ab12");
  const old = await rows.execution({ began: OLD, ended: OLD, file: name });
  await rows.batch(daysBefore(2), "completed");
  await database.sql`
    insert into flow.runtime (runtime_id, kind, name, status, heartbeat_at)
    values (1, 'worker', 'gone', 'offline', ${daysBefore(2)})`;
  await database.sql`
    insert into flow.draft (catalog_id, path, kind, content, created_at)
    values (1, 'a/b', 'playbook', 'x', ${daysBefore(2)})`;
  const retention = open();
  const removed = await retention.runOnce();
  assert.deepEqual(
    { ...removed, partitions: removed?.partitions.includes(month(OLD)) },
    { executions: 1, commands: 1, results: 1, batches: 1, runtimes: 1, drafts: 1, partitions: true },
  );
  assert.deepEqual(told, [removed]);
  assert.deepEqual(await rows.executionsLeft([old]), [false]);
  for (const table of ["event", "command", "execution_snapshot", "past_snapshot", "result", "batch"] as const) {
    assert.equal(await rows.count(table), 0, table);
  }
  await assert.rejects(access(path), { code: "ENOENT" });
  assert.deepEqual(await retention.runOnce(), NOTHING);
  assert.equal(told.length, 1, "nothing to tell of");
});

test("what ended within the retention stays with everything, and so does what is young", async () => {
  await ensureEventPartitions(database, OLD);
  const kept = [
    await rows.execution({ began: OLD, ended: daysBefore(DAYS - 1) }),
    await rows.execution({ began: daysBefore(1), ended: daysBefore(1) }),
  ];
  await rows.batch(new Date(), "completed");
  await rows.batch(OLD, "accepted");
  await open().runOnce();
  assert.deepEqual(await rows.executionsLeft(kept), [true, true]);
  for (const table of ["event", "command", "execution_snapshot", "past_snapshot", "result", "batch"] as const) {
    assert.equal(await rows.count(table), 2, table);
  }
});

test("an execution that is still open keeps its month of the log; the months of others go", async () => {
  await ensureEventPartitions(database, daysBefore(200));
  const open100 = await rows.execution({ began: daysBefore(200), ended: null });
  const removed = await open().runOnce();
  assert.equal(removed?.executions, 0);
  assert.equal(removed?.partitions.includes(month(daysBefore(200))), false);
  assert.equal(removed?.partitions.length, 2);
  assert.deepEqual(await rows.executionsLeft([open100]), [true]);
  assert.equal(await rows.count("event"), 1);
});

test("results past their own time go, of executions that stay", async () => {
  const { name, path } = await file("cd34");
  const young = await rows.execution({ began: daysBefore(1), ended: null, file: name });
  await database.sql`update flow.result set expires_at = now() where execution_id = ${young.executionId}`;
  assert.deepEqual(await open().runOnce(), { ...NOTHING, results: 1 });
  await assert.rejects(access(path), { code: "ENOENT" });
  assert.deepEqual(await rows.executionsLeft([young]), [true]);
});

test("of two servers at once one works; the other one may when that one has ended", async () => {
  const old = await rows.execution({ began: OLD, ended: OLD });
  const servers = [open({ holder: "one" }), open({ holder: "two" })] as const;
  const runs = await Promise.all(servers.map((server) => server.runOnce()));
  const idle = runs.indexOf(undefined);
  assert.equal(runs.filter((removed) => removed?.executions === 1).length, 1);
  assert.deepEqual(await rows.executionsLeft([old]), [false]);
  const [other, worker] = idle === 0 ? servers : [servers[1], servers[0]];
  assert.equal(await other.runOnce(), undefined, "the lease lasts from one run to the next");
  await worker.end();
  assert.deepEqual(await other.runOnce(), NOTHING);
  assert.equal(await worker.runOnce(), undefined, "it has ended");
});

test("a run ends with the statement that it is at", async () => {
  await ensureEventPartitions(database, OLD);
  const { name } = await file("ef56");
  const old = await rows.execution({ began: OLD, ended: OLD, file: name });
  const results = openResults();
  let end: Promise<void> | undefined;
  const retention: Retention = open({
    rowsMax: 1,
    results: {
      ...results,
      async removeOf(ids, limit) {
        end = retention.end();
        return await results.removeOf(ids, limit);
      },
    },
  });
  assert.deepEqual(await retention.runOnce(), { ...NOTHING, results: 1 });
  await end;
  assert.deepEqual(await rows.executionsLeft([old]), [true], "its row is found again");
  assert.equal((await open({ holder: "two" }).runOnce())?.executions, 1);
});

test("a lease that was lost ends a run", async () => {
  await rows.execution({ began: OLD, ended: OLD });
  const results = openResults();
  const retention = open({
    results: {
      ...results,
      async removeExpired() {
        await database.sql`update flow.lease set token = token + 1, holder = 'two'`;
        return 500;
      },
    },
  });
  assert.deepEqual(await retention.runOnce(), { ...NOTHING, executions: 1, commands: 1, results: 501 });
});

test("a payload that cannot be removed now holds up nothing, and goes later", async () => {
  await ensureEventPartitions(database, daysBefore(200));
  const { name, path } = await file("0a78");
  const old = await rows.execution({ began: OLD, ended: OLD, file: name });
  let isBroken = true;
  const store: PayloadStore = {
    ...disk,
    remove: (location) => (isBroken ? Promise.reject(new Error("read-only")) : disk.remove(location)),
  };
  const results = openResults(store);
  const removed = await open({ results }).runOnce();
  assert.deepEqual([removed?.executions, removed?.results], [1, 1]);
  assert.deepEqual(await rows.executionsLeft([old]), [false]);
  await access(path);
  assert.equal(await rows.count("result"), 1, "its payload is on record");
  assert.equal(await results.removeLeftovers(10), 0, "not at once");
  await database.sql`update flow.result set created_at = now() - interval '2 minutes'`;
  isBroken = false;
  assert.equal(await results.removeLeftovers(10), 1);
  await assert.rejects(access(path), { code: "ENOENT" });
  assert.equal(await rows.count("result"), 0);
});

test("a kind of thing that cannot be deleted now holds up no other", async () => {
  const old = await rows.execution({ began: OLD, ended: OLD });
  await rows.batch(OLD, "failed");
  const results = openResults();
  const removeOf = () => Promise.reject(new Error("no room"));
  const retention = open({ results: { ...results, removeOf } });
  await retention.runOnce();
  assert.deepEqual(failed.map(String), ["Error: no room"]);
  assert.equal(retention.isBehind(), false, "it is tried again in its time, not at once");
  assert.deepEqual([told[0]?.executions, told[0]?.batches], [0, 1]);
  assert.deepEqual(await rows.executionsLeft([old]), [true]);
  assert.equal((await open({ results, holder: "one" }).runOnce())?.executions, 1);
});

test("more than a statement takes goes in rounds, and more than a run takes in the next one, which is due", async () => {
  for (let count = 0; count < 5; count += 1) await rows.execution({ began: OLD, ended: OLD });
  for (let count = 0; count < 5; count += 1) await rows.batch(OLD, "completed");
  const retention = open({ rowsMax: 2, batchesMax: 2, roundsMax: 2 });
  const first = await retention.runOnce();
  assert.deepEqual([first?.executions, first?.batches, first?.results], [4, 4, 4]);
  assert.equal(retention.isBehind(), true);
  const second = await retention.runOnce();
  assert.deepEqual([second?.executions, second?.batches, second?.results], [1, 1, 1]);
  while (retention.isBehind()) await retention.runOnce();
  assert.equal(await rows.count("command"), 0);
  assert.deepEqual(told, [{ ...NOTHING, executions: 5, commands: 5, results: 5, batches: 5 }], "once, for all of them");
});

test("a run that takes all there is, to the row, is not behind for long; one with nothing to do is not at all", async () => {
  const retention = open({ batchesMax: 2, roundsMax: 2 });
  await retention.runOnce();
  assert.equal(retention.isBehind(), false);
  for (let count = 0; count < 3; count += 1) await rows.batch(OLD, "completed");
  await retention.runOnce();
  assert.deepEqual([retention.isBehind(), await rows.count("batch")], [false, 0]);
  for (let count = 0; count < 4; count += 1) await rows.batch(OLD, "completed");
  await retention.runOnce();
  assert.deepEqual([retention.isBehind(), await rows.count("batch")], [true, 0], "it cannot know yet");
  await retention.runOnce();
  assert.equal(retention.isBehind(), false);
});

test("while one kind is behind, the others rest until their time, and then have their turn", async () => {
  for (let count = 0; count < 6; count += 1) await rows.batch(OLD, "completed");
  let now = 0;
  const retention = open({ batchesMax: 1, roundsMax: 1, now: () => now });
  await retention.runOnce();
  const old = await rows.execution({ began: OLD, ended: OLD });
  now = INTERVAL_MS - 1;
  assert.deepEqual(await retention.runOnce(), { ...NOTHING, batches: 1 });
  assert.deepEqual(await rows.executionsLeft([old]), [true]);
  now = INTERVAL_MS;
  assert.equal((await retention.runOnce())?.executions, 1);
  assert.deepEqual(told, [{ ...NOTHING, batches: 2 }], "what was deleted is told of at the end of the interval");
  assert.equal(retention.isBehind(), true, "batches");
});

test("a kind that fails keeps those that are behind from nothing", async () => {
  await rows.execution({ began: OLD, ended: OLD });
  for (let count = 0; count < 3; count += 1) await rows.batch(OLD, "completed");
  const results = openResults();
  const removeOf = () => Promise.reject(new Error("no room"));
  const retention = open({ results: { ...results, removeOf }, batchesMax: 1, roundsMax: 1 });
  do await retention.runOnce();
  while (retention.isBehind());
  assert.deepEqual([await rows.count("batch"), failed.length], [0, 1]);
});

test("a server that has lost the lease is not behind", async () => {
  for (let count = 0; count < 3; count += 1) await rows.batch(OLD, "completed");
  const retention = open({ batchesMax: 1, roundsMax: 1 });
  await retention.runOnce();
  assert.equal(retention.isBehind(), true);
  await database.sql`update flow.lease set token = token + 1, holder = 'two'`;
  assert.equal(await retention.runOnce(), undefined);
  assert.equal(retention.isBehind(), false);
  assert.equal(await rows.count("batch"), 2);
});

/** Runs the loop of a retention; short pauses end at once. `paused` is called at each pause and stops the loop with `stop`. */
async function loop(retention: Retention, paused: (milliseconds: number, stop: () => void) => void): Promise<void> {
  let resolve = () => {};
  const stopped = new Promise<void>((resolved) => {
    resolve = resolved;
  });
  const sleep = async (milliseconds: number) => {
    paused(milliseconds, resolve);
    await setImmediate();
  };
  const work = { name: "retention", intervalMs: INTERVAL_MS, runOnce: retention.runOnce, isBehind: retention.isBehind };
  const clock = { now: Date.now, sleep };
  const stop = startBackground([work], { clock, random: () => 0.5, onError: (_, error) => failed.push(error) });
  await stopped;
  await Promise.all([stop(), retention.end()]);
}

/** Batches that ended long ago, written at once. */
async function writeBatches(count: number): Promise<void> {
  await database.sql`
    insert into flow.batch (request_id, caller, body_sha256, state, execution_ids, event_ids, created_at, updated_at)
    select n, 'w1', ${SHA256}, 'completed', '{1}', '{1}', ${OLD}, ${OLD} from generate_series(1, ${count}::bigint) n`;
}

test("the loop works off more than 100,000 batches before it rests", async () => {
  await writeBatches(100_001);
  const pauses: number[] = [];
  await loop(open(), (milliseconds, stop) => {
    pauses.push(milliseconds);
    if (milliseconds === INTERVAL_MS) stop();
  });
  assert.equal(await rows.count("batch"), 0);
  // 20 pages of 2,000 in a run.
  assert.deepEqual(pauses, [100, 100, INTERVAL_MS]);
  assert.deepEqual(told, [{ ...NOTHING, batches: 100_001 }]);
  assert.deepEqual(failed, []);
});

test("the loop that is behind stops on request, and leaves the rest for the next run", async () => {
  await writeBatches(100);
  let pauses = 0;
  await loop(open({ batchesMax: 5, roundsMax: 2 }), (_, stop) => {
    pauses += 1;
    if (pauses === 3) stop();
  });
  assert.equal(await rows.count("batch"), 70);
  assert.deepEqual(told, [{ ...NOTHING, batches: 30 }]);
  assert.equal((await open({ holder: "two" }).runOnce())?.batches, 70, "it need not wait for the lease's end");
});

test("a tree goes as a whole: what was called stays as long as its root", async () => {
  const root = await rows.execution({ began: OLD, ended: null });
  const { executionId } = root;
  const child = await rows.execution({
    ...{ began: OLD, ended: OLD },
    ...{ parentExecutionId: executionId, rootExecutionId: executionId },
  });
  const retention = open();
  assert.equal((await retention.runOnce())?.executions, 0);
  await database.sql`
    update flow.execution set status = 'COMPLETED', ended_at = ${OLD} where execution_id = ${executionId}`;
  assert.equal((await retention.runOnce())?.executions, 2);
  assert.deepEqual(await rows.executionsLeft([root, child]), [false, false]);
});

test("the events of an execution that is gone are not shown, although its month of the log is still there", async () => {
  const results = openResults();
  // Reading events makes no other call.
  const executions = createExecutions({
    programs: () => Promise.reject(new Error("nothing is rendered here")),
    database,
    results,
    orchestrator: {} as Orchestrator,
    store: {} as ExecutionStore,
    reader: {} as ExecutionReader,
    access: { user: async () => undefined },
    audit: { refused: () => undefined },
    now: Date.now,
  });
  const { executionId } = await rows.execution({ began: OLD, ended: OLD });
  assert.equal((await executions.events(executionId, { after: 0, limit: 10 })).events.length, 1);
  await open().runOnce();
  assert.equal(await rows.count("event"), 1);
  await assert.rejects(executions.events(executionId, { after: 0, limit: 10 }), { code: "NOT_FOUND" });
});
