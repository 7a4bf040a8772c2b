import assert from "node:assert/strict";
import { test } from "node:test";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { createSecret } from "../../src/platform/crypto/secret.ts";
import { createIds } from "../../src/platform/system/ids.ts";
import { createDoctorApp } from "../../src/routes/doctor/app.ts";
import { DOCTOR_TOOLS, type DoctorRequest, type Outcome, type Severity } from "../../src/schema/api/doctor.ts";
import type { Doctor } from "../../src/services/diagnosis/doctor.ts";
import { recordLog } from "../support/engine/recorded-log.ts";

/* The doctor's surface: who may call it, what it takes and answers. What the tools find is tested elsewhere. */

const TOKEN = "doctor-token-3";

/** The surface over tools that tell what they were asked. */
function surface({ token, severity = "ok" }: { token?: string; severity?: Severity } = {}) {
  const asked: { tool: string; asked: DoctorRequest }[] = [];
  const tool = (name: string) => (what: DoctorRequest) => {
    asked.push({ tool: name, asked: what });
    const outcome: Outcome = { action: name, severity, generated_at: "2026-11-21T10:00:00.000Z", data: { n: 1 } };
    return Promise.resolve(outcome);
  };
  const app = createDoctorApp({
    doctor: Object.fromEntries(DOCTOR_TOOLS.map((name) => [name, tool(name)])) as unknown as Doctor,
    logger: recordLog(),
    token: token === undefined ? undefined : createSecret(token),
    loopback: token === undefined,
    stopping: new AbortController().signal,
    version: "0.0.0-test",
    newRequestId: createIds(Date.now),
  });
  return { app, asked };
}

const ORIGIN = "http://127.0.0.1:8765";
const invoke = (name: string, body?: string, headers: Record<string, string> = {}) =>
  [`${ORIGIN}/tools/${name}/invoke`, { method: "POST", headers, ...(body !== undefined && { body }) }] as const;

test("every tool answers with its outcome, with what it was asked for", async () => {
  const { app, asked } = surface();
  for (const name of DOCTOR_TOOLS) {
    const response = await app.request(
      ...invoke(name, '{"server_url": "http://s", "db_dsn": "postgres://d", "stale_seconds": 5}'),
    );
    assert.equal(response.status, 200);
    assert.equal(((await response.json()) as Outcome).action, name);
  }
  assert.deepEqual(
    asked.map(({ tool }) => tool),
    DOCTOR_TOOLS,
  );
  assert.deepEqual(asked[0]?.asked, { server_url: "http://s", db_dsn: "postgres://d", stale_seconds: 5 });
});

test("a body may be left out; an invalid one is 422", async () => {
  const { app, asked } = surface();
  assert.equal((await app.request(...invoke("detect"))).status, 200);
  assert.deepEqual(asked[0]?.asked, {});
  for (const body of ["{", '{"stale_seconds": -1}', '{"stale_seconds": "x"}', '{"server_url": 7}']) {
    assert.ok([400, 422].includes((await app.request(...invoke("detect", body))).status), body);
  }
  assert.equal(asked.length, 1);
});

test("an anomaly and an error are outcomes: 200, and the severity says it", async () => {
  for (const severity of ["anomaly", "repaired", "error"] as const) {
    const response = await surface({ severity }).app.request(...invoke("detect"));
    assert.equal(response.status, 200);
    assert.equal(((await response.json()) as Outcome).severity, severity);
  }
});

test("GET /healthz says ok, GET /tools lists the tools with the schema of their input", async () => {
  const { app } = surface();
  assert.deepEqual(await (await app.request(`${ORIGIN}/healthz`)).json(), { status: "ok" });
  const { tools } = (await (await app.request(`${ORIGIN}/tools`)).json()) as { tools: Record<string, unknown>[] };
  assert.deepEqual(
    tools.map(({ name, invoke: how, changes }) => [name, how, changes]),
    [
      ["detect", "POST /tools/detect/invoke", false],
      ["reachability", "POST /tools/reachability/invoke", false],
      ["repair_trigger_reaper", "POST /tools/repair_trigger_reaper/invoke", true],
    ],
  );
  const schema = tools[0]?.["input_schema"] as { properties: object } | undefined;
  assert.deepEqual(Object.keys(schema?.properties ?? {}), ["server_url", "db_dsn", "stale_seconds"]);
});

test("with a token everything but health asks for it, whatever is spelt how", async () => {
  const { app, asked } = surface({ token: TOKEN });
  assert.equal((await app.request(`${ORIGIN}/healthz`)).status, 200);
  const calls: [path: string, init: RequestInit][] = [
    ...DOCTOR_TOOLS.map((name): [string, RequestInit] => [`${ORIGIN}/tools/${name}/invoke`, { method: "POST" }]),
    [`${ORIGIN}/tools`, {}],
    [`${ORIGIN}/mcp`, { method: "POST", body: "{}" }],
    [`${ORIGIN}/nothing`, {}],
    [`${ORIGIN}/healthz/`, {}],
    [`${ORIGIN}/tools/detect/invoke?/healthz`, { method: "POST" }],
    [`${ORIGIN}/healthz`, { method: "POST" }],
  ];
  for (const [path, init] of calls) {
    for (const authorization of [undefined, "Bearer wrong", `Basic ${TOKEN}`, `Bearer ${TOKEN}x`]) {
      const headers: Record<string, string> = authorization === undefined ? {} : { authorization };
      assert.equal((await app.request(path, { ...init, headers })).status, 401, `${path} ${authorization}`);
    }
  }
  assert.equal(asked.length, 0);
  const headers = { authorization: `Bearer ${TOKEN}` };
  assert.equal((await app.request(...invoke("detect", undefined, headers))).status, 200);
});

test("on loopback, names and pages from elsewhere are refused: a page cannot have its name lead here", async () => {
  const { app, asked } = surface();
  const from: [headers: Record<string, string>, status: number][] = [
    [{ host: "evil.example" }, 403],
    [{ host: "127.0.0.1.evil.example:8765" }, 403],
    [{ host: "127.0.0.1:8765", origin: "https://evil.example" }, 403],
    [{ host: "127.0.0.1:8765", origin: "null" }, 403],
    [{ host: "localhost:8765" }, 200],
    [{ host: "127.0.0.1:8765", origin: "http://127.0.0.1:8765" }, 200],
  ];
  for (const [headers, status] of from) {
    const response = await app.request(...invoke("repair_trigger_reaper", undefined, headers));
    assert.equal(response.status, status, JSON.stringify(headers));
  }
  assert.equal(asked.length, 2);
});

/** The SDK's own client, over calls of the surface instead of a port. */
async function mcpClient(app: ReturnType<typeof surface>["app"], headers: Record<string, string> = {}) {
  const client = new Client({ name: "test", version: "0" });
  const transport = new StreamableHTTPClientTransport(new URL(`${ORIGIN}/mcp`), {
    requestInit: { headers },
    fetch: (url, init) => Promise.resolve(app.request(String(url), init)),
  });
  await client.connect(transport as Transport);
  return client;
}

test("over MCP: the tools are listed with their schemas, and called with structured results", async () => {
  const { app, asked } = surface();
  const client = await mcpClient(app);
  const { tools } = await client.listTools();
  assert.deepEqual(
    tools.map(({ name, annotations }) => [name, annotations?.readOnlyHint]),
    [
      ["detect", true],
      ["reachability", true],
      ["repair_trigger_reaper", false],
    ],
  );
  assert.equal(client.getServerVersion()?.name, "flow-doctor");
  const result = await client.callTool({ name: "detect", arguments: { stale_seconds: 9 } });
  assert.equal(result.isError, false);
  assert.equal((result.structuredContent as Outcome).action, "detect");
  assert.deepEqual(JSON.parse((result.content as { text: string }[])[0]?.text ?? ""), result.structuredContent);
  assert.deepEqual(asked, [{ tool: "detect", asked: { stale_seconds: 9 } }]);
  await client.close();
});

test("over MCP: an error, an unknown tool and invalid arguments are results with isError", async () => {
  const client = await mcpClient(surface({ severity: "error" }).app);
  for (const call of [
    { name: "detect" },
    { name: "delete_everything" },
    { name: "detect", arguments: { stale_seconds: "long" } },
  ]) {
    assert.equal((await client.callTool(call)).isError, true, JSON.stringify(call));
  }
  await client.close();
});

test("over MCP: the token is asked for, and with it a client works", async () => {
  const { app } = surface({ token: TOKEN });
  await assert.rejects(mcpClient(app), /401|Unauthorized|could not authenticate/i);
  const client = await mcpClient(app, { authorization: `Bearer ${TOKEN}` });
  assert.equal((await client.listTools()).tools.length, 3);
  await client.close();
});

test("over MCP: there are no sessions and no stream, which GET and DELETE say with 405", async () => {
  const { app } = surface();
  for (const method of ["GET", "DELETE"]) {
    const response = await app.request(`${ORIGIN}/mcp`, { method });
    assert.equal(response.status, 405);
    assert.equal(response.headers.get("allow"), "POST");
  }
});
