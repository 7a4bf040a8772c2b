import assert from "node:assert/strict";
import { test } from "node:test";
import type { GuiFile, GuiFiles } from "../../../src/platform/http/page-files.ts";
import { EVIL, TOKEN, testGateway } from "../../support/service/gateway-app.ts";

/*
 * The gateway's own page: who gets it, and what it may call.
 */

function file(text: string, contentType: string): GuiFile {
  const bytes = new TextEncoder().encode(text);
  return { bytes, gzip: undefined, contentType, etag: '"1"', immutable: false };
}

const GUI: GuiFiles = new Map([
  ["/index.html", file("<html>", "text/html; charset=utf-8")],
  ["/assets/a.js", file("1", "text/javascript")],
]);

test("the page and its files are public, under a policy that allows no other sources", async () => {
  const { app, passed } = testGateway({ gui: GUI });
  for (const path of ["/", "/executions/7?tab=events", "/login?code=x&state=y", "/access", "/assets/a.js"]) {
    const response = await app.request(path);
    assert.equal(response.status, 200, path);
    const policy = response.headers.get("content-security-policy") ?? "";
    for (const rule of ["default-src 'none'", "connect-src 'self'", "form-action 'none'", "frame-ancestors 'none'"])
      assert.ok(policy.split("; ").includes(rule), `${path}: ${rule}`);
  }
  assert.deepEqual(passed, []);
});

test("the page does not hide any route of the gateway", async () => {
  const { app } = testGateway({ gui: GUI });
  for (const [path, status] of [
    ["/health", 200],
    ["/flow/executions", 401],
    ["/api/auth/session", 401],
    ["/mcp", 401],
    ["/api/executions", 404],
    ["/index.html", 404],
    ["/assets/../package.json", 404],
    ["/nothing", 404],
    ["//flow/health", 404],
    ["//executions", 404],
  ] as const) {
    assert.equal((await app.request(path)).status, status, path);
  }
  assert.equal((await app.request("/executions", { method: "POST" })).status, 404);
});

const COOKIE = { cookie: `session_token=${TOKEN}`, origin: "https://flow.example.com" };

for (const [site, status] of [
  ["same-origin", 200],
  ["same-site", 403],
  ["cross-site", 403],
  ["none", 403],
  ["Same-Origin", 403],
] as const) {
  test(`a call by cookie that changes something, of which the browser says ${site}, is answered with ${status}`, async () => {
    const { app, passed } = testGateway({ gui: GUI });
    const headers = { ...COOKIE, "sec-fetch-site": site };
    const response = await app.request("/flow/execute", { method: "POST", headers });
    assert.equal(response.status, status);
    assert.equal(passed.length, status === 200 ? 1 : 0);
    assert.equal(response.headers.get("access-control-allow-origin"), null, "CORS is for other origins");
  });
}

test("without authentication, only a page on this machine counts as the gateway's own", async () => {
  const headers = { origin: EVIL, "sec-fetch-site": "same-origin" };
  const call = { method: "POST", headers };
  assert.equal((await testGateway({ bypass: true, gui: GUI }).app.request("/flow/execute", call)).status, 403);
  const local = testGateway({ bypass: true, gui: GUI, hosts: new Set() });
  const own = { ...call, headers: { ...headers, host: "127.0.0.1:8090", origin: "http://127.0.0.1:8090" } };
  assert.equal((await local.app.request("/flow/execute", own)).status, 200);
  const led = { ...call, headers: { ...headers, host: "evil.example" } };
  assert.equal((await local.app.request("/flow/execute", led)).status, 403);
});
