import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import { tokenSha256 } from "../../../src/platform/crypto/token.ts";
import { FlowError } from "../../../src/schema/words/errors.ts";
import { readEvents } from "../../support/servers/sse.ts";
import { answerOf, OPERATOR, TOKEN, testGateway, withSession } from "../../support/service/gateway-app.ts";

const SESSION = tokenSha256(TOKEN);

interface ErrorAnswer {
  error: string;
  code: string;
  request_id: string;
}

test("a call goes on to the server in the name of its session, by the operator's token", async () => {
  const { app, passed } = testGateway();
  const init = { method: "POST", body: '{"path":"a"}', ...withSession({ "content-type": "application/json" }) };
  const response = await app.request("/flow/execute?x=%2F&y", init);
  assert.equal(response.status, 200);
  assert.deepEqual(passed, [
    {
      method: "POST",
      path: "/api/execute?x=%2F&y",
      headers: {
        "content-type": "application/json",
        authorization: `Bearer ${OPERATOR}`,
        "x-flow-session": SESSION,
      },
      body: '{"path":"a"}',
    },
  ]);
});

test("no header of a caller passes for one of the gateway's, and the session's token goes no further", async () => {
  const { app, passed } = testGateway();
  const forged = {
    "x-session-token": "other",
    cookie: `session_token=${TOKEN}; a=b`,
    "x-flow-session": "0".repeat(64),
    "x-flow-address": "192.0.2.1",
    "X-FLOW-anything": "1",
    "x-forwarded-for": "192.0.2.1",
    forwarded: "for=192.0.2.1",
    "proxy-authorization": "Basic x",
    connection: "x-flow-session, keep-alive",
    te: "trailers",
    upgrade: "websocket",
    origin: "https://evil.example",
    accept: "text/plain",
    "idempotency-key": "k",
    "last-event-id": "7",
    traceparent: "00-1-2-01",
  };
  await app.request("/flow/executions", withSession(forged));
  assert.deepEqual(passed[0]?.headers, {
    accept: "text/plain",
    "idempotency-key": "k",
    "last-event-id": "7",
    traceparent: "00-1-2-01",
    authorization: `Bearer ${OPERATOR}`,
    "x-flow-session": SESSION,
  });
});

for (const [what, headers] of [
  ["nothing", {}],
  ["a token that cannot be one", { authorization: "Bearer short" }],
  ["another scheme, and a good cookie", { authorization: "Basic eDp5", cookie: `session_token=${TOKEN}` }],
  ["an empty Authorization, and a good token", { authorization: "", "x-session-token": TOKEN }],
  ["a wrong X-Session-Token, and a good cookie", { "x-session-token": "wrong", cookie: `session_token=${TOKEN}` }],
  ["an empty cookie", { cookie: "session_token=" }],
  ["two cookies that differ", { cookie: `session_token=${TOKEN}; session_token=${"B".repeat(43)}` }],
  ["a cookie of another name", { cookie: `xsession_token=${TOKEN}` }],
  ["the operator's own token", { authorization: `Bearer ${OPERATOR}` }],
] as const) {
  test(`a call with ${what} is 401 and reaches nothing`, async () => {
    const { app, passed } = testGateway();
    const response = await app.request("/flow/executions", { headers });
    assert.equal(response.status, 401);
    const { error, code, request_id: requestId } = (await response.json()) as ErrorAnswer;
    assert.deepEqual([code, requestId], ["UNAUTHENTICATED", response.headers.get("x-request-id")]);
    assert.doesNotMatch(error, /canary/);
    assert.deepEqual(passed, []);
  });
}

for (const headers of [
  { authorization: `bearer ${TOKEN}`, "x-session-token": "wrong" },
  { "x-session-token": TOKEN, cookie: "session_token=wrong" },
  { cookie: `a=b; session_token=${TOKEN}` },
] as const) {
  test(`the first form that is there decides: ${Object.keys(headers).join(", ")}`, async () => {
    const { app, passed } = testGateway();
    assert.equal((await app.request("/flow/executions", { headers })).status, 200);
    assert.equal(passed[0]?.headers["x-flow-session"], SESSION);
  });
}

test("the server's health is open here too, and is requested without a user", async () => {
  const { app, passed } = testGateway({ answer: () => answerOf(200, {}, '{"status":"ok"}') });
  assert.deepEqual(await (await app.request("/flow/health")).json(), { status: "ok" });
  assert.deepEqual(passed[0]?.headers, {});
  for (const path of ["/flow/health/", "/flow/health/x", "/flow//health", "/flow/%68ealth2", "/flow/x/health"])
    assert.equal((await app.request(path)).status, 401, path);
  assert.equal((await app.request("/flow/health", { method: "POST" })).status, 401);
});

test("the gateway's own health calls no server", async () => {
  const { app, passed } = testGateway();
  const response = await app.request("/health");
  assert.deepEqual([response.status, await response.text()], [200, "ok"]);
  assert.deepEqual(passed, []);
});

for (const query of ["include_data=true", "INCLUDE_DATA=1", "x=1&include%5Fdata=true", "include_data"]) {
  test(`secrets cannot be requested through the gateway: ?${query}`, async () => {
    const { app, passed } = testGateway();
    const response = await app.request(`/flow/credentials/pg?${query}`, withSession());
    assert.equal(response.status, 403);
    assert.match(((await response.json()) as ErrorAnswer).error, /include_data/);
    assert.deepEqual(passed, []);
  });
}

test("an address goes on as it came, and what leaves the prefix goes nowhere", async () => {
  const { app, passed } = testGateway();
  for (const path of ["/flow/catalog/resource/a%2Fb", "/flow/a//b", "/flow/a;b/%20", "/flow/health%2Fx"])
    await app.request(path, withSession());
  assert.deepEqual(
    passed.map(({ path }) => path),
    ["/api/catalog/resource/a%2Fb", "/api/a//b", "/api/a;b/%20", "/api/health%2Fx"],
  );
  passed.length = 0;
  for (const path of ["/flow", "/flow/", "/flowx/y", "/api/execute", "/metrics", "/api/internal/callback", "/mcp/x"]) {
    assert.equal((await app.request(path, withSession())).status, 404, path);
  }
  assert.deepEqual(passed, []);
});

test("with authentication bypassed calls are the operator's, and still show no secrets", async () => {
  const { app, passed } = testGateway({ bypass: true });
  assert.equal((await app.request("/flow/executions", withSession({ "x-flow-session": "x" }))).status, 200);
  assert.deepEqual(passed[0]?.headers, { authorization: `Bearer ${OPERATOR}` });
  assert.equal((await app.request("/flow/credentials/pg?include_data=true")).status, 403);
});

test("of the server's answer status, body and what says how to read it are passed on", async () => {
  const headers = {
    "content-type": "application/json",
    "content-length": "13",
    etag: '"1"',
    "x-request-id": "77",
    "x-powered-by": "x",
    connection: "close",
    "keep-alive": "5",
    "retry-after": "1",
  };
  const { app } = testGateway({ answer: () => answerOf(503, headers, '{"error":"x"}') });
  const response = await app.request("/flow/executions", withSession());
  assert.equal(response.headers.get("cache-control"), "private, no-cache", "unless the server says otherwise");
  assert.deepEqual([response.status, await response.text()], [503, '{"error":"x"}']);
  for (const name of ["etag", "x-request-id", "retry-after", "content-type"] as const)
    assert.equal(response.headers.get(name), headers[name], name);
  for (const name of ["x-powered-by", "connection", "keep-alive"]) assert.equal(response.headers.get(name), null, name);
});

for (const [status, method] of [
  [204, "DELETE"],
  [304, "GET"],
  [200, "HEAD"],
] as const) {
  test(`an answer without a body has none: ${method} ${status}`, async () => {
    const { app } = testGateway({ answer: () => answerOf(status, { etag: '"1"' }, "") });
    const response = await app.request("/flow/executions", { method, ...withSession() });
    assert.deepEqual([response.status, await response.text()], [status, ""]);
  });
}

test("live events pass as they come, and end when the gateway stops", async () => {
  const body = new Readable({ read: () => undefined });
  const gateway = testGateway({ answer: () => answerOf(200, { "content-type": "text/event-stream" }, body) });
  const events = readEvents(await gateway.app.request("/flow/executions/1/stream", withSession()));
  body.push('id: 1\ndata: {"n":1}\n\n');
  assert.deepEqual((await events.next())?.data, { n: 1 });
  body.push('id: 2\ndata: {"n":2}\n\n');
  assert.deepEqual((await events.next())?.data, { n: 2 });
  const last = events.next();
  gateway.stopping.abort();
  assert.equal(await last, undefined);
  assert.equal(body.destroyed, true);
});

test("a caller who leaves a stream ends it at the server", async () => {
  const body = new Readable({ read: () => undefined });
  const closed = new Promise((resolve) => body.once("close", resolve));
  const { app } = testGateway({ answer: () => answerOf(200, { "content-type": "text/event-stream" }, body) });
  const events = readEvents(await app.request("/flow/executions/1/stream", withSession()));
  body.push("data: 1\n\n");
  await events.next();
  await events.leave();
  await closed;
});

test("an answer that breaks off is reported while that is possible", async () => {
  const body = new Readable({
    read() {
      this.destroy(new Error("connection reset by canary"));
    },
  });
  const { app } = testGateway({ answer: () => answerOf(200, { "content-length": "10" }, body) });
  const response = await app.request("/flow/executions", withSession());
  assert.equal(response.status, 502);
  assert.equal(((await response.json()) as ErrorAnswer).code, "SERVER_UNREACHABLE");
});

test("an unreachable server is reported in the common format of errors", async () => {
  const { app } = testGateway({
    answer: () => Promise.reject(new FlowError("SERVER_UNREACHABLE", "The server behind the gateway does not answer")),
  });
  const response = await app.request("/flow/executions", withSession());
  const body = (await response.json()) as ErrorAnswer;
  assert.deepEqual([response.status, body.code], [502, "SERVER_UNREACHABLE"]);
  assert.equal(body.request_id, response.headers.get("x-request-id"));
});

test("a body that says it is too long is refused before anyone asks who sends it", async () => {
  const { app, passed } = testGateway();
  const headers = { "content-length": String(3 * 1024 * 1024) };
  assert.equal((await app.request("/flow/execute", { method: "POST", headers, body: "x" })).status, 413);
  const login = { "content-length": "65537" };
  assert.equal((await app.request("/api/auth/login", { method: "POST", headers: login, body: "x" })).status, 413);
  assert.deepEqual(passed, []);
});

test("a body without a length is counted on its way and refused when it gets too long", async () => {
  const { app } = testGateway();
  const part = new Uint8Array(1024 * 1024);
  let parts = 0;
  const body = new ReadableStream({
    pull(controller) {
      parts += 1;
      if (parts > 5) controller.close();
      else controller.enqueue(part);
    },
  });
  const init = { method: "POST", body, duplex: "half", ...withSession() } as RequestInit;
  assert.equal((await app.request("/flow/execute", init)).status, 413);
});

test("no token stands in the log", async () => {
  const { app, log } = testGateway();
  await app.request(`/flow/executions?session_token=${TOKEN}`, withSession());
  await app.request("/flow/executions", { headers: { cookie: "session_token=canary-cookie" } });
  assert.match(log(), /\/flow\/executions/);
  assert.doesNotMatch(log(), new RegExp(`${TOKEN}|canary|${SESSION}`));
});

test("a method that the gateway's own routes do not take is 405, and Allow names those that they take", async () => {
  const { app, passed } = testGateway();
  for (const [method, path, allowed] of [
    ["GET", "/api/auth/login", "POST"],
    ["DELETE", "/api/auth/session", "GET, HEAD"],
    ["POST", "/health", "GET, HEAD"],
    ["PROPFIND", "/flow/executions", "GET, HEAD, POST, PUT, PATCH, DELETE"],
  ] as const) {
    const response = await app.request(path, { method, ...withSession() });
    assert.deepEqual([response.status, response.headers.get("allow")], [405, allowed], `${method} ${path}`);
    assert.equal(((await response.json()) as ErrorAnswer).code, "METHOD_NOT_ALLOWED");
  }
  const unknown = await app.request("/api/auth/none", { method: "POST", ...withSession() });
  assert.deepEqual([unknown.status, unknown.headers.get("allow"), passed], [404, null, []]);
});
