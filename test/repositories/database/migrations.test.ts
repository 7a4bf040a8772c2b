import assert from "node:assert/strict";
import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { firstIdAt } from "../../../src/platform/system/ids.ts";
import { packagePath } from "../../../src/platform/system/package-file.ts";
import { readCredentialDefault } from "../../../src/repositories/credentials/credential-policy.ts";
import { migrate } from "../../../src/repositories/database/migrate.ts";
import { ensureEventPartitions } from "../../../src/repositories/executions/event-partitions.ts";
import { loadCommandBodies } from "../../../src/repositories/orchestration/claimable-commands.ts";
import { loadEvents } from "../../../src/repositories/orchestration/load-execution.ts";
import { audited, createAudit, SYSTEM } from "../../../src/services/access/audit.ts";
import { pastTriggers } from "../../support/database/past-triggers.ts";
import { openEmptyDatabase } from "../service-database.ts";

// What each migration does to rows that are there already.

const MIGRATIONS = packagePath("migrations");

const UP_TO_0006 = [
  "0000_initial",
  "0001_execution_store",
  "0002_keychain",
  "0003_results",
  "0004_audit_log",
  "0005_access",
  "0006_command_lanes",
];

const UP_TO_0009 = [...UP_TO_0006, "0007_audit_chain", "0008_worker_pools", "0009_command_groups"];

/** A folder with some of the migrations; removed after the test. */
async function folderWith(context: TestContext, ...names: string[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "flow-migrations-"));
  context.after(() => rm(folder, { recursive: true }));
  for (const name of names) await copyFile(join(MIGRATIONS, `${name}.sql`), join(folder, `${name}.sql`));
  return folder;
}

test("0001 keeps executions, events and commands that were written before it", async (context) => {
  const database = await openEmptyDatabase();
  await migrate(database, await folderWith(context, "0000_initial"));
  await database.sql.unsafe(`
    insert into flow.execution (execution_id, catalog_id, path, version, status, last_event_id, root_execution_id, result,
      ended_at) values (10, 1, 'a', 1, 'COMPLETED', 11, 10, '{"n": 1}', now());
    insert into flow.event (event_id, execution_id, catalog_id, event_type, node_id, node_name, node_type, status,
      created_at, iteration, duration_ms, result) values (11, 10, 1, 'x', 'a', 'a', 'step', 'COMPLETED',
      '2026-11-21T10:00:00.123Z', 3, 7, '{"status": "ok"}');
    insert into flow.command (command_id, execution_id, catalog_id, step, kinds, body)
      values (12, 10, 1, 'a', '{noop}', '{"step": "a"}')`);
  await migrate(database, await folderWith(context, "0000_initial", "0001_execution_store"));
  const [event] = await database.sql`select created_at, iteration, duration_ms, result from flow.event`;
  assert.deepEqual(
    { ...event },
    { created_at: new Date("2026-11-21T10:00:00.123Z"), iteration: "3", duration_ms: 7, result: { status: "ok" } },
  );
  assert.deepEqual(await loadCommandBodies(database, ["12"]), [{ step: "a" }]);
  const [execution] = await database.sql`select result, deadline_at from flow.execution`;
  assert.deepEqual([execution?.["result"], execution?.["deadline_at"]], [{ n: 1 }, null]);
});

for (const [what, metas, byDefault] of [
  ["no credential", [], "restricted"],
  ["those of the service alone", ['{"playbooks": ["api_integration/**"]}'], "restricted"],
  ["one without a list", ['{"playbooks": ["a/**"]}', '{"owner": "ops"}'], "open"],
  ["one without meta", [null], "open"],
  ["a list that is null", ['{"playbooks": null}'], "open"],
] as const) {
  test(`0010 goes on as before with credentials for every playbook, and closes where they are not: ${what}`, async (context) => {
    const database = await openEmptyDatabase();
    await migrate(database, await folderWith(context, ...UP_TO_0009));
    for (const [at, meta] of metas.entries()) {
      await database.sql`insert into flow.credential (id, name, type, data_encrypted, meta)
        values (${at + 1}, ${`c${at}`}, 'custom', 'x', ${meta}::text::jsonb)`;
    }
    await migrate(database, await folderWith(context, ...UP_TO_0009, "0010_credential_policy"));
    assert.equal(await readCredentialDefault(database.sql), byDefault);
  });
}

test("0011 goes on with the chains of 0007: rows of before and of after it are verified, and a change of either is found", async (context) => {
  const before = [...UP_TO_0009, "0010_credential_policy"];
  const database = await openEmptyDatabase();
  await migrate(database, await folderWith(context, ...before));
  const audit = createAudit({ database, days: 1, onLost: assert.fail });
  const entries = ["'a'", "\\b", "ü"].map((odd) => audited(SYSTEM, "some", odd, { detail: { odd } }));
  await audit.record(...entries);
  const { heads } = await audit.verify({});
  await migrate(database, await folderWith(context, ...before, "0011_audit_statement_links"));
  await audit.record(...entries);
  const whole = await audit.verify({ heads });
  assert.deepEqual([whole.rows, whole.problems, whole.heads.map(({ seq }) => seq)], [6, [], [6]]);
  for (const seq of [2, 5]) {
    await pastTriggers(database, `update auth.audit_log set actor = 'other' where chain_seq = ${seq}`);
    const { problems } = await audit.verify({});
    assert.deepEqual([problems.at(-1)?.kind, problems.at(-1)?.seq], ["changed", seq]);
  }
});

test("0007 keeps rows of the audit log, which are before the chains, and users with and without an identity", async (context) => {
  const database = await openEmptyDatabase();
  await migrate(database, await folderWith(context, ...UP_TO_0006));
  await database.sql.unsafe(`
    insert into auth.audit_log (actor_kind, actor, action, resource, rule, result, detail)
      values ('worker', 'w1', 'credential.read', 'credential/a', 'access:worker', 'allow', '{"n": 1}'),
        ('system', null, 'other', 'b', 'system', 'deny', null);
    insert into auth.users (email, display_name, issuer, subject)
      values ('a@x.example', 'A', 'https://idp.example/', 's1'), ('b@x.example', 'B', null, null)`);
  await migrate(database, await folderWith(context, ...UP_TO_0006, "0007_audit_chain"));
  const audit = createAudit({ database, days: 1, onLost: assert.fail });
  await audit.record(audited(SYSTEM, "later", "x"));
  const { items } = await audit.list({}, { limit: 10 });
  assert.deepEqual(
    items.map(({ action, result, detail, executionId }) => [action, result, detail, executionId]),
    [
      ["later", "allow", null, null],
      ["other", "deny", null, null],
      ["credential.read", "allow", { n: 1 }, null],
    ],
  );
  const { rows, before, problems } = await audit.verify({});
  assert.deepEqual({ rows, before, problems }, { rows: 1, before: 2, problems: [] });
  const users = await database.sql`select issuer, subject from auth.users order by user_id`;
  assert.deepEqual(
    users.map((user) => ({ ...user })),
    [
      { issuer: "https://idp.example/", subject: "s1" },
      { issuer: null, subject: null },
    ],
  );
});

test("0012 keeps the log: events of every month are read as before, and the next months get partitions", async (context) => {
  const before = [...UP_TO_0009, "0010_credential_policy"];
  const database = await openEmptyDatabase();
  const { sql } = database;
  await migrate(database, await folderWith(context, ...before));
  const [november, december] = [firstIdAt(Date.UTC(2026, 10, 20)), firstIdAt(Date.UTC(2026, 11, 1))];
  // A month's partition, as the version before made it.
  await sql.unsafe(`
    create table flow.event_2026_11 partition of flow.event for values from (${firstIdAt(Date.UTC(2026, 10, 1))}) to (${december})`);
  const ids = [november + 1, november + 2, december + 1];
  for (const id of ids) {
    await sql`
      insert into flow.event (event_id, execution_id, catalog_id, event_type, node_id, node_name, node_type, status, created_at, result)
      values (${id}, ${november}, 1, 'task.done', 'a', 't', 'task', 'COMPLETED', '2026-11-21T10:00:00.123Z',
        '{"status":"ok","context":{"z":"\\u0000","a":1}}')`;
  }
  const asBefore = await sql`select * from flow.event order by event_id`;
  await migrate(database, await folderWith(context, ...before, "0011_audit_statement_links", "0012_event_segments"));
  const events = await loadEvents(database, String(november), 0, 10);
  assert.deepEqual(
    events.map(({ event_id }) => event_id),
    ids,
  );
  assert.equal(JSON.stringify(events[0]?.["result"]), '{"status":"ok","context":{"z":"\\u0000","a":1}}');
  assert.deepEqual([...(await sql`select * from flow.event order by event_id`)], [...asBefore]);
  assert.deepEqual(await ensureEventPartitions(database, new Date("2026-11-21T00:00:00Z")), [
    "event_2026_12",
    "event_2027_01",
  ]);
  assert.equal((await loadEvents(database, String(november), 0, 10)).length, 3);
  // A server of the version before deletes through the view.
  const { count } = await sql`delete from flow.event where execution_id = ${november} and event_id <= ${november + 2}`;
  assert.equal(count, 2);
  assert.deepEqual(
    (await loadEvents(database, String(november), 0, 10)).map(({ event_id }) => event_id),
    [december + 1],
  );
});
