import assert from "node:assert/strict";
import { test } from "node:test";
import { answerOf, EVIL, OPERATOR, testGateway, withSession } from "../../support/service/gateway-app.ts";

test("a delivery goes on without a session, with its bytes, its query and all headers that may be signed", async () => {
  const { app, passed } = testGateway({
    answer: () => answerOf(202, { "content-type": "application/json" }, '{"execution_id":"7"}'),
  });
  const headers = {
    authorization: "Bearer of-the-sender",
    "content-type": "application/json",
    "x-hub-signature-256": "sha256=ab",
    "x-github-delivery": "d",
    "webhook-id": "msg",
    "user-agent": "GitHub-Hookshot/1",
  };
  const response = await app.request("/hooks/github/push?a=%2F", { method: "POST", body: '{"a": 1}', headers });
  assert.deepEqual([response.status, await response.json()], [202, { execution_id: "7" }]);
  assert.deepEqual(passed, [{ method: "POST", path: "/hooks/github/push?a=%2F", headers, body: '{"a": 1}' }]);
});

test("what only a gateway may say, cookies and what is about the connection do not go on", async () => {
  const { app, passed } = testGateway();
  const forged = {
    cookie: "session_token=x",
    "x-flow-session": "0".repeat(64),
    "x-flow-claim": "x",
    "x-forwarded-for": "192.0.2.1",
    forwarded: "for=192.0.2.1",
    "x-real-ip": "192.0.2.1",
    "proxy-authorization": "Basic x",
    connection: "x-private, keep-alive",
    "x-private": "1",
    te: "trailers",
    upgrade: "websocket",
    "x-kept": "1",
  };
  await app.request("/hooks/a", { method: "PUT", body: "x", headers: forged });
  assert.deepEqual(passed[0]?.headers, { "content-type": "text/plain;charset=UTF-8", "x-kept": "1" });
  assert.equal(JSON.stringify(passed).includes(OPERATOR), false);
});

test("a session changes nothing of a delivery, and a page of another origin nothing but that it cannot read the answer", async () => {
  const { app, passed } = testGateway();
  await app.request("/hooks/a", { method: "POST", body: "{}", ...withSession({ origin: EVIL }) });
  assert.equal(passed.length, 1);
  assert.equal(passed[0]?.headers["x-flow-session"], undefined);
});

test("other methods, and addresses that lead elsewhere, are no deliveries", async () => {
  const { app, passed } = testGateway();
  for (const method of ["GET", "DELETE", "PATCH"]) {
    const response = await app.request("/hooks/a", { method });
    assert.equal(response.status, 405, method);
    assert.match(response.headers.get("allow") ?? "", /POST/);
  }
  for (const path of ["/hooks/a/..%2f..%2fapi", "/hooks/%2e%2e%2fapi"]) {
    assert.equal((await app.request(path, { method: "POST", body: "" })).status, 404, path);
  }
  assert.deepEqual(passed, []);
});

test("refusals of the server reach the sender with the time after which to try again", async () => {
  const { app } = testGateway({
    answer: () => answerOf(429, { "content-type": "application/json", "retry-after": "1" }, "{}"),
  });
  const response = await app.request("/hooks/a", { method: "POST", body: "{}" });
  assert.deepEqual([response.status, response.headers.get("retry-after")], [429, "1"]);
});

test("a body beyond 1 MiB goes no further", async () => {
  const { app, passed } = testGateway();
  const send = (length: number) => app.request("/hooks/a", { method: "POST", body: Buffer.alloc(length) });
  assert.equal((await send(1_048_576)).status, 200);
  assert.equal((await send(1_048_577)).status, 413);
  assert.equal(passed.length, 1);
});
