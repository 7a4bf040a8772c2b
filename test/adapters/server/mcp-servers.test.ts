import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { connectServer } from "../../../src/adapters/server/connection.ts";
import { createServerMcpServers } from "../../../src/adapters/server/mcp-servers.ts";
import { systemClock } from "../../../src/adapters/system-clock.ts";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import { startHttpServer } from "../../support/servers/http-server.ts";

const SPEC = {
  endpoint: "https://h/mcp",
  transport: "sse",
  auth: "c",
  timeout_seconds: 5,
  lifecycle: { deploy: "ops/d" },
};

const REGISTERED = { version: 1, catalog_id: "7", created_at: "2026-06-01T12:00:00.000Z", metadata: {}, content: "" };

/** Servers of a catalog with these entries, and the addresses that it is asked for. */
async function servers(t: TestContext, entries: Record<string, JsonObject>) {
  const http = await startHttpServer(({ url }, response) => {
    const path = decodeURIComponent(url.replace("/api/catalog/resource/", ""));
    const entry = entries[path] && { path, ...REGISTERED, ...entries[path] };
    const none = { error: "none", code: "NOT_FOUND" };
    response.writeHead(entry === undefined ? 404 : 200).end(JSON.stringify(entry ?? none));
  });
  t.after(() => http.close());
  const connection = connectServer({ url: http.origin, token: undefined, connections: 1 });
  t.after(() => connection.close());
  const { find } = createServerMcpServers({ connection, clock: systemClock, random: Math.random });
  return {
    find: (name: string) => find(name, "file", new AbortController().signal),
    asked: () => http.requests.map(({ url }) => url),
  };
}

test("a resource is found by its path, and by its name below mcp/", async (t) => {
  const { find } = await servers(t, { "mcp/demo": { kind: "mcp", payload: { spec: SPEC } } });
  const found = await find("demo");
  assert.deepEqual(found, await find("mcp/demo"));
  assert.deepEqual(found, {
    path: "mcp/demo",
    endpoint: "https://h/mcp",
    transport: "sse",
    auth: "c",
    timeoutSeconds: 5,
    lifecycle: new Map([["deploy", "ops/d"]]),
  });
});

test("an entry of another kind is skipped, and the search goes on", async (t) => {
  const { find } = await servers(t, {
    demo: { kind: "playbook", payload: { spec: SPEC } },
    "mcp/demo": { kind: "mcp", payload: { spec: { endpoint: "https://other" } } },
    alone: { kind: "agent", payload: {} },
  });
  assert.equal((await find("demo"))?.endpoint, "https://other");
  assert.equal(await find("alone"), undefined);
});

test("no name leaves the catalog", async (t) => {
  const { find, asked } = await servers(t, {});
  for (const name of ["../credentials/db", "a/../../credentials", "a//b", ".", "/", ""]) {
    assert.equal(await find(name), undefined, name);
  }
  assert.deepEqual(asked(), []);
  assert.equal(await find("db?include_data=true#x"), undefined);
  assert.equal(await find("half\ud800"), undefined);
  for (const address of asked()) assert.match(address, /^\/api\/catalog\/resource\/[\w%/]+$/);
});
