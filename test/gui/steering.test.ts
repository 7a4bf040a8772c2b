import assert from "node:assert/strict";
import { after, test } from "node:test";
import { startGui } from "../support/page/gui.ts";
import { assertUsable } from "../support/page/looks.ts";

/* What people do to executions on their pages: end steps by hand, run again. */

const gui = await startGui();
after(() => gui.close());
const { post, opened } = gui;

/** No worker of the page's service runs duckdb: its step waits until it is ended by hand. */
const WAITING = `apiVersion: flow/v2
kind: Playbook
metadata: { name: waiting, path: steering/waiting }
workflow:
  - step: stuck
    tool: { kind: duckdb, query: "select 1" }
    next: { arcs: [{ step: use }] }
  - step: use
    tool: { kind: noop, result: { got: "{{ stuck.rows }}" } }
`;
const EACH = `apiVersion: flow/v2
kind: Playbook
metadata: { name: each, path: steering/each }
workflow:
  - step: each
    loop: { in: [a, b, c], iterator: item, spec: { mode: parallel } }
    tool: { kind: duckdb, query: "select 1" }
`;
/** Its second step fails unless the input says otherwise. */
const FRAGILE = `apiVersion: flow/v2
kind: Playbook
metadata: { name: fragile, path: steering/fragile }
workload: { price: null }
workflow:
  - step: load
    tool: { kind: noop, result: { rows: 3 } }
    next: { arcs: [{ step: charge }] }
  - step: charge
    tool: { kind: python, args: { price: "{{ price }}" }, code: "result = {'paid': float(price)}" }
    next: { arcs: [{ step: report }] }
  - step: report
    tool: { kind: noop, result: { total: "{{ load.rows * charge.paid }}" } }
`;
for (const content of [WAITING, EACH, FRAGILE]) await post("/api/catalog/register", { content });
const start = async (path: string, workload = {}, waitMs = 30_000) =>
  String((await post("/api/execute", { path: `steering/${path}`, workload, wait_ms: waitMs }))["execution_id"]);

test("a step that is stuck is completed by hand with a result, and what follows uses it", async () => {
  const id = await start("waiting", {}, 0);
  const page = await opened(`/executions/${id}?step=stuck`);
  await page.getByRole("button", { name: "End by hand …" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel(/^Complete it/).check();
  await dialog.getByLabel("Result, as YAML or JSON").fill("rows: 7");
  await dialog.getByLabel("Why").fill("the database is gone");
  await assertUsable(page);
  await dialog.getByRole("button", { name: "Complete it" }).click();
  await page.getByText("Completed in").waitFor();
  await page.goto(`${gui.serving.url}/executions/${id}?step=stuck`);
  await page
    .getByText(/^Completed by .+ago: the database is gone$|^Completed by .+now: the database is gone$/)
    .waitFor();
  await page.goto(`${gui.serving.url}/executions/${id}?tab=data`);
  await page.getByText("got").first().waitFor();
  await page.getByText("7", { exact: true }).first().waitFor();
  await page.goto(`${gui.serving.url}/executions/${id}?tab=events`);
  await page.locator(".event-row").getByText("step.overridden").first().waitFor();
  await page.close();
});

test("which items of a loop were ended by hand, by whom and why, stands with the loop", async () => {
  const id = await start("each", {}, 0);
  const body = { action: "skip", iteration: 1, reason: "the file is broken" };
  await post(`/api/executions/${id}/steps/each/override`, body);
  const page = await opened(`/executions/${id}?step=each`);
  const items = page.getByLabel("Items ended by hand").getByRole("listitem");
  await items.getByText(/^Item 1 skipped by .+, .+(ago|now)$/).waitFor();
  await items.getByText("the file is broken").waitFor();
  await page.close();
  await post(`/api/executions/${id}/cancel`, {});
});

test("a step is failed by hand with a code, and one that has ended offers no such thing", async () => {
  const id = await start("waiting", {}, 0);
  const page = await opened(`/executions/${id}?step=stuck`);
  await page.getByRole("button", { name: "End by hand …" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel(/^Fail it/).check();
  await dialog.getByLabel("Error code").fill("NO_DATABASE");
  await dialog.getByLabel("Why").fill("the database is gone");
  await dialog.getByRole("button", { name: "Fail it" }).click();
  await page.getByText("Failed after").waitFor();
  await page.getByText("NO_DATABASE").first().waitFor();
  await page.getByRole("button", { name: "End by hand …" }).waitFor({ state: "detached" });
  await page.close();
});

test("a failed execution runs again with another input from what failed, after its plan was shown", async () => {
  const id = await start("fragile");
  const page = await opened(`/executions/${id}`);
  await page.getByRole("button", { name: "Run again …", exact: true }).click();
  const dialog = page.getByRole("dialog");
  const plan = dialog.getByRole("region", { name: "Plan" });
  await plan.getByText("1 step keeps its result: load").waitFor();
  await plan.getByRole("row", { name: /^charge python runs code/ }).waitFor();
  await assertUsable(page);
  await dialog.getByText("With other inputs, variables or version").click();
  await dialog.getByLabel("Inputs, as YAML or JSON").fill("price: [");
  await dialog.getByText(/^Inputs: is no YAML/).waitFor();
  await dialog.getByLabel("Inputs, as YAML or JSON").fill("price: 2");
  await dialog.getByRole("button", { name: "Run it" }).click();
  await page.waitForURL((address) => !address.pathname.includes(id));
  await page.getByText("Completed in").waitFor();
  await page.getByRole("row", { name: /load/ }).first().click();
  await page.getByText("It did not run here.").waitFor();
  await page.getByRole("link", { name: id }).first().waitFor();
  await page
    .getByRole("link", { name: "Lineage", exact: true })
    .or(page.getByRole("tab", { name: "Lineage" }))
    .click();
  await page.getByText("from: charge; input: price", { exact: true }).waitFor();
  await page.close();
});

test("an execution runs again from one step alone", async () => {
  const id = await start("fragile", { price: 4 });
  const page = await opened(`/executions/${id}?step=report`);
  await page.getByRole("button", { name: "Run again from here …" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("2 steps keep their results: load, charge").waitFor();
  // At once after it is checked: a plan of it has not been asked for.
  const sent = page.waitForRequest(
    (request) => request.url().endsWith("/rerun") && !/dry_run/.test(request.postData() ?? ""),
  );
  await page.evaluate(`(async () => {
    const dialog = document.querySelector("dialog[open]");
    [...dialog.querySelectorAll("label")].find((label) => label.textContent.startsWith("only this step")).click();
    await new Promise(requestAnimationFrame);
    dialog.querySelector("button[type=submit]").click();
  })()`);
  assert.equal(((await sent).postDataJSON() as { only?: boolean }).only, true);
  await page.waitForURL((address) => !address.pathname.includes(id));
  await page.getByText("Completed in").waitFor();
  await page.close();
});
