import assert from "node:assert/strict";
import { test } from "node:test";
import connect from "postgres";
import { startRealPostgres } from "../support/database/real-postgres.ts";
import { startPgbouncer } from "../support/servers/pgbouncer.ts";
import { WORK_DONE } from "./support/playbooks.ts";
import { LONG, openStand } from "./support/stand.ts";

/* A service behind a pooler. */

const { url: postgres } = await startRealPostgres(15);

for (const mode of ["session", "transaction"] as const) {
  test(`behind PgBouncer in ${mode} mode a service works; a direct connection restores the features that need a session`, async (t) => {
    const url = await emptyDatabase(mode);
    // Each server holds its connections for as long as it likes in session mode.
    const pooled = await startPgbouncer(url, mode, mode === "session" ? 40 : 3);
    const stand = await openStand(t, LONG, url);
    const server = await stand.server({ FLOW_DATABASE_URL: pooled });
    const other = await stand.server({ FLOW_DATABASE_URL: pooled, FLOW_DATABASE_DIRECT_URL: url });
    assert.match(server.log(), /is reached through a pooler/);
    assert.match(server.log(), /notices of changed sessions do not pass a pooler/);
    assert.doesNotMatch(other.log(), /notices of changed sessions do not pass a pooler/);
    const client = await stand.client(server, other);
    await stand.worker(server, "one");
    await stand.finish(client, await stand.start(client, "work", 8), WORK_DONE);
    assert.doesNotMatch(server.log() + other.log(), /prepared statement|"level":"error"/);
  });
}

async function emptyDatabase(name: string): Promise<string> {
  const sql = connect(postgres, { max: 1 });
  await sql`create database ${sql(name)}`;
  await sql.end();
  return postgres.replace(/\/postgres$/, `/${name}`);
}
