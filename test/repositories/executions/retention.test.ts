import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import type { Database } from "../../../src/repositories/database/database.ts";
import { ensureEventPartitions } from "../../../src/repositories/executions/event-partitions.ts";
import { dropPartition, findDroppablePartitions } from "../../../src/repositories/executions/old-partitions.ts";
import {
  daysAgo,
  deleteBatches,
  deleteCommandsLeft,
  deleteExecutionRows,
  findOutdatedExecutions,
} from "../../../src/repositories/executions/retention.ts";
import { type OldExecution, type OldRows, oldRows } from "../../support/database/old-rows.ts";
import { openServiceDatabase } from "../service-database.ts";

// What is older than March 2026 goes; what ran in February has ids of February.

const MARCH = new Date("2026-03-01T00:00:00Z");
const FEBRUARY = new Date("2026-02-10T00:00:00Z");
const JANUARY = new Date("2026-01-10T00:00:00Z");
const YOUNG = new Date("2026-03-20T00:00:00Z");

let database: Database;
let rows: OldRows;
beforeEach(async () => {
  database = await openServiceDatabase();
  rows = oldRows(database);
});

const ids = (executions: readonly OldExecution[]) => executions.map(({ executionId }) => executionId);
const outdated = async () => (await findOutdatedExecutions(database, MARCH, "0", 100)).executionIds;
const ended = (more: Partial<Parameters<OldRows["execution"]>[0]> = {}) =>
  rows.execution({ began: FEBRUARY, ended: FEBRUARY, ...more });

test("the moment some days ago is by the database's clock", async () => {
  const [row] = await database.sql<[{ now: Date }]>`select now() as now`;
  const moment = await daysAgo(database, 2);
  assert.ok(Math.abs(row.now.getTime() - moment.getTime() - 172_800_000) < 60_000, String(moment));
});

describe("outdated executions", () => {
  test("are those that ended long ago, however they began", async () => {
    const old = [await ended({ began: JANUARY }), await ended()];
    await rows.execution({ began: YOUNG, ended: YOUNG });
    assert.deepEqual(await outdated(), ids(old));
  });

  test("are no open ones, and none that ended in time, however long ago they began", async () => {
    await rows.execution({ began: JANUARY, ended: null });
    await rows.execution({ began: JANUARY, ended: MARCH });
    assert.deepEqual(await outdated(), []);
  });

  test("are no children while the root or the parent is kept, and are once both may go", async () => {
    const open = await rows.execution({ began: JANUARY, ended: null });
    const kept = await rows.execution({ began: JANUARY, ended: YOUNG });
    const gone = await ended({ began: JANUARY });
    const child = (parent: OldExecution, root: OldExecution) =>
      ended({ parentExecutionId: parent.executionId, rootExecutionId: root.executionId });
    await child(open, open);
    await child(kept, kept);
    await child(gone, open);
    await child(kept, gone);
    const free = await child(gone, gone);
    const orphan = await child({ ...gone, executionId: "1" }, { ...gone, executionId: "1" });
    assert.deepEqual(await outdated(), ids([gone, free, orphan]));
  });

  test("are looked for a page at a time, past those that stay", async () => {
    await rows.execution({ began: JANUARY, ended: null });
    const old = [await ended(), await ended()];
    const first = await findOutdatedExecutions(database, MARCH, "0", 2);
    assert.deepEqual(first, { executionIds: ids(old.slice(0, 1)), next: old[0]?.executionId });
    const second = await findOutdatedExecutions(database, MARCH, first.next ?? "", 2);
    assert.deepEqual(second, { executionIds: ids(old.slice(1)), next: undefined });
  });

  test("lose their rows and snapshots, and no others do", async () => {
    const [old, open] = [await ended(), await rows.execution({ began: JANUARY, ended: null })];
    assert.equal(await deleteExecutionRows(database, ids([old, open])), 1);
    assert.deepEqual(await rows.executionsLeft([old, open]), [false, true]);
    assert.equal(await rows.count("execution_snapshot"), 1);
    assert.equal(await rows.count("past_snapshot"), 1);
    assert.equal(await deleteExecutionRows(database, []), 0);
  });

  test("are left while their row is being written", async () => {
    const [old, written] = [await ended(), await ended()];
    await database.sql.begin(async (sql) => {
      await sql`update flow.execution set last_event_id = last_event_id where execution_id = ${written.executionId}`;
      assert.equal(await deleteExecutionRows(database, ids([old, written])), 1);
    });
    assert.deepEqual(await rows.executionsLeft([old, written]), [false, true]);
  });
});

test("commands go once their execution is gone, a page at a time", async () => {
  const [first, kept, second] = [await ended(), await ended(), await ended()];
  await deleteExecutionRows(database, ids([first, second]));
  const page = await deleteCommandsLeft(database, MARCH, "0", 2);
  assert.deepEqual(page, { deleted: 1, next: kept.commandId });
  assert.deepEqual(await deleteCommandsLeft(database, MARCH, kept.commandId, 2), { deleted: 1, next: undefined });
  const left = await database.sql<{ id: string }[]>`select command_id as id from flow.command`;
  assert.deepEqual([...left], [{ id: kept.commandId }]);
});

test("commands that are younger than the moment are not looked at", async () => {
  const young = await rows.execution({ began: YOUNG, ended: YOUNG });
  await deleteExecutionRows(database, ids([young]));
  assert.deepEqual(await deleteCommandsLeft(database, MARCH, "0", 10), { deleted: 0, next: undefined });
  assert.equal(await rows.count("command"), 1);
});

test("batches go when they have ended long ago, the oldest first", async () => {
  await rows.batch(JANUARY, "accepted");
  const late = await rows.batch(JANUARY, "completed");
  await database.sql`update flow.batch set updated_at = ${YOUNG} where request_id = ${late}`;
  const old = [await rows.batch(JANUARY, "completed"), await rows.batch(FEBRUARY, "failed")];
  await rows.batch(YOUNG, "completed");
  const first = await deleteBatches(database, MARCH, "0", 1);
  assert.deepEqual(first, { deleted: 1, next: old[0] });
  const [gone] = await database.sql`select from flow.batch where request_id = ${old[0] ?? ""}`;
  assert.equal(gone, undefined);
  assert.deepEqual(await deleteBatches(database, MARCH, old[0] ?? "", 10), { deleted: 1, next: undefined });
  assert.deepEqual(await deleteBatches(database, MARCH, "0", 10), { deleted: 0, next: undefined });
  assert.equal(await rows.count("batch"), 3);
});

test("batches that are being written, and those before the place, are left", async () => {
  const [before, written, free] = [
    await rows.batch(JANUARY, "completed"),
    await rows.batch(JANUARY, "completed"),
    await rows.batch(JANUARY, "completed"),
  ];
  await database.sql.begin(async (sql) => {
    await sql`update flow.batch set message = null where request_id = ${written}`;
    assert.deepEqual(await deleteBatches(database, MARCH, before, 1), { deleted: 1, next: free });
  });
  assert.equal(await rows.count("batch"), 2);
});

describe("partitions of the log", () => {
  // Of January, February and March.
  beforeEach(() => ensureEventPartitions(database, JANUARY));

  const names = async () => {
    const found = await database.sql<{ name: string }[]>`
      select relname as name from pg_inherits join pg_class on oid = inhrelid
      where inhparent = 'flow.event_log'::regclass order by relname`;
    return found.map(({ name }) => name);
  };

  test("may go when their month is over by then, and not a day before", async () => {
    assert.deepEqual(await findDroppablePartitions(database, MARCH), ["event_2026_01", "event_2026_02"]);
    const dayBefore = new Date(MARCH.getTime() - 86_400_000);
    assert.deepEqual(await findDroppablePartitions(database, dayBefore), ["event_2026_01"]);
    assert.deepEqual(await findDroppablePartitions(database, new Date("2020-01-01T00:00:00Z")), []);
  });

  test("stay while an execution that exists has events in them, open or ended", async () => {
    const open = await rows.execution({ began: JANUARY, ended: null });
    assert.deepEqual(await findDroppablePartitions(database, MARCH), ["event_2026_02"]);
    const old = await ended();
    assert.deepEqual(await findDroppablePartitions(database, MARCH), []);
    await deleteExecutionRows(database, ids([old]));
    assert.deepEqual(await findDroppablePartitions(database, MARCH), ["event_2026_02"]);
    await database.sql`
      update flow.execution set status = 'COMPLETED', ended_at = ${JANUARY} where execution_id = ${open.executionId}`;
    await deleteExecutionRows(database, ids([open]));
    assert.deepEqual(await findDroppablePartitions(database, MARCH), ["event_2026_01", "event_2026_02"]);
  });

  test("are dropped with their events, and the others keep theirs", async () => {
    const old = await ended({ began: JANUARY });
    const young = await rows.execution({ began: YOUNG, ended: null });
    await deleteExecutionRows(database, ids([old]));
    assert.equal(await dropPartition(database, "event_2026_01"), true);
    assert.deepEqual(await names(), ["event_2026_02", "event_2026_03", "event_default"]);
    const events = await database.sql<{ id: string }[]>`select execution_id as id from flow.event`;
    assert.deepEqual([...events], [{ id: young.executionId }]);
    assert.equal(await dropPartition(database, "event_2026_01"), true, "it is gone already");
  });

  test("are left while the log is in use, and without a long wait: writers queue behind this", async () => {
    await database.sql.begin(async (sql) => {
      await sql`select from flow.event_log limit 1`;
      assert.equal(await dropPartition(database, "event_2026_01"), false);
    });
    assert.equal((await names()).length, 4);
    assert.equal(await dropPartition(database, "event_2026_01"), true);
  });

  test("are left while another server makes some", async () => {
    await database.sql.begin(async (sql) => {
      await sql`select pg_advisory_xact_lock(${0x65766e74})`;
      assert.equal(await dropPartition(database, "event_2026_01"), false);
    });
    assert.equal((await names()).length, 4);
  });
});
