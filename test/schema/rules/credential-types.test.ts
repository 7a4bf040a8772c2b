import assert from "node:assert/strict";
import { test } from "node:test";
import {
  CREDENTIAL_TYPES,
  type CredentialType,
  credentialProblems,
} from "../../../src/schema/rules/credential-types.ts";
import type { JsonObject } from "../../../src/schema/words/json.ts";

const SQL = { host: "db", port: 5432, user: "u", password: "p", database: "d" };

/** Data of each type as they should be. */
const GOOD: Readonly<Record<CredentialType, JsonObject>> = {
  sqldb: SQL,
  oauth2: { client_id: "c", client_secret: "s", token_url: "https://idp/token" },
  bearer: { token: "t" },
  basic: { username: "u", password: "p" },
  api_key: { key: "k" },
  service_account: { client_email: "a@b", private_key: "-----BEGIN", token_uri: "https://idp/token", project_id: "p" },
  warehouse: { account: "a", user: "u", password: "p", warehouse: "w", database: "d" },
  broker: { url: "nats://nats:4222" },
  analytics_db: { host: "ch", user: "u", password: "p" },
  custom: {},
};

for (const type of CREDENTIAL_TYPES) {
  test(`${type}: the required keys are enough, other keys are allowed, and each missing key is reported`, () => {
    const good = GOOD[type];
    assert.deepEqual(credentialProblems(type, good), []);
    assert.deepEqual(credentialProblems(type, { ...good, owner: "team" }), []);
    const needed = Object.keys(good).filter((key) => key !== "project_id");
    assert.deepEqual(
      credentialProblems(type, {}),
      needed.map((key) => `Missing required field: ${key}`),
    );
  });
}

test("sqldb takes both spellings of its keys, also mixed, and a connection string instead", () => {
  const prefixed = { db_host: "db", db_port: 5432, db_user: "u", db_password: "p", db_name: "d" };
  assert.deepEqual(credentialProblems("sqldb", prefixed), []);
  assert.deepEqual(
    credentialProblems("sqldb", { db_host: "db", port: 1, user: "u", db_password: "", db_name: "d" }),
    [],
  );
  assert.deepEqual(credentialProblems("sqldb", { connection_string: "postgres://u:p@db/d" }), []);
  assert.deepEqual(credentialProblems("sqldb", { dsn: 1 }), ["Field 'dsn' must be string, got integer"]);
});

test("sqldb reports missing or wrong keys in the spelling of the rest", () => {
  assert.deepEqual(credentialProblems("sqldb", { db_host: "db", db_port: "5432", db_user: "u" }), [
    "Missing required field: db_password",
    "Missing required field: db_name",
    "Field 'db_port' must be integer, got string",
  ]);
  assert.deepEqual(credentialProblems("sqldb", { ...SQL, port: 5432.5 }), ["Field 'port' must be integer, got number"]);
});

test("a warehouse takes a key or a token instead of a password", () => {
  const { password: _, ...rest } = GOOD.warehouse;
  assert.deepEqual(credentialProblems("warehouse", rest), ["Missing required field: password"]);
  for (const other of ["private_key", "token"])
    assert.deepEqual(credentialProblems("warehouse", { ...rest, [other]: "x" }), []);
});

test("optional keys are of their types where they are there", () => {
  assert.deepEqual(credentialProblems("analytics_db", { ...GOOD.analytics_db, port: "8123" }), [
    "Field 'port' must be integer, got string",
  ]);
  assert.deepEqual(credentialProblems("api_key", { key: "k", header: 1 }), [
    "Field 'header' must be string, got integer",
  ]);
});

test("problems of the type's and the caller's schema are both reported, none twice", () => {
  const schema = { fields: ["token", "owner"], required: ["token", "owner"], types: { owner: "string" as const } };
  assert.deepEqual(credentialProblems("bearer", { other: 1 }, schema), [
    "Missing required field: token",
    "Missing required field: owner",
    "Unexpected fields: other",
  ]);
});
