import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { closedPort } from "../support/servers/http-server.ts";
import { startMcpServer, type TestMcpServer } from "../support/servers/mcp-server.ts";
import { runExample, statuses } from "./run-flow.ts";

/* mcp_tools against the reference server of the Model Context Protocol. */

let server: TestMcpServer;
before(async () => {
  server = await startMcpServer();
});
after(() => server.close());

test("mcp_tools calls a tool of a real server", async () => {
  const report = await runExample("mcp_tools", { endpoint: server.endpoint });
  assert.equal(report.status, "COMPLETED", report.stderr);
  const { called, server: name, answer } = report.result as { called: boolean; server: string; answer: string };
  assert.equal(called, true);
  assert.match(name, /everything/);
  assert.match(answer, /\b42\b/);
});

test("mcp_tools says which tools there are when the wanted one is not among them", async () => {
  const report = await runExample("mcp_tools", { endpoint: server.endpoint, tool: "divide" });
  assert.equal(report.status, "COMPLETED", report.stderr);
  const { called, why } = report.result as { called: boolean; why: string };
  assert.equal(called, false);
  assert.match(why, /has no tool divide, only .*echo.*get-sum/);
});

test("mcp_tools asks no further when the server is not there", async () => {
  const report = await runExample("mcp_tools", { endpoint: `http://127.0.0.1:${await closedPort()}/mcp` });
  assert.match(JSON.stringify(report.result), /"called":false.*Nothing listens there/);
  assert.equal(statuses(report)["tools"], "SKIPPED");
});
