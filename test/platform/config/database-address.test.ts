import assert from "node:assert/strict";
import { test } from "node:test";
import { loadConfig } from "../../../src/platform/config/config.ts";
import { withAuthorities } from "../../../src/platform/config/database.ts";
import { describeAddress, parseDatabaseUrl } from "../../../src/platform/config/database-address.ts";
import { createSecret } from "../../../src/platform/crypto/secret.ts";

const DEFAULTS = {
  places: [{ host: "localhost", port: 5432 }],
  user: undefined,
  password: undefined,
  database: undefined,
  sslMode: "disable",
  rootCertificate: undefined,
  certificate: undefined,
  key: undefined,
  targetSession: undefined,
  parameters: {},
};

for (const [url, read] of [
  ["postgres://", {}],
  ["postgresql://db", { places: [{ host: "db", port: 5432 }] }],
  ["postgres://db:6432/flow", { places: [{ host: "db", port: 6432 }], database: "flow" }],
  [
    "postgres://flow:se%40cret@db/flow",
    { places: [{ host: "db", port: 5432 }], user: "flow", password: "se@cret", database: "flow" },
  ],
  ["postgres://flow:100%@db/", { places: [{ host: "db", port: 5432 }], user: "flow", password: "100%" }],
  ["postgres://flow:a@b:c@db/", { places: [{ host: "db", port: 5432 }], user: "flow", password: "a@b:c" }],
  ["postgres://[::1]:5433/flow", { places: [{ host: "::1", port: 5433 }], database: "flow" }],
  [
    "postgres://a,b:1,c/flow?port=7",
    {
      places: [
        { host: "a", port: 7 },
        { host: "b", port: 1 },
        { host: "c", port: 7 },
      ],
      database: "flow",
    },
  ],
  [
    "postgres://flow@/flow?host=/run/postgresql",
    { places: [{ path: "/run/postgresql/.s.PGSQL.5432" }], user: "flow", database: "flow" },
  ],
  [
    "postgres://%2Frun%2Fpostgresql/flow?port=6",
    { places: [{ path: "/run/postgresql/.s.PGSQL.6" }], database: "flow" },
  ],
  ["postgres://?user=u&password=p&dbname=d", { user: "u", password: "p", database: "d" }],
  ["postgres://?sslmode=PREFER", { sslMode: "prefer" }],
  ["postgres://?sslrootcert=/ca", { sslMode: "verify-full", rootCertificate: "/ca" }],
  ["postgres://?sslmode=require&sslrootcert=/ca", { sslMode: "verify-ca", rootCertificate: "/ca" }],
  ["postgres://?sslcert=/c&sslkey=/k&sslmode=require", { sslMode: "require", certificate: "/c", key: "/k" }],
  ["postgres://?target_session_attrs=read-write", { targetSession: "read-write" }],
  [
    "postgres://?channel_binding=require&connect_timeout=3&application_name=mine",
    { parameters: { application_name: "mine" } },
  ],
] as const) {
  test(`the address ${url} is read`, () => assert.deepEqual(parseDatabaseUrl(url), { ...DEFAULTS, ...read }));
}

for (const [url, why] of [
  ["mysql://canary", /must look like postgres:/],
  ["postgres://db:canary/flow", /must look like postgres:/],
  ["postgres://db:70000/flow", /has a port that is no number up to 65535/],
  ["postgres://db/flow?port=canary", /has a port/],
  ["postgres://db/flow?sslmode=canary", /has an unknown sslmode; it must be one of disable, allow, prefer/],
  ["postgres://db/flow?sslcert=/canary", /names one of sslcert and sslkey/],
] as const) {
  test(`the address ${url} is refused, without its text`, () => {
    assert.throws(
      () => loadConfig({ FLOW_DATABASE_URL: url }),
      (error: Error) =>
        why.test(error.message) && error.message.startsWith("FLOW_DATABASE_URL ") && !/canary/.test(error.message),
    );
  });
}

test("an address for people has neither user nor password", () => {
  const told = (url: string) => describeAddress(parseDatabaseUrl(url));
  assert.equal(told("postgres://flow:canary@db/flow"), "db:5432/flow");
  assert.equal(told("postgres://flow:canary@a,[::1]:7/"), "a:5432,[::1]:7/flow");
  assert.equal(told("postgres://flow@/?host=/run/pg"), "/run/pg/.s.PGSQL.5432/flow");
});

test("FLOW_DATABASE_CA stands for the sslrootcert that an address does not name", () => {
  const mode = (url: string) => parseDatabaseUrl(withAuthorities(createSecret(url), "/etc/my ca.pem"));
  assert.deepEqual(
    [mode("postgres://db/flow").sslMode, mode("postgres://db/flow").rootCertificate],
    ["verify-full", "/etc/my ca.pem"],
  );
  assert.equal(mode("postgres://db/flow?sslmode=require").sslMode, "verify-ca");
  assert.equal(mode("postgres://db/flow?sslmode=disable").rootCertificate, undefined);
  assert.equal(mode("postgres://db/flow?sslrootcert=/own").rootCertificate, "/own");
  assert.equal(withAuthorities(createSecret("postgres://db"), undefined), "postgres://db");
});

test("FLOW_DATABASE_PREPARE is auto, on or off", () => {
  assert.equal(loadConfig({}).databasePrepare, "auto");
  assert.equal(loadConfig({ FLOW_DATABASE_PREPARE: "OFF" }).databasePrepare, "off");
  assert.throws(() => loadConfig({ FLOW_DATABASE_PREPARE: "maybe" }), /must be one of auto, on, off, got 'maybe'/);
});
