import assert from "node:assert/strict";
import { access, mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, test } from "node:test";
import { createDiskPayloads } from "../../src/adapters/disk-payloads.ts";
import type { PayloadStore } from "../../src/ports/payload-store.ts";
import type { Database } from "../../src/repositories/database.ts";
import { ensureEventPartitions } from "../../src/repositories/event-partitions.ts";
import type { Advance } from "../../src/services/advance.ts";
import { createExecutions } from "../../src/services/executions.ts";
import { createResults, type Results } from "../../src/services/results.ts";
import { createRetention, type Removed, type Retention, type RetentionDeps } from "../../src/services/retention.ts";
import { openServiceDatabase } from "../repositories/service-database.ts";
import { daysBefore, type OldRows, oldRows } from "../support/old-rows.ts";

const DAYS = 30;
/** Of a month that is over for longer than that, whatever today is. */
const OLD = daysBefore(100);
const NOTHING: Removed = { executions: 0, commands: 0, results: 0, batches: 0, runtimes: 0, partitions: [] };

let database: Database;
let rows: OldRows;
let disk: PayloadStore;
let folder: string;
let told: Removed[];
beforeEach(async () => {
  database = await openServiceDatabase();
  rows = oldRows(database);
  folder = await mkdtemp(join(tmpdir(), "flow-retention-"));
  disk = createDiskPayloads(folder);
  told = [];
});

function openResults(store: PayloadStore = disk): Results {
  const limits = { kvBytesMax: 100, s3BytesMax: 100 };
  return createResults({ database, stores: [store], folder, limits, bytesMax: 1_000, ttlMs: 1_000, now: Date.now });
}

function open(more: Partial<RetentionDeps> = {}): Retention {
  const results = openResults();
  const onRemoved = (removed: Removed) => void told.push(removed);
  return createRetention({ database, results, holder: "one", days: DAYS, leaseMs: 60_000, onRemoved, ...more });
}

/** The file of a result, and where it is. */
async function file(name: string): Promise<{ name: string; path: string }> {
  const path = join(folder, name.slice(0, 2), `${name}.json`);
  await mkdir(join(folder, name.slice(0, 2)), { recursive: true });
  await writeFile(path, "1");
  return { name, path };
}

const month = (moment: Date) => `event_${moment.toISOString().slice(0, 7).replace("-", "_")}`;

test("what was kept for long enough goes as a whole, once, and is told of", async () => {
  await ensureEventPartitions(database, OLD);
  const { name, path } = await file("ab12");
  const old = await rows.execution({ began: OLD, ended: OLD, file: name });
  await rows.batch(daysBefore(2), "completed");
  await database.sql`
    insert into flow.runtime (runtime_id, kind, name, status, heartbeat_at)
    values (1, 'worker', 'gone', 'offline', ${daysBefore(2)})`;
  const retention = open();
  const removed = await retention.runOnce();
  assert.deepEqual(
    { ...removed, partitions: removed?.partitions.includes(month(OLD)) },
    { executions: 1, commands: 1, results: 1, batches: 1, runtimes: 1, partitions: true },
  );
  assert.deepEqual(told, [removed]);
  assert.deepEqual(await rows.executionsLeft([old]), [false]);
  for (const table of ["event", "command", "execution_snapshot", "result", "batch"] as const) {
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
  for (const table of ["event", "command", "execution_snapshot", "result", "batch"] as const) {
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
  await assert.rejects(open({ results: { ...results, removeOf } }).runOnce(), /no room/);
  assert.deepEqual([told[0]?.executions, told[0]?.batches], [0, 1]);
  assert.deepEqual(await rows.executionsLeft([old]), [true]);
  assert.equal((await open({ results, holder: "one" }).runOnce())?.executions, 1);
});

test("more than a statement takes goes in rounds, and more than a run takes in the next one", async () => {
  for (let count = 0; count < 5; count += 1) await rows.execution({ began: OLD, ended: OLD });
  for (let count = 0; count < 5; count += 1) await rows.batch(OLD, "completed");
  const retention = open({ rowsMax: 2, roundsMax: 2 });
  const first = await retention.runOnce();
  assert.deepEqual([first?.executions, first?.batches, first?.results], [4, 4, 4]);
  const second = await retention.runOnce();
  assert.deepEqual([second?.executions, second?.batches, second?.results], [1, 1, 1]);
  await retention.runOnce();
  assert.equal(await rows.count("command"), 0);
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
  // Reading events asks nobody else.
  const executions = createExecutions({
    programs: () => Promise.reject(new Error("nothing is rendered here")),
    database,
    results,
    advance: {} as Advance,
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
