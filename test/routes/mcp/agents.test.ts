import assert from "node:assert/strict";
import { before, test } from "node:test";
import { type Body, openApi, playbook, posted, TOKENS } from "../../support/service/api.ts";
import { ONE_STEP, workWith } from "../../support/service/api-work.ts";
import { addUser, allow } from "../../support/service/users.ts";

// Agents in lists and as they are started; MCP resources and the playbooks that look after them.

const api = await openApi();
const work = workWith(api);

const mcp = (path: string, spec: string) =>
  `apiVersion: flow/v2\nkind: Mcp\nmetadata: { name: m, path: ${path} }\nspec: { ${spec} }\n`;

async function register(content: string): Promise<Body> {
  const { status, body } = await work.post("/api/catalog/register", { content });
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

const agent = (path: string, more = "") => playbook(path, "a", `, agent: true${more}`);

interface Entry {
  catalog_id: string;
  path: string;
  version: number;
  payload: { metadata: { terminal: Body } };
}

async function agents(body: Body = {}): Promise<Entry[]> {
  const { status, body: answer } = await work.post("/api/catalog/agents/list", body);
  assert.equal(status, 200);
  return answer["entries"] as Entry[];
}

before(async () => {
  await work.register("ops/deploy_mcp", ONE_STEP);
  await register(agent("ops/check_mcp"));
  const lifecycle = "lifecycle: { deploy: ops/deploy_mcp, check: ops/check_mcp, lost: ops/none, purge: /system/purge }";
  await register(mcp("mcp/demo", `endpoint: https://demo/mcp, transport: sse, ${lifecycle}`));
  await register(mcp("deep/er/plain", "endpoint: https://h/mcp"));
  await work.register("mcp/decoy", ONE_STEP);
});

test("agents are listed in their newest version, each with its visibility", async () => {
  await register(agent("agents/said", ", terminal: { visible: true, workspace: ops }"));
  await register(agent("agents/said", ", terminal: { workspace: dev }"));
  await register(agent("agents/silent"));
  const entries = (await agents()).filter(({ path }) => path.startsWith("agents/"));
  assert.deepEqual(
    entries.map(({ path, version, payload }) => [path, version, payload.metadata.terminal]),
    [
      ["agents/said", 2, { workspace: "dev", visible: true }],
      ["agents/silent", 1, { visible: true }],
    ],
  );
});

test("the newest version decides whether an agent is shown; hidden ones are listed on request", async () => {
  await register(agent("hidden/soon"));
  await register(agent("hidden/soon", ", terminal: { visible: false }"));
  await register(agent("hidden/once", ", terminal: { visible: false }"));
  await register(agent("hidden/once"));
  const listed = async (body?: Body) =>
    (await agents(body))
      .filter(({ path }) => path.startsWith("hidden/"))
      .map(({ path, version }) => `${path} ${version}`);
  assert.deepEqual(await listed(), ["hidden/once 2"]);
  assert.deepEqual(await listed({ hidden: true }), ["hidden/once 2", "hidden/soon 2"]);
  const { status } = await work.post("/api/catalog/agents/list", { hidden: "yes" });
  assert.equal(status, 422);
});

test("a hidden agent takes no place on a page", async () => {
  const names = (await agents()).map(({ path }) => path);
  const { body: first } = await work.post("/api/catalog/agents/list", { limit: 1 });
  const { body: second } = await work.post("/api/catalog/agents/list", { limit: 500, cursor: first["next_cursor"] });
  const paged = [...(first["entries"] as Entry[]), ...(second["entries"] as Entry[])].map(({ path }) => path);
  assert.deepEqual([paged, second["next_cursor"]], [names, null]);
});

test("a caller's access_token is sealed before anything is written, and never shown", async () => {
  const token = "ya29.very-secret-token";
  const workload = { access_token: token, who: "me" };
  const key = { "idempotency-key": "sealed-1" };
  const asked = { path: "ops/deploy_mcp", workload };
  const { body } = await work.post("/api/execute", asked, key);
  const id = String(body["execution_id"]);
  assert.equal((await work.post("/api/execute", asked, key)).body["execution_id"], id);
  const { body: detail } = await work.get(`/api/executions/${id}`);
  assert.deepEqual(detail["workload"], { who: "me", access_token: "[secret]" });
  const { body: log } = await work.get(`/api/executions/${id}/events`);
  assert.doesNotMatch(JSON.stringify([detail, log]), /very-secret|\[sealed/);
  const rows = await api.database.sql`select * from flow.event where execution_id = ${id}`;
  assert.ok(rows.length > 0);
  assert.doesNotMatch(JSON.stringify(rows), /very-secret/);
  assert.match(JSON.stringify(rows), /\[sealed:/);
});

test("an action starts the resource's playbook with the action and the server as inputs", async () => {
  for (const resource of ["demo", "mcp/demo"]) {
    const { status, body } = await work.post(`/api/mcp/mcp/${resource}/lifecycle/deploy`);
    assert.equal(status, 200, JSON.stringify(body));
    assert.deepEqual([body["resource"], body["action"], body["path"]], ["mcp/demo", "deploy", "ops/deploy_mcp"]);
    const { body: execution } = await work.get(`/api/executions/${String(body["execution_id"])}`);
    const workload = { action: "deploy", server: "mcp/demo", endpoint: "https://demo/mcp", transport: "sse" };
    assert.deepEqual([execution["path"], execution["workload"]], ["ops/deploy_mcp", { who: "world", ...workload }]);
  }
});

test("the playbook of an action may be an agent, and the body may be left out", async () => {
  const { status, body } = await work.send("POST", "/api/mcp/mcp/demo/lifecycle/check");
  assert.deepEqual([status, body["path"]], [200, "ops/check_mcp"], JSON.stringify(body));
});

test("an action that is sent twice with one key is dispatched once", async () => {
  const send = (action: string) =>
    work.post(`/api/mcp/mcp/demo/lifecycle/${action}`, {}, { "idempotency-key": "deploy-1" });
  const first = await send("deploy");
  const second = await send("deploy");
  assert.deepEqual([second.body["execution_id"], second.body["duplicate"]], [first.body["execution_id"], true]);
  assert.equal((await send("check")).status, 422);
});

for (const [what, path, expected] of [
  ["a resource that is not registered", "none/lifecycle/deploy", /no MCP resource 'none' nor 'mcp\/none'/],
  ["an entry of another kind", "decoy/lifecycle/deploy", /no MCP resource 'decoy'/],
  ["an action without a playbook", "demo/lifecycle/restart", /no action 'restart'.*check, deploy, lost, purge/],
  ["a resource without actions", "deep/er/plain/lifecycle/deploy", /it has no `spec.lifecycle`/],
  ["a playbook that is not registered", "demo/lifecycle/lost", /Executable catalog entry not found/],
  ["a name of the prototype", "demo/lifecycle/constructor", /no action 'constructor'/],
] as [string, string, RegExp][]) {
  test(`${what} is 404`, async () => {
    const { status, body } = await work.post(`/api/mcp/mcp/${path}`);
    assert.equal(status, 404);
    assert.match(String(body["error"]), expected);
  });
}

test("an action starts no system playbook, by whomever it is asked for", async () => {
  await work.register("system/purge", ONE_STEP);
  const { status, body } = await work.post("/api/mcp/mcp/demo/lifecycle/purge");
  assert.deepEqual([status, body["code"]], [403, "SYSTEM_PLAYBOOK"], JSON.stringify(body));
});

test("a worker may not dispatch actions", async () => {
  const headers = { authorization: `Bearer ${TOKENS.worker}` };
  const { status } = await api.guarded.request("/api/mcp/mcp/demo/lifecycle/deploy", posted({}, headers));
  assert.equal(status, 403);
});

test("a user needs to execute both the resource and the action's playbook, and learns of no other resource", async () => {
  const user = await addUser(api.database);
  const headers = { authorization: `Bearer ${TOKENS.operator}`, "x-flow-session": user.tokenSha256 };
  const dispatch = async (resource: string) =>
    (await api.guarded.request(`/api/mcp/mcp/${resource}/lifecycle/deploy`, posted({}, headers))).status;
  assert.deepEqual([await dispatch("demo"), await dispatch("none")], [403, 403]);
  await allow(api.database, user, [{ path: "mcp/demo", can: ["execute"] }]);
  assert.deepEqual([await dispatch("demo"), await dispatch("none")], [403, 403]);
  await allow(api.database, user, [{ allow: "ops/*", can: ["execute"] }]);
  assert.deepEqual([await dispatch("demo"), await dispatch("none")], [200, 403]);
});

test("a user's list has the agents that they may view", async () => {
  const user = await addUser(api.database);
  await allow(api.database, user, [{ allow: "seen/**", can: ["view"] }]);
  await register(agent("seen/one"));
  await register(agent("seen/two", ", terminal: { visible: false }"));
  const headers = { authorization: `Bearer ${TOKENS.operator}`, "x-flow-session": user.tokenSha256 };
  const response = await api.guarded.request("/api/catalog/agents/list", posted({}, headers));
  const { entries } = (await response.json()) as { entries: Entry[] };
  assert.deepEqual(
    entries.map(({ path }) => path),
    ["seen/one"],
  );
});
