import assert from "node:assert/strict";
import { before, test } from "node:test";
import type { KeyRing } from "../../../src/platform/crypto/key-ring.ts";
import type { Database } from "../../../src/repositories/database/database.ts";
import { type Caller, createAudit } from "../../../src/services/access/audit.ts";
import { createCredentials, credentialBound } from "../../../src/services/credentials/credentials.ts";
import { type Rotated, rotateSecrets } from "../../../src/services/credentials/rotate-secrets.ts";
import { keychainBound } from "../../../src/services/keychain/placement.ts";
import { open } from "../../repositories/service-database.ts";
import { createServiceDatabase } from "../../support/database/postgres.ts";
import { keyRing } from "../../support/engine/key-ring.ts";

const { url } = await createServiceDatabase();
let database: Database;
before(() => {
  database = open(url);
});

const OPERATOR: Caller = { actorKind: "operator", rule: "access:operator" };

/** The use cases as a process with these keys has them. */
function processWith(keys: KeyRing, on = database) {
  const audit = createAudit({ database: on, days: 1, onLost: assert.fail });
  const rotate = rotateSecrets({ database: on, keys, audit });
  /** All rounds of one rotation. */
  const rotateAll = async (limit: number) => {
    const rounds: Rotated[] = [];
    for (let cursor: string | null | undefined; cursor !== null; cursor = rounds.at(-1)?.nextCursor ?? null) {
      rounds.push(await rotate({ limit, ...(cursor !== undefined && { cursor }) }, OPERATOR));
    }
    return {
      total: rounds[0]?.total,
      rotated: rounds.reduce((sum, round) => sum + round.rotated, 0),
      failed: rounds.flatMap((round) => round.failed),
      rounds: rounds.length,
    };
  };
  return { credentials: createCredentials({ database: on, keys, audit }), rotate, rotateAll };
}

/** Credentials and keychain entries under a key; names `c<n>`, cache keys `k<n>:1:global`. */
async function fill(keys: KeyRing, count: number): Promise<void> {
  const names = Array.from({ length: count }, (_, index) => String(index + 1));
  const credentials = names.map((n) => ({
    id: n,
    name: `c${n}`,
    data: keys.encrypt(JSON.stringify({ token: `t${n}` }), credentialBound(`c${n}`, n)),
  }));
  const entries = names.map((n) => ({
    key: `k${n}:1:global`,
    data: keys.encrypt(`{"n":${n}}`, keychainBound(`k${n}:1:global`)),
  }));
  await database.sql`delete from flow.credential`;
  await database.sql`delete from flow.keychain`;
  await database.sql`
    insert into flow.credential (id, name, type, data_encrypted)
    select id, name, 'bearer', data from jsonb_to_recordset(${JSON.stringify(credentials)}::text::jsonb)
      as c (id bigint, name text, data text)`;
  await database.sql`
    insert into flow.keychain (cache_key, keychain_name, catalog_id, credential_type, cache_type, scope_type, data_encrypted,
      expires_at)
    select key, split_part(key, ':', 1), 1, 'oauth2', 'token', 'global', data, now() + interval '1 hour'
    from jsonb_to_recordset(${JSON.stringify(entries)}::text::jsonb) as e (key text, data text)`;
}

async function keysInUse(): Promise<string[]> {
  const rows = await database.sql<{ key: string }[]>`
    select distinct split_part(data_encrypted, '.', 2) as key
    from (select data_encrypted from flow.credential union all select data_encrypted from flow.keychain) all_of_it order by 1`;
  return rows.map(({ key }) => key);
}

test("everything that an older key has encrypted has the current one afterwards, in rounds, and says the same", async () => {
  await fill(keyRing("k1"), 25);
  const keys = keyRing("k2", "k1");
  const { credentials, rotateAll } = processWith(keys);
  await credentials.save({ name: "already", type: "bearer", data: { token: "new" } }, OPERATOR);
  const { total, rotated, failed, rounds } = await rotateAll(10);
  assert.deepEqual([total, rotated, failed, rounds], [50, 50, [], 6]);
  assert.deepEqual(await keysInUse(), ["k2"]);
  const alone = processWith(keyRing("k2")).credentials;
  assert.deepEqual((await alone.read("c7", OPERATOR)).data, { token: "t7" });
  const [entry] = await database.sql<{ data: string }[]>`
    select data_encrypted as data from flow.keychain where keychain_name = 'k7'`;
  assert.equal(keys.decrypt(entry?.data ?? "", keychainBound("k7:1:global")).toString(), '{"n":7}');
});

test("a finished rotation does nothing and says so", async () => {
  const { total, rotated, rounds } = await processWith(keyRing("k2", "k1")).rotateAll(10);
  assert.deepEqual([total, rotated, rounds], [0, 0, 2]);
});

test("two processes rotate while credentials are read and replaced: no read fails, and every value is the newest one", async () => {
  const count = 120;
  await fill(keyRing("k1"), count);
  const [one, two] = [open(url), open(url)].map((pool) => processWith(keyRing("k2", "k1"), pool));
  const reader = processWith(keyRing("k1", "k2"), open(url));
  let isOver = false;
  let reads = 0;
  const reading = (async () => {
    while (!isOver) {
      const name = `c${(reads % count) + 1}`;
      const { data } = await reader.credentials.read(name, OPERATOR);
      assert.match(String(data["token"]), /^(t|new)\d+$/);
      reads += 1;
    }
  })();
  const writing = (async () => {
    for (let n = 1; n <= count; n += 5) {
      const content = { name: `c${n}`, type: "bearer" as const, data: { token: `new${n}` } };
      await one?.credentials.save(content, OPERATOR);
    }
  })();
  const ends = await Promise.all([one?.rotateAll(7), two?.rotateAll(7), writing]);
  isOver = true;
  await reading;
  assert.deepEqual([ends[0]?.failed, ends[1]?.failed], [[], []]);
  assert.ok(reads > 20, `${reads} reads`);
  // What one held was left to it by the other: whatever is left after both is none.
  await one?.rotateAll(100);
  assert.deepEqual(await keysInUse(), ["k2"]);
  for (let n = 1; n <= count; n += 5) {
    assert.equal((await reader.credentials.read(`c${n}`, OPERATOR)).data["token"], `new${n}`);
  }
});

test("an undecryptable secret is reported with name and reason, stays unchanged, and does not stop the rotation", async () => {
  await fill(keyRing("k1"), 3);
  const lost = keyRing("lost").encrypt("{}", credentialBound("c2", "2"));
  await database.sql`update flow.credential set data_encrypted = ${lost} where name = 'c2'`;
  await database.sql`update flow.keychain set data_encrypted = 'flow1.k1.AAAA.AAAA' where keychain_name = 'k3'`;
  const { rotated, failed } = await processWith(keyRing("k2", "k1")).rotateAll(1);
  assert.equal(rotated, 4);
  assert.deepEqual(
    failed.map(({ resource }) => resource),
    ["credential/c2", "keychain/k3"],
  );
  assert.match(failed[0]?.message ?? "", /the key 'lost'/);
  const [row] = await database.sql`select data_encrypted as data from flow.credential where name = 'c2'`;
  assert.equal(row?.["data"], lost);
});

test("each round that did something is in the audit log with its numbers", async () => {
  const rows = await database.sql<{ detail: unknown }[]>`
    select detail from auth.audit_log where action = 'secrets.rotate' and resource = 'key/k2' order by audit_id limit 1`;
  assert.deepEqual(rows[0]?.detail, { table: "credential", rotated: 10, failed: 0 });
});

test("a cursor that no rotation gave out is refused", async () => {
  const { rotate } = processWith(keyRing());
  for (const text of ["users 1", "credential x", "credential 1; drop", ""]) {
    const cursor = Buffer.from(JSON.stringify(text)).toString("base64url");
    await assert.rejects(rotate({ limit: 1, cursor }, OPERATOR), { code: "INVALID_INPUT" });
  }
});
