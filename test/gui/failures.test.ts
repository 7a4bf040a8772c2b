import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { startBrowser } from "../support/page/browser.ts";
import { openedPage } from "../support/page/gui.ts";
import { accessibility, assertUsable, goWithin } from "../support/page/looks.ts";
import { type CliProcess, folderWith, startFlow } from "../support/service/cli-process.ts";

/*
 * What the page says when something is not there: nothing in an empty installation, no worker, no server, no right. One home
 * and one port through all of these; the server is ended and started again on them.
 */

const closers: (() => unknown)[] = [];
after(async () => {
  for (const close of closers.reverse()) await close();
});
const folder = await folderWith({ after: (close: () => void) => closers.push(close) } as never, {});
const browser = await startBrowser();
closers.push(() => browser.close());

/** The workers of these tests say once that they live. */
const PATIENT = { FLOW_COMMAND_REAPER_WORKER_STALE_SECONDS: "3600" };

let server: CliProcess | undefined;
let url = "";
/** Starts the server, on the port that it had before. */
async function startServer(environment: Record<string, string> = {}): Promise<void> {
  const port = url === "" ? "0" : new URL(url).port;
  const started = startFlow(folder, ["serve", "--role", "server", "--port", port], {
    HOME: folder,
    ...PATIENT,
    ...environment,
  });
  server = started;
  let said = "";
  url = await new Promise<string>((resolve, reject) => {
    started.process.stdout.on("data", (text: string) => {
      said += text;
      const found = /ready at (http:\/\/\S+),/.exec(said)?.[1];
      if (found !== undefined) resolve(found);
    });
    started.ended.then(({ stderr }) => reject(new Error(`flow serve ended:\n${stderr}`)), reject);
  });
}
async function endServer(): Promise<void> {
  server?.process.kill("SIGTERM");
  await server?.ended;
}
await startServer();
closers.push(endServer);

const post = async (path: string, body: unknown) => {
  const response = await fetch(url + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  assert.ok(response.ok, await response.clone().text());
  return (await response.json()) as Record<string, unknown>;
};
/** Calls that fail are what is looked at: the browser's own complaints of them are none. */
const opened = async (path: string, width = 1280): Promise<Page> => {
  const page = await openedPage(browser, url + path, { width });
  page.removeAllListeners("console");
  return page;
};
const PLAYBOOK = `apiVersion: flow/v2
kind: Playbook
metadata: { name: one, path: gui/one }
workflow:
  - step: only_step
    tool: { kind: python, code: "def main(): return 1" }
`;

test("an empty installation says what to do next", async () => {
  const page = await opened("/");
  await page.getByRole("heading", { name: "Welcome to flow" }).waitFor();
  await page.getByRole("link", { name: "register your own" }).waitFor();
  assert.deepEqual(await accessibility(page), []);
  await goWithin(page, "/agents");
  await page.getByText("No agents to show").first().waitFor();
  assert.deepEqual(await accessibility(page), []);
  await page.close();
});

test("without a worker the page says so, first as a warning, then with what waits, and the command that helps", async () => {
  const page = await opened("/operations");
  await page.locator('[data-level="warn"]').getByText("No worker is there").waitFor();
  await page.getByText("embedded in this server").waitFor();
  await post("/api/catalog/register", { content: PLAYBOOK });
  const { execution_id: executionId } = await post("/api/execute", { path: "gui/one" });
  const verdict = page.locator('[data-level="bad"]');
  await verdict.getByText("No worker is ready: 1 command waits").waitFor();
  await verdict.getByText("flow serve --role=worker").waitFor();
  await verdict.getByRole("link", { name: String(executionId) }).waitFor();
  assert.deepEqual(await accessibility(page), []);
  assert.match(await page.title(), /^✕/);
  // A worker of another kind is no help; one that takes it is shown with what it runs.
  const worker = { capacity: 1, labels: {}, capabilities: ["http"] };
  await post("/api/worker/pool/register", { ...worker, name: "other" });
  await page.getByText("No ready worker takes python").first().waitFor();
  await post("/api/worker/pool/register", { ...worker, name: "right", capabilities: ["python"] });
  await post("/api/commands/claim", { worker: "right", limit: 1, wait_ms: 30_000 });
  await page.locator('[data-worker="right"]').getByRole("link", { name: "only_step" }).waitFor();
  await page.close();
});

test("when the server is gone the page says since when, keeps what it shows, and continues when it is back", async () => {
  const pages = await Promise.all([opened("/executions"), opened("/operations"), opened("/operations", 360)]);
  const [list, operations, narrow] = pages;
  await list.getByText("gui/one").waitFor();
  for (const page of [operations, narrow]) await page.locator('[data-part="verdict"]').waitFor();
  await endServer();
  for (const page of pages) await page.getByText(/The server cannot be reached since \d\d:\d\d:\d\d/).waitFor();
  await assertUsable(operations);
  await operations.getByText("What was so").waitFor();
  await operations.locator('[data-part="verdict"]').waitFor();
  await list.getByText("gui/one").waitFor();
  await startServer();
  for (const page of pages) {
    await page.getByText("The server cannot be reached since").waitFor({ state: "detached" });
  }
  await operations.getByText("As of").waitFor();
  const { execution_id: executionId } = await post("/api/execute", { path: "gui/one" });
  await list.locator(`tr[data-row="${executionId}"]`).waitFor();
  for (const page of pages) await page.close();
});

test("a page whose files are not there any more offers to load it anew, and the way to others stays", async () => {
  const page = await opened("/executions");
  await page.getByText("gui/one").first().waitFor();
  await page.route("**/assets/**", (route) => route.abort());
  await page.getByRole("link", { name: "Access" }).click();
  await page.getByText("A part of this page could not be loaded").waitFor();
  await page.getByRole("link", { name: "Executions" }).click();
  await page.getByText("gui/one").first().waitFor();
  await page.getByRole("link", { name: "Access" }).click();
  await page.getByText("A part of this page could not be loaded").waitFor();
  await page.unroute("**/assets/**");
  await page.getByRole("button", { name: "Reload the page" }).click();
  await page.getByRole("heading", { name: "Access" }).waitFor();
  await page.close();
});

test("a server that got tokens meanwhile asks for one; with a worker's, operations say what is missing", async () => {
  const page = await opened("/operations");
  await page.locator('[data-part="verdict"]').waitFor();
  await endServer();
  await page.getByText("The server cannot be reached since").waitFor();
  await startServer({ FLOW_SERVER_TOKEN: "operator-token-1", FLOW_WORKER_TOKEN: "worker-token-2" });
  await page.getByRole("heading", { name: "This server asks for a token" }).waitFor();
  await page.getByRole("textbox", { name: "Token" }).fill("worker-token-2");
  await page.getByRole("button", { name: "Use it" }).click();
  await page.reload();
  await page.getByRole("heading", { name: "You may not see this" }).first().waitFor();
  await page.getByText("Ask an administrator").first().waitFor();
  await page
    .getByText(/^Request/)
    .first()
    .waitFor();
  assert.deepEqual(await accessibility(page), []);
  await page.close();
});
