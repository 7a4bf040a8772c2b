import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { startGui } from "../support/page/gui.ts";
import { assertUsable, changeLook, LOOKS } from "../support/page/looks.ts";

/* An execution as it was after an event of its log, in a real browser. */

const PLAYBOOK = `apiVersion: flow/v2
kind: Playbook
metadata: { name: back, path: travel/back }
workflow:
  - step: first
    tool: { kind: python, code: "return {'n': 7}" }
    set: { ctx.seen: "{{ result.n }}" }
    next: { arcs: [{ step: second }] }
  - step: second
    tool: { kind: python, code: "return 2" }
`;

const gui = await startGui();
after(() => gui.close());
const { post, opened } = gui;

let path = "";
before(async () => {
  await post("/api/catalog/register", { content: PLAYBOOK });
  const { execution_id } = await post("/api/execute", { path: "travel/back", wait_ms: 30_000 });
  path = `/executions/${String(execution_id)}`;
});

const slider = (page: Page) => page.getByRole("slider", { name: "Place in the log" });
const looking = (page: Page) => page.getByRole("region", { name: "Replay" });
const atOf = (page: Page) => new URL(page.url()).searchParams.get("at");

test("looking back begins at the newest event; keys move it, the address holds it, and steps and variables follow", async () => {
  const page = await opened(path);
  await page.getByRole("button", { name: "Replay the run" }).click();
  await looking(page)
    .getByText(/Event \d+ of \d+/)
    .waitFor();
  await looking(page)
    .getByText(/COMPLETED|completed/i)
    .first()
    .waitFor();
  const newest = atOf(page);
  await slider(page).focus();
  await page.keyboard.press("Home");
  await looking(page).getByText("playbook.initialized").waitFor();
  await looking(page)
    .getByText(/Event 1 of/)
    .waitFor();
  await page.waitForURL((url) => url.searchParams.get("at") !== newest);
  await page.getByText("not reached").first().waitFor();
  assert.equal(await looking(page).getByText("Variables").count(), 0);
  await page.keyboard.press("ArrowRight");
  await looking(page)
    .getByText(/Event 2 of/)
    .waitFor();
  await page.keyboard.press("End");
  await looking(page).getByText("Variables").waitFor();
  await looking(page).getByText("seen").waitFor();
  await page.getByRole("button", { name: "Back to now" }).click();
  await page.getByRole("button", { name: "Replay the run" }).waitFor();
  assert.equal(atOf(page), null);
  await page.close();
});

test("the details of a step and the log of the run are those of the chosen moment too", async () => {
  const page = await opened(`${path}?step=first`);
  const details = page.getByRole("region", { name: "Step", exact: true });
  await details.getByText("Attempt 1").waitFor();
  await page.getByRole("button", { name: "Replay the run" }).click();
  await looking(page)
    .getByText(/Event \d+ of \d+/)
    .waitFor();
  await slider(page).focus();
  await page.keyboard.press("Home");
  await details.getByText(/^It (was not reached|has not begun)/).waitFor();
  assert.equal(await details.getByText("Attempt 1").count(), 0);
  await page.keyboard.press("End");
  await details.getByText("Attempt 1").waitFor();
  await details.getByRole("button", { name: "Run again from here …" }).waitFor({ state: "detached" });
  await page.close();
});

test("an address leads to its event, and the log and the slider move each other", async () => {
  const page = await opened(`${path}?tab=events`);
  await page.locator("[data-event]").nth(3).click();
  const event = new URL(page.url()).searchParams.get("event");
  assert.equal(atOf(page), null, "the log alone moves nothing while it shows the present");
  await page.goto(`${page.url()}&at=${event}`);
  await looking(page)
    .getByText(/Event 4 of/)
    .waitFor();
  await page.getByRole("button", { name: "One event on" }).click();
  await looking(page)
    .getByText(/Event 5 of/)
    .waitFor();
  await page.waitForURL((url) => url.searchParams.get("at") !== event);
  assert.equal(atOf(page), new URL(page.url()).searchParams.get("event"));
  await page.locator("[data-event]").nth(0).click();
  await looking(page)
    .getByText(/Event 1 of/)
    .waitFor();
  await page.close();
});

test("an event of no log is said to be missing", async () => {
  const page = await opened(path);
  await page.goto(`${page.url()}?at=1`);
  await looking(page)
    .getByText(/is not in the log of execution/)
    .waitFor();
  // The browser itself notes the refused call.
  await page.context().close();
});

test("it can be used in light, dark and narrow", async () => {
  const page = await opened(`${path}?tab=graph`);
  await page.getByRole("button", { name: "Replay the run" }).click();
  await looking(page).getByText("Variables").waitFor();
  for (const look of LOOKS) {
    await changeLook(page, look);
    await assertUsable(page);
  }
  await page.close();
});
