import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { readEvents } from "../../support/servers/sse.ts";
import { type LoginService, startLoginService } from "../../support/service/login-service.ts";

/* The gateway with everything behind it: what a browser can do with a session, and until when. */

const closers: (() => unknown)[] = [];
after(async () => {
  for (const close of closers.reverse()) await close();
});

const PAGE = "https://app.example.com";
const HELLO = `apiVersion: flow/v2
kind: Playbook
metadata: {name: hello, path: team/hello}
workflow:
  - step: start
    tool: {kind: noop, result: {text: hello}}
`;

let service: LoginService;
before(async () => {
  const context = { after: (close: () => unknown) => void closers.push(close) };
  service = await startLoginService(context, { CORS_ALLOWED_ORIGINS: PAGE, FLOW_GATEWAY_LOGIN_SECONDS: "300" });
  await service.operator("POST", "/api/catalog/register", { content: HELLO });
});

/** A user of this name with this role, if any, and their session's token. */
async function someone(name: string, role?: string): Promise<string> {
  const { body } = await service.login({ sub: name, email: `${name}@example.com`, name });
  if (role !== undefined) await service.operator("PUT", `/api/auth/users/${name}@example.com/roles/${role}`);
  return body.session_token;
}

const seen = async (token: string) => (await service.as(token, "GET", "/flow/catalog/resource/team/hello")).status;
const valid = async (token: string) => (await service.as(token, "GET", "/api/auth/session")).status;

test("a session sees and runs what its user's roles allow, live events too, and secrets never", async () => {
  const token = await someone("ada", "developer");
  assert.deepEqual([await seen(token), await valid(token)], [200, 200]);
  const started = await service.as(token, "POST", "/flow/execute", { path: "team/hello" });
  assert.equal(started.status, 200, JSON.stringify(started.body));
  const id = String(started.body["execution_id"]);
  const headers = { authorization: `Bearer ${token}` };
  const stream = await fetch(`${service.server.gatewayUrl}/flow/executions/${id}/stream`, { headers });
  const events = await readEvents(stream).rest();
  assert.equal(events.at(-1)?.event, "end");
  assert.equal((await service.as(token, "GET", "/flow/credentials/pg_auth?include_data=true")).status, 403);
  assert.equal((await service.as(token, "POST", "/flow/execute", { path: "api_integration/idp/login" })).status, 403);
  assert.equal((await service.as(token, "POST", "/flow/worker/pool/register", { name: "w" })).status, 403);
});

test("a role that is given or taken away counts with the next call", async () => {
  const token = await someone("ben");
  const role = "/api/auth/users/ben@example.com/roles/viewer";
  assert.equal(await seen(token), 403);
  await service.operator("PUT", role);
  assert.equal(await seen(token), 200);
  assert.equal((await service.as(token, "POST", "/flow/execute", { path: "team/hello" })).status, 403);
  await service.operator("DELETE", role);
  assert.equal(await seen(token), 403);
});

test("after a logout the session is invalid on every route", async () => {
  const token = await someone("cleo", "viewer");
  const other = await someone("cleo");
  assert.deepEqual([await valid(token), await seen(token)], [200, 200]);
  assert.equal((await service.as(token, "POST", "/api/auth/logout")).status, 200);
  assert.deepEqual([await valid(token), await seen(token)], [401, 401]);
  assert.equal((await service.as(token, "POST", "/api/auth/logout")).status, 401);
  assert.deepEqual([await valid(other), await seen(other)], [200, 200], "another session of the same user goes on");
});

test("a user who is switched off has no session any more: at once where the server decides, soon where it is remembered", async () => {
  const token = await someone("dan", "viewer");
  assert.deepEqual([await valid(token), await seen(token)], [200, 200]);
  await service.operator("PUT", "/api/auth/users/dan@example.com", { is_active: false });
  assert.equal(await seen(token), 401);
  // The change is on its way to the gateway.
  while ((await valid(token)) === 200);
  assert.equal(await valid(token), 401);
});

test("the cookie of a login is a session too; to change something it must come from an allowed page", async () => {
  const idToken = await service.provider.idToken({ sub: "eve", email: "eve@example.com", name: "Eve" });
  const { headers } = await service.loginWith(idToken);
  const cookie = (headers.get("set-cookie") ?? "").split(";")[0] ?? "";
  const call = async (method: string, path: string, origin?: string) => {
    const given = { cookie, ...(origin !== undefined && { origin }) };
    return await fetch(`${service.server.gatewayUrl}${path}`, { method, headers: given });
  };
  const session = await call("GET", "/api/auth/session", PAGE);
  assert.deepEqual([session.status, session.headers.get("access-control-allow-origin")], [200, PAGE]);
  assert.equal((await call("POST", "/api/auth/logout", "https://evil.example")).status, 403);
  assert.equal((await call("POST", "/api/auth/logout")).status, 403);
  assert.equal((await call("GET", "/api/auth/session")).status, 200);
  assert.equal((await call("POST", "/api/auth/logout", PAGE)).status, 200);
  assert.equal((await call("GET", "/api/auth/session")).status, 401);
});

test("the server's health comes through, and MCP by the session", async () => {
  const url = service.server.gatewayUrl;
  assert.deepEqual(await (await fetch(`${url}/flow/health`)).json(), { status: "ok" });
  assert.equal((await fetch(`${url}/mcp`, { method: "POST", body: "{}" })).status, 401);
  const token = await someone("finn", "viewer");
  const initialize = {
    jsonrpc: "2.0",
    id: 1,
    method: "initialize",
    params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } },
  };
  const answer = await fetch(`${url}/mcp`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
    },
    body: JSON.stringify(initialize),
  });
  assert.equal(answer.status, 200);
  assert.match(await answer.text(), /"serverInfo"/);
});
