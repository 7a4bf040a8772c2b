import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
import { connectServer, type ServerConnection } from "../../src/adapters/server/connection.ts";
import { createServerKeychain } from "../../src/adapters/server/keychain.ts";
import { systemClock } from "../../src/adapters/system-clock.ts";
import { createSecretSource } from "../../src/roles/server/secret-source.ts";
import type { Json, JsonObject } from "../../src/schema/words/json.ts";
import { createServedDatabase } from "../support/database/postgres.ts";
import { ownDatabase } from "../support/engine/key-ring.ts";
import { type RecordedRequest, startHttpServer, type TestHttpServer } from "../support/servers/http-server.ts";
import { folderWith } from "../support/service/cli-process.ts";
import { readAtOnce } from "../support/service/keychain-storm.ts";
import { type Answer, respond } from "../support/service/secret-source.ts";
import { type Serving, startServe } from "../support/service/serve.ts";

// Keychain entries of playbooks on a real service: a server, a worker, PostgreSQL, and a token endpoint.

const closers: (() => unknown)[] = [];
after(async () => {
  for (const close of closers.reverse()) await close();
});
const closing = { after: (close: () => unknown) => void closers.push(close) };

/** The service of all tests: each has a playbook and an endpoint of its own. */
let serving: Serving;
before(async () => {
  const { url } = await createServedDatabase();
  const environment = { ...ownDatabase(url), FLOW_HTTP_ALLOW_PRIVATE: "all", FLOW_WORKER_TOOLS: "all" };
  serving = await startServe(closing, await folderWith(closing, {}), environment, ["--role", "all"]);
});

/** The service, and an endpoint that gives the tokens `t-1`, `t-2`, … and takes them at `/api`. */
async function service(t: TestContext, tokenAnswer?: (request: RecordedRequest, count: number) => Answer) {
  let count = 0;
  const endpoint = await startHttpServer((request, response) => {
    if (request.url === "/api") return respond(response, [200, { got: request.headers["authorization"] ?? null }]);
    count += 1;
    respond(response, tokenAnswer?.(request, count) ?? [200, { access_token: `t-${count}`, expires_in: 900 }]);
  });
  t.after(() => endpoint.close());
  return { endpoint, api: client(serving) };
}

function client({ url }: Serving) {
  const call = async (method: string, path: string, body?: Json): Promise<JsonObject> => {
    const json = { "content-type": "application/json" };
    const init = body === undefined ? { method } : { method, headers: json, body: JSON.stringify(body) };
    const response = await fetch(`${url}${path}`, init);
    const text = await response.text();
    assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
    return JSON.parse(text) as JsonObject;
  };
  const register = async (content: string) =>
    String((await call("POST", "/api/catalog/register", { content }))["catalog_id"]);
  const run = async (path: string, workload: JsonObject = {}) => {
    const { execution_id: id } = await call("POST", "/api/execute", { path, workload });
    const ended = await call("GET", `/api/executions/${String(id)}/result?wait_ms=30000`);
    return { id: String(id), ...ended } as JsonObject & { id: string };
  };
  return { call, register, run };
}

const usesToken = (path: string, server: TestHttpServer, entry = "") => `
apiVersion: flow/v2
kind: Playbook
metadata: { name: ${path}, path: ${path} }
keychain: [{ name: crm, kind: oauth2, endpoint: "${server.origin}/token", data: { client_id: c }, ${entry} }]
workflow:
  - step: ask
    tool: { kind: http, url: "${server.origin}/api", headers: { Authorization: "Bearer {{ keychain.crm.access_token }}" } }
`;

/** What the API got, of a run that ended well. */
function gotBy(ended: JsonObject): unknown {
  assert.equal(ended["status"], "COMPLETED", JSON.stringify(ended));
  return ended;
}

const bearers = (server: TestHttpServer) =>
  server.requests.filter(({ url }) => url === "/api").map(({ headers }) => headers["authorization"]);
const tokenRequests = (server: TestHttpServer) => server.requests.filter(({ url }) => url !== "/api");

test("an entry is requested once, kept by the server, and shown by its API", async (t) => {
  const { api, endpoint } = await service(t);
  const catalogId = await api.register(usesToken("kc/once", endpoint, "auto_renew: true"));
  gotBy(await api.run("kc/once"));
  gotBy(await api.run("kc/once"));
  assert.deepEqual(bearers(endpoint), ["Bearer t-1", "Bearer t-1"]);
  assert.equal(tokenRequests(endpoint).length, 1);
  const kept = await api.call("GET", `/api/keychain/${catalogId}/crm`);
  assert.deepEqual(
    [kept["status"], kept["credential_type"], kept["cache_type"], kept["scope_type"], kept["auto_renew"]],
    ["success", "oauth2", "token", "global", true],
  );
  assert.deepEqual(kept["token_data"], { access_token: "t-1", expires_in: 900 });
  assert.ok(Number(kept["ttl_seconds"]) <= 900);
});

test("an entry that was put in by the API and has expired is renewed as it says, and set anew", async (t) => {
  const { api, endpoint } = await service(t, ({ url }) =>
    url === "/renew" ? [200, { jwt: "renewed", life: 120 }] : [500, { error: "not to be asked" }],
  );
  const catalogId = await api.register(usesToken("kc/renew", endpoint));
  await api.call("POST", `/api/keychain/${catalogId}/crm`, {
    token_data: { access_token: "old" },
    credential_type: "bearer",
    cache_type: "secret",
    schema: { required: ["access_token"], description: "ours" },
    expires_at: "2020-01-01T00:00:00Z",
    auto_renew: true,
    renew_config: {
      endpoint: `${endpoint.origin}/renew`,
      headers: { "Content-Type": "application/json" },
      data: { refresh_token: "r" },
      token_field: "jwt",
      ttl_field: "life",
    },
  });
  gotBy(await api.run("kc/renew"));
  assert.deepEqual(bearers(endpoint), ["Bearer renewed"]);
  const [request] = tokenRequests(endpoint);
  assert.deepEqual([request?.method, request?.url, request?.body], ["POST", "/renew", '{"refresh_token":"r"}']);
  const kept = await api.call("GET", `/api/keychain/${catalogId}/crm`);
  assert.deepEqual([kept["status"], kept["auto_renew"], Number(kept["ttl_seconds"]) <= 120], ["success", true, true]);
  assert.deepEqual([kept["credential_type"], kept["cache_type"]], ["bearer", "secret"]);
});

test("a renewal that fails is logged, fails the step with the specified text, and leaves the entry expired", async (t) => {
  const { api, endpoint } = await service(t, () => [503, { error: "down" }]);
  const catalogId = await api.register(usesToken("kc/fails", endpoint));
  const entry = { token_data: { access_token: "old" }, credential_type: "oauth2", expires_at: "2020-01-01T00:00:00Z" };
  const renewal = { auto_renew: true, renew_config: { endpoint: `${endpoint.origin}/renew` } };
  await api.call("POST", `/api/keychain/${catalogId}/crm`, { ...entry, ...renewal });
  const logged = serving.untilStderr("KEYCHAIN: Failed to renew 'crm'");
  const { id } = await api.run("kc/fails");
  await logged;
  const { status, error } = (await api.call("GET", `/api/executions/${id}`)) as { status: string; error: JsonObject };
  assert.equal(status, "FAILED");
  assert.match(String(error["message"]), /^KEYCHAIN: Failed to renew 'crm': POST .*\/renew answered 503/);
  const { events } = (await api.call("GET", `/api/executions/${id}/events`)) as { events: JsonObject[] };
  assert.ok(events.some(({ event_type }) => event_type === "call.error"));
  assert.equal((await api.call("GET", `/api/keychain/${catalogId}/crm`))["status"], "expired");
  assert.equal(tokenRequests(endpoint).length, 1);
});

const EXPIRED = {
  token_data: { access_token: "old" },
  credential_type: "oauth2",
  expires_at: "2020-01-01T00:00:00Z",
  auto_renew: true,
};

test("forty executions that meet one expired token make one renewal request", async (t) => {
  const { api, endpoint } = await service(t);
  const catalogId = await api.register(usesToken("kc/storm", endpoint));
  const renewal = { renew_config: { endpoint: `${endpoint.origin}/renew` } };
  await api.call("POST", `/api/keychain/${catalogId}/crm`, { ...EXPIRED, ...renewal });
  const ends = await Promise.all(Array.from({ length: 40 }, () => api.run("kc/storm")));
  ends.forEach(gotBy);
  assert.deepEqual(new Set(bearers(endpoint)), new Set(["Bearer t-1"]));
  const asked = tokenRequests(endpoint).map(({ url }) => url);
  assert.deepEqual(asked, ["/renew"]);
});

test("200 workers that meet one expired token of a server make one renewal request", async (t) => {
  const { api, endpoint } = await service(t);
  const catalogId = await api.register(usesToken("kc/workers", endpoint));
  const renewal = { renew_config: { endpoint: `${endpoint.origin}/renew` } };
  await api.call("POST", `/api/keychain/${catalogId}/api`, { ...EXPIRED, ...renewal });
  const [calls, waits] = [50, 200].map((connections) =>
    connectServer({ url: serving.url, token: undefined, connections }),
  ) as [ServerConnection, ServerConnection];
  const secretSource = createSecretSource({ allowPrivate: "all", now: systemClock.now });
  t.after(() => Promise.all([calls.close(), waits.close(), secretSource.close()]));
  const parts = { connection: calls, waits, clock: systemClock, random: Math.random };
  const store = createServerKeychain(parts, AbortSignal.timeout(600_000));
  const ends = await readAtOnce({ workers: 200, catalogId, store, secretSource, definition: { auto_renew: true } });
  const got = new Set(ends.map((end) => (end.status === "fulfilled" ? end.value : String(end.reason))));
  assert.deepEqual(got, new Set(["t-1"]));
  assert.deepEqual(tokenRequests(endpoint).length, 1);
});

test("a child uses the value that it was passed, shares the tree's entries, and they end with the tree", async (t) => {
  const { api, endpoint } = await service(t);
  const read = `headers: { Authorization: "Bearer {{ keychain.crm.access_token }}" }`;
  const shared = `keychain: [{ name: crm, kind: oauth2, scope: shared, endpoint: "${endpoint.origin}/token" }]`;
  await api.register(`
apiVersion: flow/v2
kind: Playbook
metadata: { name: child, path: kc/child }
${shared}
workflow:
  - { step: passed, tool: { kind: http, url: "${endpoint.origin}/api", headers: { Authorization: "{{ token }}" } }, next: own }
  - { step: own, tool: { kind: http, url: "${endpoint.origin}/api", ${read} } }
`);
  const catalogId = await api.register(`
apiVersion: flow/v2
kind: Playbook
metadata: { name: parent, path: kc/parent }
${shared}
workflow:
  - step: call
    tool: { kind: playbook, path: kc/child, args: { token: "passed {{ keychain.crm.access_token }}" } }
`);
  const ended = await api.run("kc/parent");
  gotBy(ended);
  assert.deepEqual(bearers(endpoint), ["passed t-1", "Bearer t-1"]);
  assert.equal(tokenRequests(endpoint).length, 1);
  const query = `scope_type=shared&execution_id=${ended.id}`;
  assert.equal((await api.call("GET", `/api/keychain/${catalogId}/crm?${query}`))["status"], "not_found");
});
