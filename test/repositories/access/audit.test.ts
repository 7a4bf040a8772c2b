import assert from "node:assert/strict";
import { before, test } from "node:test";
import { deleteOldAudit, insertAudit } from "../../../src/repositories/access/audit.ts";
import type { Database } from "../../../src/repositories/database/database.ts";
import type { AuditEntry } from "../../../src/schema/words/audit-entry.ts";
import { openServiceDatabase } from "../service-database.ts";

let database: Database;
before(async () => {
  database = await openServiceDatabase();
});

const ENTRY: AuditEntry = {
  actorKind: "worker",
  actor: "w1",
  action: "credential.read",
  resource: "credential/pg",
  rule: "access:worker",
  result: "allow",
  address: "10.0.0.1",
  requestId: "9007199254740991",
  detail: { a: 1 },
};

test("a row says who did what, what decided, how it ended, from where and in which request", async () => {
  await insertAudit(database, [ENTRY, { ...ENTRY, result: "deny" }]);
  const rows = await database.sql`
    select actor_kind, actor, user_id, action, resource, rule, result, address, request_id, detail,
      at between now() - interval '1 minute' and now() as "isNow"
    from auth.audit_log order by audit_id`;
  const row = {
    actor_kind: "worker",
    actor: "w1",
    user_id: null,
    action: "credential.read",
    resource: "credential/pg",
    rule: "access:worker",
    address: "10.0.0.1",
    request_id: "9007199254740991",
    detail: { a: 1 },
    isNow: true,
  };
  assert.deepEqual(
    rows.map((one) => ({ ...one })),
    [
      { ...row, result: "allow" },
      { ...row, result: "deny" },
    ],
  );
});

test("any input of a caller can be recorded: odd characters and long texts", async () => {
  const resource = `credential/a\u0000b\ud800${"x".repeat(10_000)}`;
  await insertAudit(database, [{ ...ENTRY, resource }]);
  const [row] = await database.sql<{ resource: string }[]>`
    select resource from auth.audit_log order by audit_id desc limit 1`;
  assert.match(row?.resource ?? "", /^credential\/a\ufffdb\ufffdx+$/);
  assert.equal(row?.resource.length, 512);
});

for (const [check, odd] of [
  ["audit_log_actor_kind", { actorKind: "somebody" }],
  ["audit_log_result", { result: "perhaps" }],
  ["audit_log_user", { userId: "7" }],
] as const) {
  test(`the table refuses what violates ${check}`, async () => {
    await assert.rejects(insertAudit(database, [{ ...ENTRY, ...odd } as AuditEntry]), { constraint_name: check });
  });
}

test("rows cannot be changed, deleted or truncated", async () => {
  await insertAudit(database, [ENTRY]);
  const { sql } = database;
  for (const attempt of [
    () => sql`update auth.audit_log set result = 'allow'`,
    () => sql`delete from auth.audit_log`,
    () => sql`truncate auth.audit_log`,
    // Retention's own word is not enough for what is new.
    () =>
      sql.begin(async (tx) => {
        await tx`select set_config('flow.audit_retention', 'on', true)`;
        await tx`delete from auth.audit_log`;
      }),
  ]) {
    await assert.rejects(attempt, { code: "42501", message: /append-only/ });
  }
});

test("retention deletes what is old enough, some at a time, and nothing else", async () => {
  const own = await openServiceDatabase();
  const { sql } = own;
  await sql`
    insert into auth.audit_log (at, actor_kind, action, resource, rule, result)
    select now() - n * interval '1 day', 'system', 'old', 'x', 'system', 'allow' from generate_series(10, 1, -1) n`;
  const days = async () => {
    const rows = await sql<{ days: number }[]>`
      select extract(day from now() - at)::int as days from auth.audit_log where action = 'old' order by 1`;
    return rows.map((row) => row.days);
  };
  assert.equal(await deleteOldAudit(own, 5, 3), 3);
  assert.deepEqual(await days(), [1, 2, 3, 4, 5, 6, 7]);
  assert.equal(await deleteOldAudit(own, 5, 100), 3);
  assert.deepEqual(await days(), [1, 2, 3, 4]);
  assert.equal(await deleteOldAudit(own, 5, 100), 0);
});
