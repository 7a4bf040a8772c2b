import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import { EVIL, PAGE, TOKEN, testGateway, withSession } from "../../support/service/gateway-app.ts";

/** What CORS says in an answer. */
function cors(response: Response): Record<string, string> {
  return Object.fromEntries([...response.headers].filter(([name]) => name.startsWith("access-control-")));
}

function preflight(origin: string, method = "POST") {
  return { method: "OPTIONS", headers: { origin, "access-control-request-method": method } };
}

for (const path of ["/flow/executions", "/flow/anything/at/all", "/api/auth/login", "/api/auth/logout", "/mcp"]) {
  test(`a preflight of ${path} from an allowed page is answered with its origin, without a session`, async () => {
    const { app, passed } = testGateway();
    const response = await app.request(path, preflight(PAGE));
    assert.equal(response.status, 204);
    const {
      "access-control-allow-headers": headers,
      "access-control-allow-methods": methods,
      ...rest
    } = cors(response);
    assert.deepEqual(rest, {
      "access-control-allow-credentials": "true",
      "access-control-allow-origin": PAGE,
      "access-control-expose-headers": rest["access-control-expose-headers"],
      "access-control-max-age": "600",
    });
    for (const name of ["authorization", "content-type", "x-session-token"]) assert.ok(headers?.includes(name), name);
    for (const name of ["GET", "POST", "PUT", "DELETE"]) assert.ok(methods?.includes(name), name);
    const vary = response.headers.get("vary");
    assert.equal(vary, "Origin, Access-Control-Request-Method, Access-Control-Request-Headers");
    assert.deepEqual(passed, []);
  });
}

for (const origin of [
  EVIL,
  "null",
  "*",
  "http://app.example.com",
  `${PAGE}.evil.example`,
  `${PAGE}:444`,
  PAGE.toUpperCase(),
]) {
  test(`a preflight from ${origin} is answered without the header that would let it call`, async () => {
    const { app } = testGateway();
    const response = await app.request("/flow/executions", preflight(origin));
    assert.equal(response.status, 403);
    assert.deepEqual(cors(response), {});
    assert.equal(response.headers.get("vary"), "Origin");
    assert.match(((await response.json()) as { error: string }).error, /CORS_ALLOWED_ORIGINS/);
  });
}

test("an answer, a refusal too, may be read by the page that may call, and by no other", async () => {
  const { app } = testGateway();
  for (const init of [withSession({ origin: PAGE }), { headers: { origin: PAGE } }]) {
    const response = await app.request("/flow/executions", init);
    assert.equal(response.headers.get("access-control-allow-origin"), PAGE);
    assert.equal(response.headers.get("access-control-allow-credentials"), "true");
    assert.equal(response.headers.get("vary"), "Origin");
  }
  for (const init of [withSession({ origin: EVIL }), withSession()]) {
    const response = await app.request("/flow/executions", init);
    assert.equal(response.status, 200);
    assert.deepEqual(cors(response), {});
    assert.equal(response.headers.get("vary"), "Origin");
  }
});

test("what the server says about who may read an answer is not passed on", async () => {
  const { app } = testGateway({
    answer: () => ({
      status: 200,
      headers: { "access-control-allow-origin": "*", vary: "nothing", "set-cookie": "a=b" },
      body: Readable.from(["{}"]),
    }),
  });
  const response = await app.request("/flow/executions", withSession({ origin: EVIL }));
  assert.deepEqual(cors(response), {});
  assert.equal(response.headers.get("set-cookie"), null);
  assert.equal(response.headers.get("vary"), "Origin");
});

test("OPTIONS that is no preflight reaches nothing", async () => {
  const { app, passed } = testGateway();
  assert.equal((await app.request("/flow/executions", { method: "OPTIONS", ...withSession() })).status, 405);
  assert.deepEqual(passed, []);
});

test("MCP is called by no page that may not, whatever it brings", async () => {
  const { app, passed } = testGateway();
  const init = { method: "POST", body: "{}" };
  assert.equal((await app.request("/mcp", { ...init, ...withSession({ origin: EVIL }) })).status, 403);
  assert.deepEqual(passed, []);
  assert.equal((await app.request("/mcp", { ...init, ...withSession({ origin: PAGE }) })).status, 200);
  assert.equal((await app.request("/mcp", { ...init, ...withSession() })).status, 200);
  assert.equal((await app.request("/mcp", init)).status, 401);
});

test("on loopback only host names of this machine and the public one are accepted", async () => {
  const { app } = testGateway({ hosts: new Set(["flow.example.com"]) });
  for (const [host, status] of [
    ["127.0.0.1:8090", 200],
    ["localhost", 200],
    ["flow.example.com", 200],
    ["evil.example", 403],
    ["flow.example.com.evil.example", 403],
  ] as const) {
    assert.equal((await app.request("/health", { headers: { host } })).status, status, host);
  }
});

test("with authentication bypassed every answer says so, and no other page may call", async () => {
  const { app, passed } = testGateway({ bypass: true });
  for (const path of ["/health", "/flow/executions", "/nothing", "/api/auth/session"]) {
    assert.equal((await app.request(path)).headers.get("x-flow-auth-bypass"), "true", path);
  }
  passed.length = 0;
  for (const method of ["GET", "POST"]) {
    const response = await app.request("/flow/execute", { method, headers: { origin: EVIL } });
    assert.equal(response.status, 403);
  }
  assert.deepEqual(passed, []);
  assert.equal((await app.request("/flow/execute", { method: "POST", headers: { origin: PAGE } })).status, 200);
});

test("without bypass no answer says so", async () => {
  assert.equal((await testGateway().app.request("/health")).headers.get("x-flow-auth-bypass"), null);
});

for (const [what, headers, status] of [
  ["a cookie and no origin", { cookie: `session_token=${TOKEN}` }, 403],
  ["a cookie and a page that may not", { cookie: `session_token=${TOKEN}`, origin: EVIL }, 403],
  ["a cookie and a page that may", { cookie: `session_token=${TOKEN}`, origin: PAGE }, 200],
  ["a token and no origin", { authorization: `Bearer ${TOKEN}` }, 200],
  ["X-Session-Token and no origin", { "x-session-token": TOKEN }, 200],
] as const) {
  for (const method of ["POST", "PUT", "PATCH", "DELETE"]) {
    test(`${method} with ${what} is answered with ${status}`, async () => {
      const { app, passed } = testGateway();
      assert.equal((await app.request("/flow/execute", { method, headers })).status, status);
      assert.equal(passed.length, status === 200 ? 1 : 0);
    });
  }
}

test("a cookie is enough to look at something", async () => {
  const { app } = testGateway();
  assert.equal((await app.request("/flow/executions", { headers: { cookie: `session_token=${TOKEN}` } })).status, 200);
});
