import assert from "node:assert/strict";
import { test } from "node:test";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { ROUTES } from "../../../src/schema/routes/all.ts";
import { type Body, openApi, playbook, posted, TOKENS } from "../../support/service/api.ts";
import { type Claimed, endOf } from "../../support/service/api-work.ts";

const api = await openApi();

interface OpenApi {
  openapi: string;
  paths: Record<string, Record<string, Operation>>;
}

interface Operation {
  operationId: string;
  security: unknown[];
  parameters?: { name: string; in: string; required: boolean; description?: string; schema: Body }[];
  requestBody?: { required: boolean; content: Record<string, { schema: Body }> };
  responses: Record<string, { content: Record<string, unknown> }>;
}

const document = (await (await api.open.request("/api/openapi.json")).json()) as OpenApi;
const ajv = new Ajv2020({ strict: true, allErrors: true, allowUnionTypes: true, strictRequired: false });
ajv.addVocabulary(["openapi", "info", "paths", "components"]);
ajv.addSchema(document, "openapi");

/** The schema of an answer, by a pointer into the document, so that its references resolve as a client's do. */
function answerSchema(path: string, method: string, status: number): ValidateFunction {
  const escaped = path.replaceAll("~", "~0").replaceAll("/", "~1").replaceAll("{", "%7B").replaceAll("}", "%7D");
  const pointer = `openapi#/paths/${escaped}/${method}/responses/${status}/content/application~1json/schema`;
  const validate = ajv.getSchema(pointer);
  assert.ok(validate !== undefined, `the description has no ${pointer}`);
  return validate;
}

async function conforms(described: string, method: string, request: string, init: RequestInit, guarded = false) {
  const app = guarded ? api.guarded : api.open;
  const response = await app.request(request, init);
  const body: unknown = await response.json();
  const validate = answerSchema(described, method, response.status);
  assert.ok(
    validate(body),
    `${request} ${response.status}: ${JSON.stringify(validate.errors)} in ${JSON.stringify(body)}`,
  );
  return { status: response.status, body: body as Body };
}

test("it is OpenAPI 3.1 and describes every route, each with a name of its own", () => {
  assert.equal(document.openapi, "3.1.0");
  const described = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method} ${path}`),
  );
  const declared = ROUTES.map(({ method, path }) => `${method} ${path.replace(/:(\w+)(\{.*?\})?/g, "{$1}")}`);
  assert.deepEqual(described.sort(), declared.sort());
  const names = Object.values(document.paths).flatMap((methods) =>
    Object.values(methods).map((one) => one.operationId),
  );
  assert.equal(new Set(names).size, names.length, names.join(" "));
  for (const name of names) assert.match(name, /^[a-z][A-Za-z]+$/);
});

test("every part of a path is a declared parameter, and only open routes do without a token", () => {
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const operation of Object.values(methods)) {
      const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      const declared = (operation.parameters ?? []).filter((parameter) => parameter.in === "path");
      assert.deepEqual(
        declared.map(({ name, required }) => [name, required]),
        named.map((name) => [name, true]),
      );
      assert.equal(
        operation.security.length === 0,
        ["/api/health", "/metrics", "/hooks/{path}", "/approve/{token}"].includes(path),
        path,
      );
      // Neither has a token: a webhook's signature may be refused, and a link may want a login.
      const refuses = operation.security.length > 0 || path === "/hooks/{path}" || path === "/approve/{token}";
      assert.equal("401" in operation.responses, refuses, path);
    }
  }
});

test("answers of every route are as they are described", async () => {
  const agent = playbook("described/agent", "a", ", agent: true").replace("workload:", "colour: red\nworkload:");
  const registered = await conforms(
    "/api/catalog/register",
    "post",
    "/api/catalog/register",
    posted({ content: agent }),
  );
  assert.equal(registered.status, 200);
  const again = posted({ content: agent, if_changed: true });
  assert.equal(
    (await conforms("/api/catalog/register", "post", "/api/catalog/register", again)).body["unchanged"],
    true,
  );
  for (const [described, request] of [
    ["/api/health", "/api/health"],
    ["/api/catalog", "/api/catalog"],
    ["/api/catalog", "/api/catalog?limit=1&prefix=described/"],
    ["/api/catalog/resource/{path}", "/api/catalog/resource/described/agent"],
    ["/api/catalog/versions/{path}", "/api/catalog/versions/described/agent"],
    ["/api/catalog/openapi/{path}", "/api/catalog/openapi/described/agent"],
  ] as const) {
    assert.equal((await conforms(described, "get", request, {})).status, 200);
  }
  const agents = await conforms("/api/catalog/agents/list", "post", "/api/catalog/agents/list", posted({}));
  assert.equal((agents.body["entries"] as unknown[]).length, 1);
});

test("answers of the service's routes are as they are described", async () => {
  const content = playbook("described/run");
  const { body: entry } = await conforms("/api/catalog/register", "post", "/api/catalog/register", posted({ content }));
  const post = async (path: string, body: unknown, request = path) =>
    await conforms(path, "post", request, posted(body));
  const read = async (path: string, request: string) => {
    assert.equal((await conforms(path, "get", request, {})).status, 200);
  };
  await post("/api/worker/pool/register", { name: "w", capacity: 1, labels: { a: "b" }, runtime: { pid: 1 } });
  await read("/api/catalog/entries/{catalog_id}", `/api/catalog/entries/${entry["catalog_id"]}`);
  const { body: started } = await post("/api/execute", { path: "described/run" });
  const { body: cancelled } = await post("/api/execute", { path: "described/run" });
  const one = `/api/executions/${started["execution_id"]}`;
  await read("/api/executions/{execution_id}", one);
  const { body: claim } = await post("/api/commands/claim", { worker: "w", limit: 1 });
  const [command] = claim["commands"] as Claimed[];
  assert.ok(command !== undefined);
  const { command_id, attempt, execution_id } = command;
  const running = [{ command_id, attempt }];
  await post("/api/worker/pool/heartbeat", { name: "w", running });
  const query = new URLSearchParams({
    ref: `noetl://execution/${execution_id}/a`,
    worker: "w",
    command_id,
    attempt: "1",
  });
  await conforms("/api/results", "put", `/api/results?${query}`, { method: "PUT", body: '"x"' });
  for (const path of ["/results/resolve", "/api/results/resolve"]) await read(path, `${path}?${query}`);
  const [done, end] = endOf(command, { a: 1 });
  assert.equal((await post("/api/events", { ...done, worker: "w" })).status, 200);
  const batch = await post("/api/events/batch", { worker: "w", events: [end], claim: { limit: 1 } });
  assert.equal(batch.status, 202);
  await read("/api/executions/{execution_id}/result", `${one}/result?wait_ms=5000`);
  await read("/api/executions/{execution_id}/artifacts", `${one}/artifacts`);
  for (const [path, request] of [
    ["/api/executions/{execution_id}", one],
    ["/api/executions/{execution_id}/events", `${one}/events`],
    ["/api/executions", "/api/executions"],
    ["/api/worker/pools", "/api/worker/pools"],
    ["/api/events/batch/{request_id}/status", `/api/events/batch/${batch.body["request_id"]}/status`],
  ] as const) {
    await read(path, request);
  }
  const other = `/api/executions/${cancelled["execution_id"]}`;
  await post("/api/executions/{execution_id}/cancel", {}, `${other}/cancel`);
  await read("/api/executions/{execution_id}", other);
  await conforms("/api/executions/{execution_id}", "delete", one, { method: "DELETE" });
  await post("/api/worker/pool/deregister", { name: "w" });
});

test("answers of the routes of credentials are as they are described", async () => {
  const content = {
    name: "described",
    type: "bearer",
    data: { token: "t" },
    tags: ["a"],
    schema: { required: ["token"] },
  };
  const put = { ...posted(content), method: "PUT" };
  for (const [described, method, request, init, status] of [
    ["/api/credentials", "post", "/api/credentials", posted(content), 201],
    ["/api/credentials", "post", "/api/credentials", posted(content), 200],
    ["/api/credentials", "post", "/api/credentials", posted({ ...content, data: {} }), 400],
    ["/api/credentials/{identifier}", "put", "/api/credentials/described", put, 200],
    ["/api/credentials", "get", "/api/credentials", {}, 200],
    ["/api/credentials/{identifier}", "get", "/api/credentials/described", {}, 200],
    ["/api/credentials/{identifier}", "get", "/api/credentials/described?include_data=true", {}, 200],
    ["/api/admin/secrets/rotate", "post", "/api/admin/secrets/rotate", { method: "POST" }, 200],
    ["/api/credentials/{identifier}", "delete", "/api/credentials/described", { method: "DELETE" }, 200],
    ["/api/credentials/{identifier}", "delete", "/api/credentials/described", { method: "DELETE" }, 404],
  ] as const) {
    assert.equal((await conforms(described, method, request, init)).status, status);
  }
});

test("answers of the keychain and of transient values are as they are described", async () => {
  const { body: entry } = await conforms(
    "/api/catalog/register",
    "post",
    "/api/catalog/register",
    posted({ content: playbook("described/keychain") }),
  );
  const start = posted({ catalog_id: entry["catalog_id"] });
  const { body: execution } = await conforms("/api/execute", "post", "/api/execute", start);
  const draft = posted({ content: playbook("described/draft") });
  await conforms("/api/execute/draft", "post", "/api/execute/draft", draft);
  const preview = posted({ path: "described/keychain", workload: { who: 1 } });
  await conforms("/api/execute/preview", "post", "/api/execute/preview", preview);
  const step = (more: Body) => posted({ content: playbook("described/keychain"), step: "nowhere", ...more });
  assert.equal((await conforms("/api/execute/draft/step", "post", "/api/execute/draft/step", step({}))).status, 422);
  const described = "/api/keychain/{catalog_id}/{keychain_name}";
  const at = `/api/keychain/${entry["catalog_id"]}/k`;
  const statusOf = async (method: string) => (await conforms(described, method, at, { method })).body["status"];
  const set = (more: Body) => {
    const body = {
      token_data: { a: 1 },
      credential_type: "oauth2",
      auto_renew: false,
      renew_config: { endpoint: "https://id.example.com/token" },
      ...more,
    };
    return conforms(described, "post", at, posted(body));
  };
  assert.equal(await statusOf("get"), "not_found");
  assert.equal((await set({})).status, 200);
  assert.equal(await statusOf("get"), "success");
  await set({ expires_at: "2001-01-01T00:00:00Z" });
  assert.equal(await statusOf("get"), "expired");
  const lists = "/api/keychain/catalog";
  await conforms(`${lists}/{catalog_id}`, "get", `${lists}/${entry["catalog_id"]}`, {});
  await conforms(`${described}/lease`, "post", `${at}/lease`, posted({ holder: "a", lease_ms: 1_000 }));
  await conforms(`${described}/lease`, "post", `${at}/lease`, posted({ holder: "a", failed: "no" }));
  assert.equal(await statusOf("delete"), "success");
  assert.equal((await set({ schema: { required: ["b"] } })).status, 400);
  assert.equal((await conforms(`${described}/lease`, "post", `${at}/lease`, posted({}))).status, 422);

  const values = `/api/executions/${execution["execution_id"]}/transient`;
  const list = "/api/executions/{execution_id}/transient";
  const body = JSON.stringify({ value: null, ttl_seconds: 60 });
  await conforms(`${list}/{key}`, "put", `${values}/a`, { method: "PUT", body });
  await conforms(`${list}/{key}`, "get", `${values}/a`, {});
  await conforms(list, "get", values, {});
  await conforms(`${list}/{key}`, "delete", `${values}/a`, { method: "DELETE" });
  assert.equal((await conforms(`${list}/{key}`, "get", `${values}/a`, {})).status, 404);
});

test("what streams says so", () => {
  for (const path of ["/api/executions/{execution_id}/stream", "/api/events/batch/{request_id}/stream"]) {
    const { content } = document.paths[path]?.["get"]?.responses["200"] ?? assert.fail(path);
    assert.deepEqual(Object.keys(content), ["text/event-stream"]);
  }
});

test("refusals of every kind are as they are described", async () => {
  for (const [described, method, request, init, status] of [
    ["/api/catalog/register", "post", "/api/catalog/register", posted({ content: "kind: Playbook" }), 422],
    ["/api/catalog/register", "post", "/api/catalog/register", posted({}), 422],
    ["/api/catalog", "get", "/api/catalog?limit=0", {}, 422],
    ["/api/catalog/resource/{path}", "get", "/api/catalog/resource/none", {}, 404],
    ["/api/catalog/versions/{path}", "get", "/api/catalog/versions/none", {}, 404],
    ["/api/health", "get", "/api/health", { headers: { host: "evil.example" } }, 403],
    ["/api/execute", "post", "/api/execute", posted({ path: "none" }), 404],
    ["/api/execute", "post", "/api/execute", posted({}), 422],
    ["/api/executions/{execution_id}", "get", "/api/executions/1", {}, 404],
    ["/api/executions/{execution_id}/stream", "get", "/api/executions/1/stream", {}, 404],
    ["/api/events/batch", "post", "/api/events/batch", posted({ events: [{}] }), 422],
    ["/api/worker/pool/heartbeat", "post", "/api/worker/pool/heartbeat", posted({ name: "x", running: [] }), 404],
    ["/api/results/resolve", "get", "/api/results/resolve?ref=x", {}, 404],
  ] as const) {
    assert.equal((await conforms(described, method, request, init)).status, status);
  }
  assert.equal((await conforms("/api/catalog", "get", "/api/catalog", {}, true)).status, 401);
  const worker = posted({ content: "x" }, { authorization: `Bearer ${TOKENS.worker}` });
  const refused = await conforms("/api/catalog/register", "post", "/api/catalog/register", worker, true);
  assert.equal(refused.status, 403);
});

test("bodies that the routes take are the ones that are described", () => {
  const { requestBody } = document.paths["/api/catalog/register"]?.["post"] ?? {};
  assert.equal(requestBody?.required, true);
  const validate = new Ajv2020().compile(requestBody.content["application/json"]?.schema ?? {});
  assert.ok(validate({ content: "x", resource_type: "agent", if_changed: true }));
  assert.ok(!validate({ resource_type: "agent" }));
  assert.ok(!validate({ content: 1 }));
});
