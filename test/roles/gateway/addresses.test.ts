import assert from "node:assert/strict";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { json, startFakeServer, startTestGateway } from "../../support/service/gateway-process.ts";

/* Addresses as no browser sends them, over a bare socket: none leads past the prefix, or to a route that asks for less. */

const SESSION = `Authorization: Bearer ${"A".repeat(43)}`;
const PREFIX = "/api/";

/** Where a request with this target came out at the server, if anywhere, and what was answered. */
async function ask(url: string, asked: string[], target: string, headers: readonly string[]) {
  asked.length = 0;
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  // Not ended: who hangs up is not answered.
  socket.write([`GET ${target} HTTP/1.1`, "Host: 127.0.0.1", "Connection: close", ...headers, "", ""].join("\r\n"));
  const answer = await text(socket);
  return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]), passed: [...asked] };
}

const TARGETS = [
  "/flow/../metrics",
  "/flow/../../api/internal/callback",
  "/flow/%2e%2e/metrics",
  "/flow/%2E%2E/%2e%2e/metrics",
  "/flow/..%2fmetrics",
  "/flow/..%5cmetrics",
  "/flow/..\\..\\metrics",
  "/flow/..;/metrics",
  "/flow/.;/health",
  "/flow/x/../health",
  "/flow/health/..",
  "/flow/health%2f..%2fexecutions",
  "/flow/health;x",
  "/flow/health%00",
  "/flow//health",
  "/flow/health/",
  "//flow/health",
  "/FLOW/health",
  "/flow/HEALTH",
  "/%66low/health",
  "/flow%2fhealth",
  "/health/../flow/executions",
  "http://127.0.0.1/flow/../metrics",
  "http://elsewhere.example/flow/../../metrics",
];

test("however an address is spelt, nothing leaves the server's API, and without a session nothing but its health is asked for", async (t) => {
  const server = await startFakeServer(t, (_, response) => json(response, 200, {}));
  const gateway = await startTestGateway(t, { FLOW_BASE_URL: server.url });
  for (const target of TARGETS) {
    const nobody = await ask(gateway.url, server.asked, target, []);
    assert.ok(
      nobody.passed.every((one) => one === `GET ${PREFIX}health`),
      `${target} asked for ${nobody.passed} without a session`,
    );
    const { status, passed } = await ask(gateway.url, server.asked, target, [SESSION]);
    if (passed.length === 0) assert.ok([400, 403, 404].includes(status), `${target} gave ${status}`);
    for (const one of passed) {
      const [, path = ""] = one.split(" ");
      assert.ok(path.startsWith(PREFIX), `${target} came out at ${path}`);
      // Also for a proxy that decodes it first, and takes what follows a `;` for no part of a name.
      const read = decodeURIComponent(path)
        .replaceAll("\\", "/")
        .replaceAll(/;[^/]*/g, "");
      assert.ok(new URL(read, server.url).pathname.startsWith(PREFIX), `${target} came out at ${path}`);
    }
  }
});

test("a header that is doubled or broken does not make a caller look like a gateway", async (t) => {
  const sessions: (string | string[] | undefined)[] = [];
  const server = await startFakeServer(t, (request, response) => {
    sessions.push(request.headers["x-flow-session"]);
    json(response, 200, {});
  });
  const gateway = await startTestGateway(t, { FLOW_BASE_URL: server.url });
  const forged = "0".repeat(64);
  for (const headers of [
    [SESSION, `X-Flow-Session: ${forged}`, `x-flow-session: ${forged}`],
    [SESSION, `Connection: x-flow-session, authorization`],
    [SESSION, "Transfer-Encoding: chunked", "Content-Length: 3"],
    [SESSION, `X-Any: a\n\tX-Flow-Session: ${forged}`],
    [SESSION, SESSION],
  ]) {
    sessions.length = 0;
    await ask(gateway.url, server.asked, "/flow/executions", headers);
    for (const session of sessions) {
      assert.match(String(session), /^[0-9a-f]{64}$/);
      assert.notEqual(session, forged);
    }
  }
  await ask(gateway.url, server.asked, "/flow/executions", [SESSION]);
  assert.equal(sessions.length > 0, true, "an ordinary call comes through");
});
