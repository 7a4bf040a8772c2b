import assert from "node:assert/strict";
import { test } from "node:test";
import { openedPage, startOwnGui } from "../support/page/gui.ts";
import { assertQuiet, startOwnGuiLogin } from "../support/page/gui-login.ts";
import { startReverseProxy } from "../support/servers/reverse-proxy.ts";
import { flow } from "../support/service/cli-process.ts";

/* Server and gateway behind a reverse proxy that puts a path before all of theirs; some take it away again, others do not. */

const SAYS = `apiVersion: flow/v2
kind: Playbook
metadata: { name: says, path: gui/says }
workload: { who: world }
workflow:
  - step: greet
    tool: { kind: noop, result: { text: "hello {{ workload.who }}" } }
    next: { arcs: [{ step: after }] }
  - step: after
    tool: { kind: noop }
`;

for (const strips of [true, false]) {
  const how = strips ? "takes its path away" : "leaves its path";

  test(`a server's page, API and commands work behind a proxy that ${how}`, async (t) => {
    const proxy = await startReverseProxy("/flow", strips);
    t.after(() => proxy.close());
    const gui = await startOwnGui({ FLOW_PUBLIC_URL: `${proxy.origin}/flow/` });
    t.after(() => gui.close());
    proxy.target = gui.serving.url;
    await gui.post("/api/catalog/register", { content: SAYS });
    const page = await openedPage(gui.browser, `${proxy.origin}/flow/`);
    await page.getByRole("link", { name: "Playbooks", exact: true }).click();
    await page.waitForURL(`${proxy.origin}/flow/catalog`);
    await page.getByRole("link", { name: "gui/says" }).click();
    await page.getByRole("link", { name: "Run …", exact: true }).click();
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.waitForURL(/\/flow\/executions\/\d+/);
    await page.getByText("Completed in").waitFor();
    // What is loaded when it is asked for: the graph with its worker, the editor with its styles.
    await page.getByRole("link", { name: "Graph" }).click();
    await page.getByLabel("Graph", { exact: true }).getByRole("button", { name: /after/ }).waitFor();
    await page.reload();
    await page.getByLabel("Graph", { exact: true }).getByRole("button", { name: /greet/ }).waitFor();
    await page.goto(`${proxy.origin}/flow/register?from=gui%2Fsays`);
    await page.getByText("No problems found").waitFor();
    await page.close();
    assert.deepEqual(proxy.strays, []);
    // Without the path the server is what it was, for workers and other callers beside it.
    assert.equal((await fetch(`${gui.serving.url}/api/health`)).status, 200);
    assert.equal((await fetch(`${proxy.origin}/flow/api/health`)).status, 200);
    const listed = await flow(process.cwd(), ["executions", "--json"], {
      FLOW_SERVER_URL: `${proxy.origin}/flow/`,
    });
    assert.match(listed.stdout, /gui\/says/, listed.stderr);
    const mcp = await fetch(`${proxy.origin}/flow/mcp`, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
      body: JSON.stringify({
        ...{ jsonrpc: "2.0", id: 1, method: "initialize" },
        params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } },
      }),
    });
    assert.match(await mcp.text(), /"serverInfo"/);
  });

  test(`people log in at a gateway behind a proxy that ${how}, and the cookie is for its path alone`, async (t) => {
    const proxy = await startReverseProxy("/flow", strips);
    t.after(() => proxy.close());
    const { service, fresh, add, ...gui } = await startOwnGuiLogin({
      FLOW_PUBLIC_URL: `${proxy.origin}/flow/`,
      // The gateway has paths of its own that begin with /flow.
      FLOW_PUBLIC_PATH_STRIPPED: String(strips),
    });
    t.after(() => gui.close());
    proxy.target = gui.url;
    const ada = { sub: "ada", email: "ada@example.com", name: "Ada" };
    await add(ada, "developer");
    service.provider.visitor = ada;
    await service.operator("POST", "/api/catalog/register", { content: SAYS });
    const context = await fresh();
    const page = await context.newPage();
    await page.goto(`${proxy.origin}/flow/catalog`);
    await page.getByRole("button", { name: /^Log in with/ }).click();
    await page.waitForURL(`${proxy.origin}/flow/catalog`);
    await page.getByRole("link", { name: "gui/says" }).click();
    await page.getByRole("link", { name: "Run …", exact: true }).click();
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.waitForURL(/\/flow\/executions\/\d+/);
    await page.getByText("Completed in").waitFor();
    const cookiesAt = async (path: string) =>
      (await context.cookies(`${proxy.origin}${path}`)).filter(({ name }) => name === "session_token");
    const cookies = await cookiesAt("/flow/");
    assert.deepEqual(
      cookies.map(({ path, httpOnly }) => ({ path, httpOnly })),
      [{ path: "/flow", httpOnly: true }],
    );
    assert.deepEqual(await cookiesAt("/elsewhere"), []);
    // Agents of other programs find the tools at this address, and have to say who they are.
    const mcp = await fetch(`${proxy.origin}/flow/mcp`, { method: "POST", body: "{}" });
    assert.equal(mcp.status, 401);
    await page.getByRole("button", { name: "Account" }).click();
    await page.getByRole("button", { name: "Log out" }).click();
    await page.waitForURL(`${proxy.origin}/flow/login`);
    assert.deepEqual(await cookiesAt("/flow/"), []);
    await page.close();
    assert.deepEqual(proxy.strays, []);
    assertQuiet(context);
  });
}
