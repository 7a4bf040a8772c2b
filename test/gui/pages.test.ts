import assert from "node:assert/strict";
import { after, test } from "node:test";
import { LIMIT_MS, startGui } from "../support/page/gui.ts";
import { writeDocument } from "../support/page/gui-editor.ts";
import { assertViewsUsable } from "../support/page/looks.ts";

/*
 * The browser's page in a real browser against a real `flow serve` with a worker: one service and one browser for all of these.
 */

const HELLO = `apiVersion: flow/v2
kind: Playbook
metadata: { name: hello, path: gui/hello, description: Says hello. }
workload: { who: world, times: 2 }
workflow:
  - step: greet
    tool: { kind: noop, result: { text: "hello {{ workload.who }}" } }
    next:
      arcs:
        - { step: never, when: "{{ workload.times > 100 }}" }
        - { step: part }
  - step: part
    tool: { kind: noop, result: { said: "{{ greet.text }}" } }
  - step: never
    tool: { kind: noop }
`;
const gui = await startGui();
after(() => gui.close());
const { serving, browser, post, opened } = gui;

await post("/api/catalog/register", { content: HELLO });
const hello = String((await post("/api/execute", { path: "gui/hello", wait_ms: 30_000 }))["execution_id"]);

test("each view shows its subject, light, dark and narrow, without serious accessibility problems", async (t) => {
  const page = await opened("/");
  await assertViewsUsable(t, page, [
    [`/executions/${hello}`, "Completed in"],
    [`/executions/${hello}?tab=log`, "greet"],
    [`/executions/${hello}?tab=events`, "Choose an event to see all of it."],
    ["/entry/gui/hello?tab=document", "apiVersion"],
    ["/register", "Register a document"],
    ["/access", "Users"],
  ]);
  await page.close();
});

test("a playbook is started from its form, and its page shows how it ends", async () => {
  const page = await opened("/entry/gui/hello?tab=run");
  await page.getByLabel("who").fill("browser");
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.waitForURL(/\/executions\/\d+/);
  await page.getByText("Completed in").waitFor();
  await page.getByRole("link", { name: "Data" }).click();
  await page.getByText("hello browser").first().waitFor();
  await page.goto(`${serving.url}/entry/gui/hello?tab=run`);
  assert.equal(await page.getByLabel("who").inputValue(), "browser", "the last inputs are remembered");
  await page.close();
});

test("a document with a fault is refused with messages at their lines, and registered when it is mended", async () => {
  const page = await opened("/register");
  // The browser logs the 404 by which the page knows that the path is new.
  page.removeAllListeners("console");
  await writeDocument(page, HELLO.replace("step: part }", "step: nowhere }").replace("gui/hello", "gui/written"));
  await page.getByRole("button", { name: "Register …" }).click();
  await page.getByRole("alert").getByText("11:").first().waitFor();
  await writeDocument(page, HELLO.replace("gui/hello", "gui/written"));
  await page.getByRole("button", { name: "Register …" }).click();
  await page.getByRole("button", { name: "Register version 1" }).click();
  await page.waitForURL(/\/entry\/gui\/written/);
  await page.close();
});

test("keys go to the filter, through the rows and open one", async () => {
  const page = await opened("/executions");
  await page.getByText("gui/hello").first().waitFor();
  await page.keyboard.press("/");
  assert.equal(await page.evaluate("document.activeElement.hasAttribute('data-filter')"), true);
  await page.evaluate("document.activeElement.blur()");
  await page.keyboard.press("j");
  await page.locator('tr[aria-selected="true"]').waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/executions\/\d+/);
  await page.close();
});

test("an unknown execution and an unknown address say so", async () => {
  for (const path of ["/executions/12345", "/entry/nothing/here"]) {
    const page = await browser.newTab();
    await page.goto(`${serving.url}${path}`);
    await page.getByRole("heading", { name: "Page not found" }).waitFor({ timeout: LIMIT_MS });
    await page.close();
  }
});

test("what is loaded first is below 150 kB, compressed; its fonts come besides", async () => {
  const page = await browser.newPage();
  await page.goto(serving.url, { waitUntil: "networkidle" });
  const bytes = await page.evaluate<number>(`
    [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
      .filter(({ name }) => !name.includes("/api/") && !name.endsWith(".woff2"))
      .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)`);
  assert.ok(bytes > 50_000 && bytes < 150_000, `${bytes} bytes`);
  await page.close();
});
