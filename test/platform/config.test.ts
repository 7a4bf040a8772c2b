import assert from "node:assert/strict";
import { test } from "node:test";
import { describeConfig, loadConfig } from "../../src/platform/config.ts";
import { FlowError } from "../../src/schema/errors.ts";

test("an empty environment gives the defaults", () => {
  const { environment, ...settings } = loadConfig({});
  assert.deepEqual(settings, {
    credentialsFile: undefined,
    workerTools: "all",
    httpAllowPrivate: "all",
    python: undefined,
    templateEnv: [],
    localCapacity: 64,
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

test("every setting that cannot be used is told at once", () => {
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
  assert.deepEqual(
    settings.map(({ name }) => name),
    [
      "FLOW_CREDENTIALS_FILE",
      "FLOW_WORKER_TOOLS",
      "FLOW_HTTP_ALLOW_PRIVATE",
      "FLOW_PYTHON",
      "FLOW_TEMPLATE_ENV",
      "FLOW_LOCAL_CAPACITY",
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
