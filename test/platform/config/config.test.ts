import assert from "node:assert/strict";
import { test } from "node:test";
import { describeConfig, loadConfig } from "../../../src/platform/config/config.ts";
import { DATABASE_SETTINGS } from "../../../src/platform/config/database.ts";
import { GATEWAY_SETTINGS } from "../../../src/platform/config/gateway.ts";
import { LOGIN_SETTINGS } from "../../../src/platform/config/identity-providers.ts";
import { KEYCHAIN_SETTINGS } from "../../../src/platform/config/keychain.ts";
import { PUBLIC_SETTINGS } from "../../../src/platform/config/public-address.ts";
import { RESULT_SETTINGS } from "../../../src/platform/config/results.ts";
import { SECRET_SETTINGS } from "../../../src/platform/config/secrets.ts";
import { ADMIN_SETTINGS, DOCTOR_SETTINGS, SERVICE_SETTINGS } from "../../../src/platform/config/service.ts";
import { TRACING_SETTINGS } from "../../../src/platform/config/tracing.ts";
import { DUCKDB_SETTINGS, ISOLATION_SETTINGS, WORKER_SETTINGS } from "../../../src/platform/config/worker.ts";
import { PROXY_SETTINGS } from "../../../src/platform/http/proxy.ts";
import { FlowError } from "../../../src/schema/words/errors.ts";

/* Those of the service and of workers stand in files of their own, and so do their tests. */
const ELSEWHERE = {
  ...PROXY_SETTINGS,
  ...PUBLIC_SETTINGS,
  ...LOGIN_SETTINGS,
  ...DATABASE_SETTINGS,
  ...DOCTOR_SETTINGS,
  ...ADMIN_SETTINGS,
  ...DUCKDB_SETTINGS,
  ...GATEWAY_SETTINGS,
  ...KEYCHAIN_SETTINGS,
  ...RESULT_SETTINGS,
  ...SECRET_SETTINGS,
  ...SERVICE_SETTINGS,
  ...TRACING_SETTINGS,
  ...WORKER_SETTINGS,
  ...ISOLATION_SETTINGS,
};

test("an empty environment gives the defaults", () => {
  const { environment, ...all } = loadConfig({});
  const settings = Object.fromEntries(Object.entries(all).filter(([key]) => !Object.hasOwn(ELSEWHERE, key)));
  assert.deepEqual(settings, {
    credentialsFile: undefined,
    workerTools: "all",
    httpAllowPrivate: "all",
    python: undefined,
    templateEnv: [],
    localCapacity: 64,
    host: "127.0.0.1",
    serverPort: 8082,
    brokerUrl: undefined,
    home: ".flow",
    serverToken: undefined,
    workerToken: undefined,
    authDisabled: false,
    serverUrl: undefined,
    serverSocket: undefined,
    logLevel: "info",
    logFormat: undefined,
  });
  assert.deepEqual(environment, {});
});

test("settings are read from the environment into values of our units", () => {
  const config = loadConfig({
    FLOW_CREDENTIALS_FILE: " creds.json ",
    FLOW_WORKER_TOOLS: "http, postgres ,noop,",
    FLOW_HTTP_ALLOW_PRIVATE: "10.0.0.0/8, 127.0.0.1",
    FLOW_PYTHON: "/opt/python",
    FLOW_TEMPLATE_ENV: "HOME,LANG",
    FLOW_LOCAL_CAPACITY: "8",
  });
  assert.equal(config.credentialsFile, "creds.json");
  assert.deepEqual(config.workerTools, ["http", "sqldb", "noop"], "Aliases become the canonical kind");
  assert.deepEqual(config.httpAllowPrivate, ["10.0.0.0/8", "127.0.0.1"]);
  assert.equal(config.python, "/opt/python");
  assert.deepEqual(config.templateEnv, ["HOME", "LANG"]);
  assert.equal(config.localCapacity, 8);
  assert.deepEqual(loadConfig({ FLOW_HTTP_ALLOW_PRIVATE: "none" }).httpAllowPrivate, []);
  assert.equal(loadConfig({ FLOW_HTTP_ALLOW_PRIVATE: "all", FLOW_WORKER_TOOLS: "all" }).workerTools, "all");
});

test("a variable that is empty or blank counts as not set", () => {
  const config = loadConfig({ FLOW_LOCAL_CAPACITY: "", FLOW_CREDENTIALS_FILE: "  ", FLOW_WORKER_TOOLS: " " });
  assert.deepEqual([config.localCapacity, config.credentialsFile, config.workerTools], [64, undefined, "all"]);
});

test("all invalid settings are reported at once", () => {
  const load = () => loadConfig({ FLOW_LOCAL_CAPACITY: "many", FLOW_WORKER_TOOLS: "http,htpt,frob" });
  assert.throws(load, (error) => {
    assert.ok(error instanceof FlowError);
    assert.equal(error.code, "INVALID_SETTING");
    const lines = error.message.split("\n");
    assert.equal(lines.length, 2);
    assert.match(error.message, /^FLOW_LOCAL_CAPACITY must be a whole number from 1, got 'many'$/m);
    assert.match(
      error.message,
      /^FLOW_WORKER_TOOLS: htpt, frob are no kinds that this program runs; use 'all', or some of http, /m,
    );
    return true;
  });
});

for (const text of ["0", "-1", "1.5", "1e400", "ten"]) {
  test(`FLOW_LOCAL_CAPACITY=${text} is refused`, () => {
    assert.throws(() => loadConfig({ FLOW_LOCAL_CAPACITY: text }), /FLOW_LOCAL_CAPACITY must be a whole number from 1/);
  });
}

test("the values cannot be changed, nor what is in them", () => {
  const config = loadConfig({ FLOW_TEMPLATE_ENV: "A", FLOW_WORKER_TOOLS: "http", FLOW_HTTP_ALLOW_PRIVATE: "::1" });
  assert.ok(Object.isFrozen(config));
  for (const value of [config.templateEnv, config.workerTools, config.httpAllowPrivate])
    assert.ok(Object.isFrozen(value));
});

test("the description lists every setting with its value, default and source", () => {
  const settings = describeConfig({ FLOW_LOCAL_CAPACITY: "9", FLOW_PYTHON: "" });
  const elsewhere = Object.values(ELSEWHERE).map(({ name }) => name);
  for (const name of elsewhere) assert.ok(settings.some((described) => described.name === name));
  assert.deepEqual(
    settings.map(({ name }) => name).filter((name) => !elsewhere.includes(name)),
    [
      "FLOW_CREDENTIALS_FILE",
      "FLOW_WORKER_TOOLS",
      "FLOW_HTTP_ALLOW_PRIVATE",
      "FLOW_PYTHON",
      "FLOW_TEMPLATE_ENV",
      "FLOW_LOCAL_CAPACITY",
      "FLOW_HOST",
      "FLOW_SERVER_PORT",
      "BROKER_URL",
      "FLOW_HOME",
      "FLOW_SERVER_TOKEN",
      "FLOW_WORKER_TOKEN",
      "FLOW_AUTH_DISABLED",
      "FLOW_SERVER_URL",
      "FLOW_SERVER_SOCKET",
      "FLOW_LOG_LEVEL",
      "FLOW_LOG_FORMAT",
    ],
  );
  const capacity = settings.find(({ name }) => name === "FLOW_LOCAL_CAPACITY");
  assert.deepEqual([capacity?.value, capacity?.default, capacity?.source], ["9", "64", "environment"]);
  const python = settings.find(({ name }) => name === "FLOW_PYTHON");
  assert.deepEqual([python?.value, python?.source], ["python3 on PATH", "default"]);
  for (const { meaning } of settings) assert.ok(meaning.length > 10);
});

test("a value that cannot be used is described all the same, so that it can be found", () => {
  const capacity = describeConfig({ FLOW_LOCAL_CAPACITY: "many" }).find(({ name }) => name === "FLOW_LOCAL_CAPACITY");
  assert.equal(capacity?.value, "many");
});

test("the settings of a server are read into typed values; secrets show themselves only when asked", () => {
  const config = loadConfig({
    FLOW_HOST: "::1",
    FLOW_SERVER_PORT: "0",
    FLOW_DATABASE_URL: "postgres://flow:canary@db/flow",
    BROKER_URL: "nats://flow:canary@nats-1:4222,tls://nats-2",
    FLOW_HOME: "/var/lib/flow",
    FLOW_SERVER_TOKEN: "canary-1",
    FLOW_WORKER_TOKEN: "canary-2",
    FLOW_AUTH_DISABLED: "TRUE",
    FLOW_SERVER_URL: "https://flow.example.com/base/",
    FLOW_LOG_LEVEL: "debug",
  });
  const { host, serverPort, home, authDisabled, serverUrl, logLevel } = config;
  assert.deepEqual(
    [host, serverPort, home, authDisabled, serverUrl, logLevel],
    ["::1", 0, "/var/lib/flow", true, "https://flow.example.com/base", "debug"],
  );
  assert.equal(config.databaseUrl?.reveal(), "postgres://flow:canary@db/flow");
  assert.equal(config.brokerUrl?.reveal(), "nats://flow:canary@nats-1:4222,tls://nats-2");
  assert.equal(config.serverToken?.reveal(), "canary-1");
  const { environment: _, ...settings } = config;
  assert.doesNotMatch(JSON.stringify(settings), /canary/);
});

test("secrets are masked where settings are described, and say that they are set", () => {
  const environment = { FLOW_SERVER_TOKEN: "canary", FLOW_DATABASE_URL: "postgres://flow:canary@db/flow" };
  const settings = describeConfig(environment);
  assert.doesNotMatch(JSON.stringify(settings), /canary/);
  const masked = settings.filter(({ value }) => value === "[secret]").map(({ name, source }) => [name, source]);
  assert.deepEqual(masked, [
    ["FLOW_DATABASE_URL", "environment"],
    ["FLOW_SERVER_TOKEN", "environment"],
  ]);
});

for (const [name, text, said] of [
  ["FLOW_SERVER_PORT", "70000", /must be a port from 0 to 65535, got '70000'/],
  ["FLOW_SERVER_PORT", "http", /must be a port/],
  ["FLOW_DATABASE_URL", "mysql://flow:canary@db/flow", /must look like postgres:/],
  ["FLOW_DATABASE_URL", "canary", /must look like postgres:/],
  ["BROKER_URL", "http://flow:canary@nats", /must look like nats:/],
  ["BROKER_URL", "nats://flow:canary@nats:4222,canary", /must look like nats:/],
  ["FLOW_SERVER_TOKEN", "canary canary", /without spaces/],
  ["FLOW_WORKER_TOKEN", "canary-ü", /visible ASCII/],
  ["FLOW_AUTH_DISABLED", "yes", /must be one of true, false, got 'yes'/],
  ["FLOW_SERVER_URL", "flow.example.com", /must be an http or https address/],
  ["FLOW_SERVER_URL", "https://user:canary@flow.example.com", /without user, password/],
  ["FLOW_SERVER_SOCKET", "run/flow.sock", /must be an absolute path, got 'run\/flow.sock'/],
  ["FLOW_SERVER_SOCKET", `/${"x".repeat(103)}`, /too long for a unix socket, which takes 103 bytes/],
  ["FLOW_LOG_LEVEL", "loud", /must be one of trace, debug/],
] as const) {
  test(`${name}=${text.replace("canary", "…")} is refused, and a secret in it is not repeated`, () => {
    assert.throws(
      () => loadConfig({ [name]: text }),
      (error) => {
        assert.ok(error instanceof FlowError && error.code === "INVALID_SETTING");
        assert.match(error.message, said);
        assert.ok(error.message.startsWith(name));
        assert.doesNotMatch(error.message, /canary/);
        return true;
      },
    );
  });
}
