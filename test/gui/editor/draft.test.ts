import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { startGui } from "../../support/page/gui.ts";
import { writeDocument } from "../../support/page/gui-editor.ts";
import { accessibility, assertFits, changeLook, LOOKS } from "../../support/page/looks.ts";

/* The text of the editor is run without being registered. */

const textOf = (more = "") => `apiVersion: flow/v2
kind: Playbook
metadata: { name: drafted, path: draft/one }
workload: { who: world${more} }
workflow:
  - step: greet
    tool: { kind: noop, result: { text: "hello {{ workload.who }}" } }
`;

const gui = await startGui();
after(() => gui.close());
const { post, opened, serving } = gui;
await post("/api/catalog/register", { content: textOf() });

const run = (page: Page) => page.getByRole("button", { name: "Run draft", exact: true });

async function openedDraft(): Promise<Page> {
  const page = await opened("/register?from=draft/one");
  await page.getByText("No problems found").waitFor();
  await page.getByRole("button", { name: "Run draft …" }).click();
  await page.getByRole("heading", { name: "Run this draft" }).waitFor();
  return page;
}

test("a draft runs with the inputs of its text, and says in place what it came to; it is no version", async () => {
  const page = await openedDraft();
  await writeDocument(page, `${textOf(", times: 2")}# not registered\n`);
  await page.locator("#input-times").waitFor();
  await page.locator("#input-who").fill("moon");
  await run(page).click();
  const outcome = page.getByRole("region", { name: "Outcome" });
  await outcome.getByText("hello moon").waitFor();
  await outcome.getByText("greet").first().waitFor();
  assert.deepEqual(await accessibility(page), []);
  const href = await outcome.getByRole("link", { name: /^Execution/ }).getAttribute("href");
  const versions = await fetch(`${serving.url}/api/catalog/versions/draft/one`);
  assert.equal(((await versions.json()) as { versions: unknown[] }).versions.length, 1);
  const other = await opened(href ?? "");
  await other.getByText("Completed in").waitFor();
  await other.locator(".run-meta").getByText("draft", { exact: true }).waitFor();
  await other.goto(`${serving.url}${href}?tab=graph`);
  await other.getByRole("button", { name: "greet" }).waitFor();
  await other.getByRole("button", { name: "More actions" }).click();
  await other.getByRole("link", { name: "Edit the draft …" }).click();
  await other.locator(".cm-line", { hasText: "# not registered" }).waitFor();
  await other.close();
  const list = await opened("/executions?path=draft/one");
  await list.locator("td.playbook").getByText("draft", { exact: true }).waitFor();
  await list.close();
  page.on("dialog", (dialog) => void dialog.accept());
  await page.close();
});

test("the last inputs of the path are remembered", async () => {
  const page = await openedDraft();
  await page.locator("#input-who").fill("sun");
  await run(page).click();
  await page.getByRole("region", { name: "Outcome" }).getByText("hello sun").waitFor();
  await page.reload();
  await page.getByRole("button", { name: "Run draft …" }).click();
  await page.locator("#input-who").waitFor();
  assert.equal(await page.locator("#input-who").inputValue(), "sun");
  await page.close();
});

test("a text with errors, and what is no playbook, cannot run and says why; a refusal of the server stands at the form", async () => {
  const page = await openedDraft();
  page.removeAllListeners("console");
  await writeDocument(
    page,
    textOf().replace("- step: greet", "- step: greet\n    next: { arcs: [{ step: nowhere }] }"),
  );
  await page.getByText("This text cannot run: there is no step `nowhere`").first().waitFor();
  assert.equal(await run(page).isDisabled(), true);
  assert.deepEqual(await accessibility(page), []);
  await writeDocument(
    page,
    'apiVersion: flow/v2\nkind: Mcp\nmetadata: { name: s, path: draft/mcp }\nspec: { endpoint: "http://127.0.0.1:9/mcp" }\n',
  );
  await page.getByText("A document of kind mcp cannot run").first().waitFor();
  await writeDocument(page, textOf());
  await page.getByText("No problems found").waitFor();
  await page.route("**/api/execute/draft", (route) =>
    route.fulfill({ status: 403, json: { error: "No role of yours allows it", code: "FORBIDDEN", request_id: "7" } }),
  );
  await run(page).click();
  await page.getByRole("alert").getByText("No role of yours allows it").waitFor();
  await page.close();
});

test("the panel can be used in every look", async () => {
  const page = await openedDraft();
  for (const look of LOOKS) {
    await changeLook(page, look);
    assert.deepEqual(await accessibility(page), []);
    await assertFits(page);
  }
  await page.getByRole("button", { name: "Close" }).click();
  await page.getByRole("heading", { name: "Run this draft" }).waitFor({ state: "detached" });
  await page.close();
});

test("what is typed stays when the declared inputs change, and the preview shows what would start, without secrets", async () => {
  const page = await openedDraft();
  await page.locator("#input-who").fill("mars");
  const preview = page.getByRole("region", { name: "Preview" });
  await preview.getByText("mars").waitFor();
  const declared = (inputs: string) =>
    textOf().replace(/workload: .*/, `inputs: { who: { type: string, maxLength: 6, default: world }${inputs} }`);
  await writeDocument(page, declared(", key: { type: string, secret: true }, url: { default: 'at {{ key }}' }"));
  await page.locator("#input-key").waitFor();
  assert.equal(await page.locator("#input-who").inputValue(), "mars");
  await page.locator("#input-key").fill("open sesame");
  await preview.getByText("at [secret]").waitFor();
  assert.doesNotMatch((await preview.textContent()) ?? "", /sesame/);
  await page.locator("#input-who").fill("jupiter");
  await page.locator("#input-who-problem").getByText("who").waitFor();
  await preview.getByText("Would not start").waitFor();
  assert.deepEqual(await accessibility(page), []);
  await page.locator("#input-who").fill("venus");
  await preview.getByText("Would not start").waitFor({ state: "detached" });
  await writeDocument(page, declared(""));
  await page.locator("#input-key").waitFor({ state: "detached" });
  assert.equal(await page.locator("#input-who").inputValue(), "venus");
  page.on("dialog", (dialog) => void dialog.accept());
  await page.close();
});

const stepped = (tool: string, more = "") => `apiVersion: flow/v2
kind: Playbook
metadata: { name: stepped, path: draft/stepped }
workload: { who: world }
workflow:
  - step: greet
    tool: { kind: noop, result: { text: "hello {{ workload.who }}" } }
    next: { arcs: [{ step: send, set: { text: "{{ greet.text }}" } }] }
  - step: send
    tool: ${tool}
${more}`;

/** The panel that tests a step of the text, come to from the step `send` of a new run. */
async function openedTest(who: string): Promise<{ page: Page; id: string }> {
  const run = { path: "draft/stepped", workload: { who }, wait_ms: 20_000 };
  const id = String((await post("/api/execute", run))["execution_id"]);
  const page = await opened(`/executions/${id}?step=send`);
  await page.getByRole("link", { name: "Edit and test …" }).click();
  await page.getByRole("heading", { name: "Test a step" }).waitFor();
  return { page, id };
}

await post("/api/catalog/register", { content: stepped('{ kind: noop, result: { sent: "{{ text }}" } }') });

test("a step is chosen, its recorded inputs are seen, and it runs alone, as the text has it now", async () => {
  const { page, id } = await openedTest("Ada");
  await writeDocument(page, stepped('{ kind: noop, result: { posted: "{{ text }}!" } }'));
  const plan = page.getByRole("region", { name: "Plan" });
  await plan.getByRole("cell", { name: "send", exact: true }).waitFor();
  await plan.getByText("1 step keeps its result").waitFor();
  await page.getByText("Inputs it was sent").click();
  await page.getByRole("region", { name: "Input" }).getByText("hello Ada").waitFor();
  await page.getByRole("button", { name: "Run this step" }).click();
  const outcome = page.getByRole("region", { name: "Outcome" });
  await outcome.getByText("hello Ada!").waitFor();
  assert.deepEqual(await accessibility(page), []);
  const [, test = ""] =
    /(\d+)$/.exec((await outcome.getByRole("link", { name: /^Execution/ }).textContent()) ?? "") ?? [];
  const tested = (await (await fetch(`${serving.url}/api/executions/${test}`)).json()) as {
    started_by: { kind: string };
    steps: { name: string; reused_from?: { execution_id: string } }[];
  };
  assert.equal(tested.started_by.kind, "rerun");
  assert.deepEqual(
    tested.steps.map(({ name, reused_from: from }) => [name, from?.execution_id]),
    [
      ["greet", id],
      ["send", undefined],
    ],
  );
  await page.getByRole("combobox", { name: "Step", exact: true }).selectOption("greet");
  await plan.getByRole("cell", { name: "greet", exact: true }).waitFor();
  await plan.getByText("Nothing is reused.").waitFor();
  await page.getByRole("combobox", { name: "With the inputs of" }).selectOption("");
  await page.getByRole("link", { name: id }).waitFor();
  for (const look of LOOKS) {
    await changeLook(page, look);
    assert.deepEqual(await accessibility(page), []);
    await assertFits(page);
  }
  page.on("dialog", (dialog) => void dialog.accept());
  await page.close();
});

test("a step that fails says so in place, and one that the run never reached cannot be tested", async () => {
  const { page, id } = await openedTest("Bob");
  await writeDocument(page, stepped('{ kind: python, code: "def main():\\n    raise ValueError(42)" }'));
  await page.getByRole("region", { name: "Plan" }).getByRole("cell", { name: "send", exact: true }).waitFor();
  await page.getByRole("region", { name: "Plan" }).getByText("python").waitFor();
  await page.getByRole("button", { name: "Run this step" }).click();
  await page.getByRole("region", { name: "Outcome" }).getByText("ValueError: 42").first().waitFor();
  const added = "  - step: extra\n    tool: { kind: noop }\n    next: { arcs: [{ step: greet }] }\n";
  await writeDocument(page, stepped('{ kind: noop, result: { posted: "{{ text }}!" } }', added));
  page.removeAllListeners("console");
  await page.getByRole("combobox", { name: "Step", exact: true }).selectOption("extra");
  await page.getByRole("alert").getByText(`execution ${id} never reached 'extra'`).waitFor();
  assert.equal(await page.getByRole("button", { name: "Run this step" }).isDisabled(), true);
  page.on("dialog", (dialog) => void dialog.accept());
  await page.close();
});
