import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { LIMIT_MS, startOwnGui } from "../support/page/gui.ts";
import { assertUsable, assertViewsUsable, changeLook, LOOKS } from "../support/page/looks.ts";

/*
 * Operations and the list of executions, in a real browser against a real `flow serve` with a worker: one service and one
 * browser for all of these.
 */

const playbook = (path: string, workflow: string, workload = "{ n: 1 }") => `apiVersion: flow/v2
kind: Playbook
metadata: { name: one, path: ${path} }
workload: ${workload}
workflow:
${workflow}`;
const QUICK = "  - step: quick\n    tool: { kind: noop }\n";
const WAITS = "  - step: waits_here\n    tool: { kind: shell, command: sleep 600 }\n";
/** Fails at once, with another number and markup in each message. */
const FAILS = `  - step: calls
    tool: { kind: http, url: "http://127.0.0.1:1/<img src=x onerror=alert(1)>/{{ workload.n }}" }
`;
const LONG_PATH = `gui/${"long-name/".repeat(48)}end`;
/** More than two pages of the list. */
const MANY = 230;

const gui = await startOwnGui();
after(() => gui.close());
const { serving, browser, post, opened } = gui;
for (const [path, workflow] of [
  ["gui/quick", QUICK],
  ["gui/live", QUICK],
  ["gui/waits", WAITS],
  ["gui/fails", FAILS],
  [LONG_PATH, QUICK],
] as const) {
  await post("/api/catalog/register", { content: playbook(path, workflow) });
}
const start = async (path: string, more = {}) =>
  String((await post("/api/execute", { path, ...more }))["execution_id"]);
for (let n = 0; n < MANY; n += 1) await start("gui/quick");
for (let n = 0; n < 6; n += 1) await start("gui/fails", { workload: { n }, wait_ms: 30_000 });
await start(LONG_PATH);
const running = await start("gui/waits");

const rows = (page: Page) => page.locator("tr[data-row]");

test("each view shows its subject, light, dark and narrow, without serious accessibility problems", async (t) => {
  const page = await opened("/");
  await assertViewsUsable(t, page, [
    ["/operations", "Nothing waits for a worker."],
    ["/executions", "gui/waits"],
    ["/executions?status=PENDING,RUNNING,PAUSED&since=1h", "gui/waits"],
    ["/executions?path=none%2Fsuch", "No matching executions"],
    ["/executions?view=errors", "6 ×"],
  ]);
  await page.close();
});

test("an address without anything says so, and is readable light, dark and narrow", async () => {
  const page = await opened("/executions/1/2/3");
  for (const look of LOOKS) {
    await changeLook(page, look);
    await page.getByRole("heading", { name: "Page not found" }).waitFor();
    await assertUsable(page);
  }
  await page.close();
});

test("operations say that all is well, and what each worker runs, with a way to its execution", async () => {
  const page = await opened("/operations");
  await page.locator('[data-part="verdict"][data-level="good"]').waitFor();
  const command = page.locator("[data-worker]").getByRole("link", { name: "waits_here" });
  assert.match((await command.getAttribute("href")) ?? "", new RegExp(`^/executions/${running}`));
  await page.getByText("This one").waitFor();
  await page.getByRole("button", { name: "Sweep now" }).click();
  await page.getByText(/No stranded work|told again/).waitFor();
  await page
    .getByText(/asked for/)
    .first()
    .waitFor();
  await page.getByText(/^Nothing is wrong that its \d+ checks know of/).waitFor();
  assert.match(await page.title(), /^. Workers & queues · flow$/);
  await page.close();
});

test("filters stand in the address, and come back with it", async () => {
  const page = await opened("/executions");
  await page.getByRole("button", { name: "failed" }).click();
  await page.waitForURL(/status=FAILED/);
  await page.getByText("6 shown, 0 open").waitFor();
  await page.getByRole("button", { name: "running" }).click();
  await page.waitForURL(/status=RUNNING(,|%2C)FAILED/);
  await page.getByText("7 shown, 1 open").waitFor();
  await page.getByLabel("Started").selectOption("1h");
  await page.waitForURL(/since=1h/);
  await page.getByLabel("Search").fill("gui/fails");
  await page.getByLabel("Search").press("Enter");
  await page.waitForURL(/q=gui/);
  await page.getByText("6 shown, 0 open").waitFor();
  await page.reload();
  await page.getByText("6 shown, 0 open").waitFor();
  assert.equal(await page.getByLabel("Search").inputValue(), "gui/fails");
  assert.equal(await page.getByLabel("Started").inputValue(), "1h");
  await page.close();
});

test("a part of a path is enough, in whatever case, and Escape takes the filter away with its text", async () => {
  const page = await opened("/executions");
  const field = page.getByLabel("Search");
  await field.fill("FAIL");
  await field.press("Enter");
  await page.waitForURL(/q=FAIL/);
  await page.getByText("6 shown, 0 open").waitFor();
  await field.fill("FAILS");
  await field.press("Escape");
  await page.waitForURL((url) => !url.search.includes("q="));
  assert.equal(await field.inputValue(), "");
  await page.getByText("100+ shown").waitFor();
  assert.equal(await page.evaluate("document.activeElement.hasAttribute('data-filter')"), false);
  await page.close();
});

test("a queue that waits for labels that no worker has fits a narrow page", async () => {
  const long = "an-extraordinarily-long-value-of-a-label-that-nobody-has-got";
  const content = playbook(
    "gui/labels",
    `  - step: a\n    spec: { labels: { gpu: ${long} } }\n    tool: { kind: noop }\n`,
  );
  await post("/api/catalog/register", { content });
  const id = await start("gui/labels");
  const page = await opened("/operations");
  const queue = page.locator('[data-part="queue"]');
  for (const width of [360, 390]) {
    await changeLook(page, { width });
    await queue.getByText("no ready worker has these labels").waitFor();
    await queue.getByText(`gpu=${long}`).waitFor();
    await assertUsable(page);
  }
  await page.close();
  await post(`/api/executions/${id}/cancel`, {});
});

test("new executions appear; while the user is at a row they wait to be shown", async () => {
  const page = await opened("/executions?path=gui%2Flive");
  await page.getByText("No matching executions").waitFor();
  const first = await start("gui/live");
  await page.locator(`tr[data-row="${first}"]`).waitFor();
  await page.keyboard.press("j");
  await page.locator(`tr[data-row="${first}"][aria-selected="true"]`).waitFor();
  const second = await start("gui/live");
  await page.getByRole("button", { name: "1 new: show" }).waitFor();
  assert.equal(await rows(page).count(), 1);
  await page.getByRole("button", { name: "1 new: show" }).click();
  await page.locator(`tr[data-row="${second}"]`).waitFor();
  assert.equal(await rows(page).first().getAttribute("data-row"), second);
  await page.close();
});

test("older ones come while one scrolls, and only those that are seen are in the page", async () => {
  const page = await opened("/executions?path=gui%2Fquick");
  await page.getByText("100+ shown").waitFor();
  for (const shown of ["200+ shown", `${MANY} shown`]) {
    await page.evaluate("window.scrollTo(0, document.body.scrollHeight)");
    await page.getByText(shown).waitFor();
  }
  await page.evaluate("window.scrollTo(0, document.body.scrollHeight)");
  await page.locator(`tr[aria-rowindex="${MANY + 1}"]`).waitFor();
  assert.ok((await rows(page).count()) < 90);
  await page.close();
});

test("a bulk operation previews what matches the list, cancels the marked ones alone, and shows its progress", async () => {
  const mine = await Promise.all([1, 2, 3].map((n) => start("gui/waits", { workload: { n } })));
  const page = await opened("/executions?path=gui%2Fwaits");
  await page.getByText("4 open").waitFor();
  await page.getByLabel(`Mark ${running}`).waitFor();
  await page.getByRole("button", { name: "Act on all …" }).click();
  const dialog = page.getByRole("dialog", { name: "All executions in this list" });
  await dialog.getByRole("button", { name: "Cancel 4 executions" }).waitFor();
  assert.equal(await dialog.locator(".bulk-sample li").count(), 4);
  await assertUsable(page);
  await dialog.getByRole("button", { name: "Close" }).click();
  for (const id of mine) await page.getByLabel(`Mark ${id}`).check();
  await page.getByRole("button", { name: "3 marked …" }).click();
  const marked = page.getByRole("dialog", { name: "3 executions marked" });
  await marked.getByLabel(/^Reason/).fill("wrong day");
  await marked.getByRole("button", { name: "Cancel 3 executions" }).click();
  await page.waitForURL(/\/executions\/bulk\/\d+$/);
  await page.getByRole("heading", { name: "Cancel 3 executions" }).waitFor();
  await page.getByText("3 cancelled").waitFor();
  await page.getByText("wrong day").waitFor();
  await assertUsable(page);
  await page.goto(`${serving.url}/executions?path=gui%2Fwaits`);
  await page.locator(`tr[data-row="${mine[0]}"] [data-status="CANCELLED"]`).waitFor();
  // The dialog opens at what fits the marked ones: what has ended is repeated, and what is chosen then is kept.
  for (const id of mine.slice(0, 2)) await page.getByLabel(`Mark ${id}`).check();
  await page.getByRole("button", { name: "2 marked …" }).click();
  const ended = page.getByRole("dialog", { name: "2 executions marked" });
  await ended.getByRole("button", { name: "Run 2 executions again" }).waitFor();
  await ended.getByLabel("Pause").check();
  await ended.getByText("there is nothing to pause").waitFor();
  await ended.getByRole("button", { name: "Close" }).click();
  assert.equal(await page.locator(`tr[data-row="${running}"] [data-status="RUNNING"]`).count(), 1);
  await page.close();
});

test("a bulk operation without executions that suit it, or without the right, says so", async () => {
  const page = await opened("/executions?path=none%2Fsuch");
  await page.getByRole("button", { name: "Act on all …" }).click();
  await page.getByText("there is nothing to cancel").waitFor();
  await page.getByRole("button", { name: "Close" }).click();
  await page.goto(`${serving.url}/executions?status=RUNNING`);
  page.removeAllListeners("console");
  await page.route("**/executions/bulk", (route) => {
    const isPreview = route.request().postDataJSON().dry_run === true;
    return isPreview
      ? route.continue()
      : route.fulfill({ status: 403, json: { error: "You may not execute gui/waits", code: "FORBIDDEN" } });
  });
  await page.getByRole("button", { name: "Act on all …" }).click();
  await page.getByRole("button", { name: "Cancel 1 execution" }).click();
  await page.getByRole("alert").getByText("You may not execute gui/waits").waitFor();
  await page.close();
});

test("a bulk operation on the page is held, continues, and is stopped", async () => {
  const ids = Array.from({ length: 3 }, (_, n) => `90000000000${n}`);
  const asked: string[] = [];
  let status = "running";
  const answer = () => ({
    ...{ bulk_id: "77", action: "cancel", status, by: "olga", options: {} },
    ...{ filter: { execution_ids: ids }, created_at: new Date().toISOString() },
    ended_at: status === "cancelled" ? new Date().toISOString() : null,
    counts: { matched: 3, done: 1, failed: 1, skipped: 0 },
    failures: [{ execution_id: ids[0], code: "FORBIDDEN", message: "olga may not execute it any more" }],
  });
  const page = await opened("/executions");
  await page.route(/executions\/bulk\/77/, (route) => {
    const change = /77\/(\w+)$/.exec(new URL(route.request().url()).pathname)?.[1];
    if (change !== undefined) asked.push(change);
    if (change !== undefined) status = { pause: "paused", resume: "running", cancel: "cancelled" }[change] ?? status;
    return route.request().resourceType() === "document" ? route.continue() : route.fulfill({ json: answer() });
  });
  await page.goto(`${serving.url}/executions/bulk/77`);
  await page.getByText("1 cancelled, 1 failed, 1 to go").waitFor();
  await page.getByText("olga may not execute it any more").waitFor();
  await page.getByRole("button", { name: "Hold" }).click();
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("button", { name: "Hold" }).waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText("1 not reached").waitFor();
  assert.deepEqual(asked, ["pause", "resume", "cancel"]);
  assert.equal(await page.getByRole("button", { name: /Hold|Continue|Stop/ }).count(), 0);
  await page.close();
});

test("failures that differ only in their numbers are one kind, with step, playbook and examples", async () => {
  const page = await opened("/executions?view=errors");
  page.on("dialog", (dialog) => assert.fail(`a script ran: ${dialog.message()}`));
  const group = page.locator('[data-part="error-group"]');
  await group.getByText("6 ×").waitFor();
  assert.equal(await group.count(), 1);
  await group.getByText("in calls").waitFor();
  assert.equal(await group.locator("img").count(), 0);
  assert.equal(await group.getByRole("link").count(), 5);
  await page.goto(`${serving.url}/executions?view=errors&path=gui%2Fquick`);
  await page.getByText("No matching execution has failed").waitFor();
  await page.close();
});

test("a failure of what was called is counted once, where it began", async () => {
  await post("/api/catalog/register", {
    content: playbook("gui/calls", "  - step: call\n    tool: { kind: playbook, path: gui/breaks }\n"),
  });
  await post("/api/catalog/register", {
    content: playbook("gui/breaks", "  - step: breaks\n    tool: { kind: shell, command: exit 3 }\n"),
  });
  await start("gui/calls", { wait_ms: 30_000 });
  const page = await opened("/executions?view=errors&path=gui%2F");
  const group = page.locator('[data-part="error-group"]').filter({ hasText: "in breaks" });
  await group.getByText("1 ×").waitFor();
  await group.getByText("1 that called it failed too").waitFor();
  await page
    .getByText("2 kinds of error in 8 failed executions, 1 of which failed because of what it called")
    .waitFor();
  // Where who was called is not looked at, who called is what failed.
  await page.goto(`${serving.url}/executions?view=errors&path=gui%2Fcalls`);
  await page.getByText("1 kind of error in 1 failed execution").waitFor();
  await page.close();
});

test("a key that is pressed in the moment in which rows appear is not lost", async () => {
  const page = await browser.newPage();
  page.setDefaultTimeout(LIMIT_MS);
  // Between the drawing of the rows and the browser's next task: no user is faster.
  await page.addInitScript(`{
    const observer = new MutationObserver(() => {
      if (document.querySelector("[data-row]") === null) return;
      observer.disconnect();
      document.dispatchEvent(new KeyboardEvent("keydown", { key: "j", bubbles: true }));
    });
    observer.observe(document, { childList: true, subtree: true });
  }`);
  await page.goto(`${serving.url}/executions?status=RUNNING`);
  await page.locator('[aria-selected="true"]').first().waitFor();
  await page.close();
});

test("keys go between the pages, mark rows, and are listed", async () => {
  const page = await opened("/executions?status=RUNNING");
  await rows(page).first().waitFor();
  await page.keyboard.press("j");
  await page.locator('[aria-selected="true"]').first().waitFor();
  await page.keyboard.press("x");
  await page.getByRole("button", { name: "1 marked …" }).waitFor();
  await page.keyboard.press("x");
  await page.getByRole("button", { name: "1 marked …" }).waitFor({ state: "detached" });
  await goneTo(page, "o", /\/operations$/);
  await page.keyboard.press("?");
  await page.getByRole("heading", { name: "Keys" }).waitFor();
  await page.keyboard.press("Escape");
  await goneTo(page, "e", /\/executions$/);
  await page.close();
});

test("failed executions are run again in bulk, and lead to the new ones", async () => {
  const page = await opened("/executions?status=FAILED&path=gui%2Ffails");
  await page.getByRole("button", { name: "Act on all …" }).click();
  const dialog = page.getByRole("dialog");
  const again = dialog.getByRole("radio", { name: "Run again" });
  // Nothing else can be done with those that have ended.
  assert.ok(await again.isChecked());
  await dialog.getByText("runs calls").first().waitFor();
  await dialog.getByLabel("Cancel").check();
  await dialog.getByText("there is nothing to cancel").waitFor();
  assert.ok(await dialog.getByRole("button", { name: "Cancel 0 executions" }).isDisabled());
  await again.check();
  await dialog.getByRole("button", { name: "Run 6 executions again" }).click();
  await page.getByText("6 started again").waitFor();
  await page.getByRole("link", { name: "All 6 new executions" }).click();
  await page.getByText("6 shown").waitFor();
  await page.close();
});

/** Presses `g` and a key. The second counts for about a second only: on a busy machine the browser may see it too late. */
async function goneTo(page: Page, key: string, address: RegExp): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    await page.keyboard.press("g");
    await page.keyboard.press(key);
    try {
      return await page.waitForURL(address, { timeout: 5_000 });
    } catch (error) {
      if (tries === 5) throw error;
    }
  }
}
