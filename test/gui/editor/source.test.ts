import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { startGui } from "../../support/page/gui.ts";
import { writeDocument } from "../../support/page/gui-editor.ts";
import { accessibility, assertFits, changeLook, LOOKS } from "../../support/page/looks.ts";

/* A document with its graph beside it, in a real browser. */

const TEXT = `apiVersion: flow/v2
kind: Playbook
metadata: { name: source, path: source/two }
workload: { who: world }
workflow:
  - step: first
    tool: { kind: noop }
    next: { arcs: [{ step: second }] }
  - step: second
    tool: { kind: noop, result: "{{ workload.who }}" }
`;

const gui = await startGui();
after(() => gui.close());
const { post, opened } = gui;
await post("/api/catalog/register", { content: TEXT });
await post("/api/catalog/register", {
  content:
    'apiVersion: flow/v2\nkind: Mcp\nmetadata: { name: s, path: source/server }\nspec: { endpoint: "http://127.0.0.1:9/mcp" }\n',
});

const WIDE = { width: 1400 };
const box = (page: Page, name: string) => page.locator(".source-graph").getByRole("button", { name });
const marked = (page: Page, name: string) => page.locator('.source-graph [aria-current="true"]', { hasText: name });

test("the step under the cursor is marked in the graph, and choosing a step moves the cursor to it", async () => {
  const page = await opened("/entry/source/two?tab=document", WIDE);
  await box(page, "second").waitFor();
  await page.locator(".cm-line", { hasText: "kind: noop }" }).first().click();
  await marked(page, "first").waitFor();
  await box(page, "second").click();
  await marked(page, "second").waitFor();
  await page.locator(".cm-focused").waitFor();
  assert.equal(await page.evaluate("document.querySelectorAll('.source-graph [aria-current]').length"), 1);
  // By keys: to the box of the graph, Enter, and on from its place in the text.
  await box(page, "first").focus();
  await page.keyboard.press("Enter");
  await marked(page, "first").waitFor();
  await page.locator(".cm-focused").waitFor();
  await page.close();
});

test("the graph follows what is typed, in the same picture; while the text cannot be read, the last one stays and says so", async () => {
  const page = await opened("/register?from=source/two", WIDE);
  await box(page, "second").waitFor();
  await page.evaluate("document.querySelector('.react-flow').dataset.mark = 'same'");
  await writeDocument(
    page,
    `${TEXT}    next: { arcs: [{ step: third }] }\n  - step: third\n    tool: { kind: noop }\n`,
  );
  await box(page, "third").waitFor();
  await marked(page, "third").waitFor();
  await page.locator('.react-flow[data-mark="same"]').waitFor();
  await page.keyboard.type("  - step: a: b");
  const words = page.locator(".source-graph").getByRole("status");
  await words.getByText(/The graph is of the text before: line \d+ cannot be read/).waitFor();
  await box(page, "third").waitFor();
  assert.deepEqual(await accessibility(page), []);
  await writeDocument(page, TEXT);
  await words.waitFor({ state: "detached" });
  await box(page, "third").waitFor({ state: "detached" });
  await page.locator('.react-flow[data-mark="same"]').waitFor();
  await page.close();
});

test("text and graph stand side by side where there is room, else one of both is shown; each can be used in every look", async () => {
  const page = await opened("/entry/source/two?tab=document", WIDE);
  await box(page, "second").waitFor();
  for (const look of LOOKS) {
    await changeLook(page, look.width === undefined ? { ...look, ...WIDE } : look);
    if (look.width !== undefined) await page.getByRole("button", { name: "Graph", exact: true }).click();
    await box(page, "second").waitFor();
    assert.deepEqual(await accessibility(page), []);
    await assertFits(page);
  }
  assert.equal(await page.locator(".cm-editor").isVisible(), false);
  await box(page, "second").click();
  await page.locator(".cm-focused").waitFor();
  assert.equal(await page.locator(".source-graph").count(), 0);
  await page.close();
});

test("what has no steps is text alone", async () => {
  const page = await opened("/entry/source/server?tab=document", WIDE);
  await page.locator(".cm-line", { hasText: "endpoint" }).waitFor();
  assert.equal(await page.locator(".source-graph").count(), 0);
  assert.equal(await page.getByRole("button", { name: "Graph", exact: true }).count(), 0);
  await page.close();
});
