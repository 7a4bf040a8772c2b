import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { startGui } from "../support/page/gui.ts";
import { accessibility, assertViewsUsable } from "../support/page/looks.ts";
import { startHttpServer } from "../support/servers/http-server.ts";
import { startMcpServer } from "../support/servers/mcp-server.ts";

/* The terminal of agents in a real browser, against a real `flow serve` with a worker and the reference server of MCP. */

const MARKUP = "<img src=x onerror=alert(1)>";
const HOSTILE_TOOL = {
  name: `${MARKUP} tool`,
  title: "<script>alert(2)</script>",
  description: MARKUP,
  inputSchema: {
    type: "object",
    properties: {
      [MARKUP]: { type: "string", description: "<b>bold</b>", default: MARKUP },
      pick: { enum: [MARKUP, "b"] },
    },
  },
};

const gui = await startGui();
after(() => gui.close());
const mcp = await startMcpServer();
after(() => mcp.close());
// A server of JSON-RPC that offers tools with hostile names and texts.
const hostile = await startHttpServer(({ body }, response) => {
  const { id, method } = JSON.parse(body === "" ? "{}" : body) as { id?: number; method?: string };
  if (id === undefined) return void response.writeHead(202).end();
  const results: Record<string, object> = {
    initialize: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "h", version: "1" } },
    "tools/list": { tools: [HOSTILE_TOOL] },
    "tools/call": { content: [{ type: "text", text: "<script>alert(3)</script>" }] },
  };
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify({ jsonrpc: "2.0", id, result: results[method ?? ""] ?? {} }));
});
after(() => hostile.close());
const { serving, post, opened } = gui;

const register = (content: string) => post("/api/catalog/register", { content });
const AGENT = await readFile(join(import.meta.dirname, "../../../playbooks/examples/mcp_agent.yaml"), "utf8");
await register(AGENT);
const server = (path: string, endpoint: string, more = "") =>
  register(
    `apiVersion: flow/v2\nkind: Mcp\nmetadata: { name: n, path: ${path}, description: "A server." }\nspec:\n  endpoint: "${endpoint}"\n${more}`,
  );
await server("mcp/example", mcp.endpoint, "  lifecycle: { deploy: ops/deploy, broken: ops/missing }\n");
await server("mcp/gone", "http://127.0.0.1:1/mcp");
await server("mcp/hostile", `${hostile.origin}/mcp`);
await server("mcp/unseen", mcp.endpoint, "  terminal: { visible: false }\n");
await register(`apiVersion: flow/v2
kind: Playbook
metadata: { name: deploy, path: ops/deploy }
workload: { action: null, server: null }
workflow:
  - { step: start, tool: { kind: noop, result: { did: "{{ workload.action }} of {{ workload.server }}" } } }
`);
await register(`apiVersion: flow/v2
kind: Playbook
metadata: { name: plain, path: agents/plain, description: "${MARKUP}", agent: true, terminal: { workspace: "<i>w</i>" } }
workload: { a: 1 }
workflow: [{ step: start, tool: { kind: noop } }]
`);
await register(`apiVersion: flow/v2
kind: Playbook
metadata: { name: unseen, path: agents/unseen, agent: true, terminal: { visible: false } }
workflow: [{ step: start, tool: { kind: noop } }]
`);

async function listed(page: Page): Promise<void> {
  await page.getByRole("button", { name: "List tools" }).click();
  await page.getByRole("list", { name: "Tools" }).waitFor();
}

const pick = (page: Page, name: string) =>
  page.locator(".offer-list button", { has: page.getByText(name, { exact: true }) }).click();

const AT_AGENT = "/agents?agent=examples%2Fmcp_agent";

test("each view shows its subject, light, dark and narrow, without serious accessibility problems", async (t) => {
  const page = await opened("/");
  await assertViewsUsable(t, page, [
    ["/agents", "Choose an agent"],
    [AT_AGENT, "List tools"],
    ["/agents?server=mcp%2Fexample", "Lifecycle"],
  ]);
  await page.close();
});

test("agents and servers that terminals may show are listed, by workspace, and found by a text", async () => {
  const page = await opened("/agents");
  const list = page.getByRole("navigation", { name: "Agents and MCP servers" });
  await list.getByRole("link", { name: "mcp/gone" }).waitFor();
  await list.getByRole("heading", { name: "mcp", exact: true }).waitFor();
  await list.getByRole("link", { name: "examples/mcp_agent" }).waitFor();
  assert.equal(await list.getByText("unseen").count(), 0);
  await list.getByPlaceholder("Filter").fill("example");
  await list.getByRole("link", { name: "mcp/gone" }).waitFor({ state: "detached" });
  await list.getByRole("link", { name: "examples/mcp_agent" }).click();
  await page.getByRole("heading", { name: "examples/mcp_agent" }).waitFor();
  await page.goto(`${serving.url}/agents?agent=agents%2Funseen`);
  await page.getByText("No agent or server that you may see is called agents/unseen").waitFor();
  await page.close();
});

test("tools of the server of its scopes are listed, and one is called with arguments of its schema's types", async () => {
  const page = await opened(AT_AGENT);
  await listed(page);
  assert.equal(await page.getByRole("combobox", { name: "MCP server" }).inputValue(), "mcp/example");
  await pick(page, "get-sum");
  await page.locator("#input-a").fill("nineteen");
  await page.getByRole("button", { name: "Call get-sum" }).click();
  await page.getByText("Nothing was called: 2 arguments are wrong.").waitFor();
  await page.getByText("a must be a number").waitFor();
  await page.getByText("b is required").waitFor();
  assert.deepEqual(await accessibility(page), []);
  await page.locator("#input-a").fill("19");
  await page.locator("#input-b").fill("23");
  await page.getByRole("button", { name: "Call get-sum" }).click();
  await page.getByText("The sum of 19 and 23 is 42.").first().waitFor();
  assert.deepEqual(await accessibility(page), []);
  const calls = page.locator("section", { has: page.getByRole("heading", { name: "Calls of this browser" }) }).last();
  await calls.getByText("get-sum").waitFor();
  await calls.getByText("tools/list").waitFor();
  const link = page.getByRole("region", { name: "Answer" }).getByRole("link", { name: /^Execution/ });
  await link.click();
  await page.waitForURL(/\/executions\/\d+/);
  await page.getByText("Completed in").waitFor();
  await page.close();
});

test("a call waits until the servers are known, so that the tools that it lists are those of the server that is chosen", async () => {
  const page = await opened("/");
  let give = () => {};
  const given = new Promise<void>((resolve) => {
    give = resolve;
  });
  await page.route("**/api/catalog/resource/mcp/**", async (route) => {
    await given;
    await route.continue();
  });
  await page.goto(`${serving.url}${AT_AGENT}`);
  const list = page.getByRole("button", { name: "List tools" });
  await list.waitFor();
  assert.equal(await list.isDisabled(), true);
  give();
  await listed(page);
  assert.equal(await page.getByRole("combobox", { name: "MCP server" }).inputValue(), "mcp/example");
  await page.close();
});

test("a long call shows its progress, and can be cancelled", async () => {
  const page = await opened(AT_AGENT);
  await listed(page);
  await pick(page, "trigger-long-running-operation");
  await page.locator("#input-duration").fill("110");
  await page.locator("#input-steps").fill("5");
  await page.getByRole("button", { name: /^Call trigger/ }).click();
  await page.getByRole("status").getByText("running").waitFor();
  await page.getByRole("button", { name: "Cancel the call" }).click();
  await page.getByRole("region", { name: "Answer" }).getByText("cancelled").first().waitFor();
  await page.close();
});

test("an unreachable and an unregistered server are reported with the execution that found out", async () => {
  for (const [name, sign] of [
    ["mcp/gone", /127\.0\.0\.1/],
    ["mcp/never", /there is no MCP resource/],
  ] as const) {
    const page = await opened(`${AT_AGENT}&server=${encodeURIComponent(name)}`);
    await page.getByRole("button", { name: "Health" }).click();
    const answer = page.getByRole("region", { name: "Answer" });
    await answer.getByText("failed").first().waitFor();
    await answer.getByText(sign).first().waitFor();
    await answer.getByRole("link", { name: /^Execution/ }).waitFor();
    await page.close();
  }
});

test("a refused call is shown as refused, and starts nothing", async () => {
  const page = await opened(AT_AGENT);
  page.removeAllListeners("console");
  await page.route("**/api/execute", (route) =>
    route.fulfill({
      status: 403,
      json: { error: "No role of yours may execute it", code: "FORBIDDEN", request_id: "7" },
    }),
  );
  await page.getByRole("button", { name: "List tools" }).click();
  await page.getByText("No role of yours may execute it").waitFor();
  await page.close();
});

test("an action of a server's life is asked for before it runs, and its execution is followed to its end", async () => {
  const page = await opened("/agents?server=mcp%2Fexample");
  page.removeAllListeners("console");
  await page.getByRole("button", { name: "deploy …" }).click();
  assert.deepEqual(await accessibility(page), []);
  await page.getByRole("dialog").getByText("ops/deploy").waitFor();
  await page.getByRole("button", { name: "No" }).click();
  await page.getByRole("button", { name: "deploy …" }).click();
  await page.getByRole("button", { name: "Run deploy" }).click();
  await page.getByText("deploy of mcp/example").waitFor();
  await page.getByRole("link", { name: /^Execution \d/ }).waitFor();
  await page.getByRole("button", { name: "broken …" }).click();
  await page.getByRole("button", { name: "Run broken" }).click();
  await page.getByRole("alert").getByText("Executable catalog entry not found").waitFor();
  await page.getByRole("link", { name: "ops/missing" }).waitFor();
  await page.close();
});

test("markup in agents, tools, schemas and answers is only ever text", async () => {
  const page = await opened(`${AT_AGENT}&server=mcp%2Fhostile`);
  page.on("dialog", (dialog) => assert.fail(`a script ran: ${dialog.message()}`));
  await listed(page);
  await pick(page, HOSTILE_TOOL.name);
  await page.getByText("<b>bold</b>").waitFor();
  await page.getByRole("button", { name: "Call", exact: false }).last().click();
  await page.getByText("<script>alert(3)</script>").first().waitFor();
  assert.equal(await page.locator("main script, main img, main i, main b").count(), 0);
  await page.goto(`${serving.url}/agents?agent=agents%2Fplain`);
  await page.getByText("It has inputs of its own").waitFor();
  assert.equal(await page.locator("main script, main img, main i, main b").count(), 0);
  await page.close();
});

test("resources and prompts of a server are listed, inspected and read; a picture is drawn", async () => {
  const page = await opened(AT_AGENT);
  await page.getByRole("button", { name: "Resources", exact: true }).click();
  await page.getByRole("button", { name: "List resources" }).click();
  const resources = page.getByRole("list", { name: "Resources" });
  await resources.getByRole("button").first().click();
  await page.getByRole("button", { name: /^Read / }).click();
  const answer = page.getByRole("region", { name: "Answer" });
  await answer.locator("pre.piece").first().waitFor();
  assert.deepEqual(await accessibility(page), []);
  await page.getByRole("button", { name: "Prompts", exact: true }).click();
  await page.getByRole("button", { name: "List prompts" }).click();
  await page.getByRole("list", { name: "Prompts" }).waitFor();
  await pick(page, "args-prompt");
  await page.getByText("As the server describes it").click();
  await page.locator("#input-city").fill("Ulm");
  await page.getByRole("button", { name: "Get args-prompt" }).click();
  await answer.locator("pre.piece", { hasText: "Ulm" }).first().waitFor();
  await page.getByRole("button", { name: "Tools", exact: true }).click();
  await listed(page);
  await pick(page, "get-tiny-image");
  await page.getByRole("button", { name: "Call get-tiny-image" }).click();
  await answer.getByRole("img", { name: /^Picture of the answer/ }).waitFor();
  await page.close();
});

test("a call is made again from the history, with its arguments and without its secrets", async () => {
  const page = await opened(AT_AGENT);
  await listed(page);
  await pick(page, "get-sum");
  await page.locator("#input-a").fill("4");
  await page.locator("#input-b").fill("5");
  await page.getByRole("button", { name: "Call get-sum" }).click();
  await page.getByText("The sum of 4 and 5 is 9.").first().waitFor();
  await page.reload();
  await page.getByRole("button", { name: "Repeat …" }).first().click();
  await page.locator("#more-arguments").waitFor();
  assert.deepEqual(JSON.parse(await page.locator("#more-arguments").inputValue()), { a: 4, b: 5 });
  await page.getByRole("button", { name: "Call get-sum" }).click();
  await page.getByText("The sum of 4 and 5 is 9.").first().waitFor();
  await page.close();
});

test("a server's own page lists, calls and reads what it offers without an agent, with the messages, and makes a call again", async () => {
  const page = await opened("/entry/mcp/example");
  const answer = page.getByRole("region", { name: "Answer" });
  await page.getByRole("link", { name: "Inspect …" }).click();
  await page.getByRole("button", { name: "Health" }).click();
  await answer
    .getByText(/everything/)
    .first()
    .waitFor();
  await listed(page);
  await pick(page, "get-sum");
  await page.locator("#input-a").fill("6");
  await page.locator("#input-b").fill("7");
  await page.getByRole("button", { name: "Call get-sum" }).click();
  await answer.getByText("The sum of 6 and 7 is 13.").first().waitFor();
  await answer.getByText(/JSON-RPC messages$/).click();
  await answer.getByText(/^tools\/call \(\d+\)$/).click();
  await answer.getByText("jsonrpc").filter({ visible: true }).first().waitFor();
  assert.deepEqual(await accessibility(page), []);
  await page.getByRole("button", { name: "Templates", exact: true }).click();
  await page.getByRole("button", { name: "List templates" }).click();
  await page.getByRole("list", { name: "Templates" }).getByRole("button").first().click();
  await page.locator("[id^=input-]").first().fill("3");
  await page.getByRole("button", { name: /^Read / }).click();
  await answer.locator("pre.piece").first().waitFor();
  await page.reload();
  const past = page.locator("section", { has: page.getByRole("heading", { name: "Calls of this browser" }) }).last();
  await past
    .getByRole("row", { name: /get-sum/ })
    .getByRole("button", { name: "Repeat …" })
    .click();
  await page.getByRole("button", { name: "Call get-sum" }).click();
  await answer.getByText("The sum of 6 and 7 is 13.").first().waitFor();
  await answer.getByRole("link", { name: /^Execution/ }).click();
  await page.getByText("Completed in").waitFor();
  await page.close();
});

test("what a server refuses is shown with its message; one that is gone is reported on its own page too", async () => {
  const page = await opened("/agents?server=mcp%2Fexample");
  const answer = page.getByRole("region", { name: "Answer" });
  await page.getByRole("button", { name: "Prompts", exact: true }).click();
  await page.getByRole("button", { name: "List prompts" }).click();
  await pick(page, "args-prompt");
  // The server's own check of arguments is what is wanted, not the form's.
  await page.route("**/call", async (route) => {
    const body = { resource: "mcp/example", method: "prompts/get", arguments: { name: "none" } };
    await route.continue({ postData: JSON.stringify(body) });
  });
  await page.locator("#input-city").fill("Ulm");
  await page.getByRole("button", { name: "Get args-prompt" }).click();
  await answer.getByText("MCP_INVALID_PARAMS").first().waitFor();
  await answer.getByText(/JSON-RPC messages$/).click();
  await answer.getByText(/^error -32602 to \d+$/).waitFor();
  await page.unroute("**/call");
  await page.goto(`${serving.url}/agents?server=mcp%2Fgone`);
  await page.getByRole("button", { name: "Health" }).click();
  await answer.getByText("failed").first().waitFor();
  await answer
    .getByText(/127\.0\.0\.1/)
    .first()
    .waitFor();
  await page.close();
});
