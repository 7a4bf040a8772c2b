import assert from "node:assert/strict";
import { before, type TestContext, test } from "node:test";
import { createServedDatabase } from "../support/database/postgres.ts";
import { ownDatabase } from "../support/engine/key-ring.ts";
import { type Body, playbook } from "../support/service/api.ts";
import { folderWith } from "../support/service/cli-process.ts";
import { type Serving, startServe } from "../support/service/serve.ts";
import { answerOf, type Reply, sendTo } from "../support/service/server-calls.ts";

/*
 * What the holder of the workers' token can do at a server, with it alone and as a worker that has claimed a command: nothing that
 * is not of that command. Every call goes to a server in a process of its own.
 */

const TOKENS = { operator: "operator-token-of-the-attacks-1", worker: "worker-token-of-the-attacks-22" };
const SECRET = "canary-of-the-attacks";
const WAIT_MS = 10_000;

interface Claimed extends Body {
  command_id: string;
  execution_id: string;
  attempt: number;
  claim_secret: string;
}

let server: Serving;
let catalogIds: Record<string, string> = {};
const atEnd: (() => unknown)[] = [];

const send = (token: string, method: string, path: string, body?: unknown, headers = {}) =>
  sendTo(server.url, token, method, path, body, headers);

const asWorker = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
  send(TOKENS.worker, method, path, body, headers);

const operate = (method: string, path: string, body?: unknown) =>
  answerOf(server.url, TOKENS.operator, method, path, body);

/** A worker as its registration makes it: what its claims and heartbeats carry. */
async function register(name: string, token = TOKENS.worker): Promise<Record<string, string>> {
  const { status, body } = await send(token, "POST", "/api/worker/pool/register", { name, capacity: 4 });
  assert.equal(status, 200, JSON.stringify(body));
  return { "x-flow-worker": String(body["worker_secret"]) };
}

/** Starts the playbook and claims its first command. */
async function claimed(
  path: string,
  name: string,
  own: Record<string, string>,
  token = TOKENS.worker,
): Promise<Claimed> {
  const { execution_id } = await operate("POST", "/api/execute", { path });
  const ask = { worker: name, limit: 1, wait_ms: WAIT_MS };
  const { status, body } = await send(token, "POST", "/api/commands/claim", ask, own);
  assert.equal(status, 200, JSON.stringify(body));
  const [command] = body["commands"] as Claimed[];
  assert.equal(command?.execution_id, execution_id);
  return command as Claimed;
}

const completed = ({ command_id, execution_id, attempt }: Claimed) => ({
  ...{ event_type: "command.failed", command_id, execution_id, attempt },
  error: { kind: "unknown", code: "X", message: "ended", retryable: false },
});

/** What a worker may ask for, about an execution and what is of it. */
function requestsAbout(executionId: string, path: string, { command_id, attempt }: Claimed) {
  const id = encodeURIComponent(executionId);
  const ref = encodeURIComponent(`noetl://execution/${executionId}/step/start/task/t/run/1`);
  const catalogId = catalogIds[path] ?? "";
  const local = `scope_type=local&execution_id=${id}`;
  return [
    ["GET", `/api/credentials/limited?include_data=true&execution_id=${id}`],
    ["GET", `/api/executions/${id}/sealing-key`],
    ["GET", `/api/results/resolve?ref=${ref}&execution_id=${id}`],
    ["GET", `/results/resolve?ref=${ref}&execution_id=${id}&sealed=true`],
    ["PUT", `/api/results?worker=mallory&command_id=${command_id}9&attempt=${attempt}&ref=${ref}`, "planted"],
    ["GET", `/api/keychain/${catalogId}/token?${local}`],
    ["POST", `/api/keychain/${catalogId}/token`, { token_data: { a: "b" }, credential_type: "oauth2" }],
    ["POST", `/api/keychain/${catalogId}/token/lease`, { holder: "mallory", lease_ms: 1_000, wait_ms: 0 }],
    ["DELETE", `/api/keychain/${catalogId}/token?${local}`],
    ["GET", `/api/keychain/catalog/${catalogId}`],
    ["GET", `/api/executions/${id}/transient`],
    ["GET", `/api/executions/${id}/transient/key`],
    ["PUT", `/api/executions/${id}/transient/key`, { value: 1 }],
    ["DELETE", `/api/executions/${id}/transient/key`],
    ["POST", "/api/execute", { path: "team/one", parent_execution_id: executionId }],
    ["POST", `/api/executions/${id}/cancel`, {}],
    ["GET", `/api/executions/${id}/result?sealed=true`],
    ["GET", `/api/executions/${id}`],
    ["GET", `/api/executions/${id}/events`],
    ["GET", `/api/executions/${id}/events/marks`],
    ["GET", `/api/executions/${id}/stream`],
  ] as const;
}

function refused(what: string, { status, body }: Reply, code = "claim_required"): void {
  assert.deepEqual([status, body["code"]], [403, code], `${what}: ${JSON.stringify(body)}`);
  assert.ok(!JSON.stringify(body).includes(SECRET), what);
}

before(async () => {
  const { url } = await createServedDatabase();
  const context: Pick<TestContext, "after"> = { after: (end: () => unknown) => void atEnd.push(end) } as never;
  server = await startServe(context, await folderWith(context as TestContext, {}), {
    ...ownDatabase(url),
    FLOW_SERVER_TOKEN: TOKENS.operator,
    FLOW_WORKER_TOKEN: TOKENS.worker,
    FLOW_PURE_STEPS: "workers",
  });
  for (const path of ["team/one", "team/two", "system/admin"]) {
    const { catalog_id } = await operate("POST", "/api/catalog/register", { content: playbook(path) });
    catalogIds = { ...catalogIds, [path]: String(catalog_id) };
  }
  for (const [name, playbooks] of [
    ["limited", ["system/**"]],
    ["team", ["team/one"]],
  ] as const) {
    const body = { name, type: "custom", data: { password: SECRET }, meta: { playbooks } };
    await operate("POST", "/api/credentials", body);
  }
});

test("attacks with the workers' token", async (t) => {
  t.after(async () => {
    for (const end of atEnd.reverse()) await end();
  });
  const own = await register("mallory");
  const command = await claimed("team/one", "mallory", own);
  const victim = await register("victim");
  const others = await claimed("team/two", "victim", victim);
  const pool = String((await operate("POST", "/api/pools", { name: "admin", paths: ["system/**"] }))["token"]);
  const ended = await claimed("system/admin", "admin", await register("admin", pool), pool);
  await send(pool, "POST", "/api/events/batch", {
    ...{ worker: "admin", claim_secrets: [ended.claim_secret], events: [completed(ended)] },
  });
  const abroad = [
    [others.execution_id, "team/two"],
    [ended.execution_id, "system/admin"],
    ["4711", "team/two"],
  ] as const;

  await t.test("the token alone gives nothing of any execution, open or ended", async () => {
    for (const [id, path] of [...abroad, [command.execution_id, "team/one"] as const]) {
      for (const [method, address, body] of requestsAbout(id, path, command)) {
        refused(`${method} ${address}`, await asWorker(method, address, body));
      }
    }
    for (const address of ["/api/executions", "/api/credentials", "/api/credentials/limited/uses"]) {
      refused(address, await asWorker("GET", address), "FORBIDDEN");
    }
  });

  await t.test("the secret of a claim gives nothing of other executions", async () => {
    const claim = { "x-flow-claim": command.claim_secret };
    for (const [id, path] of abroad) {
      for (const [method, address, body] of requestsAbout(id, path, command)) {
        refused(`${method} ${address}`, await asWorker(method, address, body, claim));
      }
    }
  });

  await t.test("a credential is judged by the path of the claim's own command", async () => {
    const claim = { "x-flow-claim": command.claim_secret };
    const read = (name: string) => asWorker("GET", `/api/credentials/${name}?include_data=true`, undefined, claim);
    refused("another playbook's credential", await read("limited"), "FORBIDDEN");
    const { status, body } = await read("team");
    assert.deepEqual([status, body["data"]], [200, { password: SECRET }]);
  });

  await t.test("a secret is not made from another one, nor found by trying", async () => {
    const { claim_secret: mine } = command;
    const [, , key = "", mac = ""] = mine.split(".");
    const forged = [
      `${others.command_id}.${others.attempt}.${key}.${mac}`,
      `${command.command_id}.2.${key}.${mac}`,
      `${command.command_id}.1.${key}.${mac.slice(0, -1)}${mac.endsWith("A") ? "E" : "A"}`,
      `${command.command_id}.1.other.${mac}`,
      `${command.command_id}.1.__proto__.${mac}`,
      `${command.command_id}.1.${key}.`,
      own["x-flow-worker"] ?? "",
      mine.toUpperCase(),
      ".",
      "",
    ];
    for (const secret of forged) {
      const headers = { "x-flow-claim": secret };
      const address = `/api/executions/${command.execution_id}/sealing-key`;
      refused(secret, await asWorker("GET", address, undefined, headers));
      const body = { worker: "mallory", claim_secrets: [secret], events: [completed(command)] };
      refused(secret, await asWorker("POST", "/api/events/batch", body));
    }
  });

  await t.test("nothing is reported for a command without the secret of its own claim", async () => {
    for (const given of [[], [command.claim_secret], [victim["x-flow-worker"]]]) {
      for (const worker of ["victim", "mallory"]) {
        const body = { worker, claim_secrets: given, events: [completed(others)] };
        refused(JSON.stringify(body), await asWorker("POST", "/api/events/batch", body));
      }
    }
    const alone = { ...completed(others), worker: "victim" };
    const claim = { "x-flow-claim": command.claim_secret };
    refused("a single event", await asWorker("POST", "/api/events", alone, claim));
    const mixed = {
      ...{ worker: "mallory", claim_secrets: [command.claim_secret] },
      events: [completed(command), completed(others)],
    };
    refused("one of two", await asWorker("POST", "/api/events/batch", mixed));
    const { status } = await operate("GET", `/api/executions/${others.execution_id}`);
    assert.equal(status, "RUNNING");
  });

  await t.test("no worker is signed off, kept alive, replaced or claimed for by another one", async () => {
    const { body: pools } = await asWorker("GET", "/api/worker/pools");
    assert.ok(!JSON.stringify(pools).includes("instance"), "a reader of the instance could pass for the process");
    for (const headers of [{}, own, { "x-flow-worker": `${own["x-flow-worker"]}A` }] as Record<string, string>[]) {
      const call = (path: string, body: Body) => asWorker("POST", path, body, headers);
      refused("deregister", await call("/api/worker/pool/deregister", { name: "victim" }));
      refused("heartbeat", await call("/api/worker/pool/heartbeat", { name: "victim", running: [] }));
      refused("claim", await call("/api/commands/claim", { worker: "victim", limit: 1 }));
      refused("claim one", await call(`/api/commands/${others.command_id}/claim`, { worker: "victim" }));
      for (const runtime of [undefined, { instance: "" }, { instance: "mallory" }]) {
        const taken = await call("/api/worker/pool/register", {
          name: "victim",
          capacity: 1,
          ...(runtime && { runtime }),
        });
        assert.deepEqual([taken.status, taken.body["code"]], [409, "CONFLICT"]);
      }
    }
    const alive = { name: "victim", running: [{ command_id: others.command_id, attempt: 1 }] };
    const { status, body } = await asWorker("POST", "/api/worker/pool/heartbeat", alive, victim);
    assert.deepEqual([status, body["lost"]], [200, []]);
  });

  await t.test("an operator's run calls no system playbook", async () => {
    const claim = { "x-flow-claim": command.claim_secret };
    const child = (path: string) =>
      asWorker("POST", "/api/execute", { path, parent_execution_id: command.execution_id }, claim);
    refused("system/admin", await child("system/admin"), "SYSTEM_PLAYBOOK");
    assert.equal((await child("team/two")).status, 200);
  });

  await t.test("what is the command's own is given to its claim, and not once the claim has ended", async () => {
    const claim = { "x-flow-claim": command.claim_secret };
    const address = `/api/executions/${command.execution_id}/sealing-key`;
    assert.equal((await asWorker("GET", address, undefined, claim)).status, 200);
    const body = { worker: "mallory", claim_secrets: [command.claim_secret], events: [completed(command)] };
    assert.equal((await asWorker("POST", "/api/events/batch", body)).status, 202);
    for (const [method, path, sent] of requestsAbout(command.execution_id, "team/one", command)) {
      refused(`${method} ${path}`, await asWorker(method, path, sent, claim));
    }
  });
});
