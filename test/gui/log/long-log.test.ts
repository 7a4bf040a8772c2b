import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { startGui } from "../../support/page/gui.ts";
import { accessibility, assertFits, changeLook, LOOKS } from "../../support/page/looks.ts";

/*
 * The log tab of a run of more than 30,000 events: every run of a task can be reached, what is looked at is loaded, and no more is held. The run
 * waits for a signal behind most of it, and then writes on.
 */

/** Of each iteration the log has two events and more. */
const ITERATIONS = 7_500;
/** Rows that a list may have in the document: those in sight and some beyond the edges. */
const ROWS_MAX = 80;
const bulk = (name: string, next: string) => `  - step: ${name}
    loop: { in: "{{ range(${ITERATIONS}) | list }}", iterator: n, spec: { mode: parallel } }
    tool: { kind: noop, result: { n: "{{ n }}" } }
    next: { arcs: [{ step: ${next} }] }
`;
const print = (name: string, text: string, next: string) => `  - step: ${name}
    tool: { kind: python, code: "def main():\\n    print('${text}')" }
    next: { arcs: [{ step: ${next} }] }
`;
const PLAYBOOK = `apiVersion: flow/v2
kind: Playbook
metadata: { name: long log, path: long/log }
workflow:
${print("first", "the first line", "one")}${bulk("one", "middle")}${print("middle", "in the middle", "two")}${bulk("two", "wordy")}  - step: wordy
    tool: { kind: python, code: "def main():\\n    for n in range(230): print('word', n, 'x' * 20)" }
    next: { arcs: [{ step: broken }] }
  - step: broken
    tool: { kind: python, code: "def main():\\n    raise ValueError('out of order')" }
    next: { arcs: [{ step: gate, when: "{{ event.name == 'step.failed' }}" }] }
  - step: gate
    tool: { kind: wait, signal: go_on }
    next: { arcs: [{ step: last }] }
${print("last", "the last line", "endless")}  - step: endless
    tool: { kind: python, code: "import time\\ndef main():\\n    print('still at it', flush=True)\\n    time.sleep(600)" }
`;

const gui = await startGui();
after(() => gui.close());
const { post, opened, serving } = gui;
const get = async (path: string) => (await (await fetch(`${serving.url}${path}`)).json()) as Record<string, unknown>;
/** The newest event of a type of a step; a page of filtered events may be empty and still not the last. */
async function newest(step: string, type: string): Promise<number | undefined> {
  for (let cursor: unknown = undefined; cursor !== null; ) {
    const query = new URLSearchParams({
      step,
      event_type: type,
      order: "desc",
      ...(cursor !== undefined && { cursor: String(cursor) }),
    });
    const page = await get(`/api/executions/${id}/events?${query}`);
    const [event] = page["events"] as { event_id: number }[];
    if (event !== undefined) return event.event_id;
    cursor = page["next_cursor"];
  }
  return undefined;
}

let id = "";
before(async () => {
  await post("/api/catalog/register", { content: PLAYBOOK });
  id = String((await post("/api/execute", { path: "long/log" }))["execution_id"]);
  // Without a page, which would read along. A call for its result waits for a moment.
  do await get(`/api/executions/${id}/result?wait_ms=1000`);
  while ((await newest("gate", "command.parked")) === undefined);
});

const lines = (page: Page) => page.getByRole("region", { name: "Lines of the log" });
const count = (page: Page) => page.getByRole("status").getByText(/^[\d,]+ runs?$/);

/** The page with the whole log counted. */
async function openedLog(more = ""): Promise<Page> {
  const page = await opened(`/executions/${id}?tab=log${more}`);
  await count(page).waitFor();
  return page;
}

test("the first, a middle and the last run of a long log are reached, and few of them are held", async () => {
  const page = await openedLog();
  await page
    .getByRole("status")
    .getByText(`${(2 * ITERATIONS + 4).toLocaleString("en")} runs`)
    .waitFor();
  await page.getByRole("button", { name: "To the start" }).click();
  await lines(page).getByText("the first line").waitFor();
  assert.ok((await page.locator(".log-run").count()) <= ROWS_MAX);
  await page.evaluate(`{ const list = document.querySelector(".log-lines"); list.scrollTop = list.scrollHeight / 3; }`);
  await lines(page).locator(".log-run", { hasText: "one" }).first().waitFor();
  await lines(page).locator("[data-waiting]").first().waitFor({ state: "detached" });
  assert.ok((await page.locator(".log-run").count()) <= ROWS_MAX);
  await page.getByRole("button", { name: "To the end" }).click();
  await lines(page).getByText("out of order").first().waitFor();
  // A run that wrote too much for the short form of its event is read when it is in sight, and has the lines that are kept.
  await lines(page).getByText("30 earlier lines were not kept").waitFor();
  await lines(page).getByText("word 229").waitFor();
  assert.ok((await page.locator(".log-run").count()) <= ROWS_MAX);
  await page.close();
});

test("a step, a failure and a text are found wherever they are, and what does not exist is not", async () => {
  const page = await openedLog("&step=middle");
  await lines(page).getByText("in the middle").waitFor();
  await page.getByRole("button", { name: "Next failure" }).click();
  await lines(page).getByText("out of order").first().waitFor();
  await page.getByRole("button", { name: "To the start" }).click();
  await lines(page).getByText("the first line").waitFor();
  await page.getByLabel("Search the log").fill("In The Middle");
  await page.getByRole("status").getByText("1 of 1").waitFor();
  await lines(page).locator("mark").getByText("in the middle").waitFor();
  await page.getByLabel("Search the log").fill("nothing has this");
  await page.getByRole("status").getByText("no run").waitFor();
  await page.getByLabel("Search the log").fill("");
  await page.getByRole("combobox", { name: "Step" }).selectOption("middle");
  await page.getByRole("status").getByText("1 run", { exact: true }).waitFor();
  await page.getByRole("combobox", { name: "Step" }).selectOption("");
  await page.getByRole("combobox", { name: "Runs" }).selectOption("failed");
  await page.getByRole("status").getByText("1 run", { exact: true }).waitFor();
  await lines(page).getByText("out of order").first().waitFor();
  await page.getByRole("combobox", { name: "Step" }).selectOption("first");
  await page.getByText("No run of a task is like this.").waitFor();
  await page.close();
});

test("the log of a moment of the past ends there", async () => {
  const at = await newest("middle", "task.done");
  const page = await openedLog(`&at=${at}`);
  await page
    .getByRole("status")
    .getByText(`${(ITERATIONS + 2).toLocaleString("en")} runs`)
    .waitFor();
  await page.getByRole("button", { name: "To the end" }).click();
  await lines(page).getByText("in the middle").waitFor();
  await page.close();
});

test("it can be used in every look, and is downloaded as a whole", async () => {
  const page = await openedLog();
  await page.getByRole("button", { name: "To the start" }).click();
  await lines(page).getByText("the first line").waitFor();
  for (const look of LOOKS) {
    await changeLook(page, look);
    assert.deepEqual(await accessibility(page), []);
    await assertFits(page);
  }
  const [file] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Download" }).click(),
  ]);
  let text = "";
  for await (const part of await file.createReadStream()) text += String(part);
  for (const line of ["the first line", "in the middle", "out of order"]) assert.match(text, new RegExp(line));
  assert.equal(text.split("\n== ").length, 2 * ITERATIONS + 4);
  await page.close();
});

test("what comes is appended at the end, what writes now is below it, and who looks elsewhere stays there", async () => {
  const page = await openedLog();
  await lines(page).getByText("out of order").first().waitFor();
  const other = await openedLog();
  await other.getByRole("button", { name: "To the start" }).click();
  await lines(other).getByText("the first line").waitFor();
  await post(`/api/executions/${id}/signals/go_on`, {});
  await lines(page).getByText("the last line").waitFor();
  await lines(page).locator("[data-run=open]").getByText("still at it").waitFor();
  await count(other)
    .getByText(`${(2 * ITERATIONS + 6).toLocaleString("en")} runs`)
    .waitFor();
  assert.equal(await lines(other).getByText("the first line").isVisible(), true);
  await post(`/api/executions/${id}/cancel`, {});
  await page.getByText("Cancelled after").waitFor();
  await Promise.all([page.close(), other.close()]);
});
