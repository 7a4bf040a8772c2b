import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, test } from "node:test";
import type { Locator, Page } from "playwright-core";
import { startGui } from "../support/page/gui.ts";
import { assertViewsUsable, goWithin } from "../support/page/looks.ts";
import { EXECUTION_PLAYBOOKS } from "./execution-playbooks.ts";

/* One execution's page in a real browser: what it answers at first sight, steps and values, differences, the graph, actions. */

const gui = await startGui();
after(() => gui.close());
const { serving, post, opened } = gui;

for (const content of EXECUTION_PLAYBOOKS) await post("/api/catalog/register", { content });
const start = async (path: string, workload = {}, waitMs = 30_000) =>
  String((await post("/api/execute", { path: `page/${path}`, workload, wait_ms: waitMs }))["execution_id"]);

const plain = await start("plain");
const other = await start("plain", { who: "browser", list: [1, 2, 4], quote: 'it\'s $(touch /tmp/x) `y` "z"' });
const failing = await start("failing");
const loop = await start("loop");
const big = await start("big");
const hostile = await start("hostile");
const retried = await start("retried");
const itself = await start("itself");
const waiting = await start("retried", { delay: 300, attempts: 2 }, 0);

/** Waits until there are so many of them. */
async function exactly(locator: Locator, count: number): Promise<void> {
  await locator.nth(count - 1).waitFor({ state: "attached" });
  await locator.nth(count).waitFor({ state: "detached" });
}

/** The trace of the page. */
function trace(page: Page): Locator {
  return page.getByRole("region", { name: "Trace" });
}

/** The row of the trace that has this name. */
function rowOf(page: Page, name: string): Locator {
  return trace(page)
    .locator(".trace-row")
    .filter({ has: page.getByRole("link", { name, exact: true }) });
}

/** Console messages of answers that were meant to fail. */
function expectComplaints(page: Page): void {
  page.removeAllListeners("console");
}

test("a failed execution says at first sight, without scrolling, what failed, where and why", async () => {
  const page = await opened(`/executions/${failing}`);
  const answer = page.locator('[data-part="answer"]');
  await page.getByText("Failed after").waitFor();
  for (const text of ["KeyError: 'price'", "client error", "trying again will not help", "page/failing@1:13"]) {
    await answer.getByText(text).first().waitFor();
  }
  const box = await answer.boundingBox();
  assert.ok(box !== null && box.y + box.height < 400, "the answer is on the first screen with room to spare");
  await answer.getByRole("link", { name: "event" }).click();
  await page.waitForURL(/tab=events/);
  await page.locator(".event-row").getByText("step.failed").first().waitFor();
  await page.close();
});

test("the step that failed is open, with its traceback and log", async () => {
  const page = await opened(`/executions/${failing}`);
  await page.getByRole("heading", { name: "charge" }).waitFor();
  await page.getByLabel("Traceback").getByText("return order['price']").waitFor();
  await page.getByLabel("Log of the task").getByText("charging").waitFor();
  await page.close();
});

test("an execution that waits for a retry says when, after what, and is cancelled with a reason", async () => {
  const page = await opened(`/executions/${waiting}`);
  const answer = page.locator('[data-part="answer"]');
  await answer.getByText(/^Retrying in \d+ min.*, attempt 2$/).waitFor();
  await answer.getByText("ECONNREFUSED").first().waitFor();
  await page.getByRole("button", { name: "Cancel …" }).click();
  await page.getByLabel("Reason").fill("not needed any more");
  await page.getByRole("button", { name: "Cancel it" }).click();
  await page.getByText("Cancelled after").waitFor();
  await page.goto(`${serving.url}/executions/${waiting}?tab=events`);
  await page.locator(".event-row").getByText("execution.cancelled").first().waitFor();
  await page.close();
});

test("an execution is paused with a reason, says why on its page, and goes on when it is resumed", async () => {
  const id = await start("retried", { delay: 300, attempts: 2 }, 0);
  const page = await opened(`/executions/${id}`);
  await page.getByRole("button", { name: "Pause …" }).click();
  await page.getByLabel("Why").fill("the quota is used up");
  await page.getByRole("button", { name: "Pause it" }).click();
  const panel = page.locator('[data-part="answer"]');
  await panel.getByText("the quota is used up").waitFor();
  await panel.getByText("by operator").waitFor();
  await page.getByText(/^Paused for/).waitFor();
  await page.getByRole("button", { name: "Pause …" }).waitFor({ state: "detached" });
  await panel.getByRole("button", { name: "Resume" }).click();
  await panel.getByRole("button", { name: "Resume" }).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Pause …" }).waitFor();
  await post(`/api/executions/${id}/cancel`, {});
  await page.close();
});

test("an execution that no worker can take names the kind and leads to the workers", async () => {
  const id = await start("unclaimed", {}, 0);
  const page = await opened(`/executions/${id}`);
  const answer = page.locator('[data-part="answer"]');
  await answer.getByText(/no worker has taken it yet/).waitFor();
  await answer.getByText("No ready worker runs duckdb.").waitFor();
  await answer.getByRole("link", { name: "Why is nothing running?" }).click();
  await page.waitForURL(/\/operations/);
  await post(`/api/executions/${id}/cancel`, {});
  await page.close();
});

test("an execution that no worker has the label for names the label, and not the kind that they do run", async () => {
  const id = await start("labelled", {}, 0);
  const page = await opened(`/executions/${id}`);
  await page.locator('[data-part="answer"]').getByText("No ready worker has the label gpu=yes.").waitFor();
  await post(`/api/executions/${id}/cancel`, {});
  await page.close();
});

test("an error is shown once at the top and once where it happened", async () => {
  const page = await opened(`/executions/${failing}`);
  await page.getByLabel("Log of the task").getByText("charging").waitFor();
  const told = (await page.locator("main").innerText()).split("KeyError: 'price'").length - 1;
  assert.equal(told, 2);
  await page.getByText("1 line, then the traceback").waitFor();
  await page.close();
  // Without a traceback its message is what tells it there.
  const other = await opened(`/executions/${retried}`);
  await other.getByLabel("Task fetch, attempt 2").getByText("ECONNREFUSED").first().waitFor();
  const panel = await other.getByRole("region", { name: "Step", exact: true }).innerText();
  assert.equal(panel.split("Nothing listens there").length - 1, 2, "once for each of two attempts");
  await other.close();
});

test("what has ended has no per cent, and says what it did not reach", async () => {
  const page = await opened(`/executions/${failing}`);
  await page.getByText(/^1 of 3 steps done, 1 (not reached|skipped)$/).waitFor();
  assert.doesNotMatch(await page.locator("main").innerText(), /%/);
  await trace(page)
    .getByRole("row", { name: /(not reached|skipped) .*afterwards/ })
    .click();
  await page.getByText(/^It was (not reached|skipped)/).waitFor();
  await page.close();
});

test("a retry is announced while it is to come, and no longer", async () => {
  const page = await opened(`/executions/${retried}`);
  await page.getByLabel("Task fetch, attempt 2").waitFor();
  assert.doesNotMatch(await page.locator("main").innerText(), /next attempt/i);
  await page.close();
  const id = await start("retried", { delay: 300, attempts: 2 }, 0);
  const later = await opened(`/executions/${id}`);
  await later.getByText(/^The next attempt begins in \d+ min/).waitFor();
  await post(`/api/executions/${id}/cancel`, {});
  await later.getByText("Cancelled after").waitFor();
  await later.getByText(/^The next attempt/).waitFor({ state: "detached" });
  await later.close();
});

test("the runs of a step are numbered", async () => {
  const page = await opened(`/executions/${plain}?step=part`);
  const titles = page.locator("details.attempt > summary");
  await exactly(titles, 3);
  assert.deepEqual(
    (await titles.allInnerTexts()).map((text) => /Run \d|Attempt \d/.exec(text)?.[0]),
    ["Run 3", "Run 2", "Run 1"],
  );
  await page.close();
});

test("what a running task writes is shown as it comes, and callers and called lead to each other", async () => {
  const id = await start("parent", {}, 0);
  const page = await opened(`/executions/${id}`);
  const answer = page.locator('[data-part="answer"]');
  await answer.getByText(/^Waiting for what it called in/).waitFor();
  await answer.getByRole("link", { name: /^\d+$/ }).click();
  const log = page.getByLabel("Log of the task");
  await log.getByText("tick 2").waitFor();
  // What people have scrolled to and marked in it stays: new lines do not make it anew.
  const before = await log.elementHandle();
  await log.getByText("tick 5").waitFor();
  assert.ok(await before?.evaluate((element) => (element as { isConnected: boolean }).isConnected));
  await page.getByLabel("Who called it").getByRole("link", { name: "page/parent" }).click();
  await page.waitForURL(new RegExp(`/executions/${id}`));
  await post(`/api/executions/${id}/cancel`, {});
  await page.getByText("Cancelled after").waitFor();
  await page.close();
});

test("what a step called unfolds beneath it, and its steps are looked into there", async () => {
  const id = await start("parent", {}, 0);
  const page = await opened(`/executions/${id}`);
  await trace(page).getByRole("button", { name: "Unfold call" }).click();
  await rowOf(page, "work").click();
  await page.waitForURL(/in=\d+/);
  await page.getByLabel("Log of the task").getByText("tick 2").waitFor();
  await page.getByText("A step of").waitFor();
  // Who is sent the address finds it unfolded.
  await page.reload();
  await page.locator(".trace-row[aria-selected='true'][aria-level='2']").waitFor();
  await post(`/api/executions/${id}/cancel`, {});
  await page.getByText("Cancelled after").waitFor();
  await page.close();
});

test("of a loop's items those that failed are found, and one is looked into", async () => {
  const page = await opened(`/executions/${loop}?step=check`);
  await page.getByLabel("Items that failed").getByText("Item 17").waitFor();
  await exactly(page.getByLabel("Items that failed").getByRole("listitem"), 3);
  await rowOf(page, "item 3").waitFor();
  await page.getByLabel("failed items only").check();
  await page.waitForURL(/failed=true/);
  await exactly(trace(page).getByRole("row"), 4);
  await rowOf(page, "item 17").click();
  await page.waitForURL(/iteration=17/);
  await page.getByLabel("Task check, attempt 1").getByText("ECONNREFUSED").first().waitFor();
  await page.getByLabel("failed items only").uncheck();
  await rowOf(page, "item 3").waitFor();
  await page.close();
});

test("the trace is gone through, unfolded and folded by keys, and the address holds what is chosen", async () => {
  const page = await opened(`/executions/${retried}`);
  const tree = page.getByRole("treegrid", { name: "Steps" });
  await trace(page).getByRole("button", { name: "Unfold fetch" }).waitFor();
  await tree.focus();
  await page.keyboard.press("ArrowRight");
  await rowOf(page, "attempt 2").waitFor();
  await page.keyboard.press("ArrowRight");
  await page.waitForURL(/command=\d+/);
  await page.keyboard.press("ArrowLeft");
  await page.waitForURL((address) => !address.search.includes("command="));
  await page.keyboard.press("ArrowLeft");
  await rowOf(page, "attempt 2").waitFor({ state: "detached" });
  await page.close();
});

test("what is chosen in one view is chosen in the others", async () => {
  const page = await opened(`/executions/${plain}`);
  const views = page.getByRole("navigation", { name: "Views" });
  await rowOf(page, "again").click();
  await page.waitForURL(/step=again/);
  await views.getByRole("link", { name: "Graph" }).click();
  await page.locator(".graph-node[aria-current='true']", { hasText: "again" }).waitFor();
  await views.getByRole("link", { name: "Trace" }).click();
  await trace(page).locator("[aria-selected='true']", { hasText: "again" }).waitFor();
  await page.close();
});

test("the log of the whole run folds, is searched with next and previous, and shows levels", async () => {
  const page = await opened(`/executions/${failing}?tab=log`);
  const lines = page.getByRole("region", { name: "Lines of the log" });
  await lines.getByText("charging").waitFor();
  await lines.getByText("KeyError: 'price'").first().waitFor();
  await page.getByLabel("Search the log").fill("price");
  await page
    .getByRole("status")
    .getByText(/^1 of \d+$/)
    .waitFor();
  await page.getByRole("button", { name: "Next match" }).click();
  await page
    .getByRole("status")
    .getByText(/^2 of \d+$/)
    .waitFor();
  await page.getByRole("button", { name: "Previous match" }).click();
  await lines.locator("mark").first().waitFor();
  await page.getByLabel("Search the log").fill("nothing has this");
  await page.getByRole("status").getByText("no line").waitFor();
  await page.getByLabel("Search the log").fill("");
  await page.getByLabel("Level").selectOption("error");
  await lines.getByText("charging").waitFor({ state: "detached" });
  await page.getByLabel("Level").selectOption("debug");
  await page.getByRole("button", { name: "Times" }).click();
  await lines.locator(".log-line time").first().waitFor();
  await page.getByRole("button", { name: "Fold charge", exact: true }).click();
  await lines.getByText("charging").waitFor({ state: "detached" });
  const [file] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Download" }).click(),
  ]);
  assert.equal(file.suggestedFilename(), `page-failing-${failing}.log`);
  await page.close();
});

test("the log of a run has what it called in it, as it comes", async () => {
  const id = await start("parent", {}, 0);
  const page = await opened(`/executions/${id}?tab=log`);
  const lines = page.getByRole("region", { name: "Lines of the log" });
  await lines.getByText("tick 2", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Follow" }).waitFor();
  await post(`/api/executions/${id}/cancel`, {});
  await page.getByText("Cancelled after").waitFor();
  await page.close();
});

test("two runs of a task are compared, and the address keeps which", async () => {
  const page = await opened(`/executions/${retried}`);
  await page.getByRole("link", { name: "compare with attempt 1" }).click();
  await page.getByLabel("From attempt 1 of fetch to attempt 2").waitFor();
  await page.reload();
  await page.getByText("error.attempt").waitFor();
  await page.getByRole("link", { name: "Close comparison" }).click();
  await page.getByText("error.attempt").waitFor({ state: "detached" });
  await page.close();
});

test("a result in the store is loaded when it is asked for, and shown as a tree, a table and a text", async () => {
  const page = await opened(`/executions/${big}`);
  await page.getByText("kept in the store").waitFor();
  await page.getByText("It begins with").waitFor();
  await page.getByRole("button", { name: /^Load \d+ kB$/ }).click();
  const output = page.getByLabel("Output of produce", { exact: true });
  await output.getByText("[5000]").click();
  await output.getByText("4,900 … 4,999").waitFor();
  await output.getByRole("button", { name: "Table" }).click();
  await output.getByText("5,000 rows").waitFor();
  const rows = page.getByLabel("Rows of Output of produce");
  assert.ok((await rows.getByRole("row").count()) < 100, "only rows that are seen are in the page");
  await rows.focus();
  await page.keyboard.press("End");
  await rows.getByText("row 4999").waitFor();
  await output.getByRole("button", { name: "Text" }).click();
  await output.getByRole("button", { name: /characters more/ }).waitFor();
  await page.close();
});

for (const [what, status, body, sign] of [
  ["gone", 404, JSON.stringify({ error: "There is nothing under it", code: "NOT_FOUND" }), "run the playbook again"],
  ["refused", 403, JSON.stringify({ error: "No role permits it", code: "FORBIDDEN" }), "Ask for a role that may view"],
  ["too large", 200, `"${"x".repeat(17 * 1024 * 1024)}"`, "larger than the 16 MB"],
  ["no JSON", 200, "{", "The stored result is not valid JSON"],
] as const) {
  test(`a result in the store that is ${what} says so, and can be asked for again`, async () => {
    const page = await opened(`/executions/${big}`);
    expectComplaints(page);
    await page.route("**/results/resolve*", (route) =>
      route.fulfill({ status, body, contentType: "application/json" }),
    );
    await page.getByRole("button", { name: /^Load / }).click();
    await page.getByRole("alert").getByText(sign).waitFor();
    await page.unroute("**/results/resolve*");
    await page.getByRole("button", { name: /^Load / }).click();
    await page.getByText("[5000]").waitFor();
    await page.close();
  });
}

test("inputs are shown as written and as rendered, with secrets and unknown values marked", async () => {
  const page = await opened("/");
  const template = {
    url: "{{ workload.base }}/orders",
    headers: { authorization: "Bearer {{ key }}" },
    params: { n: 1 },
  };
  const task = {
    task: "charge",
    kind: "http",
    template: { ...template, id: "{{ begin.id }}" },
    rendered: {
      url: "http://shop.test/orders",
      headers: { authorization: "Bearer [secret]" },
      params: { n: 1 },
      id: "",
    },
    unknown: [{ path: "id", waits_for: ["a stored result"] }],
    secret: ["headers.authorization"],
    errors: [],
  };
  await page.route("**/rendered?*", (route) => route.fulfill({ json: { tasks: [task] } }));
  await page.goto(`${serving.url}/executions/${failing}?step=charge`);
  const row = (path: string) => page.locator(`[data-input="${path}"]`);
  await row("url").getByText("http://shop.test/orders").waitFor();
  await row("headers.authorization").getByText("holds a secret").waitFor();
  await row("id").getByText("not known here: a stored result").waitFor();
  await page.getByRole("button", { name: "as written" }).click();
  await row("url").getByText("{{ workload.base }}/orders").waitFor();
  await row("id").getByText("{{ begin.id }}").waitFor();
  await page.close();
});

test("inputs of a real run are rendered again, without secrets", async () => {
  const content = `apiVersion: flow/v2
kind: Playbook
metadata: { name: inputs, path: page/inputs }
workload: { day: Tuesday }
keychain:
  - { name: shop, kind: static, map: { token: not-for-your-eyes } }
workflow:
  - step: call
    tool:
      kind: python
      args: { when: "on {{ workload.day }}", token: "{{ keychain.shop.token }}" }
      code: |
        def main(when, token):
            return {"length": len(token)}
`;
  await post("/api/catalog/register", { content });
  const execution = await start("inputs");
  const page = await opened(`/executions/${execution}?step=call`);
  await page.getByText("Completed in").waitFor();
  const inputs = page.getByRole("region", { name: "Input", exact: true });
  await inputs.getByText("on Tuesday").waitFor();
  await inputs.getByText("holds a secret").waitFor();
  await page.getByRole("button", { name: "as written" }).click();
  await inputs.getByText("on {{ workload.day }}").waitFor();
  assert.ok(!(await page.content()).includes("not-for-your-eyes"));
  await page.close();
});

test("inputs that may not be seen say so", async () => {
  const page = await opened("/");
  expectComplaints(page);
  const refused = { error: "No role permits it", code: "FORBIDDEN" };
  await page.route("**/rendered?*", (route) => route.fulfill({ status: 403, json: refused }));
  await page.goto(`${serving.url}/executions/${failing}?step=charge`);
  await page.getByRole("alert").getByText("No role permits it").waitFor();
  await page.close();
});

test("compares two runs: inputs, result, steps and their outputs; an unknown one says so", async () => {
  const page = await opened(`/executions/${plain}?tab=compare`);
  await page.getByLabel("Compare with").selectOption(other);
  await page.waitForURL(/against=/);
  const inputs = page.getByLabel("Inputs", { exact: true });
  await inputs.getByText("list[2]").waitFor();
  await inputs
    .getByText("1 added, 0 removed, 2 changed")
    .or(inputs.getByText("0 added, 1 removed, 2 changed"))
    .waitFor();
  const steps = page.getByLabel("Steps of both runs");
  await steps.getByRole("row", { name: /greet/ }).getByRole("button", { name: "Compare" }).click();
  await page.getByLabel("Output of greet", { exact: true }).getByText("hello browser").waitFor();
  expectComplaints(page);
  await page.goto(`${serving.url}/executions/${plain}?tab=compare&against=12345`);
  await page.getByRole("heading", { name: "Page not found" }).waitFor();
  await page.close();
});

test("the graph shows which arcs were taken, and its steps are opened by keys", async () => {
  const page = await opened(`/executions/${plain}?tab=graph`);
  const graph = page.getByLabel("Graph", { exact: true });
  await graph.locator(".react-flow__edge.taken").first().waitFor({ state: "attached" });
  await exactly(graph.locator(".react-flow__edge.taken"), 3);
  await exactly(graph.locator(".react-flow__edge.untaken"), 1);
  await graph.getByText("2×").first().waitFor();
  await graph.getByRole("button", { name: /never/ }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("It was skipped").waitFor();
  await page.close();
});

test("an arrow from a step to itself is seen beside its box", async () => {
  const page = await opened(`/executions/${itself}?tab=graph`);
  const graph = page.getByLabel("Graph", { exact: true });
  const step = graph.getByRole("button", { name: /poll/ });
  const edge = graph.locator(".react-flow__edge.taken path.react-flow__edge-path").first();
  // A graph is drawn before its boxes are measured and its arrows are laid, and drawn once more when they are.
  const measured = async () => {
    await edge.waitFor();
    const [box, arrow] = await Promise.all([step.boundingBox(), edge.boundingBox()]);
    return box === null || arrow === null ? undefined : { box, arrow };
  };
  let places = await measured();
  while (places === undefined) places = await measured();
  const { box, arrow } = places;
  // Above the box where arrows point to the right, else at its right. The box of a stroke has room for its corners.
  const isBeside = arrow.x >= box.x + box.width - 10 && arrow.x + arrow.width > box.x + box.width + 20;
  const isAbove = arrow.y + arrow.height <= box.y + 10 && arrow.y < box.y - 20;
  assert.ok((isBeside || isAbove) && arrow.width > 20 && arrow.height > 10, JSON.stringify({ box, arrow }));
  await graph.getByText("2× poll.n < 3").waitFor();
  await page.close();
});

test("commands that are copied mean the same to a shell, whatever the inputs hold, and have no token in them", async () => {
  const page = await opened(`/executions/${other}`);
  await page.evaluate(
    "Object.defineProperty(navigator, 'clipboard', { value: { writeText: async (text) => { window.copied = text; } } })",
  );
  await page.evaluate("sessionStorage.setItem('flow.token', 'secret-of-this-tab')");
  await page.getByRole("button", { name: "Copy as …" }).click();
  const copied = async (name: string) => {
    await page.getByRole("button", { name, exact: true }).click();
    return await page.evaluate<string>("window.copied");
  };
  // A shell is the judge of what the words are.
  const words = (command: string) =>
    execFileSync("sh", ["-c", `printf '%s\\0' ${command}`], { encoding: "utf8" })
      .split("\0")
      .slice(0, -1);
  const run = words(await copied("flow run"));
  assert.deepEqual(run.slice(0, 4), ["flow", "run", "page/plain", "--runtime"]);
  const { quote } = JSON.parse(run.at(-1) ?? "") as { quote: string };
  assert.equal(quote, 'it\'s $(touch /tmp/x) `y` "z"');
  assert.deepEqual(words(await copied("flow status")), ["flow", "status", other]);
  const curl = await copied("curl");
  assert.equal(words(curl).at(-1), `${serving.url}/api/executions/${other}`);
  assert.ok(!curl.includes("secret-of-this-tab"));
  await page.close();
});

test("it is run again with the same inputs", async () => {
  const page = await opened(`/executions/${other}`);
  await page.getByRole("button", { name: "Run again …", exact: true }).click();
  await page.getByRole("button", { name: "Run it" }).click();
  await page.waitForURL((url) => !url.pathname.includes(other));
  await page.getByText("Completed in").waitFor();
  await page.getByRole("link", { name: "Data" }).click();
  await page.getByText("hello browser").first().waitFor();
  await page.close();
});

test("it is run again with other inputs: the form names the original execution", async () => {
  const page = await opened(`/executions/${other}`);
  await page.getByRole("button", { name: "More actions" }).click();
  await page.getByRole("link", { name: "Run with other inputs …" }).click();
  await page.waitForURL(/\/entry\/page\/plain/);
  assert.match(decodeURIComponent(page.url()), new RegExp(`from="?${other}`));
  await page.close();
});

test("inputs of very many values open at once, and part by part", async () => {
  const id = await start("plain", {
    list: Array.from({ length: 50_000 }, (_, index) => index),
    text: "y".repeat(90_000),
  });
  const page = await opened(`/executions/${id}?tab=data`);
  const inputs = page.getByLabel("Inputs", { exact: true });
  await inputs.getByText("[50000]").click();
  await inputs.getByText("40,000 … 49,999").click();
  await inputs.getByText("49,900 … 49,999").click();
  await inputs.getByText("49999: ").waitFor();
  assert.ok((await page.evaluate<number>("document.querySelectorAll('main *').length")) < 5_000);
  await inputs.getByRole("button", { name: "… 88,000 characters more" }).click();
  await page.close();
});

test("markup in names, inputs and errors is only ever text in every view", async () => {
  const page = await opened("/");
  page.on("dialog", (dialog) => assert.fail(`a script ran: ${dialog.message()}`));
  const views = ["trace", "graph", "log", "events", "data", `compare&against=${hostile}`];
  for (const view of views) {
    await goWithin(page, `/executions/${hostile}?tab=${view}`);
    await page.getByText("Failed after").waitFor();
    await page
      .getByText(/&lt;|<i>step<\/i>|Compare with|<b>key<\/b>/)
      .first()
      .waitFor();
    // The page's own `<i>` and `<b>` have classes, or stand in its header.
    assert.equal(await page.locator("main script, main img, main i:not([class]), main [data-hostile]").count(), 0);
  }
  await page.close();
});

test("each view is shown light, dark and narrow, without serious accessibility problems", async (t) => {
  const page = await opened("/");
  await assertViewsUsable(t, page, [
    [`/executions/${failing}`, "Traceback"],
    [`/executions/${loop}?step=check`, "Item 17"],
    [`/executions/${failing}?tab=log`, "charging"],
    [`/executions/${big}`, "kept in the store"],
    [`/executions/${plain}?tab=graph`, "never"],
    [`/executions/${plain}?tab=compare&against=${other}`, "list[2]"],
    [`/executions/${plain}?tab=data`, "hello"],
  ]);
  await page.close();
});
