import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { request } from "node:http";
import { type AddressInfo, connect, createServer } from "node:net";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { createServedDatabase } from "../../support/database/postgres.ts";
import { ownDatabase } from "../../support/engine/key-ring.ts";
import { playbook } from "../../support/service/api.ts";
import { folderWith, startFlow } from "../../support/service/cli-process.ts";
import { type Serving, startServe } from "../../support/service/serve.ts";
import { runFlow } from "../in-process.ts";

const exec = promisify(execFile);

/** Command lines of all processes that name this folder. */
async function processesOf(folder: string): Promise<string[]> {
  const { stdout } = await exec("ps", ["-eo", "args"]);
  return stdout.split("\n").filter((line) => line.includes(folder));
}

test("with nothing set up: serve starts its own database, registers, lists, stops cleanly, and keeps what it had", async (t) => {
  const folder = await folderWith(t, { "hello.yaml": playbook("demo/hello"), "bad.yaml": "kind: Playbook\n" });
  const server = await startServe(t, folder);
  const here = (args: string[]) => runFlow(folder, args, { HOME: folder, FLOW_SERVER_URL: server.url });

  const registered = await here(["register", "hello.yaml"]);
  assert.deepEqual(
    [registered.code, registered.stdout, registered.stderr],
    [0, "hello.yaml: playbook demo/hello registered as version 1\n", ""],
  );
  assert.match((await here(["register", "hello.yaml"])).stdout, /demo\/hello unchanged, version 1$/m);
  assert.match((await here(["catalog"])).stdout, /^demo\/hello +playbook +1 +\d{4}-/m);
  assert.equal((await here(["catalog", "get", "demo/hello"])).stdout, playbook("demo/hello"));

  server.process.kill("SIGTERM");
  const { code, stdout, stderr } = await server.ended;
  assert.equal(code, 0, stderr);
  assert.match(
    stdout,
    /^flow is ready at http:\/\/127\.0\.0\.1:\d+, data: embedded PostgreSQL in .*\.flow\/postgres\npage: http:\/\/127\.0\.0\.1:\d+\/\n$/,
  );
  for (const line of stderr.trim().split("\n")) JSON.parse(line);
  assert.deepEqual(await processesOf(join(folder, ".flow")), [], "no process of the database is left");

  const again = await startServe(t, folder);
  const kept = await runFlow(folder, ["catalog", "versions", "demo/hello", "--json", "--server", again.url], {
    HOME: folder,
  });
  assert.equal((JSON.parse(kept.stdout) as { versions: unknown[] }).versions.length, 1);
  again.process.kill("SIGINT");
  assert.equal((await again.ended).code, 0);
});

/** A server of the tests that leave it as it is. */
const shared = await startShared();

async function startShared(): Promise<Serving> {
  const { url } = await createServedDatabase();
  const file = { after: (close: () => unknown) => after(async () => void (await close())) };
  return await startServe(file, await folderWith(file, {}), ownDatabase(url));
}

test("a request under way is answered before the server stops", async (t) => {
  const { url: databaseUrl } = await createServedDatabase();
  const folder = await folderWith(t, {});
  const server = await startServe(t, folder, ownDatabase(databaseUrl));
  // The first part of a body: the request is under way until the rest has come.
  const body = JSON.stringify({ content: playbook("late/answer") });
  const call = request(`${server.url}/api/catalog/register`, {
    method: "POST",
    headers: { "content-length": body.length },
  });
  const status = new Promise<number | undefined>((resolve, reject) => {
    call.on("response", (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    call.on("error", reject);
  });
  await new Promise<void>((resolve) => call.write(body.slice(0, 10), () => resolve()));
  server.process.kill("SIGTERM");
  await server.untilStderr('"stopping"');
  call.end(body.slice(10));
  assert.equal(await status, 200);
  assert.equal((await server.ended).code, 0);
});

test("a port in use is reported with what to do, and nothing is left running", async (t) => {
  const folder = await folderWith(t, {});
  const { port } = new URL(shared.url);
  const { code, stdout, stderr } = await runFlow(folder, ["serve", "--port", port], { HOME: folder });
  assert.deepEqual([code, stdout], [2, ""]);
  assert.match(stderr, /^flow: Cannot listen on 127\.0\.0\.1:\d+: .*EADDRINUSE.* --port$/m);
  assert.equal(stderr.trim().split("\n").length, 1, "that sentence alone");
  assert.ok(!existsSync(join(folder, ".flow")), "no database was made");
});

for (const [what, environment, said] of [
  [
    "a range that the worker's tools may reach",
    { FLOW_HTTP_ALLOW_PRIVATE: "loopback" },
    /^flow: FLOW_HTTP_ALLOW_PRIVATE has "loopback", which is not an address range/,
  ],
  ["half of a store", { FLOW_S3_BUCKET: "results" }, /^flow: FLOW_S3_BUCKET set without FLOW_S3_ENDPOINT/],
  ["a credential that is none", { FLOW_CREDENTIAL_SHOP: '{"type": 3}' }, /^flow: .*FLOW_CREDENTIAL_SHOP/],
  ["logins without an audience", { FLOW_IDP_DOMAINS: "id.example" }, /^flow: FLOW_IDP_DOMAINS needs FLOW_IDP_AUDIENCE/],
  ["a way to write the log", { FLOW_LOG_FORMAT: "xml" }, /^flow: FLOW_LOG_FORMAT must be one of pretty, json/],
] as const) {
  test(`a setting of any role that cannot be used ends serve with 2 before anything is made: ${what}`, async (t) => {
    const folder = await folderWith(t, {});
    const end = await runFlow(folder, ["serve", "--port", "0"], { HOME: folder, ...environment });
    assert.deepEqual([end.code, end.stdout], [2, ""], end.stderr);
    assert.match(end.stderr, said);
    assert.equal(end.stderr.trim().split("\n").length, 1, end.stderr);
    assert.ok(!existsSync(join(folder, ".flow")));
  });
}

test("the gateway's port is looked at before the server begins", async (t) => {
  const folder = await folderWith(t, {});
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve));
  t.after(() => taken.close());
  const { port } = taken.address() as AddressInfo;
  const environment = {
    HOME: folder,
    GATEWAY_AUTH_BYPASS: "true",
    FLOW_GATEWAY_PORT: String(port),
    FLOW_GATEWAY_INTERNAL_PORT: "0",
  };
  const { code, stderr } = await runFlow(folder, ["serve", "--port", "0"], environment);
  assert.equal(code, 2);
  assert.match(stderr, new RegExp(`^flow: Cannot listen on 127\\.0\\.0\\.1:${port}: .* FLOW_GATEWAY_PORT$`, "m"));
  assert.ok(!existsSync(join(folder, ".flow")));
});

test("--log-format pretty writes short lines, of the worker too, and keeps its own registrations to itself", async (t) => {
  const folder = await folderWith(t, {});
  const { url: databaseUrl } = await createServedDatabase();
  const server = await startServe(t, folder, ownDatabase(databaseUrl), ["--role", "all", "--log-format", "pretty"]);
  server.process.kill("SIGTERM");
  const { stderr } = await server.ended;
  const lines = stderr.trim().split("\n");
  for (const line of lines) assert.match(line, /^\d\d:\d\d:\d\d \S/);
  assert.match(stderr, /^\S+ worker: the worker is registered /m);
  assert.doesNotMatch(stderr, /a document was registered/);
});

test("an unreachable database is awaited, and reported with its address and without its password", async (t) => {
  const folder = await folderWith(t, {});
  const environment = { HOME: folder, ...ownDatabase("postgres://flow:canary@127.0.0.1:1/flow") };
  const server = startFlow(folder, ["serve", "--port", "0"], environment);
  await server.untilStderr("waiting for the database at 127.0.0.1:1/flow: ");
  server.process.kill("SIGTERM");
  const { code, stdout, stderr } = await server.ended;
  assert.deepEqual([code, stdout], [0, ""]);
  assert.match(stderr, /ECONNREFUSED/);
  assert.doesNotMatch(stderr, /canary|^\s+at |"stack"/m);
});

for (const [what, environment, args, said] of [
  ["a worker's token alone", { FLOW_WORKER_TOKEN: "w" }, [], /FLOW_WORKER_TOKEN is set without FLOW_SERVER_TOKEN/],
  [
    "one token for both",
    { FLOW_WORKER_TOKEN: "t", FLOW_SERVER_TOKEN: "t" },
    [],
    /are the same: workers would be operators/,
  ],
  ["a token and none", { FLOW_SERVER_TOKEN: "t", FLOW_AUTH_DISABLED: "true" }, [], /contradict each other/],
  ["another host without tokens", { FLOW_HOST: "0.0.0.0" }, [], /Refused to listen on 0\.0\.0\.0/],
  ["every address without tokens", {}, ["--host", "::"], /Refused to listen on ::/],
] as const) {
  test(`serve refuses ${what} before it starts anything`, async (t) => {
    const folder = await folderWith(t, {});
    const { code, stdout, stderr } = await runFlow(folder, ["serve", "--port", "0", ...args], {
      HOME: folder,
      ...environment,
    });
    assert.deepEqual([code, stdout], [2, ""]);
    assert.match(stderr, said);
    assert.doesNotMatch(stderr, /PostgreSQL/);
  });
}

/** As long as one must be beyond loopback. */
const OPERATOR = "operator-token-of-32-characters.";

test("beyond loopback a server with a token listens, and answers only with it", async (t) => {
  const { url: databaseUrl } = await createServedDatabase();
  const folder = await folderWith(t, { "one.yaml": playbook("guarded/one"), token: `${OPERATOR}\n` });
  const environment = { ...ownDatabase(databaseUrl), FLOW_SERVER_TOKEN: OPERATOR };
  const { url } = await startServe(t, folder, environment, ["--host", "0.0.0.0"]);
  const server = url.replace("0.0.0.0", "127.0.0.1");
  const settings = { HOME: folder, XDG_CONFIG_HOME: join(folder, "settings") };
  const refused = await runFlow(folder, ["register", "one.yaml", "--server", server], settings);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /refused the call: The call has no token.*FLOW_SERVER_TOKEN/);
  const wrong = await runFlow(folder, ["catalog", "--server", server], { ...settings, FLOW_SERVER_TOKEN: "canary" });
  assert.match(wrong.stderr, /not one that this server knows/);
  assert.doesNotMatch(wrong.stderr, /canary/);
  const allowed = { ...settings, FLOW_SERVER_TOKEN: OPERATOR };
  assert.equal((await runFlow(folder, ["register", "one.yaml", "--server", server], allowed)).code, 0);
  // A context brings its token to its own address and to no other.
  await runFlow(folder, ["context", "add", "prod", "--server", server, "--token-file", "token"], settings);
  assert.match((await runFlow(folder, ["catalog"], settings)).stdout, /guarded\/one/);
  assert.match((await runFlow(folder, ["catalog", "--server", `${server}/`], settings)).stdout, /guarded\/one/);
  const elsewhere = server.replace("127.0.0.1", "localhost");
  assert.equal((await runFlow(folder, ["catalog", "--server", elsewhere], settings)).code, 1);
});

test("FLOW_AUTH_DISABLED=true is warned about at every start", async (t) => {
  const { url: databaseUrl } = await createServedDatabase();
  const folder = await folderWith(t, {});
  const environment = { ...ownDatabase(databaseUrl), FLOW_AUTH_DISABLED: "true" };
  const server = await startServe(t, folder, environment, ["--host", "0.0.0.0"]);
  await server.untilStderr("everyone who can reach 0.0.0.0 may do anything");
});

test("a server stops when it is interrupted while it starts", async (t) => {
  const folder = await folderWith(t, {});
  const server = startFlow(folder, ["serve", "--port", "0"], { HOME: folder });
  await server.untilStderr("PostgreSQL");
  server.process.kill("SIGTERM");
  const { code, stderr } = await server.ended;
  assert.equal(code, 0, stderr);
  assert.deepEqual(await processesOf(join(folder, ".flow")), []);
});

test("what is no HTTP request that could be answered is 400 in the shape of every error", async () => {
  const { url } = shared;
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  socket.end("GET /api/health HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n");
  let answer = "";
  for await (const part of socket.setEncoding("utf8")) answer += String(part);
  assert.match(answer, /^HTTP\/1\.1 400 /);
  const { code, request_id } = JSON.parse(answer.slice(answer.indexOf("\r\n\r\n"))) as Record<string, unknown>;
  assert.equal(code, "INVALID_INPUT");
  assert.match(answer, new RegExp(`^x-request-id: ${String(request_id)}\r$`, "im"));
});
