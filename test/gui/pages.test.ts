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
/** Markup wherever an author can write. */
const HOSTILE = `apiVersion: flow/v2
kind: Playbook
metadata: { name: hostile, path: gui/hostile, description: "<img src=x onerror=alert(1)>" }
workload: { "<b>key</b>": "<script>alert(2)</script>" }
workflow:
  - step: "<i>step</i>"
    tool: { kind: http, url: "http://127.0.0.1:1/<svg onload=alert(3)>" }
`;

const gui = await startGui();
after(() => gui.close());
const { serving, browser, post, opened } = gui;

for (const content of [HELLO, HOSTILE]) await post("/api/catalog/register", { content });
const run = (path: string, workload = {}) => post("/api/execute", { path, workload, wait_ms: 30_000 });
const hello = String((await run("gui/hello"))["execution_id"]);
const hostile = String((await run("gui/hostile"))["execution_id"]);

test("each view shows its subject, light, dark and narrow, without serious accessibility problems", async (t) => {
  const page = await opened("/");
  await assertViewsUsable(t, page, [
    ["/executions", "gui/hello"],
    [`/executions/${hello}`, "It has ended: completed"],
    [`/executions/${hello}?tab=graph`, "never"],
    [`/executions/${hello}?tab=timeline`, "greet"],
    [`/executions/${hello}?tab=events`, "Choose an event to see all of it."],
    [`/executions/${hello}?tab=data`, "world"],
    ["/catalog", "gui/hello"],
    ["/entry/gui/hello", "who"],
    ["/entry/gui/hello?tab=document", "apiVersion"],
    ["/entry/gui/hello?tab=versions", "This is the first version."],
    ["/register", "Register a document"],
    ["/agents", "No agent is shown here"],
    ["/operations", "Workers"],
    ["/credentials", "Credentials"],
    ["/access", "Users"],
  ]);
  await page.close();
});

test("a playbook is started from its form, and its page shows how it ends", async () => {
  const page = await opened("/entry/gui/hello");
  await page.getByLabel("who").fill("browser");
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.waitForURL(/\/executions\/\d+/);
  await page.getByText("It has ended: completed").waitFor();
  await page.getByRole("link", { name: "Inputs and result" }).click();
  await page.getByText("hello browser").first().waitFor();
  await page.goto(`${serving.url}/entry/gui/hello`);
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

test("markup in names, inputs and errors is only ever text", async () => {
  for (const tab of ["steps", "graph", "timeline", "events", "data"]) {
    const page = await opened(`/executions/${hostile}?tab=${tab}`);
    page.on("dialog", (dialog) => assert.fail(`a script ran: ${dialog.message()}`));
    await page.getByText("It has ended: failed").waitFor();
    assert.equal(await page.locator("main script, main img, main i, main b").count(), 0);
    await page.close();
  }
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

test("errors of many runs are shown in groups", async () => {
  const page = await opened("/executions?view=errors&status=FAILED");
  await page.getByText("1 kind of error").waitFor();
  await page.close();
});

test("an unknown execution and an unknown address say so", async () => {
  for (const path of ["/executions/12345", "/entry/nothing/here"]) {
    const page = await browser.newPage();
    await page.goto(`${serving.url}${path}`);
    await page.getByRole("heading", { name: "There is nothing here" }).waitFor({ timeout: LIMIT_MS });
    await page.close();
  }
});

test("what is loaded first is below 350 kB", async () => {
  const page = await browser.newPage();
  let bytes = 0;
  page.on("response", (response) => {
    if (!response.url().includes("/api/")) bytes += Number(response.headers()["content-length"] ?? 0);
  });
  await page.goto(`${serving.url}/executions`);
  await page.getByText("gui/hello").first().waitFor({ timeout: LIMIT_MS });
  assert.ok(bytes > 50_000 && bytes < 350_000, `${bytes} bytes`);
  await page.close();
});
