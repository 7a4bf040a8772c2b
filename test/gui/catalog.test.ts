import assert from "node:assert/strict";
import { after, test } from "node:test";
import { LIMIT_MS, startGui } from "../support/page/gui.ts";
import { writeDocument } from "../support/page/gui-editor.ts";
import { accessibility, assertViewsUsable, goWithin } from "../support/page/looks.ts";

/* The catalog in a real browser against a real `flow serve` with a worker. */

const LOAD = `apiVersion: flow/v2
kind: Playbook
metadata: { name: load, path: cat/load, description: Loads rows of a customer. }
workload:
  customer: acme
  limit: 100
  dry_run: false
  since: null
  tables: [a]
  access_token: null
keychain:
  - { name: api, kind: oauth2, auth: api_login, endpoint: "https://login.example/token" }
workflow:
  - step: start
    tool: { kind: noop, result: "{{ workload.customer }}" }
`;
const MARKUP = "<img src=x onerror=alert(1)>";
/** Markup wherever an author can write. */
const HOSTILE = `apiVersion: flow/v2
kind: Playbook
metadata: { name: hostile, path: "cat/hostile<b>", description: "${MARKUP}" }
workload: { "<b>key</b>": "<script>alert(2)</script>" }
keychain: [{ name: "<i>k</i>", kind: "<i>k</i>_credential", credential: "<svg onload=alert(3)>" }]
workflow:
  - step: "<i>step</i>"
    tool: { kind: noop, auth: "${MARKUP}" }
`;
const small = (path: string, description: string) =>
  `apiVersion: flow/v2\nkind: Playbook\nmetadata: { name: n, path: ${path}, description: ${description} }\nworkflow: [{ step: a, tool: { kind: noop } }]\n`;

const gui = await startGui();
after(() => gui.close());
const { serving, post, opened } = gui;

const register = (content: string) => post("/api/catalog/register", { content });
const { catalog_id: loadId } = await register(LOAD);
await register(HOSTILE);
await register(small("cat/described", "Speaks of zebras."));
await register(
  'apiVersion: flow/v2\nkind: Mcp\nmetadata: { name: s, path: mcp/server }\nspec: { endpoint: "http://127.0.0.1:9/mcp", auth: tok }\n',
);
for (const content of ["one", "two", "three"].map((word) => `${small("cat/versions", "V.")}# ${word}\n`))
  await register(content);

await register(`apiVersion: flow/v2
kind: Playbook
metadata: { name: declared, path: cat/declared }
inputs:
  day: { type: string, format: date, required: true, description: The day to load. }
  mode: { enum: [full, delta], default: delta }
  mail: { type: string, format: email }
  password: { type: string, secret: true }
workflow:
  - step: start
    tool: { kind: noop, result: "{{ workload.day }} {{ workload.mode }}" }
`);

async function executionsOf(path: string): Promise<Record<string, unknown>[]> {
  const response = await fetch(`${serving.url}/api/executions?path=${encodeURIComponent(path)}`);
  return ((await response.json()) as { executions: Record<string, unknown>[] }).executions;
}

test("each view shows its subject, light, dark and narrow, without serious accessibility problems", async (t) => {
  const page = await opened("/");
  await assertViewsUsable(t, page, [
    ["/catalog", "cat/load"],
    ["/entry/cat/load", "Last runs"],
    ["/entry/cat/load?tab=run", "Other inputs"],
    ["/entry/cat/load?tab=executions", "No runs yet"],
    ["/entry/cat/load?tab=credentials", "api_login"],
    ["/entry/cat/load?tab=keychain", "What the document declares"],
    ["/entry/cat/versions?tab=versions", "+ 1 line"],
    ["/entry/mcp/server", "Document"],
    ["/register?from=cat/load", "No problems found"],
  ]);
  await page.close();
});

test("the list is narrowed by kind, beginning and text, which stand in the address, and keys go through its rows", async () => {
  const page = await opened("/catalog?kind=mcp");
  await page.getByRole("link", { name: "mcp/server" }).waitFor();
  assert.equal(await page.getByRole("link", { name: "cat/load" }).count(), 0);
  await page.getByLabel("Kind").selectOption("playbook");
  await page.getByLabel("Path begins with").fill("cat/");
  await page.getByLabel("Path begins with").press("Enter");
  await page.getByRole("link", { name: "cat/load" }).waitFor();
  await page.getByLabel("Text").fill("ZEBRAS");
  await page.getByLabel("Text").press("Enter");
  await page.waitForURL(/q=ZEBRAS/);
  await page.getByRole("link", { name: "cat/load" }).waitFor({ state: "detached" });
  await page.evaluate("document.activeElement.blur()");
  await page.keyboard.press("j");
  await page.locator('tr[aria-selected="true"]').waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/entry\/cat\/described/);
  await page.goto(`${serving.url}/catalog?q=nowhere`);
  await page.getByRole("heading", { name: "No matches" }).waitFor();
  await page.goto(`${serving.url}/catalog?q=${String(loadId)}`);
  await page.getByRole("link", { name: "cat/load v1" }).waitFor();
  await page.close();
});

test("a form has a field for each input in the document's order, says what is wrong, and starts nothing then", async () => {
  const page = await opened("/entry/cat/load?tab=run");
  await page.locator("#input-limit").fill("many");
  await page.locator("#input-tables").fill("a: [");
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.getByText("Not started: 2 inputs are wrong.").waitFor();
  await page.getByText("limit must be a number").waitFor();
  await page.getByText("tables is no YAML").waitFor();
  await page.locator("#input-limit:focus").waitFor();
  assert.deepEqual(await accessibility(page), []);
  const names = await page.locator(".field label .mono").allTextContents();
  assert.deepEqual(names, ["customer", "limit", "dry_run", "since", "tables", "access_token"]);
  assert.deepEqual(await executionsOf("cat/load"), []);
  await page.close();
});

test("inputs arrive with their types, are remembered without secrets, and are taken over from another run", async () => {
  const page = await opened("/entry/cat/load?tab=run");
  await page.locator("#input-customer").fill("zoo");
  await page.locator("#input-dry_run").selectOption("true");
  await page.locator("#input-since").fill("2026-01-01");
  await page.locator("#input-tables").fill("- x\n- 2");
  await page.locator("#input-access_token").fill("canary-4711");
  await page.getByText("Other inputs").click();
  await page.locator("#more-inputs").fill("extra: { deep: [1] }\npassword: canary-4712");
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.waitForURL(/\/executions\/\d+/);
  const executionId = new URL(page.url()).pathname.split("/")[2] ?? "";
  const answer = await fetch(`${serving.url}/api/executions/${executionId}`);
  const { workload } = (await answer.json()) as { workload: Record<string, unknown> };
  const { access_token: _token, password: _password, ...rest } = workload;
  const typed = {
    customer: "zoo",
    limit: 100,
    dry_run: true,
    since: "2026-01-01",
    tables: ["x", 2],
    extra: { deep: [1] },
  };
  assert.deepEqual(rest, typed);
  assert.doesNotMatch(await page.evaluate<string>("JSON.stringify({ ...localStorage, ...sessionStorage })"), /canary/);
  await page.goto(`${serving.url}/entry/cat/load?tab=run`);
  await page.locator("#input-customer").waitFor();
  assert.equal(await page.locator("#input-customer").inputValue(), "zoo");
  assert.equal(await page.locator("#input-access_token").inputValue(), "");
  await page.evaluate("localStorage.clear()");
  await page.goto(`${serving.url}/entry/cat/load?from=${executionId}`);
  await page.getByText("secrets are not copied").waitFor();
  assert.equal(await page.locator("#input-customer").inputValue(), "zoo");
  assert.equal(await page.locator("#input-access_token").inputValue(), "");
  assert.match(await page.locator("#more-inputs").inputValue(), /deep/);
  await page.close();
});

test("a double click starts one execution, and so does a click after an answer that was lost", async () => {
  await register(small("cat/once", "Once."));
  const page = await opened("/entry/cat/once?tab=run");
  await page.getByRole("button", { name: "Run", exact: true }).dblclick();
  await page.waitForURL(/\/executions\/\d+/);
  assert.equal((await executionsOf("cat/once")).length, 1);
  await page.close();
  await register(small("cat/lost", "Lost."));
  const lossy = await opened("/entry/cat/lost?tab=run");
  lossy.removeAllListeners("console");
  let lost = 0;
  await lossy.route("**/api/execute", async (route) => {
    lost += 1;
    if (lost > 1) return await route.continue();
    await route.fetch();
    return await route.abort();
  });
  await lossy.getByRole("button", { name: "Run", exact: true }).click();
  await lossy.getByRole("alert").getByText("cannot be reached (").waitFor();
  await lossy.getByRole("button", { name: "Run", exact: true }).click();
  await lossy.waitForURL(/\/executions\/\d+/);
  assert.equal((await executionsOf("cat/lost")).length, 1);
  await lossy.close();
});

test("messages stand at their lines while one types, lead to their places, and go when it is mended", async () => {
  const page = await opened("/register?from=cat/load");
  await page.getByText("No problems found").waitFor();
  await writeDocument(page, LOAD.replace("step: start", "step: start\n    next: { arcs: [{ step: nowhere }] }"));
  const messages = page.getByRole("region", { name: "Messages" });
  await messages.getByText("there is no step `nowhere`").waitFor();
  await page.locator(".cm-lintRange-error").getByText("nowhere").waitFor();
  await page.locator(".cm-lint-marker-error").waitFor();
  await messages.getByRole("button").first().click();
  await page.locator(".cm-focused").waitFor();
  assert.deepEqual(await accessibility(page), []);
  await page.getByRole("button", { name: "Register …" }).click();
  await page.getByRole("alert").getByText("Not registered: 1 error").waitFor();
  await writeDocument(page, LOAD);
  await page.getByText("No problems found").waitFor();
  assert.equal(await page.locator(".cm-lintRange-error").count(), 0);
  await page.close();
});

test("keys of the schema are offered with what they mean, and Escape, then Tab, leaves the editor", async () => {
  const page = await opened("/register");
  await page.getByText("No problems found").waitFor();
  await writeDocument(page, "apiVersion: flow/v2\nkind: Playbook\nworkflow:\n  - step: a\n    to");
  await page.keyboard.press("Control+Space");
  const offer = page.getByRole("option", { name: "tool", exact: true });
  await offer.waitFor();
  await page.getByText("What the step does").first().waitFor();
  await offer.click();
  await page.locator(".cm-line").getByText("tool:").waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Tab");
  await page.locator(".cm-focused").waitFor({ state: "detached" });
  await page.close();
});

test("what is typed over marked text replaces it, and the page's policy refuses nothing", async () => {
  const page = await opened("/register");
  await page.getByText("No problems found").waitFor();
  await page.getByRole("textbox", { name: "Document" }).click();
  // Over everything, over a whole coloured word, and over a part of one.
  await page.keyboard.press("Control+a");
  await page.keyboard.type("step: word");
  await page.keyboard.press("Home");
  for (let count = 0; count < 4; count += 1) await page.keyboard.press("Shift+ArrowRight");
  await page.keyboard.type("name");
  await page.keyboard.press("End");
  await page.keyboard.press("Shift+ArrowLeft");
  await page.keyboard.type("k");
  const line = (text: string) => page.locator(".cm-line", { hasText: text }).waitFor();
  await line("name: work");
  // A bracket or a quote is put around what is marked.
  await page.keyboard.press("Shift+ArrowLeft");
  await page.keyboard.type("[");
  await line("name: wor[k]");
  await page.keyboard.press("Control+z");
  await line("name: work");
  await page.close();
});

test("a page that draws slower than a user types loses no letter", async () => {
  const page = await gui.browser.newPage();
  page.setDefaultTimeout(LIMIT_MS);
  // React draws in turns of this where it exists. Of a slow machine's turns each has time for one task, to be called by hand.
  await page.addInitScript(`
    const turns = [];
    globalThis.holds = false;
    globalThis.setImmediate = (turn) => holds ? turns.push(turn) : setTimeout(turn);
    globalThis.runTurn = () => turns.shift()?.();
    const now = performance.now.bind(performance);
    let late = 0;
    performance.now = () => now() + (late += 2);
  `);
  await page.goto(`${serving.url}/register`);
  await page.getByText("No problems found").waitFor();
  await page.getByRole("textbox", { name: "Document" }).click();
  await page.keyboard.press("Control+a");
  const word = "PlaybookWrittenFasterThanThePageDraws";
  await page.evaluate("holds = true");
  await page.keyboard.type("k");
  await page.evaluate("runTurn()");
  await page.keyboard.type(`ind: ${word}`);
  await page.evaluate("holds = false; runTurn()");
  await page.getByRole("region", { name: "Messages" }).getByText(`not \`${word}\``).waitFor();
  assert.deepEqual(await page.locator(".cm-line").allTextContents(), [`kind: ${word}`]);
  await page.close();
});

test("the changes of a registration are shown before it, also a version that another user registered meanwhile", async () => {
  await register(small("cat/edited", "First."));
  const page = await opened("/register?from=cat/edited");
  await page.getByText("No problems found").waitFor();
  await page.getByRole("button", { name: "Register …" }).click();
  await page.getByRole("heading", { name: "Nothing changes in cat/edited" }).waitFor();
  await page.getByRole("button", { name: "Back to the text" }).click();
  await register(small("cat/edited", "Second."));
  await writeDocument(page, small("cat/edited", "Third."));
  await page.getByRole("button", { name: "Register …" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Version 2 was registered after you began with version 1").waitFor();
  await dialog.locator(".removed").getByText("description: Second.").waitFor();
  await dialog.locator(".added").getByText("description: Third.").waitFor();
  assert.deepEqual(await accessibility(page), []);
  await dialog.getByRole("button", { name: "Register version 3" }).click();
  await page.waitForURL(/\/entry\/cat\/edited/);
  await page.getByText("v3", { exact: true }).waitFor();
  await page.close();
});

test("the overview leads to the last runs, what calls it and what it calls; an older version is registered again", async () => {
  await register(small("cat/part", "Part."));
  await register(`${small("cat/whole", "Whole.").replace("kind: noop", "kind: playbook, path: cat/part")}`);
  const { execution_id: id } = await post("/api/execute", { path: "cat/whole", wait_ms: 30_000 });
  const page = await opened("/entry/cat/part");
  await page.getByRole("link", { name: /^Run \d+: completed after/ }).waitFor();
  await page.getByRole("link", { name: "cat/whole" }).click();
  await page.getByRole("link", { name: new RegExp(`^Run ${String(id)}`) }).waitFor();
  await page.getByText("It calls").waitFor();
  await page.locator(".relations").getByRole("link", { name: "cat/part" }).waitFor();
  for (const word of ["one", "two"]) await register(`${small("cat/rolled", "R.")}# ${word}\n`);
  await page.goto(`${serving.url}/entry/cat/rolled?tab=versions&version=1`);
  await page.getByRole("button", { name: "Roll back to version 1 …" }).click();
  await page.getByRole("button", { name: "Register version 3" }).click();
  await page.getByRole("heading", { name: "cat/rolled v3" }).waitFor();
  await page.getByRole("button", { name: /^Roll back/ }).waitFor({ state: "detached" });
  await page.close();
});

test("a path is paused with a reason: its page and the list say so, a start is told why, and Resume ends it", async () => {
  await register(small("cat/held", "Held."));
  const page = await opened("/entry/cat/held");
  await page.getByRole("button", { name: "Pause …" }).click();
  await page.getByLabel("Why").fill("the warehouse is down");
  await page.getByRole("button", { name: "Pause it" }).click();
  const panel = page.locator('[data-part="paused"]');
  await panel.getByText("the warehouse is down").waitFor();
  await page.getByRole("button", { name: "Pause …" }).waitFor({ state: "detached" });
  await page.goto(`${serving.url}/catalog?prefix=cat/held`);
  await page.locator('[data-status="PAUSED"]').waitFor();
  await page.goto(`${serving.url}/entry/cat/held`);
  await panel.getByRole("button", { name: "Resume" }).click();
  await panel.waitFor({ state: "detached" });
  await page.close();
});

test("any two versions are compared", async () => {
  const page = await opened("/entry/cat/versions?tab=versions");
  const diff = page.getByRole("region", { name: "From version 2 to version 3" });
  await diff.getByText("# three").waitFor();
  await page.getByRole("combobox", { name: /^From/ }).selectOption("1");
  await page.getByRole("region", { name: "From version 1 to version 3" }).getByText("# one").waitFor();
  await page.getByRole("button", { name: "Swap" }).click();
  await page.getByRole("region", { name: "From version 3 to version 1" }).waitFor();
  await page.close();
});

test("the keychain of a version is listed without values; users without the permission see why not", async () => {
  const name = "api";
  const response = await fetch(`${serving.url}/api/keychain/${String(loadId)}/${name}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ token_data: { access_token: "canary-4713" }, credential_type: "oauth2" }),
  });
  assert.equal(response.status, 200);
  const page = await opened("/entry/cat/load?tab=keychain");
  await page.getByText(`api:${String(loadId)}:global`).waitFor();
  assert.doesNotMatch(await page.content(), /canary/);
  await page.route("**/api/keychain/**", (route) =>
    route.fulfill({ status: 403, json: { error: "no", code: "FORBIDDEN", request_id: "1" } }),
  );
  page.removeAllListeners("console");
  await page.reload();
  await page.getByRole("heading", { name: "The keychain is for operators" }).waitFor();
  await page.close();
});

test("markup in documents is only ever text", async () => {
  const path = encodeURIComponent("cat/hostile<b>").replace("%2F", "/");
  const page = await opened("/catalog");
  page.on("dialog", (dialog) => assert.fail(`a script ran: ${dialog.message()}`));
  for (const [tab, sign] of [
    ["run", "<b>key</b>"],
    ["document", "apiVersion"],
    ["versions", "This is the first version."],
    ["credentials", MARKUP],
    ["keychain", "<i>k</i>"],
  ] as const) {
    await goWithin(page, `/entry/${path}?tab=${tab}`);
    await page.locator("main").getByText(sign).first().waitFor();
    assert.equal(
      await page.locator("main script, main img, main i, main b, main svg:not(.icon, .graph svg)").count(),
      0,
    );
  }
  await page.close();
});

test("a text is looked for beyond the first page of the list", async () => {
  for (let index = 0; index < 210; index += 1) {
    await register(small(`bulk/${String(index).padStart(3, "0")}`, index === 209 ? "Hidden needle." : "Straw."));
  }
  const page = await opened("/catalog?prefix=bulk%2F");
  await page.getByRole("button", { name: "More" }).waitFor();
  await page.goto(`${serving.url}/catalog?prefix=bulk%2F&q=needle`);
  await page.getByRole("link", { name: "bulk/209" }).waitFor();
  await page.close();
});

test("declared inputs have fields of their types; what the server refuses stands at its field; the secret is shown nowhere", async () => {
  const page = await opened("/entry/cat/declared?tab=run");
  // The browser logs the refusal of the server.
  page.removeAllListeners("console");
  const day = page.locator("#input-day");
  assert.equal(await day.getAttribute("type"), "date");
  assert.equal(await page.locator("#input-password").getAttribute("type"), "password");
  assert.equal(await page.getByText("Other inputs").count(), 0);
  const run = page.getByRole("button", { name: "Run", exact: true });
  await run.click();
  await page.locator("#input-day-problem", { hasText: "day is required" }).waitFor();
  await day.fill("2026-01-31");
  await page.locator("#input-mode").selectOption("full");
  await page.locator("#input-password").fill("canary-0815");
  await page.locator("#input-mail").fill("nobody");
  await run.click();
  await page.getByText("mail must be of format email").waitFor();
  assert.deepEqual(await executionsOf("cat/declared"), []);
  await page.locator("#input-mail").fill("ada@example.org");
  await run.click();
  await page.getByText("2026-01-31 full").first().waitFor();
  assert.doesNotMatch(await page.content(), /canary-0815/);
  await page.close();
});
