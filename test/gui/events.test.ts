import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { LIMIT_MS, startGui } from "../support/page/gui.ts";
import { accessibility } from "../support/page/looks.ts";
import { startHttpServer } from "../support/servers/http-server.ts";
import { startTcpProxy } from "../support/servers/tcp-proxy.ts";

/*
 * The event log of an execution in a real browser: its filters, one event and the ways to it, and what happens live.
 */

const WORK = `apiVersion: flow/v2
kind: Playbook
metadata: { name: work, path: log/work }
workload: { url: "" }
workflow:
  - step: large
    tool: { kind: python, code: "def main(): return {'text': 'long ' * 2000}" }
    next: { arcs: [{ step: each }] }
  - step: each
    loop: { in: "{{ range(30) | list }}", iterator: n, spec: { mode: parallel } }
    tool: { kind: noop, result: { n: "{{ n }}" } }
    next: { arcs: [{ step: ask }] }
  - step: ask
    tool: { kind: http, url: "{{ workload.url }}", spec: { policy: { rules: [{ else: { do: fail } }] } } }
`;
const LOOP = `apiVersion: flow/v2
kind: Playbook
metadata: { name: live, path: log/live }
workload: { url: "" }
workflow:
  - step: ask
    tool: { kind: http, url: "{{ workload.url }}" }
    next: { arcs: [{ step: each }] }
  - step: each
    loop: { in: "{{ range(60) | list }}", iterator: n, spec: { mode: parallel } }
    tool: { kind: noop, result: { n: "{{ n }}" } }
`;

const gui = await startGui();
after(() => gui.close());
const { serving, browser, post, opened } = gui;
/** Answers that are held back until a test gives them. */
const held: ServerResponse[] = [];
const asked = await startHttpServer((request, response) => {
  if (request.url === "/held") held.push(response);
  else response.writeHead(500, { "content-type": "text/plain" }).end("Broken on purpose");
});
after(() => asked.close());

let work = "";
let path = "";
before(async () => {
  for (const content of [WORK, LOOP]) await post("/api/catalog/register", { content });
  const started = await post("/api/execute", {
    path: "log/work",
    workload: { url: `${asked.origin}/broken` },
    wait_ms: 30_000,
  });
  work = String(started["execution_id"]);
  path = `/executions/${work}?tab=events`;
});

const rows = (page: Page) => page.locator("[data-event]");
const detail = (page: Page) => page.getByRole("region", { name: "Event", exact: true });
const counted = (page: Page) => page.getByText(/^\d+ events?$/);
const eventOf = (page: Page) => new URL(page.url()).searchParams.get("event") ?? "";
/** What a button puts on the clipboard. */
const copied = async (page: Page, name: string) => {
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.evaluate("navigator.clipboard.writeText('')");
  await detail(page).getByRole("button", { name }).first().click();
  return await until(() => page.evaluate<string>("navigator.clipboard.readText()"));
};
/** Asks until it gives something. */
const until = async <T>(ask: () => Promise<T>): Promise<T> => {
  for (;;) {
    const found = await ask();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
};
const answerHeld = async () => {
  await until(async () => held.length > 0);
  for (const response of held.splice(0)) response.end("{}");
};

test("what the log is narrowed to stands in the address, is looked for by the server, and is taken back at once", async () => {
  const page = await opened(path);
  await counted(page).waitFor();
  const all = Number.parseInt((await counted(page).textContent()) ?? "", 10);
  await page.getByLabel("Failures only").check();
  await page.waitForURL(/failed=true/);
  await page
    .getByText(/Broken on purpose|HTTP_500|500/)
    .first()
    .waitFor();
  await rows(page).filter({ hasText: "playbook.initialized" }).first().waitFor({ state: "detached" });
  for (const row of await rows(page).all()) assert.match(await row.innerHTML(), /failed|call\.error|task\.done/);
  await page.getByLabel("Type").selectOption("step.failed");
  await page.getByText("1 event", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Show all" }).click();
  // What closes the log may have come meanwhile.
  await until(async () => Number.parseInt((await counted(page).textContent()) ?? "", 10) >= all);
  await page.keyboard.press("/");
  await page.keyboard.type("LOOP.START");
  await page.getByText("1 event", { exact: true }).waitFor();
  assert.match(page.url(), /q=LOOP\.START/);
  await page.getByLabel("Find").fill("nothing is like this");
  await page.getByText("No matching events").waitFor();
  assert.deepEqual(await accessibility(page), []);
  await page.getByRole("button", { name: "Show all" }).click();
  await page.getByLabel("Step", { exact: true }).fill("each");
  await page.waitForURL(/step=each/);
  await page.locator("[data-event]", { hasText: "loop.started" }).waitFor();
  await page.locator("[data-event]", { hasText: "playbook." }).first().waitFor({ state: "detached" });
  await page.close();
});

test("an event has an address: it is shown where it stands, also where the filter leaves it out", async () => {
  const page = await opened(path);
  await page.getByLabel("Type").selectOption("step.failed");
  await page.getByText("1 event", { exact: true }).waitFor();
  await rows(page).filter({ hasText: "step.failed" }).first().click();
  await page.waitForURL(/event=/);
  const id = eventOf(page);
  await page.getByRole("button", { name: "Show all" }).click();
  const chosen = page.locator('[data-event][aria-pressed="true"]');
  await chosen.waitFor();
  assert.equal(await chosen.getAttribute("data-event"), id);
  await page.goto(`${serving.url}${path}&type=loop.done&event=${id}`);
  await page.getByText("The filter leaves this event out of the list.").waitFor();
  await detail(page).getByRole("heading", { name: "step.failed" }).waitFor();
  await page.getByRole("link", { name: "Among all events" }).click();
  await chosen.waitFor();
  await page.goto(`${serving.url}${path}&event=1`);
  await page.getByText("This execution has no event 1.").waitFor();
  await page.close();
});

test("j and k go through the events, and one is copied as a link, JSON, a command and a call", async () => {
  const page = await opened(path);
  await counted(page).waitFor();
  await page.keyboard.press("j");
  await detail(page).getByRole("heading", { name: "playbook.initialized" }).waitFor();
  await page.keyboard.press("j");
  await detail(page).getByRole("heading", { name: "workflow.initialized" }).waitFor();
  await page.keyboard.press("k");
  await detail(page).getByRole("heading", { name: "playbook.initialized" }).waitFor();
  assert.deepEqual(await accessibility(page), []);
  const id = eventOf(page);
  assert.equal(await copied(page, "Copy link"), `${serving.url}${path}&event=${id}`);
  assert.equal(String(JSON.parse(await copied(page, "as JSON")).event_id), id);
  assert.match(await copied(page, "as CLI"), new RegExp(`^flow events ${work} --after \\d+ --limit 1 --json$`));
  const address = /'(.*)'/.exec(await copied(page, "as curl"))?.[1] ?? "";
  const answer = (await (await fetch(address)).json()) as { events: { event_id: number }[] };
  assert.equal(String(answer.events[0]?.event_id), id);
  await page.close();
});

test("a key that is pressed before the events are there chooses one when they are", async () => {
  const page = await browser.newTab();
  page.setDefaultTimeout(LIMIT_MS);
  let give = () => {};
  const given = new Promise<void>((resolve) => {
    give = resolve;
  });
  await page.route("**/events?*", async (route) => {
    await given;
    await route.continue();
  });
  await page.goto(`${serving.url}${path}`);
  await page.locator("[data-waiting]").first().waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  give();
  await detail(page).getByRole("heading", { name: "workflow.initialized" }).waitFor();
  await page.close();
});

test("a large value is left to the event itself, which has all of it", async () => {
  const page = await opened(`${path}&step=large`);
  const row = page.locator("[data-event]", { hasText: "long result" }).first();
  await row.click();
  assert.ok(!(await row.innerHTML()).includes("long long"));
  await detail(page).getByRole("heading", { name: "task.done" }).waitFor();
  const text = await copied(page, "as JSON");
  assert.ok(text.length > 10_000, `${text.length} characters`);
  await page.close();
});

test("at the end of the list what comes is followed; a lost connection says so, and the page goes on by itself", async () => {
  const proxy = await startTcpProxy(Number(new URL(serving.url).port));
  const { execution_id } = await post("/api/execute", { path: "log/live", workload: { url: `${asked.origin}/held` } });
  const page = await browser.newTab();
  page.setDefaultTimeout(LIMIT_MS);
  await page.goto(`http://127.0.0.1:${proxy.port}/executions/${execution_id}?tab=events`);
  await page.locator('[data-live="live"]').waitFor();
  await page.getByRole("button", { name: "To the end" }).click();
  proxy.cut();
  await page.getByText("connection lost, trying again").waitFor();
  await answerHeld();
  await page.locator('[data-live="lost"]').waitFor();
  proxy.mend();
  await page.getByText("Completed in").waitFor();
  await page.locator("[data-event]", { hasText: "playbook.completed" }).waitFor();
  await until(() =>
    page.evaluate<boolean>(`{
      const list = document.querySelector("section.list");
      list.scrollHeight - list.clientHeight - list.scrollTop < 60;
    }`),
  );
  await page.close();
});

test("an execution that may not be followed any more says why and asks no more", async () => {
  const { execution_id } = await post("/api/execute", { path: "log/live", workload: { url: `${asked.origin}/held` } });
  const page = await browser.newTab();
  page.setDefaultTimeout(LIMIT_MS);
  let streams = 0;
  await page.route("**/stream?*", async (route) => {
    streams += 1;
    const body = JSON.stringify({ error: "You may not view this", code: "FORBIDDEN", request_id: "1" });
    await route.fulfill({ status: 403, contentType: "application/json", body });
  });
  await page.goto(`${serving.url}/executions/${execution_id}`);
  await page.getByText("not live: you may not follow it").waitFor();
  const before = streams;
  await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Events" }).click();
  await rows(page).first().waitFor();
  assert.equal(streams, before);
  await page.close();
  await answerHeld();
});

test("where the server has no room for another stream the page says so, asks rarely, and reads again by itself", async () => {
  const { execution_id } = await post("/api/execute", { path: "log/live", workload: { url: `${asked.origin}/held` } });
  const page = await browser.newTab();
  page.setDefaultTimeout(LIMIT_MS);
  let streams = 0;
  await page.route("**/stream?*", async (route) => {
    streams += 1;
    const error = "You have 100 event streams open at this server";
    const body = JSON.stringify({ error, code: "RATE_LIMITED", request_id: "1" });
    await route.fulfill({ status: 429, headers: { "retry-after": "10" }, contentType: "application/json", body });
  });
  await page.goto(`${serving.url}/executions/${execution_id}`);
  await page.getByText("not live, read every 3 s: too many live pages are open").waitFor();
  await answerHeld();
  await page.getByText("Completed in").waitFor();
  assert.ok(streams <= 2, `${streams} streams were asked for`);
  await page.close();
});
