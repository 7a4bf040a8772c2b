import assert from "node:assert/strict";
import { test } from "node:test";
import type { ServerCall } from "../../../src/adapters/server/connection.ts";
import { createGatewayServer } from "../../../src/roles/gateway/server-client.ts";
import type { ServerReply } from "../../../src/schema/routes/answer.ts";
import type { Json } from "../../../src/schema/words/json.ts";

const ME = { user_id: 1, email: "ada@example.com", display_name: "Ada", roles: ["viewer"] };
const GONE: [number, Json] = [401, { error: "no", code: "UNAUTHENTICATED" }];
/** Of an execution that has just been started; of one that has this status. */
const STARTED = { execution_id: "7", status: "RUNNING", path: "p", version: 1, catalog_id: "5" };
const resultOf = (status: string) => ({ execution_id: "7", path: "p", status, result: null, error: null });
const can = (allowed: boolean) => ({ allowed, rule: "x", action: "view", path: "p", email: null });
const INPUT = {} as Parameters<ReturnType<typeof createGatewayServer>["startLogin"]>[0];

/** What a gateway asks of a server that answers so, call by call. */
function setup(...replies: [status: number, body: Json][]) {
  const calls: ServerCall[] = [];
  const connection = {
    call(call: ServerCall): Promise<ServerReply> {
      calls.push(call);
      const [status, body] = replies.shift() ?? assert.fail("one call too many");
      return Promise.resolve({ status, body });
    },
    close: () => Promise.resolve(),
  };
  const parts = { calls: connection, waits: connection, playbook: "api_integration/idp/login", answerMs: 1_000 };
  return { calls, server: createGatewayServer({ ...parts, stopping: new AbortController().signal }) };
}

test("a login's playbook is started under the key of its ID token", async () => {
  const { calls, server } = setup([200, STARTED]);
  assert.equal(await server.startLogin(INPUT, "login-1"), "7");
  const { method, path, body, idempotencyKey, session } = calls[0]!;
  assert.deepEqual([method, path, idempotencyKey, session], ["POST", "/api/execute", "login-1", undefined]);
  assert.deepEqual(JSON.parse(String(body)), { path: "api_integration/idp/login", workload: {} });
});

test("a key that was used before is a conflict, a playbook that is missing makes logins unavailable", async () => {
  const used = setup([422, { error: "used", code: "INVALID_INPUT", detail: { idempotency_key: "k" } }]);
  await assert.rejects(used.server.startLogin(INPUT, "k"), { code: "CONFLICT" });
  const other = setup([422, { error: "no", code: "INVALID_INPUT", detail: { errors: [] } }]);
  await assert.rejects(other.server.startLogin(INPUT, "k"), { code: "INVALID_INPUT" });
  const missing = setup([404, { error: "Executable catalog entry not found", code: "NOT_FOUND" }]);
  await assert.rejects(missing.server.startLogin(INPUT, "k"), { code: "UNAVAILABLE", message: /not in the catalog/ });
});

test("an execution is asked about until it has ended", async () => {
  const { calls, server } = setup([200, resultOf("RUNNING")], [200, resultOf("FAILED")]);
  assert.equal(await server.ended("7", new AbortController().signal), "FAILED");
  assert.equal(calls.length, 2);
});

test("a session is read with its own token, and is invalid when the server says so", async () => {
  const expires = "2026-06-01T12:00:00.000Z";
  const me = { ...ME, kind: "user", permissions: [], actions: [], expires_at: expires };
  const { calls, server } = setup([200, me], GONE);
  assert.deepEqual(await server.session("a", "192.0.2.1"), { user: ME, expiresAt: Date.parse(expires) });
  assert.deepEqual(calls[0]?.session, { tokenSha256: "a", address: "192.0.2.1" });
  assert.equal(await server.session("a", undefined), undefined);
});

test("a session is ended and its access read with its own token; an invalid one is reported as such", async () => {
  const { calls, server } = setup(
    [200, { status: "success", revoked: 1 }],
    [200, can(true)],
    [200, can(false)],
    GONE,
    GONE,
  );
  await server.revoke("a");
  assert.equal(await server.isAllowed("a", { action: "view", path: "p" }), true);
  assert.equal(await server.isAllowed("a", { action: "view", path: "p" }), false);
  assert.deepEqual(
    calls.map(({ session }) => session?.tokenSha256),
    ["a", "a", "a"],
  );
  await assert.rejects(server.revoke("a"), { code: "UNAUTHENTICATED" });
  await assert.rejects(server.isAllowed("a", { action: "view", path: "p" }), { code: "UNAUTHENTICATED" });
});

test("a server that refuses the gateway's own token is a fault of the service, not of who calls", async () => {
  for (const status of [401, 403]) {
    const { server } = setup([status, { error: "no", code: "UNAUTHENTICATED" }]);
    await assert.rejects(server.startLogin(INPUT, "k"), { code: "UNAVAILABLE", message: /FLOW_SERVER_TOKEN/ });
  }
});

test("an answer in an unknown form is reported as such", async () => {
  await assert.rejects(setup([200, "hello"]).server.startLogin(INPUT, "k"), { code: "SERVER_UNREACHABLE" });
  await assert.rejects(setup([200, { kind: "operator" }]).server.session("a", undefined), {
    code: "SERVER_UNREACHABLE",
  });
});
