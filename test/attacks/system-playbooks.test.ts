import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import postgres from "postgres";
import { SHORT } from "../faults/support/stand.ts";
import { until } from "../faults/support/until.ts";
import { open } from "../repositories/service-database.ts";
import { createServedDatabase } from "../support/database/postgres.ts";
import { ownDatabase } from "../support/engine/key-ring.ts";
import { DOMAIN, startIdentityProvider } from "../support/servers/identity-provider.ts";
import { type Body, playbook } from "../support/service/api.ts";
import { folderWith, startFlow } from "../support/service/cli-process.ts";
import { type Serving, startServe } from "../support/service/serve.ts";
import { answerOf, sendTo } from "../support/service/server-calls.ts";

/*
 * Who runs the playbooks that administer the service: the servers, and no worker that has only the shared token. All processes are
 * real ones.
 */

const OPERATOR = "operator-token-of-the-attacks-1";
const SHARED = "worker-token-of-the-attacks-22";
const TOKENS = { FLOW_SERVER_TOKEN: OPERATOR, FLOW_WORKER_TOKEN: SHARED, FLOW_PURE_STEPS: "workers" };
const PERSON = { sub: "ada", email: "ada@example.com", name: "Ada" };
const WAIT_MS = 30_000;
const LOGIN = "api_integration/idp/login";

/** A database, and servers on it. */
async function stand(t: TestContext, settings: NodeJS.ProcessEnv = {}) {
  const { url } = await createServedDatabase();
  const provider = await startIdentityProvider();
  t.after(() => provider.close());
  const { sql } = open(url);
  const shared = { ...ownDatabase(url), FLOW_IDP_CONFIG: provider.config, ...settings };
  const server = async (more: NodeJS.ProcessEnv = TOKENS) =>
    await startServe(t, await folderWith(t, {}), { ...shared, ...more });
  const gateway = async ({ url: base }: Serving) =>
    await startServe(
      t,
      await folderWith(t, {}),
      {
        ...{ FLOW_BASE_URL: base, FLOW_SERVER_TOKEN: OPERATOR, FLOW_IDP_CONFIG: provider.config },
        ...{ FLOW_GATEWAY_INTERNAL_PORT: "0", FLOW_GATEWAY_LOGIN_SECONDS: "60" },
      },
      ["--role", "gateway"],
    );
  const worker = async ({ url: base }: Serving) => {
    const folder = await folderWith(t, {});
    const environment = { HOME: folder, FLOW_SERVER_URL: base, FLOW_WORKER_TOKEN: SHARED, FLOW_WORKER_NAME: "shared" };
    const started = startFlow(folder, ["serve", "--role", "worker"], environment);
    t.after(async () => {
      started.process.kill("SIGTERM");
      await started.ended;
    });
    await started.untilStderr("the worker is registered");
  };
  const login = async ({ url: base }: Serving, person = PERSON) => {
    const response = await fetch(`${base}/api/auth/login`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ idp_token: await provider.idToken(person), idp_domain: DOMAIN }),
    });
    return { status: response.status, body: (await response.json()) as { status?: string } };
  };
  /** Who has claimed commands of playbooks below a path, each as often as it has. */
  const claimers = async (below: string) => {
    const rows = await sql<{ worker: string }[]>`
      select e.worker from flow.event e join flow.execution x using (execution_id)
      where e.event_type = 'command.claimed' and starts_with(x.path, ${below})`;
    return rows.map((row) => row.worker.replace(/^(@server):.*/, "$1"));
  };
  return { url, sql, server, gateway, worker, login, claimers };
}

const operate = ({ url }: Serving, method: string, path: string, body?: unknown) =>
  answerOf(url, OPERATOR, method, path, body);

const register = async (server: Serving, content: string) => {
  await operate(server, "POST", "/api/catalog/register", { content });
};

const start = async (server: Serving, path: string, workload: Body = {}) =>
  String((await operate(server, "POST", "/api/execute", { path, workload }))["execution_id"]);

async function end(server: Serving, id: string): Promise<Body> {
  for (;;) {
    const body = await operate(server, "GET", `/api/executions/${id}/result?wait_ms=${WAIT_MS}`);
    if (["COMPLETED", "FAILED", "CANCELLED"].includes(String(body["status"]))) return body;
  }
}

/** A worker of a test's own with a token: what it is given when it asks for commands for a while. */
async function manual({ url }: Serving, token: string, name = "mallory") {
  const { status, body } = await sendTo(url, token, "POST", "/api/worker/pool/register", { name, capacity: 9 });
  assert.equal(status, 200, JSON.stringify(body));
  const own = { "x-flow-worker": String(body["worker_secret"]) };
  const send = (method: string, path: string, sent?: unknown) => sendTo(url, token, method, path, sent, own);
  const claim = async (waitMs: number, labels: Body = {}) => {
    const ask = { worker: name, limit: 9, wait_ms: waitMs, labels };
    const reply = await send("POST", "/api/commands/claim", ask);
    assert.equal(reply.status, 200, JSON.stringify(reply.body));
    return (reply.body["commands"] as Body[]).map((command) => String(command["execution_id"]));
  };
  return { send, claim };
}

const LABELLED = (path: string) => `${playbook(path)}    spec: {labels: {zone: nowhere}}\n`;

test("the shared token gets no command of a system playbook, whatever a worker says that it is", async (t) => {
  const { server: serve, claimers, sql } = await stand(t);
  const server = await serve();
  for (const path of ["api_integration/x/one", "system/one", "system", "systems/one"])
    await register(server, playbook(path));
  await register(server, LABELLED("system/labelled"));
  const mallory = await manual(server, SHARED);
  const labels = { zone: "nowhere", "flow.pool": "@server" };
  const waiting = mallory.claim(3_000, labels);
  const ids = [];
  for (const path of ["api_integration/x/one", "system/one"]) ids.push(await start(server, path));
  for (const id of ids) assert.equal((await end(server, id))["status"], "COMPLETED");
  assert.deepEqual(await claimers("api_integration/x"), ["@server"]);
  // Its labels are what the server does not have: it waits, and no one else is given it.
  const labelled = await start(server, "system/labelled");
  assert.deepEqual(await waiting, []);
  const [command] = await sql<{ id: string }[]>`
    select command_id as id from flow.command where execution_id = ${labelled} and status = 'PENDING'`;
  const one = await mallory.send("POST", `/api/commands/${command?.id}/claim`, { worker: "mallory" });
  assert.deepEqual(
    [one.status, (one.body["detail"] as Body | undefined)?.["reason"]],
    [403, "pool"],
    JSON.stringify(one.body),
  );
  for (const name of ["@server:x", `@server:${(await operate(server, "GET", "/api/worker/pools"))["items"]}`]) {
    const taken = await mallory.send("POST", "/api/worker/pool/register", { name, capacity: 1 });
    assert.equal(taken.status, 403, JSON.stringify(taken.body));
  }
  const read = await mallory.send("GET", `/api/credentials/pg_auth?include_data=true&execution_id=${labelled}`);
  assert.equal(read.status, 403);
  // Names that only look like theirs are ordinary ones.
  const ordinary = [await start(server, "system"), await start(server, "systems/one")];
  const got = [...(await mallory.claim(WAIT_MS)), ...(await mallory.claim(1_000))];
  assert.deepEqual(got.sort(), ordinary.sort());
});

test("a login works with no worker at all, and with one that has the shared token: that one sees nothing of it", async (t) => {
  const { server: serve, gateway: openGateway, worker, login, claimers } = await stand(t);
  const server = await serve();
  const gateway = await openGateway(server);
  assert.deepEqual((await login(gateway)).body.status, "authenticated");
  await worker(server);
  assert.deepEqual((await login(gateway)).body.status, "authenticated");
  await register(server, playbook("team/one"));
  assert.equal((await end(server, await start(server, "team/one")))["status"], "COMPLETED");
  assert.deepEqual(await claimers("team"), ["shared"]);
  assert.deepEqual([...new Set(await claimers("api_integration/"))], ["@server"]);
});

test("of two servers each command of a system playbook is run by one", async (t) => {
  const { server: serve, claimers } = await stand(t);
  const servers = [await serve(), await serve()] as const;
  const workload = { token_sha256: "0".repeat(64) };
  const ids = await Promise.all(
    Array.from({ length: 30 }, (_, at) =>
      start(servers[at % 2 === 0 ? 0 : 1], "api_integration/idp/validate_session", workload),
    ),
  );
  for (const id of ids) assert.equal((await end(servers[1], id))["status"], "COMPLETED");
  // One for the statement, one for the end.
  assert.deepEqual(
    await claimers("api_integration/"),
    Array.from({ length: 60 }, () => "@server"),
  );
});

test("a server is killed while it runs a login's command: another one finishes it", async (t) => {
  const { server: serve, url, claimers } = await stand(t, SHORT);
  const [one, two] = [await serve(), await serve()];
  const { id, release } = await heldLogin(url, one, claimers);
  one.process.kill("SIGKILL");
  await one.ended;
  await release();
  assert.equal((await end(two, id))["status"], "COMPLETED");
  assert.equal((await claimers(LOGIN)).length >= 3, true, "its first command was claimed twice");
});

test("a server that is told to stop ends in time although a login runs, and gives its command back", async (t) => {
  const { server: serve, sql, url, claimers } = await stand(t);
  const [one, two] = [await serve(), await serve()];
  const { id, release } = await heldLogin(url, one, claimers);
  const from = performance.now();
  // What a login waits for holds nothing else.
  assert.equal((await fetch(`${one.url}/api/health`)).status, 200);
  one.process.kill("SIGTERM");
  const { code, stderr } = await one.ended;
  assert.equal(code, 0, stderr);
  const seconds = (performance.now() - from) / 1_000;
  assert.ok(seconds < 20, `it took ${seconds} s`);
  await release();
  // Given back and not lost: no lease has to end, by default two minutes.
  assert.equal((await end(two, id))["status"], "COMPLETED");
  const [{ lost } = { lost: null }] = await sql<{ lost: number }[]>`
    select count(*)::int as lost from flow.event where event_type = 'command.claimed' and row_to_json(event)::text like '%lost_by%'`;
  assert.equal(lost, 0);
});

/** Starts a login whose statement waits until it is released, and waits until this server has begun with it. */
async function heldLogin(url: string, server: Serving, claimers: (below: string) => Promise<string[]>) {
  const connection = postgres(url, { max: 1 });
  await connection.unsafe("begin");
  await connection.unsafe("lock table auth.sessions in access exclusive mode");
  const about = {
    issuer: "https://idp.example",
    subject: "held",
    email: "held@example.com",
    token_sha256: "1".repeat(64),
  };
  const id = await start(server, LOGIN, about);
  await until("its command is claimed", async () => (await claimers(LOGIN)).length > 0);
  return {
    id,
    release: () => connection.end(),
  };
}

test("what an older version left waiting is run by the server, and not by the worker that waits for it", async (t) => {
  const { server: serve, claimers } = await stand(t);
  // Without tokens nothing is set apart, as in older versions.
  const before = await serve({ FLOW_PURE_STEPS: "workers" });
  await register(before, playbook("api_integration/x/left"));
  const id = await start(before, "api_integration/x/left");
  before.process.kill("SIGTERM");
  await before.ended;
  const server = await serve();
  const mallory = await manual(server, SHARED);
  assert.deepEqual(await mallory.claim(2_000), []);
  assert.equal((await end(server, id))["status"], "COMPLETED");
  assert.deepEqual(await claimers("api_integration/x"), ["@server"]);
});

test("code does not run inside a server; a pool of an operator runs it, and what it leaves is not the shared token's", async (t) => {
  const { server: serve, claimers } = await stand(t);
  const server = await serve();
  for (const tool of ['{ kind: python, code: "return {}" }', '{ kind: shell, command: "true" }']) {
    const path = "system/code";
    await register(server, playbook(path).replace("{ kind: noop }", tool));
    const failed = await end(server, await start(server, path));
    assert.equal(failed["status"], "FAILED");
    const { code, message } = failed["error"] as { code: string; message: string };
    assert.equal(code, "KIND_NOT_AVAILABLE", message);
    assert.match(message, /do not run inside the server.*flow pools create/);
  }
  // The next server says so when it starts.
  await (await serve()).untilStderr("1 system playbook has tasks that run in no server: system/code (shell)");
  // A pool for everything does not mean system playbooks.
  const wide = await operate(server, "POST", "/api/pools", { name: "wide", paths: ["**"] });
  const pool = await operate(server, "POST", "/api/pools", { name: "admin", paths: ["system/**"] });
  const [everything, admin] = [
    await manual(server, String(wide["token"]), "everything"),
    await manual(server, String(pool["token"]), "admin"),
  ];
  const mallory = await manual(server, SHARED);
  await register(server, playbook("api_integration/x/one"));
  assert.equal((await end(server, await start(server, "api_integration/x/one")))["status"], "COMPLETED");
  assert.deepEqual(await claimers("api_integration/x"), ["@server"]);
  const taken = await start(server, "system/code");
  assert.deepEqual(await everything.claim(300), []);
  assert.deepEqual(await admin.claim(WAIT_MS), [taken]);
  await register(server, playbook("system/left"));
  const left = await start(server, "system/left");
  assert.deepEqual(await mallory.claim(300), []);
  await operate(server, "POST", "/api/pools/admin/revoke");
  assert.equal((await end(server, left))["status"], "COMPLETED");
  assert.deepEqual(await claimers("system/left"), ["@server"]);
});
