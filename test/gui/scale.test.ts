import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { startGui } from "../support/page/gui.ts";
import { accessibility, assertFits, changeLook } from "../support/page/looks.ts";

/*
 * A log that is too long to be held by a page, and many steps: only what is in sight is loaded and drawn. Times are measured
 * elsewhere; here it is counted.
 */

/** Rows that a list may have in the document: those in sight and some beyond the edges. */
const ROWS_MAX = 120;
const ITERATIONS = 1_600;
const STEPS = 300;
const LOOP = `apiVersion: flow/v2
kind: Playbook
metadata: { name: long, path: scale/long }
workflow:
  - step: each
    loop: { in: "{{ range(${ITERATIONS}) | list }}", iterator: n, spec: { mode: parallel } }
    tool: { kind: noop, result: { n: "{{ n }}" } }
    next: { arcs: [{ step: flaky }] }
  - step: flaky
    tool:
      kind: http
      url: "http://127.0.0.1:1/"
      spec: { policy: { rules: [{ else: { do: retry, attempts: 3, delay: 0.3 } }] } }
`;
const WIDE = `apiVersion: flow/v2
kind: Playbook
metadata: { name: wide, path: scale/wide }
workflow:
  - step: begin
    tool: { kind: noop }
    next: { spec: { mode: inclusive }, arcs: [${Array.from({ length: STEPS }, (_, at) => `{ step: s${at} }`).join(", ")}] }
${Array.from({ length: STEPS }, (_, at) => `  - step: s${at}\n    tool: { kind: noop }\n`).join("")}`;

const gui = await startGui();
after(() => gui.close());
const { post, opened } = gui;
let long = "";
let wide = "";
before(async () => {
  for (const content of [LOOP, WIDE]) await post("/api/catalog/register", { content });
  const run = async (path: string) =>
    String((await post("/api/execute", { path, workload: {}, wait_ms: 30_000 }))["execution_id"]);
  [long, wide] = await Promise.all([run("scale/long"), run("scale/wide")]);
});

/** Calls to the API from now on whose address holds `part`. */
function callsOf(page: Page, part: string): string[] {
  const calls: string[] = [];
  page.on("request", (request) => {
    if (request.url().includes(part)) calls.push(request.url());
  });
  return calls;
}

/** There are rows, and none of them waits for its event. */
const settled = async (page: Page) => {
  await page.locator("[data-event]").first().waitFor();
  await page.locator("[data-waiting]").first().waitFor({ state: "detached" });
};
const scrollTo = (page: Page, share: number) =>
  page.evaluate(
    `{ const list = document.querySelector("section.list"); list.scrollTop = list.scrollHeight * ${share}; }`,
  );

test("of a long log what is in sight is loaded, wherever one goes, and no more", async () => {
  const page = await opened(`/executions/${long}?tab=events`);
  const pages = callsOf(page, "/events?");
  await page.getByText(/(Completed in|Failed after)/).waitFor();
  await settled(page);
  const count = Number((await page.getByText(/^[\d,]+ events$/).textContent())?.replaceAll(/\D/g, ""));
  // Two of each iteration, and the events of its command, which short ones share.
  assert.ok(count > 2 * ITERATIONS, `${count} events`);
  await scrollTo(page, 0.5);
  await settled(page);
  await page.locator("[data-event]").first().waitFor();
  assert.ok((await page.locator(".event-row").count()) <= ROWS_MAX);
  await page.getByRole("button", { name: "To the end" }).click();
  await page.locator("[data-event]", { hasText: "playbook.failed" }).waitFor();
  await settled(page);
  assert.ok((await page.locator(".event-row").count()) <= ROWS_MAX);
  // The beginning, the middle and the end, with a page to either side: of some 16 pages.
  assert.ok(pages.length < count / 500, `${pages.length} pages were loaded of ${count / 500}`);
  assert.ok(pages.every((address) => address.includes("values=short")));
  await page.close();
});

test("what is scrolled past is let go, and there again when one comes back", async () => {
  const page = await opened(`/executions/${long}?tab=events`);
  await settled(page);
  const begin = await page.locator("[data-event]").first().getAttribute("data-event");
  for (let part = 0; part <= 20; part += 1) {
    await scrollTo(page, part / 20);
    await settled(page);
  }
  const again = callsOf(page, "/events?");
  await page.getByRole("button", { name: "To the start" }).click();
  await page.locator(`[data-event="${begin}"]`).waitFor();
  assert.equal(again.length > 0, true, "the first page was not held all the time");
  await page.close();
});

test("no row in sight is blank while one scrolls", async () => {
  const page = await opened(`/executions/${long}?tab=events`);
  await settled(page);
  await page.locator("section.list").hover();
  for (let turn = 0; turn < 30; turn += 1) {
    await page.mouse.wheel(0, 700);
    const blank = await page.evaluate<number>(`new Promise((resolve) => requestAnimationFrame(() => {
      const { left, top, bottom } = document.querySelector("section.list").getBoundingClientRect();
      let blank = 0;
      for (let y = top + 14; y < Math.min(bottom, innerHeight) - 2; y += 28) {
        if (document.elementFromPoint(left + 60, y)?.closest(".event-row") === null) blank += 1;
      }
      resolve(blank);
    }))`);
    assert.equal(blank, 0);
  }
  await page.close();
});

test("a loop of many items unfolds to ranges at once, and one range to its items, of which those in sight are drawn", async () => {
  const page = await opened(`/executions/${long}`);
  const rows = page.getByRole("region", { name: "Trace" }).getByRole("row");
  await page.getByRole("button", { name: "Unfold each" }).click();
  await rows.filter({ hasText: "items 0–999" }).waitFor();
  await page.getByRole("button", { name: "Unfold items 0–999" }).click();
  await rows.filter({ hasText: "item 12" }).first().waitFor();
  assert.ok((await rows.count()) <= ROWS_MAX);
  assert.deepEqual(await accessibility(page), []);
  await page.close();
});

test("the trace is looked at closer by keys and by drawing, and tells waiting, running and retrying apart", async () => {
  const page = await opened(`/executions/${long}?step=flaky`);
  const row = page.getByRole("region", { name: "Trace" }).getByRole("row", { name: /flaky/ });
  await row.locator(".piece.retry").first().waitFor({ state: "attached" });
  await row.locator(".piece.ran.tone-bad").first().waitFor({ state: "attached" });
  await page.getByRole("treegrid", { name: "Steps" }).focus();
  await page.keyboard.press("+");
  await page.waitForURL(/until=/);
  await page.getByRole("button", { name: "Show the whole run" }).click();
  await page.waitForURL((address) => !address.search.includes("until="));
  const scale = await page.locator(".scale").boundingBox();
  assert.ok(scale !== null);
  await page.mouse.move(scale.x + 10, scale.y + 10);
  await page.mouse.down();
  await page.mouse.move(scale.x + scale.width / 2, scale.y + 10);
  await page.mouse.up();
  await page.waitForURL(/from=.*until=/);
  await page.close();
});

test("of many steps those in sight are drawn", async () => {
  const page = await opened(`/executions/${wide}`);
  const rows = page.locator(".trace-row");
  await rows.first().waitFor();
  assert.ok((await rows.count()) <= ROWS_MAX);
  await page.evaluate(`{ const list = document.querySelector(".trace-rows"); list.scrollTop = list.scrollHeight; }`);
  await page.locator(".trace-row", { hasText: `s${STEPS - 1}` }).waitFor();
  assert.ok((await rows.count()) <= ROWS_MAX);
  await page.getByLabel("Find a step by its name or state").fill("s27");
  await page.locator(".trace-row", { hasText: "s270" }).waitFor();
  await page.getByLabel("Find a step by its name or state").fill("no such");
  await page.getByText("No step has this name or state.").waitFor();
  await page.close();
});

test("nothing of the trace's ruler sticks out or lies over another label, however narrow the page is", async () => {
  // All of it, and a stretch whose last label stands at its end.
  for (const stretch of ["", "?from=0&until=86"]) {
    const page = await opened(`/executions/${wide}${stretch}`);
    const labels = page.locator(".ruler .tick .label");
    for (const width of [1280, 720, 390, 360, 320]) {
      await changeLook(page, { width });
      await labels.first().waitFor();
      await assertFits(page);
      const places = await labels.evaluateAll(placesOf);
      for (const [index, { left, right, end }] of places.entries()) {
        assert.ok(right <= end + 0.5, `${width} px: label ${index} ends ${right - end} px behind the ruler`);
        const before = places[index - 1];
        assert.ok(before === undefined || before.right <= left, `${width} px: label ${index} lies over the one before`);
      }
    }
    await page.close();
  }
});

/** Of the browser, where this runs: where the labels in sight begin and end, and where the ruler ends. */
function placesOf(labels: unknown[]): { left: number; right: number; end: number }[] {
  type Box = { left: number; right: number };
  type Label = {
    getBoundingClientRect(): Box;
    closest(selector: string): Label;
    checkVisibility(how: object): boolean;
  };
  const seen = (labels as Label[]).filter((label) => label.checkVisibility({ visibilityProperty: true }));
  return seen.map((label) => {
    const { left, right } = label.getBoundingClientRect();
    return { left, right, end: label.closest(".scale").getBoundingClientRect().right };
  });
}
