import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { openDatabase, transaction } from "../../../src/repositories/database/database.ts";
import { databaseMessage, isRefused, unreachable } from "../../../src/repositories/database/error-codes.ts";
import { migrate } from "../../../src/repositories/database/migrate.ts";
import { findWay } from "../../../src/repositories/database/pooler.ts";
import { type RealPostgres, startRealPostgres } from "../../support/database/real-postgres.ts";
import { startPgbouncer } from "../../support/servers/pgbouncer.ts";

/* The database as people have it: encrypted or not, by a socket, behind a pooler, of several versions. */

async function answer(url: string): Promise<string> {
  const database = openDatabase(url, { connectionsMax: 1 });
  try {
    const rows =
      await database.sql`select coalesce((select ssl from pg_stat_ssl where pid = pg_backend_pid()), false) as ssl`;
    return rows[0]?.["ssl"] === true ? "encrypted" : "plain";
  } catch (error) {
    assert.ok(unreachable(error), `${error} counts as away`);
    return `${isRefused(error) ? "refused" : "away"}: ${databaseMessage(error)}`;
  } finally {
    await database.close();
  }
}

const plain: RealPostgres = await startRealPostgres(18);
const required: RealPostgres = await startRealPostgres(15, "required");

test("sslmode without encryption on the server: prefer goes without, the stricter ones refuse", async () => {
  assert.equal(await answer(plain.url), "plain");
  assert.equal(await answer(`${plain.url}?sslmode=disable`), "plain");
  assert.equal(await answer(`${plain.url}?sslmode=prefer`), "plain");
  for (const mode of ["require", "verify-ca", "verify-full"])
    assert.match(await answer(`${plain.url}?sslmode=${mode}`), /^refused: .*offers no encryption, which sslmode=/);
});

test("sslmode where encryption is asked for: the certificate is looked at as the mode says", async () => {
  const { url, certificate } = required;
  const byName = url.replace("127.0.0.1", "localhost");
  const ca = `sslrootcert=${encodeURIComponent(certificate)}`;
  assert.match(await answer(url), /^refused: no pg_hba.conf entry.*no encryption/);
  assert.equal(await answer(`${url}?sslmode=prefer`), "encrypted");
  assert.equal(await answer(`${url}?sslmode=require`), "encrypted");
  for (const mode of ["verify-ca", "verify-full"]) {
    const told = await answer(`${url}?sslmode=${mode}`);
    assert.match(told, /^refused: its certificate is signed by an unknown authority.*sslrootcert.*FLOW_DATABASE_CA/);
    assert.equal(await answer(`${url}?sslmode=${mode}&${ca}`), "encrypted");
    assert.equal(await answer(`${byName}?sslmode=${mode}&${ca}`), "encrypted");
  }
  assert.equal(await answer(`${url}?${ca}`), "encrypted");
});

test("the certificate of another name is refused by verify-full alone", async () => {
  // 127.0.0.2 is this machine too, and stands in no certificate.
  const { certificate, url } = await startRealPostgres(18, "offered");
  const other = url.replace("127.0.0.1", "127.1");
  const ca = `sslrootcert=${encodeURIComponent(certificate)}`;
  assert.equal(await answer(`${other}?sslmode=verify-ca&${ca}`), "encrypted");
  assert.match(await answer(`${other}?sslmode=verify-full&${ca}`), /^refused: its certificate is for another name/);
});

test("a client certificate: the server accepts it, and refuses a connection without it or its file", async () => {
  const { url, certificate, key } = await startRealPostgres(15, "client");
  const own = `sslcert=${encodeURIComponent(certificate)}&sslkey=${encodeURIComponent(key)}`;
  assert.equal(await answer(`${url}?sslmode=require&${own}`), "encrypted");
  assert.match(await answer(`${url}?sslmode=require`), /^refused: .*certificate/);
  assert.throws(() => openDatabase(`${url}?sslmode=require&sslcert=/none&sslkey=/none`), { code: "INVALID_SETTING" });
  const broken = join(dirname(certificate), "broken.pem");
  await writeFile(broken, "no certificate");
  assert.match(await answer(`${url}?sslmode=verify-ca&sslrootcert=${broken}&${own}`), /refused|certificate/);
});

test("a unix socket by its folder, in each way that an address can name it", async () => {
  const { socketFolder, port } = plain;
  const folder = encodeURIComponent(socketFolder);
  for (const url of [
    `postgres://postgres:secret@/postgres?host=${folder}&port=${port}`,
    `postgres:///postgres?host=${folder}&port=${port}&user=postgres&password=secret`,
    `postgres://postgres:secret@${folder}/postgres?port=${port}`,
    `postgres://postgres:secret@elsewhere/postgres?host=${folder}&port=${port}&sslmode=verify-full`,
  ])
    assert.equal(await answer(url), "plain");
  assert.match(await answer(`postgres://postgres:secret@/postgres?host=/nowhere`), /^away: .*ENOENT/);
});

test("several hosts: an unavailable one is skipped", async () => {
  const { port } = plain;
  assert.equal(await answer(`postgres://postgres:secret@127.0.0.1:1,127.0.0.1:${port}/postgres`), "plain");
  assert.match(await answer("postgres://postgres:secret@127.0.0.1:1,127.0.0.1:2/postgres"), /^away: .*ECONNREFUSED/);
  const standby = `postgres://postgres:secret@127.0.0.1:${port}/postgres?target_session_attrs=standby`;
  assert.match(await answer(standby), /^away: .*CONNECTION_DESTROYED/);
});

for (const [version, server] of [
  [15, required],
  [18, plain],
] as const) {
  const url = version === 15 ? `${server.url}?sslmode=require` : server.url;
  test(`PostgreSQL ${version}: reached directly, migrated, asked`, async () => {
    const way = await findWay(url);
    assert.equal(way.pooled, false);
    assert.match(way.version, new RegExp(`^${version}\\.`));
    const database = openDatabase(url);
    await migrate(database);
    await migrate(database);
    await database.close();
  });
}

for (const mode of ["session", "transaction"] as const) {
  test(`PgBouncer, ${mode} mode: it is recognised, and statements, transactions and time limits work through it`, async () => {
    const url = await startPgbouncer(plain.url, mode, 2);
    const way = await findWay(url);
    assert.equal(way.pooled, true);
    // Sent with the login, the settings of a session are refused.
    await assert.rejects(openDatabase(url, { connectionsMax: 1 }).sql`select 1`, /unsupported startup parameter/);
    const connectionsMax = mode === "session" ? 2 : 10;
    const database = openDatabase(url, { pooled: true, byKey: true, statementMs: 2_000, connectionsMax });
    await migrate(database);
    const rows = await Promise.all(
      Array.from({ length: 50 }, (_, index) => database.sql`select ${index}::int as n, ${["a", "b"]}::text[] as list`),
    );
    assert.deepEqual(
      rows.map(([row]) => row?.["n"]),
      Array.from({ length: 50 }, (_, index) => index),
    );
    const limit = await transaction(database, async ({ sql }) => {
      await sql`set local statement_timeout = 50`;
      return await sql`select pg_sleep(5)`.catch((error: unknown) => error);
    }).catch((error: unknown) => error);
    assert.match(String(limit), /statement timeout|aborted/);
    await assert.rejects(database.sql`select pg_sleep(60)`, { code: "57014" });
    assert.equal((await database.sql`select 1 as one`)[0]?.["one"], 1);
    await database.close();
  });
}

test("PgBouncer, transaction mode: each statement gets its own answer where several clients share few sessions", async () => {
  const url = await startPgbouncer(plain.url, "transaction", 2);
  const clients = Array.from({ length: 4 }, () => openDatabase(url, { connectionsMax: 2, pooled: true }));
  const rounds = Array.from({ length: 100 }, (_, round) => round);
  const answers = await Promise.all(
    clients.map(async ({ sql }, client) => {
      const wrong: unknown[] = [];
      for (const round of rounds) {
        // Statements without values need one exchange, the others two: those behind them would be cut in half.
        const plainOnes = Array.from({ length: 3 }, () => sql`select 1 as answer`);
        const value = client % 2 === 0 ? round : [String(round)];
        const typed = client % 2 === 0 ? sql`select ${value}::int as answer` : sql`select ${value}::bigint[] as answer`;
        const rows = await Promise.all([...plainOnes, typed]);
        const told = rows.map(([row]) => row?.["answer"] as unknown);
        if (!isDeepStrictEqual(told, [1, 1, 1, value])) wrong.push(told);
      }
      return wrong;
    }),
  );
  assert.deepEqual(answers, [[], [], [], []]);
  for (const client of clients) await client.close();
});
