import assert from "node:assert/strict";
import { before, test } from "node:test";
import { insertAudit } from "../../../src/repositories/access/audit.ts";
import type { Database } from "../../../src/repositories/database/database.ts";
import type { AuditEntry } from "../../../src/schema/words/audit-entry.ts";
import { createAudit, SYSTEM } from "../../../src/services/access/audit.ts";
import { verifyAudit } from "../../../src/services/access/audit-chain.ts";
import { createServiceDatabase } from "../../support/database/postgres.ts";
import { createServiceRole, type ServiceRole } from "../../support/database/service-role.ts";
import { open } from "../service-database.ts";

// The account of docs/operations.md, made as it says there.

const ENTRY: AuditEntry = { ...SYSTEM, action: "some.action", resource: "x", result: "allow" };

let owner: Database;
let service: Database;
let account: ServiceRole;
before(async () => {
  const { url } = await createServiceDatabase();
  owner = open(url);
  account = await createServiceRole(owner, url);
  service = open(account.url);
});

test("the account adds rows to the chains, and reads them", async () => {
  await insertAudit(service, [ENTRY, ENTRY]);
  const rows = await service.sql<{ place: string }[]>`
    select chain || ' ' || chain_seq as place from auth.audit_log order by audit_id`;
  assert.deepEqual(
    rows.map(({ place }) => place),
    ["1 1", "1 2"],
  );
});

test("the account cannot change, delete, truncate or date back a row, nor touch the chains or the triggers", async () => {
  const { sql } = service;
  for (const statement of [
    "update auth.audit_log set result = 'deny'",
    "delete from auth.audit_log",
    "truncate auth.audit_log",
    "select auth.audit_delete_old(1)",
    "update auth.audit_chain set last_seq = 0",
    "delete from auth.audit_chain",
    "truncate auth.audit_chain",
    "alter table auth.audit_log disable trigger user",
    "drop trigger audit_log_link on auth.audit_log",
    "drop table auth.audit_log",
    "set session_replication_role = replica",
  ]) {
    await assert.rejects(sql.unsafe(statement), { code: "42501" }, `${statement} was not refused`);
  }
  await sql`
    insert into auth.audit_log (at, actor_kind, action, resource, rule, result, chain, chain_seq, hash)
    values ('2020-01-01', 'system', 'dated.back', 'x', 'y', 'allow', 9, 9, 'z')`;
  const [row] =
    await sql`select at > now() - interval '1 minute' as is_now, chain, hash <> 'z' as is_hashed from auth.audit_log
    where action = 'dated.back'`;
  assert.deepEqual({ ...row }, { is_now: true, chain: 1, is_hashed: true });
});

test("the account cannot lead a chain astray: rows that do not follow on its end are refused, and the next are added", async () => {
  const row = "insert into auth.audit_log (actor_kind, action, resource, rule, result)";
  const values = "'system', 'astray', n::text, 'x', 'allow' from generate_series(1, 3) n";
  const forged = (seq: number) => `'1 ${seq} ${"f".repeat(64)}'`;
  const { sql } = service;
  const statements: Record<string, string> = {
    "a place further on": `select set_config('flow.audit_head', ${forged(99)}, true); ${row} select ${values}`,
    "the place after the end": `
      select set_config('flow.audit_head', (select '1 ' || last_seq || ' ${"f".repeat(64)}' from auth.audit_chain where chain = 1), true);
      ${row} select ${values}`,
    "a change between rows": `${row} select 'system', 'astray', set_config('flow.audit_head', ${forged(77)}, true), 'x', 'allow'
      from generate_series(1, 3) n`,
    "a new beginning between rows": `${row} select 'system', 'astray', n || set_config('flow.audit_head',
      case when n = 3 then '' else current_setting('flow.audit_head', true) end, true), 'x', 'allow' from generate_series(1, 3) n`,
    "another chain": `select set_config('flow.audit_head', (select '2 ' || last_seq || ' ' || last_hash from auth.audit_chain where chain = 1), true);
      ${row} select ${values}`,
    "no place": `select set_config('flow.audit_head', 'nowhere', true); ${row} select ${values}`,
    "ON CONFLICT without a conflict": `${row} select ${values} union all select 'system', 'astray', 'x', 'y', 'allow'
      on conflict (audit_id) do nothing`,
  };
  for (const [name, statement] of Object.entries(statements)) {
    const attempt = sql.begin((tx) => tx.unsafe(statement));
    if (name === "ON CONFLICT without a conflict") await attempt;
    else await assert.rejects(attempt, ({ code }) => ["42501", "23505", "22P02"].includes(code), name);
    await insertAudit(service, [ENTRY]);
    assert.deepEqual((await verifyAudit(owner)({})).problems, [], name);
  }
});

test("retention of a server with the account deletes nothing and is no fault; the owner's deletes", async (t) => {
  // The last test: pools are closed before hooks of the file run.
  t.after(() => account.drop());
  const audit = createAudit({ database: service, days: 1, onLost: assert.fail });
  assert.equal(await audit.deleteOld(), 0);
  const [row] = await owner.sql`select auth.audit_delete_old(1) as deleted`;
  assert.deepEqual({ ...row }, { deleted: 0 });
});
