import assert from "node:assert/strict";
import { before, test } from "node:test";
import postgres from "postgres";
import { loadConfig } from "../../../src/platform/config/config.ts";
import { AUTH_NOTE } from "../../../src/platform/postgres/cluster.ts";
import type { Logger } from "../../../src/platform/telemetry/logger.ts";
import { enterAdministrators } from "../../../src/repositories/access/auth-database-account.ts";
import type { Database } from "../../../src/repositories/database/database.ts";
import { prepareLogins } from "../../../src/roles/server/prepare-logins.ts";
import { createAudit, SYSTEM } from "../../../src/services/access/audit.ts";
import { createCatalog } from "../../../src/services/catalog/catalog.ts";
import { createCredentials } from "../../../src/services/credentials/credentials.ts";
import {
  ensureAuthCredential,
  ensureBrokerCredential,
  ensureCallbackCredential,
  storeAuthCredential,
} from "../../../src/services/login/login-credentials.ts";
import { open } from "../../repositories/service-database.ts";
import { createServiceDatabase, type TestDatabase } from "../../support/database/postgres.ts";
import { documents } from "../../support/engine/documents.ts";
import { keyRing } from "../../support/engine/key-ring.ts";

let shared: TestDatabase;
let database: Database;
before(async () => {
  shared = await createServiceDatabase();
  database = open(shared.url);
});

/** The service's credentials in its database, where no start has made anything yet. */
async function setup(keys = keyRing()) {
  const { url, host, port, database: name } = shared;
  await database.sql.unsafe(`
    do $$ begin
      if exists (select from pg_roles where rolname = '${name}_auth') then
        drop owned by ${name}_auth;
        drop role ${name}_auth;
      end if;
    end $$;
    delete from flow.credential;
    delete from auth.users`);
  const audit = createAudit({ database, days: 1, onLost: assert.fail });
  const credentials = createCredentials({ database, keys, audit });
  const data = async (credential: string) => (await credentials.read(credential, SYSTEM)).data;
  return { url, name, database, credentials, data, audit, address: { host, port, database: name } };
}

/** Whether the account of `pg_auth` can log in and read. */
async function works(data: object): Promise<boolean> {
  const sql = postgres({ ...data, max: 1, onnotice: () => undefined });
  try {
    return (await sql`select count(*)::int as count from auth.roles`)[0]?.["count"] === 4;
  } catch (error) {
    assert.equal((error as { code?: string }).code, "28P01");
    return false;
  } finally {
    await sql.end();
  }
}

test("the account of schema auth is made with the first start and kept by the next ones, at once or one by one", async () => {
  const { database, credentials, data, address, name } = await setup();
  const deps = { database, credentials };
  const outcomes = await Promise.all([1, 2, 3].map(() => ensureAuthCredential(deps, address)));
  assert.deepEqual(outcomes.sort(), ["kept", "kept", "made"]);
  const first = await data("pg_auth");
  assert.equal(first["user"], `${name}_auth`);
  assert.ok(await works(first));
  assert.equal(await ensureAuthCredential(deps, address), "kept");
  assert.deepEqual(await data("pg_auth"), first);
  const { meta } = await credentials.find("pg_auth");
  assert.deepEqual(meta, { managed_by: "flow", playbooks: ["api_integration/**"] });
});

test("with another address it is the same account; a deleted one is created again, with rights on newer tables", async () => {
  const { database, credentials, data, address, name } = await setup();
  const deps = { database, credentials };
  await ensureAuthCredential(deps, address);
  const { password } = await data("pg_auth");
  assert.equal(await ensureAuthCredential(deps, { ...address, host: "localhost" }), "made");
  const moved = await data("pg_auth");
  assert.deepEqual([moved["host"], moved["password"]], ["localhost", password]);
  // As after a database was restored on another server.
  await database.sql.unsafe(`drop owned by ${name}_auth; drop role ${name}_auth; create table auth.later (x int)`);
  assert.equal(await ensureAuthCredential(deps, address), "made");
  assert.ok(await works(await data("pg_auth")));
  const [row] = await database.sql<{ can: boolean }[]>`
    select has_table_privilege(${`${name}_auth`}, 'auth.later', 'select') as can`;
  assert.equal(row?.can, true);
});

test("a password that cannot be decrypted any more is replaced", async () => {
  const { database, credentials, address, audit } = await setup(keyRing("k1"));
  await ensureAuthCredential({ database, credentials }, address);
  const other = createCredentials({ database, keys: keyRing("k2"), audit });
  assert.equal(await ensureAuthCredential({ database, credentials: other }, address), "made");
  assert.ok(await works((await other.read("pg_auth", SYSTEM)).data));
});

test("a credential pg_auth of an administrator stays, and no account is made beside it", async () => {
  const { database, credentials, address, name, data } = await setup();
  const mine = { host: "db", port: 5432, user: "mine", password: "canary", database: "d" };
  await credentials.save({ name: "pg_auth", type: "sqldb", data: mine }, SYSTEM);
  assert.equal(await ensureAuthCredential({ database, credentials }, address), "own");
  assert.deepEqual(await data("pg_auth"), mine);
  assert.deepEqual([...(await database.sql`select from pg_roles where rolname = ${`${name}_auth`}`)], []);
});

test("an account of that name which is not the program's is left alone", async () => {
  const { database, credentials, address, name } = await setup();
  await database.sql.unsafe(`create role ${name}_auth superuser`);
  assert.equal(await ensureAuthCredential({ database, credentials }, address), "foreign");
  await assert.rejects(credentials.find("pg_auth"), { code: "NOT_FOUND" });
  await database.sql.unsafe(`drop role ${name}_auth`);
});

test("an existing account gets the schema and is stored; one that flow did not create is left alone", async () => {
  const { database, credentials, address, name, data } = await setup();
  const deps = { database, credentials };
  const account = { user: `${name}_auth`, password: "canary" };
  assert.equal(await storeAuthCredential(deps, address, account), "foreign");
  await database.sql.unsafe(`create role ${account.user} login password 'canary'`);
  assert.equal(await storeAuthCredential(deps, address, account), "foreign");
  await assert.rejects(credentials.find("pg_auth"), { code: "NOT_FOUND" });
  await database.sql.unsafe(`comment on role ${account.user} is '${AUTH_NOTE}'`);
  assert.equal(await storeAuthCredential(deps, address, account), "made");
  assert.ok(await works(await data("pg_auth")));
  assert.equal(await storeAuthCredential(deps, address, account), "kept");
  // The server took another port.
  assert.equal(await storeAuthCredential(deps, { ...address, port: 1 }, account), "made");
  assert.equal((await data("pg_auth"))["port"], 1);
});

test("where the service may not create accounts there is no account and no credential", async () => {
  const { url, database, credentials, address, name } = await setup();
  await database.sql.unsafe(`create role ${name}_service login password 'canary'`);
  const limited = new URL(url);
  limited.username = `${name}_service`;
  limited.password = "canary";
  const deps: { database: Database; credentials: typeof credentials } = { database: open(limited.href), credentials };
  assert.equal(await ensureAuthCredential(deps, address), "refused");
  await assert.rejects(credentials.find("pg_auth"), { code: "NOT_FOUND" });
});

test("the credentials of broker and gateway follow their settings, unless they are an administrator's", async () => {
  const { database, credentials, data } = await setup();
  const deps = { database, credentials };
  assert.equal(await ensureBrokerCredential(deps, "nats://u:canary@one:4222"), "made");
  assert.equal(await ensureBrokerCredential(deps, "nats://u:canary@one:4222"), "kept");
  assert.equal(await ensureBrokerCredential(deps, "nats://u:canary@two:4222"), "made");
  assert.deepEqual(await data("nats_credential"), { url: "nats://u:canary@two:4222" });
  assert.deepEqual(
    [await ensureCallbackCredential(deps, "one"), await ensureCallbackCredential(deps, "two")],
    ["made", "made"],
  );
  assert.equal(await ensureCallbackCredential(deps, "two"), "kept");
  await credentials.save({ name: "gateway_callback", type: "bearer", data: { token: "mine" } }, SYSTEM);
  assert.equal(await ensureCallbackCredential(deps, "two"), "own");
  assert.deepEqual(await data("gateway_callback"), { token: "mine" });
});

test("administrators of the settings are entered once: who lost the role since does not get it back", async () => {
  const { database } = await setup();
  const { sql } = database;
  await sql`insert into auth.users (email, display_name) values ('Ada@Example.com', 'Ada')`;
  assert.deepEqual(await enterAdministrators(database, [], undefined), []);
  const entered = await enterAdministrators(database, ["ada@example.com", "root@example.com"], "https://idp.example/");
  assert.deepEqual(entered, ["Ada@Example.com", "root@example.com"]);
  await sql`update auth.user_roles set is_active = false`;
  assert.deepEqual(
    await enterAdministrators(database, ["ada@example.com", "root@example.com"], "https://idp.example/"),
    [],
  );
  const [row] = await sql<{ active: number; told: number }[]>`
    select (select count(*)::int from auth.user_roles where is_active) as active,
      (select count(*)::int from auth.audit_log where rule = 'FLOW_ADMIN_EMAILS') as told`;
  assert.deepEqual({ ...row }, { active: 0, told: 2 });
  // A user who was there stays as they are.
  const users = await sql<{ issuer: string | null }[]>`select issuer from auth.users order by email`;
  assert.deepEqual(
    users.map(({ issuer }) => issuer),
    [null, "https://idp.example/"],
  );
});

test("a server of a database of your own makes no account until its settings speak of logins", async () => {
  const { url, name, database, credentials } = await setup();
  const said: string[] = [];
  const say = (_: object, line: string) => void said.push(line);
  const logger = { info: say, warn: say, error: say } as unknown as Logger;
  const catalog = createCatalog({ database, documents, onRegistered: () => undefined });
  const start = (settings: NodeJS.ProcessEnv) => {
    const config = loadConfig({ FLOW_DATABASE_URL: url, ...settings });
    return prepareLogins({ config, database, databaseUrl: url, credentials, catalog, version: "1.0.0", logger });
  };
  await start({});
  const { items } = await catalog.list({ limit: 10, prefix: "api_integration/idp/" });
  assert.equal(items.length, 6);
  await assert.rejects(credentials.find("pg_auth"), { code: "NOT_FOUND" });
  await start({ FLOW_ADMIN_EMAILS: "root@example.com", FLOW_IDP_NAME: "acme", BROKER_URL: "nats://one:4222" });
  assert.equal((await catalog.list({ limit: 10, prefix: "api_integration/acme/" })).items.length, 6);
  const made = (await credentials.list({ limit: 10 })).items.map(({ name: made }) => made);
  assert.deepEqual(made, ["gateway_callback", "nats_credential", "pg_auth"]);
  assert.deepEqual(said, ["credentials of logins", "FLOW_ADMIN_EMAILS: these are administrators from now on"]);
  // Another database server has an account of that name already.
  await database.sql.unsafe(`comment on role ${name}_auth is null`);
  const { content } = await catalog.find("api_integration/idp/login");
  await catalog.register({ content: content.replace("timeout: 10", "timeout: 20") });
  await start({ FLOW_ADMIN_EMAILS: "root@example.com" });
  assert.match(
    said.slice(2).join("\n"),
    /'api_integration\/idp\/login' stays as it is: it was edited\nNo logins are possible/,
  );
});
