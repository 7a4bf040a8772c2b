import assert from "node:assert/strict";
import { before, test } from "node:test";
import { openApi, posted, TOKENS } from "../../support/service/api.ts";
import { workWith } from "../../support/service/api-work.ts";
import { addUser, allow } from "../../support/service/users.ts";

// Calls of MCP resources from their page: each is an execution under the resource's path. The calls themselves: test/roles/mcp-agents.

const api = await openApi();
const work = workWith(api);
const AT = "/api/mcp/mcp/inspected/call";
const ODD = "mcp/odd: 'name' \"quoted\"";

before(async () => {
  for (const path of ["mcp/inspected", ODD, "mcp/secret"]) {
    const content = JSON.stringify({
      ...{ apiVersion: "flow/v2", kind: "Mcp", metadata: { name: "m", path }, spec: { endpoint: "https://h/mcp" } },
    });
    const { status, body } = await work.post("/api/catalog/register", { content });
    assert.equal(status, 200, JSON.stringify(body));
  }
});

test("a call is an execution of version 0 under the resource's path, and registers nothing", async () => {
  for (const [resource, path] of [
    ["inspected", "mcp/inspected"],
    ["mcp/inspected", "mcp/inspected"],
    [encodeURIComponent(ODD), ODD],
  ]) {
    const { status, body } = await work.post(`/api/mcp/mcp/${resource}/call`, { method: "tools/list" });
    assert.equal(status, 200, JSON.stringify(body));
    assert.deepEqual([body["resource"], body["path"], body["version"]], [path, path, 0]);
    const { body: execution } = await work.get(`/api/executions/${String(body["execution_id"])}`);
    assert.deepEqual(execution["workload"], { method: "tools/list", tool: null, arguments: {} });
  }
  const { body: entry } = await work.get("/api/catalog/resource/mcp/inspected");
  assert.deepEqual([entry["kind"], entry["version"]], ["mcp", 1]);
});

test("a resource whose path ends in /lifecycle is called by its name; its old address is that of an action", async () => {
  const path = "mcp/inspected/lifecycle";
  const spec = { endpoint: "https://h/mcp" };
  const document = (of: string, more = {}) =>
    JSON.stringify({
      apiVersion: "flow/v2",
      kind: "Mcp",
      metadata: { name: "m", path: of },
      spec: { ...spec, ...more },
    });
  await work.post("/api/catalog/register", { content: document(path) });
  const old = await work.post(`/api/mcp/mcp/${path}/call`, { method: "health" });
  assert.equal(old.status, 404);
  assert.match(String(old.body["error"]), /'mcp\/inspected' has no action 'call'/);
  for (const resource of [path, "inspected/lifecycle"]) {
    const { status, body } = await work.post("/api/mcp/call", { resource, method: "health" });
    assert.equal(status, 200, JSON.stringify(body));
    assert.deepEqual([body["resource"], body["path"], body["version"]], [path, path, 0]);
  }
  const playbook =
    "apiVersion: flow/v2\nkind: Playbook\nmetadata: { name: c, path: inspected/call }\nworkflow: [{ step: start }]\n";
  await work.post("/api/catalog/register", { content: playbook });
  await work.post("/api/catalog/register", {
    content: document("mcp/inspected", { lifecycle: { call: "inspected/call" } }),
  });
  const action = await work.post(`/api/mcp/mcp/${path}/call`, {});
  assert.deepEqual([action.status, action.body["path"], action.body["action"]], [200, "inspected/call", "call"]);
});

test("a call by name without a resource, of an unknown one, and with another call's key is refused", async () => {
  const send = (body: object, key: string) => work.post("/api/mcp/call", body, { "idempotency-key": key });
  assert.equal((await send({ method: "health" }, "by-1")).status, 422);
  assert.equal((await send({ resource: "", method: "health" }, "by-1")).status, 422);
  assert.equal((await send({ resource: "none", method: "health" }, "by-1")).status, 404);
  const first = await send({ resource: "inspected", method: "health" }, "by-2");
  const second = await send({ resource: "inspected", method: "health" }, "by-2");
  assert.deepEqual([second.body["execution_id"], second.body["duplicate"]], [first.body["execution_id"], true]);
  assert.equal((await send({ resource: "secret", method: "health" }, "by-2")).status, 422);
});

test("a call that is sent twice with one key is made once; the key is not that of another resource's call", async () => {
  const send = (resource: string) =>
    work.post(`/api/mcp/mcp/${resource}/call`, { method: "health" }, { "idempotency-key": "call-1" });
  const first = await send("inspected");
  const second = await send("inspected");
  assert.deepEqual([second.body["execution_id"], second.body["duplicate"]], [first.body["execution_id"], true]);
  assert.equal((await send("secret")).status, 422);
});

test("an unknown method, an unknown resource and a worker are refused", async () => {
  assert.equal((await work.post(AT, { method: "tools/run" })).status, 422);
  assert.equal((await work.post(AT, { method: "tools/call", arguments: [] })).status, 422);
  const { status, body } = await work.post("/api/mcp/mcp/none/call", { method: "health" });
  assert.equal(status, 404);
  assert.match(String(body["error"]), /no MCP resource 'none' nor 'mcp\/none'/);
  const headers = { authorization: `Bearer ${TOKENS.worker}` };
  assert.equal((await api.guarded.request(AT, posted({ method: "health" }, headers))).status, 403);
});

test("a user needs to execute the resource, needs to change nothing, and learns of no other", async () => {
  const user = await addUser(api.database);
  const headers = { authorization: `Bearer ${TOKENS.operator}`, "x-flow-session": user.tokenSha256 };
  const send = async (resource: string) =>
    (await api.guarded.request(`/api/mcp/mcp/${resource}/call`, posted({ method: "health" }, headers))).status;
  assert.deepEqual([await send("inspected"), await send("none")], [403, 403]);
  await allow(api.database, user, [{ path: "mcp/inspected", can: ["execute"] }]);
  assert.deepEqual([await send("inspected"), await send("secret"), await send("none")], [200, 403, 403]);
});
