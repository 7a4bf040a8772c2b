import assert from "node:assert/strict";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { loadConfig } from "../../../src/platform/config/config.ts";
import { withWorkerToken, workerEnvironment } from "../../../src/roles/all.ts";
import { encryptionKeys } from "../../support/engine/key-ring.ts";

const of = (environment: NodeJS.ProcessEnv, url = "http://127.0.0.1:8082") =>
  workerEnvironment(loadConfig(environment), { url, socket: undefined }, "/srv/one");

const HERE = { url: "http://127.0.0.1:8082", socket: undefined };

const NAME = /^(local-[0-9a-f]{8}|.+-\d+)$/;

/** The environment without the name that this process gives to its worker. */
function unnamed({ FLOW_WORKER_NAME: name, ...environment }: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  assert.match(name ?? "", NAME);
  return environment;
}

test("beside a database of its own the worker has the name of the folder, also after a crash", () => {
  const name = (folder: string, environment: NodeJS.ProcessEnv = {}) =>
    workerEnvironment(loadConfig(environment), HERE, folder)["FLOW_WORKER_NAME"];
  assert.match(name("/srv/one") ?? "", /^local-[0-9a-f]{8}$/);
  assert.notEqual(name("/srv/one"), name("/srv/two"));
  const shared = { FLOW_DATABASE_URL: "postgres://db/flow" };
  assert.match(name("/srv/one", { ...shared, FLOW_ENCRYPTION_KEYS: encryptionKeys() }) ?? "", /-\d+$/);
});

test("the worker keeps one name for as long as the server lives, or the one that was given", () => {
  assert.equal(of({})["FLOW_WORKER_NAME"], of({})["FLOW_WORKER_NAME"]);
  assert.equal(of({ FLOW_WORKER_NAME: "mine" })["FLOW_WORKER_NAME"], "mine");
});

test("beside a server with a database of its own a worker may run everything and reach everything", () => {
  assert.deepEqual(unnamed(of({ PATH: "/bin" })), {
    PATH: "/bin",
    FLOW_SERVER_URL: "http://127.0.0.1:8082",
    FLOW_WORKER_TOOLS: "all",
    FLOW_HTTP_ALLOW_PRIVATE: "all",
    FLOW_DUCKDB_FILES: "all",
  });
});

test("on one's own machine the code of tasks works in the folder that flow was started in, without flow's own files", (t) => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "flow-folder-")));
  t.after(() => rmSync(folder, { recursive: true }));
  const shared = (environment: NodeJS.ProcessEnv, url = "http://127.0.0.1:8082", at = folder) => {
    const made = workerEnvironment(loadConfig(environment), { url, socket: undefined }, at);
    return [made["FLOW_TASK_FOLDER"], made["FLOW_TASK_HIDDEN"]];
  };
  const home = join(folder, ".flow");
  assert.deepEqual(shared({}), [folder, home]);
  const files = { FLOW_HOME: "state", FLOW_ENCRYPTION_KEYS_FILE: "keys", FLOW_TASK_HIDDEN: "/srv/env" };
  assert.deepEqual(shared(files), [folder, `${join(folder, "state")},${join(folder, "keys")},/srv/env`]);
  const closed = [undefined, undefined];
  assert.deepEqual(shared({ FLOW_SERVER_TOKEN: "operator" }), closed);
  assert.deepEqual(shared({}, "http://10.1.2.3:8082"), closed);
  assert.deepEqual(shared({ FLOW_IDP_DOMAINS: "idp.example" }), closed);
  assert.deepEqual(shared({}, "http://127.0.0.1:8082", "/"), closed);
  assert.deepEqual(shared({ FLOW_TASK_FOLDER: "none" }), ["none", home]);
  const own = { FLOW_DATABASE_URL: "postgres://db/flow", FLOW_ENCRYPTION_KEYS: encryptionKeys() };
  assert.deepEqual(shared(own), closed);
  const given = { ...own, FLOW_TASK_FOLDER: folder, FLOW_CREDENTIALS_FILE: "credentials.json" };
  assert.deepEqual(shared(given), [folder, `${home},${join(folder, "credentials.json")}`]);
});

test("what the settings say about tools holds there too", () => {
  const environment = of({ FLOW_WORKER_TOOLS: "noop", FLOW_HTTP_ALLOW_PRIVATE: "none" });
  assert.deepEqual([environment["FLOW_WORKER_TOOLS"], environment["FLOW_HTTP_ALLOW_PRIVATE"]], ["noop", "none"]);
});

test("beside a server with another database the worker has its ordinary defaults, and does not see what only a server needs", () => {
  const environment = of({
    FLOW_DATABASE_URL: "postgres://u:p@db/flow",
    FLOW_ENCRYPTION_KEYS: encryptionKeys("k1"),
    FLOW_CREDENTIALS_FILE: "/etc/flow/credentials.json",
    FLOW_CREDENTIAL_PG_DEMO: "{}",
    BROKER_URL: "nats://u:p@nats",
    FLOW_S3_ENDPOINT: "https://s3",
    FLOW_S3_BUCKET: "flow",
    FLOW_S3_SECRET_ACCESS_KEY: "secret",
    FLOW_S3_ACCESS_KEY_ID: "id",
    FLOW_SERVER_TOKEN: "operator",
    FLOW_WORKER_TOKEN: "worker",
  });
  assert.deepEqual(unnamed(environment), { FLOW_SERVER_URL: "http://127.0.0.1:8082", FLOW_WORKER_TOKEN: "worker" });
});

test("a worker beside a server with an operator's token alone gets a token of its own, another one each time", () => {
  const tokenOf = () => {
    const config = withWorkerToken(loadConfig({ FLOW_SERVER_TOKEN: "operator" }));
    const environment = workerEnvironment(config, HERE, ".");
    assert.equal(environment["FLOW_SERVER_TOKEN"], undefined);
    return environment["FLOW_WORKER_TOKEN"] ?? "";
  };
  assert.match(tokenOf(), /^[\w-]{43}$/);
  assert.notEqual(tokenOf(), tokenOf());
  assert.equal(of({})["FLOW_WORKER_TOKEN"], undefined, "a server without tokens asks for none");
});

for (const [listens, called] of [
  ["http://0.0.0.0:9000", "http://127.0.0.1:9000"],
  ["http://[::]:9000", "http://[::1]:9000"],
  ["http://10.1.2.3:9000", "http://10.1.2.3:9000"],
] as const) {
  test(`a server that listens on ${listens} is called at ${called}`, () => {
    assert.equal(of({}, listens)["FLOW_SERVER_URL"], called);
  });
}

test("a worker beside the server gets its socket, and not one that was set for another server", () => {
  const config = loadConfig({ FLOW_SERVER_SOCKET: "/run/set.sock" });
  const given = (socket: string | undefined) =>
    workerEnvironment(config, { ...HERE, socket }, ".")["FLOW_SERVER_SOCKET"];
  assert.deepEqual([given("/srv/one.sock"), given(undefined)], ["/srv/one.sock", undefined]);
});
