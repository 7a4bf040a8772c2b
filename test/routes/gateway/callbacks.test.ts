import assert from "node:assert/strict";
import { Writable } from "node:stream";
import { test } from "node:test";
import { createSecret } from "../../../src/platform/crypto/secret.ts";
import { createGatewayMetrics } from "../../../src/platform/telemetry/gateway-metrics.ts";
import { createLogger } from "../../../src/platform/telemetry/logger.ts";
import { createCallbackApp } from "../../../src/routes/gateway/callbacks.ts";
import { FlowError } from "../../../src/schema/words/errors.ts";
import { createCallbacks } from "../../../src/services/login/callbacks.ts";
import { testGateway } from "../../support/service/gateway-app.ts";

const INTERNAL = "internal-token";
const silent = new Writable({ write: (_chunk, _encoding, done) => done() });

function setup() {
  const callbacks = createCallbacks();
  const app = createCallbackApp({
    stopping: new AbortController().signal,
    callbacks,
    token: createSecret(INTERNAL),
    logger: createLogger("silent", silent),
    metrics: createGatewayMetrics(),
    newRequestId: () => "1",
  });
  const post = (path: string, body: unknown, authorization = `Bearer ${INTERNAL}`) =>
    app.request(path, { method: "POST", body: JSON.stringify(body), headers: { authorization } });
  return { callbacks, app, post };
}

for (const [path, status] of [
  ["/api/internal/callback", 200],
  ["/api/internal/callback/async", 202],
] as const) {
  test(`a callback to ${path} is handed over; the ids may be numbers, and what more it has comes along`, async () => {
    const { callbacks, post } = setup();
    const expected = callbacks.expect();
    expected.bind("7");
    const body = { request_id: expected.requestId, execution_id: 7, valid: true };
    assert.equal((await post(path, body)).status, status);
    assert.deepEqual(await expected.answer, { ...body, execution_id: "7" });
  });

  test(`a callback to ${path} without the internal token, or with another, changes nothing`, async () => {
    const { callbacks, post } = setup();
    const expected = callbacks.expect();
    expected.bind("7");
    const body = { request_id: expected.requestId, execution_id: "7" };
    for (const token of ["", "Bearer", "Bearer other", `Basic ${INTERNAL}`, `Bearer ${INTERNAL}x`])
      assert.equal((await post(path, body, token)).status, 401, token);
    assert.equal((await post(path, body)).status, status);
    await expected.answer;
  });

  test(`a callback to ${path} that is malformed is 422`, async () => {
    const { post } = setup();
    for (const body of [{}, { request_id: "a" }, { execution_id: "7" }, { request_id: 7, execution_id: "7" }, []])
      assert.equal((await post(path, body)).status, 422);
  });
}

test("a callback is refused without a waiting login, after an answer, and from another execution", async () => {
  const { callbacks, post } = setup();
  const expected = callbacks.expect();
  expected.bind("7");
  const body = { request_id: expected.requestId, execution_id: "7" };
  const at = "/api/internal/callback";
  assert.equal((await post(at, { ...body, request_id: "invented" })).status, 404);
  assert.equal((await post(at, { ...body, execution_id: "8" })).status, 403);
  assert.equal((await post(at, body)).status, 200);
  assert.equal((await post(at, body)).status, 404);
  assert.equal((await post(`${at}/async`, body)).status, 202, "it answers before anybody looks");
});

test("a callback that is no login is answered in the words of the specification", async () => {
  const { callbacks, post } = setup();
  const expected = callbacks.expect(() => {
    throw new FlowError("INVALID_LOGIN", "Invalid email");
  });
  expected.bind("7");
  const response = await post("/api/internal/callback", { request_id: expected.requestId, execution_id: "7" });
  const { error } = (await response.json()) as { error: string };
  assert.deepEqual([response.status, error], [500, "Invalid email"]);
});

test("the internal side has nothing else, and the public one has no callbacks", async () => {
  const { app, post } = setup();
  assert.equal(await (await app.request("/health")).text(), "ok");
  assert.match(await (await app.request("/metrics")).text(), /^flow_gateway_logins_total\{outcome="ok"\} 0$/m);
  assert.equal((await testGateway().app.request("/metrics")).status, 404);
  assert.equal((await post("/flow/executions", {})).status, 404);
  const authorization = { headers: { authorization: `Bearer ${INTERNAL}` } };
  for (const path of ["/api/internal/callback", "/api/internal/callback/async"])
    assert.equal((await testGateway().app.request(path, { method: "POST", ...authorization })).status, 404);
});
