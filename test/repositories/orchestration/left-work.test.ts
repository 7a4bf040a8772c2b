import assert from "node:assert/strict";
import { before, test } from "node:test";
import type { Database } from "../../../src/repositories/database/database.ts";
import { findLeftWork, type LeftWork } from "../../../src/repositories/orchestration/left-work.ts";
import { type StoreSetup, storeSetup } from "../../support/database/store-setup.ts";
import { openServiceDatabase } from "../service-database.ts";

// Nothing that one of the background works would find may be missing here.

const NONE: LeftWork & { nextMs: number | null } = {
  nextMs: null,
  commands: false,
  batches: false,
  overdue: false,
  results: false,
  pools: false,
  bulk: false,
  waits: false,
  signals: false,
  messages: false,
  triggers: false,
  watchers: false,
  streams: false,
};

let database: Database;
let setup: StoreSetup;
before(async () => {
  database = await openServiceDatabase();
  setup = storeSetup(database);
});

/** What is found after the statement `make`, which is undone. */
async function foundAfter(make: (sql: Database["sql"]) => Promise<unknown>): Promise<LeftWork> {
  let found: LeftWork = NONE;
  const undo = new Error("undo");
  await database.sql
    .begin(async (sql) => {
      await make(sql as unknown as Database["sql"]);
      const { shownMs: _, ...look } = await findLeftWork({ ...database, sql: sql as unknown as Database["sql"] });
      found = look;
      throw undo;
    })
    .catch((error: unknown) => assert.equal(error, undo));
  return found;
}

test("of a database where nothing is open nothing is found", async () => {
  const { shownMs, ...found } = await findLeftWork(database);
  assert.deepEqual(found, NONE);
  assert.ok(Math.abs(shownMs - Date.now()) < 60_000, `The database's clock shows ${shownMs}`);
});

test("each open thing is found, and what is over is not", async () => {
  const {
    commandId,
    change: { executionId },
  } = await setup.command();
  const close = (sql: Database["sql"]) => sql`delete from flow.command`;
  for (const status of ["PENDING", "CLAIMED", "RUNNING"]) {
    const worker = status === "PENDING" ? null : "w";
    const found = await foundAfter(
      (sql) => sql`
      update flow.command set status = ${status}, worker = ${worker}, attempt = 1,
        claimed_at = case when ${worker}::text is null then null else now() end,
        lease_expires_at = case when ${worker}::text is null then null else now() end
      where command_id = ${commandId}`,
    );
    assert.deepEqual(found, { ...NONE, commands: true }, status);
  }
  assert.deepEqual(await foundAfter(close), NONE);
  for (const [due, overdue] of [
    ["-1 second", true],
    ["1 hour", false],
  ] as const) {
    const found = await foundAfter(async (sql) => {
      await close(sql);
      await sql`update flow.execution set deadline_at = now() + ${due}::interval where execution_id = ${executionId}`;
    });
    assert.deepEqual(found, { ...NONE, overdue }, due);
  }
  for (const [state, batches] of [
    ["accepted", true],
    ["processing", true],
    ["completed", false],
  ] as const) {
    const found = await foundAfter(async (sql) => {
      await close(sql);
      await sql`
        insert into flow.batch (request_id, caller, body_sha256, state, execution_ids, event_ids, commands_generated, processor, lease_expires_at)
        values (1, 'w', ${"a".repeat(64)}, ${state}, ${[executionId]}::bigint[], '{}', 0,
          ${state === "processing" ? "s" : null}, ${state === "processing" ? new Date() : null})`;
    });
    assert.deepEqual(found, { ...NONE, batches }, state);
  }
  for (const scope of ["step", "execution", "workflow", "permanent"]) {
    const found = await foundAfter(async (sql) => {
      await close(sql);
      await sql`
        insert into flow.result (execution_id, ref, root_execution_id, state, store, scope, content_type, bytes, sha256, payload)
        values (${executionId}, 'noetl://x', ${executionId}, 'stored', 'kv', ${scope}, 'application/json', 1, ${"a".repeat(64)}, '1')`;
    });
    assert.deepEqual(found, { ...NONE, results: scope !== "permanent" }, scope);
  }
  for (const revoked of [null, "now"]) {
    const found = await foundAfter(async (sql) => {
      await close(sql);
      await sql`
        insert into flow.worker_pool (name, paths, token_sha256, created_by, revoked_at)
        values ('p', '{a}', ${"a".repeat(64)}, 'me', ${revoked}::text::timestamptz)`;
    });
    assert.deepEqual(found, { ...NONE, pools: revoked === null });
  }
});

test("an operation on many executions is found while it is under way, and not while it is paused", async () => {
  for (const [status, bulk] of [
    ["running", true],
    ["paused", false],
  ] as const) {
    const found = await foundAfter(async (sql) => {
      await sql`delete from flow.command`;
      await sql`
        insert into flow.bulk (bulk_id, action, status, filter, options, asked_by)
        values (1, 'cancel', ${status}, '{}', '{}', 'operator')`;
    });
    assert.deepEqual(found, { ...NONE, bulk }, status);
  }
});

test("a trigger that reads a stream, and one that did so a moment ago", async () => {
  const reads = (enabled: boolean) =>
    foundAfter(
      (sql) => sql`insert into flow.trigger (trigger_id, document, path, name, kind, definition, version, enabled)
        values (1, 'd', 'p', 'n', 'nats', '{}', 1, ${enabled})`,
    );
  assert.equal((await reads(true)).streams, true);
  assert.equal((await reads(false)).streams, false);
  const held = (ends: string) =>
    foundAfter(
      (sql) => sql`insert into flow.lease (name, holder, token, acquired_at, expires_at)
        values ('trigger/1', 'a', 1, now() - interval '1 minute', now() + ${ends}::interval)`,
    );
  assert.equal((await held("5 seconds")).streams, true);
  assert.equal((await held("-5 seconds")).streams, false);
});
