import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { before, test } from "node:test";
import type { JsonObject } from "../../src/schema/words/json.ts";
import { EXAMPLES, ROOT } from "../examples/run-flow.ts";
import { createServedDatabase } from "../support/database/postgres.ts";
import { ownDatabase } from "../support/engine/key-ring.ts";
import { startHttpServer } from "../support/servers/http-server.ts";
import { startSdkMcpServer } from "../support/servers/sdk-mcp-server.ts";
import { folderWith } from "../support/service/cli-process.ts";
import { startServe } from "../support/service/serve.ts";

// An MCP server behind an agent, on a real service: server, worker, PostgreSQL, and the machine's metadata service.

let databaseUrl: string;
before(async () => {
  ({ url: databaseUrl } = await createServedDatabase());
});

test("an agent calls a registered server as the machine or as its caller, and actions run the server's playbooks", async (t) => {
  const identity = await startHttpServer((_, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ access_token: "machine-token", expires_in: 900 }));
  });
  t.after(() => identity.close());
  const mcp = await startSdkMcpServer({
    refuse: ({ method, headers }) =>
      method === "tools/call" && headers.authorization === "Bearer reader-token-1" ? 403 : undefined,
  });
  t.after(() => mcp.close());
  const environment = {
    ...ownDatabase(databaseUrl),
    FLOW_HTTP_ALLOW_PRIVATE: "all",
    FLOW_METADATA_URL: identity.origin,
    FLOW_TEMPLATE_ENV: "MCP_ADDRESS",
    MCP_ADDRESS: mcp.endpoint,
  };
  const { url } = await startServe(t, await folderWith(t, {}), environment, ["--role", "all"]);
  const call = async (path: string, body?: JsonObject): Promise<JsonObject> => {
    const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    const response = await fetch(`${url}${path}`, body === undefined ? {} : init);
    const text = await response.text();
    assert.ok(response.ok, `${path}: ${response.status} ${text}`);
    return JSON.parse(text) as JsonObject;
  };
  const ended = async (id: unknown) => await call(`/api/executions/${String(id)}/result?wait_ms=30000`);
  const run = async (workload: JsonObject) => {
    const asked = { path: "examples/mcp_agent", resource_kind: "agent", workload };
    const { execution_id } = await call("/api/execute", asked);
    const { status, result, error } = await ended(execution_id);
    return { id: String(execution_id), status, value: result as JsonObject | null, error: error as JsonObject | null };
  };

  const deploy =
    "apiVersion: flow/v2\nkind: Playbook\nmetadata: { name: deploy, path: ops/deploy }\nworkload: { server: none }\n";
  const steps = 'workflow: [{ step: deploy, tool: { kind: noop, result: { deployed: "{{ workload.server }}" } } }]\n';
  const resource = "apiVersion: flow/v2\nkind: Mcp\nmetadata: { name: example, path: mcp/example }\n";
  const spec = 'endpoint: "{{ env.MCP_ADDRESS }}", auth: { source: adc }, lifecycle: { deploy: ops/deploy }';
  for (const content of [
    await readFile(join(ROOT, EXAMPLES, "mcp_agent.yaml"), "utf8"),
    deploy + steps,
    `${resource}spec: { ${spec} }\n`,
  ]) {
    await call("/api/catalog/register", { content });
  }

  const { entries } = await call("/api/catalog/agents/list", {});
  assert.deepEqual(
    (entries as JsonObject[]).map(({ path }) => path),
    ["examples/mcp_agent"],
  );
  const listed = await run({});
  assert.equal(listed.status, "COMPLETED", JSON.stringify(listed.error));
  assert.deepEqual([listed.value?.["status"], listed.value?.["text"]], ["ok", "echo\nfail\nsteps"]);
  const asMachine = await run({ method: "tools/call", tool: "echo", arguments: { a: 1 } });
  const { status, method, tool, text } = asMachine.value ?? {};
  assert.deepEqual([status, method, tool, text], ["ok", "tools/call", "echo", '{"a":1}']);
  assert.deepEqual([...new Set(mcp.messages.map(({ headers }) => headers.authorization))], ["Bearer machine-token"]);

  const asCaller = await run({ method: "tools/call", tool: "echo", access_token: "caller-token-22" });
  assert.equal(asCaller.status, "COMPLETED", JSON.stringify(asCaller.error));
  assert.equal(mcp.messages.at(-1)?.headers.authorization, "Bearer caller-token-22");
  const detail = await call(`/api/executions/${asCaller.id}`);
  const events = await call(`/api/executions/${asCaller.id}/events`);
  assert.equal((detail["workload"] as JsonObject)["access_token"], "[secret]");
  assert.doesNotMatch(JSON.stringify([detail, events]), /caller-token-22/);

  const refused = await run({ method: "tools/call", tool: "echo", access_token: "reader-token-1" });
  assert.equal(refused.status, "FAILED");
  assert.match(String(refused.error?.["message"]), /403: permission denied for the tool-call permission/);
  assert.equal((await run({ access_token: "reader-token-1" })).status, "COMPLETED");

  const inspected = await call("/api/mcp/mcp/example/call", {
    method: "tools/call",
    tool: "echo",
    arguments: { a: 1 },
  });
  const answered = await ended(inspected["execution_id"]);
  assert.deepEqual([answered["status"], answered["path"], inspected["version"]], ["COMPLETED", "mcp/example", 0]);
  const { text: said, messages } = answered["result"] as { text: string; messages: { message: JsonObject }[] };
  assert.equal(said, '{"a":1}');
  assert.ok(messages.some(({ message }) => message["method"] === "tools/call"));
  assert.doesNotMatch(
    JSON.stringify([answered, await call(`/api/executions/${inspected["execution_id"]}/events`)]),
    /machine-token/,
  );

  const dispatched = await call("/api/mcp/mcp/example/lifecycle/deploy", {});
  const outcome = await ended(dispatched["execution_id"]);
  assert.deepEqual([outcome["status"], outcome["path"]], ["COMPLETED", "ops/deploy"]);
  assert.match(JSON.stringify(outcome["result"]), /"deployed":"mcp\/example"/);
});
