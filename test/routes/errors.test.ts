import assert from "node:assert/strict";
import { after, test } from "node:test";
import { openDatabase } from "../../src/repositories/database.ts";
import { migrate } from "../../src/repositories/migrate.ts";
import { type Api, type Body, buildApi, playbook, posted } from "../support/api.ts";
import { createTestDatabase } from "../support/postgres.ts";

const SECRET_TEXT = "canary-4711";

/** A database that answers, and one that nothing answers for. */
const { url } = await createTestDatabase();
const database = openDatabase(url);
await migrate(database);
const away = openDatabase("postgres://user:password-canary@127.0.0.1:1/none", { connectSeconds: 1 });
after(async () => {
  await database.close();
  await away.close();
});

async function answer(api: Api, path: string, init?: RequestInit) {
  const response = await api.open.request(path, init);
  return { response, body: (await response.json()) as Body };
}

test("while the database is away a call is 503 with Retry-After, and health still answers", async () => {
  const api = await buildApi(away);
  for (const [path, init] of [
    ["/api/catalog", {}],
    ["/api/catalog/resource/a", {}],
    ["/api/catalog/register", posted({ content: playbook("away") })],
  ] as const) {
    const { response, body } = await answer(api, path, init);
    assert.equal(response.status, 503);
    assert.match(response.headers.get("retry-after") ?? "", /^\d+$/);
    assert.equal(body["code"], "UNAVAILABLE");
    assert.doesNotMatch(JSON.stringify(body), /127\.0\.0\.1|canary|select|insert/i);
  }
  assert.equal((await answer(api, "/api/health")).response.status, 200);
  assert.match(api.log(), /"level":"warn".*ECONNREFUSED/);
  assert.doesNotMatch(api.log(), /password-canary/);
});

test("connections that the database cuts are made anew: the calls after it succeed", async () => {
  const api = await buildApi(database);
  assert.equal((await answer(api, "/api/catalog")).response.status, 200);
  const admin = openDatabase(url, { connectionsMax: 1 });
  await admin.sql`select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and datname = current_database()`;
  await admin.close();
  // What had not noticed yet may be told to try again; then it is done.
  const first = await answer(api, "/api/catalog");
  assert.ok([200, 503].includes(first.response.status), `${first.response.status}`);
  assert.equal((await answer(api, "/api/catalog")).response.status, 200);
});

test("a fault of the server is 500 without its cause, which stands in the log under the request's id", async () => {
  const broken = await buildApi(database);
  await database.sql`alter table flow.catalog rename to catalog_hidden`;
  try {
    const content = playbook("broken").replace("tag: a", `tag: ${SECRET_TEXT}`);
    const { response, body } = await answer(broken, "/api/catalog/register", posted({ content }));
    assert.equal(response.status, 500);
    assert.equal(body["code"], "INTERNAL");
    assert.deepEqual(Object.keys(body).sort(), ["code", "error", "request_id"]);
    assert.doesNotMatch(JSON.stringify(body), /relation|insert|flow\.catalog|\bat \//i);
    const line = broken
      .log()
      .split("\n")
      .find((text) => text.includes('"level":"error"'));
    assert.match(line ?? "", /catalog/);
    assert.ok(line?.includes(String(body["request_id"])));
    // The text of a document may hold what must not be read by whoever reads logs.
    assert.ok(!broken.log().includes(SECRET_TEXT));
    const read = await answer(broken, "/api/catalog/resource/broken");
    assert.equal(read.response.status, 500);
    assert.doesNotMatch(JSON.stringify(read.body), /select|from/i);
  } finally {
    await database.sql`alter table flow.catalog_hidden rename to catalog`;
  }
});

test("every answer carries its request's id, and errors repeat it in their body", async () => {
  const api = await buildApi(database);
  const ids = new Set<string>();
  for (const path of ["/api/health", "/metrics", "/api/catalog", "/api/none", "/api/catalog?limit=0"]) {
    const response = await api.open.request(path);
    const id = response.headers.get("x-request-id") ?? "";
    assert.match(id, /^\d+$/);
    ids.add(id);
    if (response.status >= 400) assert.equal(((await response.json()) as Body)["request_id"], id);
  }
  assert.equal(ids.size, 5);
});
