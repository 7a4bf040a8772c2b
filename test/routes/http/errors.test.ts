import assert from "node:assert/strict";
import { type AddressInfo, createServer } from "node:net";
import { after, type TestContext, test } from "node:test";
import { openDatabase } from "../../../src/repositories/database/database.ts";
import { migrate } from "../../../src/repositories/database/migrate.ts";
import { createTestDatabase } from "../../support/database/postgres.ts";
import { type Api, type Body, buildApi, playbook, posted } from "../../support/service/api.ts";

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

/** A server that starts and refuses everybody with an error of this SQLSTATE, as PostgreSQL does while it recovers. */
async function refusingServer(t: TestContext, sqlState: string): Promise<string> {
  const fields = `SFATAL\0VFATAL\0C${sqlState}\0Mnot now, password-canary\0\0`;
  const length = Buffer.alloc(4);
  length.writeInt32BE(4 + fields.length);
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => socket.end(Buffer.concat([Buffer.from("E"), length, Buffer.from(fields)])));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  return `postgres://user@127.0.0.1:${(server.address() as AddressInfo).port}/none`;
}

for (const sqlState of ["57P03", "57P02", "55000", "53300"]) {
  test(`a database that refuses connections with ${sqlState} is away: 503 with Retry-After`, async (t) => {
    const refusing = openDatabase(await refusingServer(t, sqlState), { connectSeconds: 1 });
    t.after(() => refusing.close());
    const { response, body } = await answer(await buildApi(refusing), "/api/catalog");
    assert.deepEqual([response.status, body["code"]], [503, "UNAVAILABLE"]);
    assert.match(response.headers.get("retry-after") ?? "", /^\d+$/);
    assert.doesNotMatch(JSON.stringify(body), /canary/);
  });
}

test("a database that takes no connections for a while is away, and there again afterwards", async (t) => {
  const other = await createTestDatabase();
  const guarded = openDatabase(other.url, { connectSeconds: 1 });
  const admin = openDatabase(url, { connectionsMax: 1 });
  t.after(() => Promise.all([guarded.close(), admin.close()]));
  await migrate(guarded);
  const api = await buildApi(guarded);
  const name = new URL(other.url).pathname.slice(1);
  await admin.sql.unsafe(`alter database ${name} allow_connections false`);
  await admin.sql`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${name}`;
  // Connections that have just been cut say so in their own way first.
  const seen = new Set<unknown>();
  while (!api.log().includes("55000")) {
    const { response, body } = await answer(api, "/api/catalog");
    seen.add(`${response.status} ${body["code"]}`);
    assert.ok(response.status === 503, JSON.stringify(body));
  }
  assert.deepEqual([...seen], ["503 UNAVAILABLE"]);
  await admin.sql.unsafe(`alter database ${name} allow_connections true`);
  assert.equal((await answer(api, "/api/catalog")).response.status, 200);
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
    // The text of a document may hold what readers of logs must not see.
    assert.ok(!broken.log().includes(SECRET_TEXT));
    const read = await answer(broken, "/api/catalog/resource/broken");
    assert.equal(read.response.status, 500);
    assert.doesNotMatch(JSON.stringify(read.body), /select|from/i);
  } finally {
    await database.sql`alter table flow.catalog_hidden rename to catalog`;
  }
});

const METHODS_OF = [
  ["POST", "/api/health", "GET, HEAD"],
  ["PATCH", "/api/catalog", "GET, HEAD"],
  ["OPTIONS", "/api/catalog", "GET, HEAD"],
  ["PUT", "/api/catalog/resource/a/b", "GET, HEAD"],
  ["GET", "/api/execute", "POST"],
  ["PUT", "/api/auth/users", "GET, HEAD, POST"],
  ["POST", "/api/auth/roles/viewer", "GET, HEAD, PUT, DELETE"],
  ["PUT", "/mcp", "GET, HEAD, POST, DELETE"],
] as const;

test("a method that an address does not take is 405, and Allow names those that it takes", async () => {
  const api = await buildApi(database);
  for (const [method, path, allowed] of METHODS_OF) {
    const { response, body } = await answer(api, path, { method });
    assert.deepEqual(
      [response.status, response.headers.get("allow"), body["code"]],
      [405, allowed, "METHOD_NOT_ALLOWED"],
      `${method} ${path}`,
    );
    assert.deepEqual(body["detail"], { allow: allowed.split(", ") });
    assert.match(String(body["error"]), new RegExp(`^There is no ${method} `));
  }
});

test("an unknown address is 404 by every method, and callers without a token cannot probe routes", async () => {
  const api = await buildApi(database);
  for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE"]) {
    const { response, body } = await answer(api, "/api/none", { method });
    assert.deepEqual([response.status, response.headers.get("allow"), body["code"]], [404, null, "NOT_FOUND"], method);
    const guarded = await api.guarded.request("/api/catalog", { method: "PATCH" });
    assert.deepEqual([guarded.status, guarded.headers.get("allow")], [401, null], method);
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
