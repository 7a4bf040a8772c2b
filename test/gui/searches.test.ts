import assert from "node:assert/strict";
import { after, test } from "node:test";
import { startOwnGui } from "../support/page/gui.ts";
import { assertViewsUsable } from "../support/page/looks.ts";

/* Executions that are searched for, and where they come from, in a real browser against a real `flow serve`. */

const gui = await startOwnGui();
after(() => gui.close());
const { post, opened } = gui;
const head = (path: string) => `apiVersion: flow/v2\nkind: Playbook\nmetadata: { name: one, path: ${path} }\n`;
await post("/api/catalog/register", {
  content: `${head("find/child")}workflow:\n  - step: a\n    tool: { kind: noop }\n`,
});
await post("/api/catalog/register", {
  content: `${head("find/parent")}executor: { spec: { labels: { team: data, note: "two words" } } }
workflow:\n  - step: call\n    tool: { kind: playbook, path: find/child }\n`,
});
const parent = String(
  (await post("/api/execute", { path: "find/parent", wait_ms: 30_000, labels: { tier: "gold" } }))["execution_id"],
);
await post("/api/execute", { path: "find/child", wait_ms: 30_000 });

test("searches and lineage are usable light, dark and narrow", async (t) => {
  const page = await opened("/");
  await assertViewsUsable(t, page, [
    ["/executions?q=label.team%3Adata", "team=data"],
    ["/executions?q=stat%3Ax", "there is no key 'stat'"],
    [`/executions/${parent}?tab=lineage`, "find/child"],
  ]);
  await page.close();
});

test("a search narrows the list, stands in the address, and says where it cannot be read", async () => {
  const page = await opened("/executions");
  const field = page.getByLabel("Search");
  await page.getByText("2 shown, 0 open").waitFor();
  // What the parent called stands beneath it.
  await page.getByRole("button", { name: `What ${parent} called` }).click();
  await page.getByText("called by find/parent").waitFor();
  await field.fill("label.team:data status:completed is:root");
  await field.press("Enter");
  await page.getByText("1 shown, 0 open").waitFor();
  assert.match(decodeURIComponent(page.url()), /q=label\.team:data/);
  await page.getByRole("button", { name: "failed" }).click();
  await page.waitForURL(/status=FAILED/);
  await page.getByText("1 shown, 0 open").waitFor();
  await field.fill("path:find/* stat:x");
  await page.locator("mark").getByText("stat", { exact: true }).waitFor();
  await page.getByText(/there is no key 'stat'/).waitFor();
  await field.press("Enter");
  assert.doesNotMatch(page.url(), /stat%3Ax/, "what cannot be read is not asked for");
  await page.close();
});

test("a label leads to the executions that have it, and lineage from one to the other", async () => {
  const page = await opened(`/executions/${parent}`);
  await page.getByRole("link", { name: "note=two words" }).click();
  await page.getByText("1 shown, 0 open").waitFor();
  assert.equal(await page.getByLabel("Search").inputValue(), 'label.note:"two words"');
  await page.goto(`${gui.serving.url}/executions/${parent}?tab=lineage`);
  const lines = page.getByLabel("Lineage").getByRole("listitem");
  await lines.nth(1).getByText("called").waitFor();
  await lines.nth(1).getByRole("link", { name: "find/child" }).click();
  await page.locator('li[aria-current="true"]').getByText("find/child").waitFor();
  assert.equal(await lines.count(), 2);
  await page.close();
});
