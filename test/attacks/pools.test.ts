import assert from "node:assert/strict";
import { test } from "node:test";
import { createServedDatabase } from "../support/database/postgres.ts";
import { ownDatabase } from "../support/engine/key-ring.ts";
import { type Body, playbook } from "../support/service/api.ts";
import { folderWith } from "../support/service/cli-process.ts";
import { startServe } from "../support/service/serve.ts";
import { answerOf, sendTo } from "../support/service/server-calls.ts";

/* What the holder of one pool's token can do to the playbooks of others, at a server in a process of its own. */

const OPERATOR = "operator-token-of-the-attacks-1";
const SHARED = "worker-token-of-the-attacks-22";
const WAIT_MS = 10_000;

test("a pool's token runs and reads what is of its paths, and is refused as soon as it is revoked", async (t) => {
  const { url } = await createServedDatabase();
  const tokens = { FLOW_SERVER_TOKEN: OPERATOR, FLOW_WORKER_TOKEN: SHARED, FLOW_PURE_STEPS: "workers" };
  const server = await startServe(t, await folderWith(t, {}), { ...ownDatabase(url), ...tokens });
  const send = (token: string, method: string, path: string, body?: unknown, headers = {}) =>
    sendTo(server.url, token, method, path, body, headers);
  const operate = (method: string, path: string, body?: unknown) => answerOf(server.url, OPERATOR, method, path, body);
  const catalogIds: Record<string, string> = {};
  for (const path of ["team/one", "other/one", "api_integration/x/login"]) {
    const { catalog_id } = await operate("POST", "/api/catalog/register", { content: playbook(path) });
    catalogIds[path] = String(catalog_id);
  }
  const made = await operate("POST", "/api/pools", { name: "team", paths: ["team/**"], labels: { zone: "a" } });
  const logins = await operate("POST", "/api/pools", { name: "logins", paths: ["api_integration/**", "system/**"] });
  const [team, system] = [String(made["token"]), String(logins["token"])];
  const worker = async (name: string, token: string) => {
    const { status, body } = await send(token, "POST", "/api/worker/pool/register", { name, capacity: 9 });
    assert.equal(status, 200, JSON.stringify(body));
    const own = { "x-flow-worker": String(body["worker_secret"]) };
    const claim = async (waitMs: number) => {
      const ask = { worker: name, limit: 9, wait_ms: waitMs, labels: { "flow.pool": "logins" } };
      const reply = await send(token, "POST", "/api/commands/claim", ask, own);
      assert.equal(reply.status, 200, JSON.stringify(reply.body));
      return reply.body["commands"] as (Body & { command_id: string; execution_id: string; claim_secret: string })[];
    };
    return { own, claim };
  };
  const [mine, shared, login] = [await worker("m", team), await worker("s", SHARED), await worker("l", system)];
  const ids: Record<string, string> = {};
  for (const path of ["other/one", "api_integration/x/login", "team/one"]) {
    ids[path] = String((await operate("POST", "/api/execute", { path }))["execution_id"]);
  }

  // Each gets its own, whatever labels it says it has, however long it asks.
  const executionsOf = (commands: readonly { execution_id: string }[]) => commands.map((one) => one.execution_id);
  const [command] = await mine.claim(WAIT_MS);
  assert.equal(command?.execution_id, ids["team/one"]);
  assert.deepEqual(executionsOf(await mine.claim(300)), []);
  const [foreign] = await shared.claim(WAIT_MS);
  assert.equal(foreign?.execution_id, ids["other/one"]);
  assert.deepEqual(executionsOf(await shared.claim(300)), [], "logins are not for the shared token");
  assert.deepEqual(executionsOf(await login.claim(WAIT_MS)), [ids["api_integration/x/login"]]);

  const refused = async (status: number, method: string, path: string, body?: unknown, headers = {}) => {
    const reply = await send(team, method, path, body, headers);
    assert.equal(reply.status, status, `${method} ${path}: ${JSON.stringify(reply.body)}`);
  };
  await refused(409, "POST", `/api/commands/${foreign?.command_id}/claim`, { worker: "m" }, mine.own);
  const stolen = { "x-flow-claim": String(foreign?.claim_secret) };
  await refused(403, "GET", `/api/executions/${ids["other/one"]}/sealing-key`, undefined, stolen);
  await refused(403, "GET", `/api/catalog/entries/${catalogIds["other/one"]}`);
  await refused(403, "GET", "/api/catalog/resource/other/one");
  await refused(200, "GET", `/api/catalog/entries/${catalogIds["team/one"]}`);
  for (const path of ["/api/catalog", "/api/worker/pools", "/api/executions", "/api/pools"])
    await refused(403, "GET", path);
  await refused(403, "POST", "/api/pools", { name: "mine", paths: ["**"] });
  const own = { "x-flow-claim": String(command?.claim_secret) };
  await refused(200, "GET", `/api/executions/${ids["team/one"]}/sealing-key`, undefined, own);

  // A new token ends the old one at once; a revoked pool has none, and its paths are the shared token's.
  const rotated = String((await operate("POST", "/api/pools/team/rotate"))["token"]);
  await refused(401, "GET", `/api/executions/${ids["team/one"]}/sealing-key`, undefined, own);
  assert.equal((await send(rotated, "GET", `/api/catalog/entries/${catalogIds["team/one"]}`)).status, 200);
  ids["waits"] = String((await operate("POST", "/api/execute", { path: "team/one" }))["execution_id"]);
  assert.deepEqual(executionsOf(await shared.claim(300)), []);
  await operate("POST", "/api/pools/team/revoke");
  assert.equal((await send(rotated, "GET", `/api/catalog/entries/${catalogIds["team/one"]}`)).status, 401);
  assert.deepEqual(executionsOf(await shared.claim(WAIT_MS)), [ids["waits"]]);
  assert.equal((await send(OPERATOR, "POST", "/api/pools/team/rotate")).status, 404);

  const { items } = await operate("GET", "/api/pools");
  assert.ok(!JSON.stringify(items).includes("flowpool_"));
  const { entries } = await operate("GET", "/api/auth/audit?action=pool.create&result=allow");
  assert.deepEqual((entries as Body[]).map(({ resource }) => resource).sort(), ["pool/logins", "pool/team"]);
});
