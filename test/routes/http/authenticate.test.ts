import assert from "node:assert/strict";
import { test } from "node:test";
import { ROUTES } from "../../../src/schema/routes/all.ts";
import { type Body, openApi, playbook, posted, TOKENS } from "../../support/service/api.ts";

const api = await openApi();

/** Every route, and who may call it: written out once more, so that a change of a contract shows here. */
const TABLE: Readonly<Record<string, "anonymous" | "worker" | "operator">> = {
  "GET /api/health": "anonymous",
  "GET /metrics": "anonymous",
  "GET /api/catalog": "worker",
  "GET /api/catalog/resource/:path{.+}": "worker",
  "GET /api/catalog/versions/:path{.+}": "worker",
  "GET /api/catalog/entries/:catalog_id": "worker",
  "GET /api/catalog/openapi/:path{.+}": "worker",
  "POST /api/catalog/register": "operator",
  "POST /api/catalog/validate": "worker",
  "POST /api/catalog/agents/list": "worker",
  "POST /api/execute": "worker",
  "POST /api/execute/draft": "operator",
  "POST /api/execute/draft/step": "operator",
  "POST /api/execute/preview": "operator",
  "GET /api/executions": "operator",
  "GET /api/executions/:execution_id": "worker",
  "GET /api/executions/:execution_id/artifacts": "operator",
  "GET /api/executions/:execution_id/events": "worker",
  "GET /api/executions/:execution_id/events/marks": "worker",
  "GET /api/executions/:execution_id/state": "operator",
  "GET /api/executions/:execution_id/rendered": "operator",
  "GET /api/executions/:execution_id/stream": "worker",
  "GET /api/executions/:execution_id/result": "worker",
  "GET /api/executions/:execution_id/sealing-key": "worker",
  "POST /api/executions/:execution_id/cancel": "worker",
  "GET /api/executions/:execution_id/lineage": "operator",
  "POST /api/executions/:execution_id/pause": "operator",
  "POST /api/executions/:execution_id/steps/:step/override": "operator",
  "POST /api/executions/:execution_id/signals/:name": "operator",
  "POST /api/signals/:name": "operator",
  "GET /api/executions/counts": "operator",
  "GET /api/stats": "operator",
  "GET /api/triggers": "operator",
  "GET /api/triggers/:trigger_id": "operator",
  "GET /api/triggers/:trigger_id/next": "operator",
  "GET /api/triggers/:trigger_id/fires": "operator",
  "GET /api/triggers/:trigger_id/deliveries": "operator",
  "POST /api/triggers/:trigger_id/fire": "operator",
  "POST /api/triggers/:trigger_id/backfill": "operator",
  "POST /api/triggers/:trigger_id/enable": "operator",
  "POST /api/triggers/:trigger_id/disable": "operator",
  "POST /hooks/:path{.+}": "anonymous",
  "PUT /hooks/:path{.+}": "anonymous",
  "GET /approve/:token": "anonymous",
  "POST /approve/:token": "anonymous",
  "GET /api/approvals": "operator",
  "GET /api/approvals/:approval_id": "operator",
  "POST /api/approvals/:approval_id/decide": "operator",
  "POST /api/executions/bulk": "operator",
  "GET /api/executions/bulk/:bulk_id": "operator",
  "POST /api/executions/bulk/:bulk_id/cancel": "operator",
  "POST /api/executions/bulk/:bulk_id/pause": "operator",
  "POST /api/executions/bulk/:bulk_id/resume": "operator",
  "POST /api/executions/:execution_id/rerun": "operator",
  "POST /api/executions/:execution_id/resume": "operator",
  "POST /api/catalog/pause/:path{.+}": "operator",
  "POST /api/catalog/resume/:path{.+}": "operator",
  "DELETE /api/executions/:execution_id": "operator",
  "POST /api/worker/pool/register": "worker",
  "POST /api/worker/pool/heartbeat": "worker",
  "POST /api/worker/pool/deregister": "worker",
  "GET /api/worker/connection": "worker",
  "GET /api/worker/pools": "worker",
  "POST /api/commands/claim": "worker",
  "POST /api/commands/:command_id/claim": "worker",
  "POST /api/events/batch": "worker",
  "POST /api/events": "worker",
  "GET /api/events/batch/:request_id/status": "worker",
  "GET /api/events/batch/:request_id/stream": "worker",
  "PUT /api/results": "worker",
  "GET /api/results/resolve": "worker",
  "GET /results/resolve": "worker",
  "GET /api/credentials": "operator",
  "GET /api/credentials/:identifier": "worker",
  "GET /api/credentials/:identifier/uses": "operator",
  "POST /api/credentials": "operator",
  "PUT /api/credentials/:identifier": "operator",
  "PUT /api/credentials/:identifier/playbooks": "operator",
  "DELETE /api/credentials/:identifier": "operator",
  "POST /api/admin/secrets/rotate": "operator",
  "POST /api/admin/command_reaper/sweep": "operator",
  "GET /api/admin/diagnosis": "operator",
  "GET /api/admin/overview": "operator",
  "GET /api/keychain/catalog/:catalog_id": "worker",
  "GET /api/keychain/:catalog_id/:keychain_name": "worker",
  "POST /api/keychain/:catalog_id/:keychain_name": "worker",
  "DELETE /api/keychain/:catalog_id/:keychain_name": "worker",
  "POST /api/keychain/:catalog_id/:keychain_name/lease": "worker",
  "GET /api/executions/:execution_id/transient": "worker",
  "GET /api/executions/:execution_id/transient/:key": "worker",
  "PUT /api/executions/:execution_id/transient/:key": "worker",
  "DELETE /api/executions/:execution_id/transient/:key": "worker",
  "POST /api/sqldb/execute": "operator",
  "POST /api/mcp/mcp/:resource_path{.+}/lifecycle/:action": "operator",
  "POST /api/mcp/mcp/:resource_path{.+}/call": "operator",
  "POST /api/mcp/call": "operator",
  "GET /api/auth/me": "worker",
  "POST /api/auth/can": "operator",
  "GET /api/auth/changes": "operator",
  "GET /api/auth/users": "operator",
  "GET /api/auth/users/:user": "operator",
  "POST /api/auth/users": "operator",
  "PUT /api/auth/users/:user": "operator",
  "DELETE /api/auth/users/:user": "operator",
  "PUT /api/auth/users/:user/roles/:role": "operator",
  "DELETE /api/auth/users/:user/roles/:role": "operator",
  "GET /api/auth/sessions": "operator",
  "DELETE /api/auth/sessions/:session_id": "operator",
  "POST /api/auth/sessions/revoke": "operator",
  "POST /api/auth/sessions/refused": "operator",
  "DELETE /api/auth/users/:user/sessions": "operator",
  "GET /api/auth/roles": "operator",
  "GET /api/auth/roles/:role": "operator",
  "GET /api/auth/permissions": "operator",
  "POST /api/auth/roles": "operator",
  "PUT /api/auth/roles/:role": "operator",
  "DELETE /api/auth/roles/:role": "operator",
  "POST /api/auth/roles/:role/playbooks": "operator",
  "DELETE /api/auth/roles/:role/playbooks/:permission_id": "operator",
  "GET /api/auth/audit": "operator",
  "POST /api/auth/audit/verify": "operator",
  "POST /mcp": "operator",
  "GET /mcp": "operator",
  "DELETE /mcp": "operator",
  "GET /api/openapi.json": "worker",
  "GET /api/pools": "operator",
  "POST /api/pools": "operator",
  "POST /api/pools/:name/rotate": "operator",
  "POST /api/pools/:name/revoke": "operator",
};

const CALLERS = [
  ["nobody", undefined, "anonymous"],
  ["a worker", TOKENS.worker, "worker"],
  ["an operator", TOKENS.operator, "operator"],
] as const;

const RANK = { anonymous: 0, worker: 1, operator: 2 };

async function call(method: string, path: string, authorization?: string) {
  const headers: Record<string, string> = authorization === undefined ? {} : { authorization };
  const init = method === "POST" ? posted({}, headers) : { method, headers, ...(method === "PUT" && { body: "1" }) };
  return await api.guarded.request(path, init);
}

test("the table of routes is complete: every route has a contract, and every contract is a route", () => {
  const routes = api.guarded.routes
    .filter(({ method }) => method !== "ALL")
    .map(({ method, path }) => `${method} ${path}`);
  assert.deepEqual([...new Set(routes)].sort(), Object.keys(TABLE).sort());
  const contracts = ROUTES.map(({ method, path }) => `${method.toUpperCase()} ${path}`);
  assert.deepEqual(contracts.toSorted(), Object.keys(TABLE).sort());
});

for (const [route, least] of Object.entries(TABLE)) {
  const takesClaim = ROUTES.some(
    ({ method, path, claim }) => `${method.toUpperCase()} ${path}` === route && claim !== undefined,
  );
  for (const [who, token, role] of CALLERS) {
    // With nothing but its token a worker may do what takes no claim.
    const allowed = RANK[role] >= RANK[least] && !(role === "worker" && takesClaim);
    test(`${who} ${allowed ? "may" : "may not"} ${route}`, async () => {
      const [method = "", pattern = ""] = route.split(" ");
      const path = pattern.replace(":path{.+}", "no/such").replaceAll(/:\w+(\{.*?\})?/g, "1");
      const { status } = await call(method, path, token === undefined ? undefined : `Bearer ${token}`);
      if (allowed) assert.ok(![401, 403].includes(status), `${status}`);
      else assert.equal(status, role === "anonymous" ? 401 : 403);
    });
  }
}

for (const authorization of [
  "",
  "Bearer",
  "Bearer ",
  "Bearer wrong",
  `Bearer ${TOKENS.operator}x`,
  `Bearer ${TOKENS.operator.slice(0, -1)}`,
  `Bearer x ${TOKENS.operator}`,
  `Basic ${TOKENS.operator}`,
  TOKENS.operator,
  `Bearer ${TOKENS.operator.toUpperCase()}`,
]) {
  test(`the header '${authorization}' is unknown: 401, and 200 where no token is needed`, async () => {
    const refused = await call("GET", "/api/catalog", authorization);
    assert.equal(refused.status, 401);
    assert.equal(refused.headers.get("www-authenticate"), "Bearer");
    const { code, request_id } = (await refused.json()) as Body;
    assert.equal(code, "UNAUTHENTICATED");
    assert.equal(refused.headers.get("x-request-id"), request_id);
    assert.equal((await call("GET", "/api/health", authorization)).status, 200);
  });
}

test("the scheme's letters may be small", async () => {
  assert.equal((await call("GET", "/api/catalog", `bearer ${TOKENS.worker}`)).status, 200);
});

for (const path of [
  "/api/health/../catalog",
  "/api/health/%2e%2e/catalog",
  "/api/catalog?/api/health",
  "/api/catalog#/api/health",
  "/api/catalog;/api/health",
  "/api/catalog/..;/health",
  "/API/HEALTH",
  "/api/health/",
  "//api/health",
  "/api//health",
  "/api/health%2f",
  "/api/health%00",
  "/metrics/x",
  "/api/catalog/resource/api/health",
  "/api/catalog/resource/%2fmetrics",
  "/nothing",
  "/",
]) {
  test(`GET ${path} is no way around the token`, async () => {
    assert.equal((await call("GET", path)).status, 401);
  });
}

for (const method of ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND"]) {
  test(`${method} /api/health is no open route`, async () => {
    assert.equal((await call(method, "/api/health")).status, 401);
  });
}

test("an unknown route is 404 only for operators: other callers cannot probe routes", async () => {
  assert.equal((await call("GET", "/api/nothing", `Bearer ${TOKENS.operator}`)).status, 404);
  assert.equal((await call("GET", "/api/nothing", `Bearer ${TOKENS.worker}`)).status, 403);
});

test("a worker's registration is refused before anything is written", async () => {
  const content = playbook("access/worker");
  const headers = { authorization: `Bearer ${TOKENS.worker}` };
  const response = await api.guarded.request("/api/catalog/register", posted({ content }, headers));
  assert.equal(response.status, 403);
  const read = await call("GET", "/api/catalog/resource/access/worker", `Bearer ${TOKENS.operator}`);
  assert.equal(read.status, 404);
});

test("a body that says it is too long is refused before anyone asks who sends it", async () => {
  const headers = { "content-length": String(2 * 1024 * 1024 + 1) };
  const response = await api.guarded.request("/api/catalog/register", { method: "POST", body: "{}", headers });
  assert.equal(response.status, 413);
  assert.equal(((await response.json()) as Body)["code"], "TOO_LARGE");
});

test("a body that does not say how long it is, is refused where it becomes too long", async () => {
  let sent = 0;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      sent += 1;
      controller.enqueue(new Uint8Array(64 * 1024).fill(0x20));
    },
  });
  const init = { method: "POST", body, duplex: "half" } as RequestInit;
  const response = await api.open.request("/api/catalog/register", init);
  assert.equal(response.status, 413);
  assert.ok(sent < 64, `${sent} parts were read`);
});

for (const host of ["localhost", "127.0.0.1:8082", "[::1]:8082", "LOCALHOST:1", "flow.localhost"]) {
  test(`a server on loopback answers to the name ${host}`, async () => {
    assert.equal((await api.open.request("/api/catalog", { headers: { host } })).status, 200);
  });
}

for (const host of ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8082", "10.0.0.1", "", "a b"]) {
  test(`a server on loopback does not answer to the name '${host}', not even its health`, async () => {
    for (const path of ["/api/health", "/api/catalog"]) {
      const response = await api.open.request(path, { headers: { host } });
      assert.equal(response.status, 403);
      assert.equal(((await response.json()) as Body)["code"], "FORBIDDEN");
    }
  });
}

test("a page from elsewhere cannot register at a server on loopback; a page of this machine can", async () => {
  for (const [origin, status] of [
    ["https://evil.example", 403],
    ["null", 403],
    ["http://localhost.evil.example", 403],
    ["http://localhost:5173", 200],
  ] as const) {
    const init = posted({ content: playbook("access/origin") }, { origin, host: "localhost:8082" });
    assert.equal((await api.open.request("/api/catalog/register", init)).status, status, origin);
  }
});

test("beyond loopback names do not matter, tokens do", async () => {
  const headers = { host: "flow.example.com", authorization: `Bearer ${TOKENS.worker}` };
  assert.equal((await api.guarded.request("/api/catalog", { headers })).status, 200);
});

test("no token ever stands in the log", async () => {
  await call("GET", `/api/catalog?token=${TOKENS.operator}`, `Bearer ${TOKENS.operator}`);
  await call("GET", "/api/catalog", `Bearer ${TOKENS.worker}`);
  assert.ok(api.log().includes("GET /api/catalog 200"));
  for (const token of Object.values(TOKENS)) assert.ok(!api.log().includes(token));
});
