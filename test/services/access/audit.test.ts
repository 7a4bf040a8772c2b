import assert from "node:assert/strict";
import { before, test } from "node:test";
import type { Database } from "../../../src/repositories/database/database.ts";
import { audited, createAudit, REFUSALS_MAX, SYSTEM } from "../../../src/services/access/audit.ts";
import { open, openServiceDatabase } from "../../repositories/service-database.ts";
import { closedPort } from "../../support/servers/http-server.ts";

let database: Database;
before(async () => {
  database = await openServiceDatabase();
});

const refusal = (resource: string) =>
  audited({ actorKind: "anonymous", rule: "access:worker" }, "credential.read", resource, { result: "deny" });

async function resources(action: string): Promise<string[]> {
  const rows = await database.sql<{ resource: string }[]>`
    select resource from auth.audit_log where action = ${action} order by audit_id`;
  return rows.map(({ resource }) => resource);
}

test("what is recorded is there when that resolves; several rows at once keep their order", async () => {
  const audit = createAudit({ database, days: 1, onLost: assert.fail });
  await audit.record(audited(SYSTEM, "first", "a"), audited(SYSTEM, "first", "b", { detail: { n: 1 } }));
  assert.deepEqual(await resources("first"), ["a", "b"]);
  await audit.record();
});

test("refusals are written together and without waiting, the ones beyond a bound as one row with their number", async () => {
  const audit = createAudit({ database, days: 1, onLost: assert.fail });
  for (let index = 0; index < REFUSALS_MAX + 7; index += 1) audit.refused(refusal(`credential/${index}`));
  assert.deepEqual(await resources("credential.read"), []);
  await audit.close();
  assert.equal((await resources("credential.read")).length, REFUSALS_MAX);
  const [row] = await database.sql<{ detail: unknown }[]>`select detail from auth.audit_log where action = 'refused'`;
  assert.deepEqual(row?.detail, { count: 7 });
  // A second of its own begins after that.
  audit.refused(refusal("credential/later"));
  await audit.close();
  assert.equal((await resources("credential.read")).at(-1), "credential/later");
});

test("refusals that cannot be written are logged, and callers do not notice; required audit rows throw", async () => {
  const lost: number[] = [];
  const away = open(`postgres://u:p@127.0.0.1:${await closedPort()}/x`, { connectSeconds: 1 });
  const audit = createAudit({ database: away, days: 1, onLost: (_error, rows) => lost.push(rows) });
  audit.refused(refusal("a"));
  audit.refused(refusal("b"));
  await audit.close();
  assert.deepEqual(lost, [2]);
  await assert.rejects(audit.record(refusal("c")), /ECONNREFUSED/);
});
