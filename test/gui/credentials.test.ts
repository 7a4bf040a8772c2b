import assert from "node:assert/strict";
import { after, test } from "node:test";
import { startGui } from "../support/page/gui.ts";
import { accessibility, assertViewsUsable } from "../support/page/looks.ts";

/* Credentials in a real browser against a real `flow serve`. What they hold must never come back. */

const CANARY = "canary-4711";
const MARKUP = "<img src=x onerror=alert(1)>";
const gui = await startGui();
after(() => gui.close());
const { serving, browser, post, opened } = gui;

const bearer = (name: string, more = {}) =>
  post("/api/credentials", { name, type: "bearer", data: { token: CANARY }, ...more });
await bearer("tok_a", { tags: ["eu", "prod"], description: "Opens a door.", meta: { owner: "team a" } });
await bearer("tok_b");
await bearer(`odd ${MARKUP}/?#%`, { description: MARKUP, tags: [MARKUP] });
await post("/api/catalog/register", {
  content: `apiVersion: flow/v2
kind: Playbook
metadata: { name: user, path: uses/tok_a }
workload: { door: tok_a }
workflow:
  - { step: a, tool: { kind: http, url: "http://x", auth: tok_a } }
  - { step: b, tool: { kind: http, url: "http://x", auth: "{{ workload.door }}" } }
`,
});

async function recordOf(name: string): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await fetch(`${serving.url}/api/credentials/${encodeURIComponent(name)}?include_data=true`);
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

test("each view shows its subject, light, dark and narrow, without serious accessibility problems", async (t) => {
  const page = await opened("/");
  await assertViewsUsable(t, page, [
    ["/credentials", "tok_b"],
    ["/credentials?name=tok_a", "uses/tok_a"],
    ["/credentials?form=new", "Another field"],
    ["/credentials?name=tok_a&form=replace", "All of it is replaced"],
  ]);
  await page.close();
});

test("the list is narrowed by type, tag and text, and keys open a row", async () => {
  const page = await opened("/credentials?type=warehouse");
  await page.getByRole("heading", { name: "No matching credentials" }).waitFor();
  await page.getByLabel("Type").selectOption("");
  await page.getByRole("link", { name: "tok_b" }).waitFor();
  await page.getByLabel("Tag").fill("eu");
  await page.getByLabel("Tag").press("Enter");
  await page.getByRole("link", { name: "tok_b" }).waitFor({ state: "detached" });
  await page.getByRole("link", { name: "tok_a" }).waitFor();
  await page.evaluate("document.activeElement.blur()");
  await page.keyboard.press("j");
  await page.locator('tr[aria-selected="true"]').waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "tok_a" }).waitFor();
  await page.close();
});

test("a credential's page shows its record, its uses, and its audit log; never its data", async () => {
  const asked: string[] = [];
  const page = await opened("/credentials?name=tok_a");
  page.on("request", (request) => asked.push(request.url()));
  await page.reload();
  const uses = page.getByRole("region", { name: "Uses" });
  await uses.getByText("workflow[0].tool.auth").waitFor();
  await uses.getByText("unless a run is given another").waitFor();
  await page.getByRole("region", { name: "History" }).getByText("Changed last").waitFor();
  await page.getByText("team a").waitFor();
  assert.doesNotMatch(await page.content(), new RegExp(CANARY));
  assert.deepEqual(
    asked.filter((url) => url.includes("include_data")),
    [],
  );
  await uses.getByRole("link", { name: "uses/tok_a" }).click();
  await page.getByRole("link", { name: "tok_a", exact: true }).waitFor();
  await page.close();
});

test("a new one has the fields of its type, is refused with what is missing, and then kept, and stays nowhere in the browser", async () => {
  const page = await opened("/credentials?form=new");
  // The browser logs the 404 by which the page knows that the name is free.
  page.removeAllListeners("console");
  await page.getByRole("button", { name: "Make it" }).click();
  const alert = page.getByRole("alert");
  await alert.getByText("The name is missing").waitFor();
  await alert.getByText("Missing required field: password").waitFor();
  assert.deepEqual(await accessibility(page), []);
  await page.getByLabel("Name", { exact: false }).first().fill("pg_new");
  await page.getByLabel("Tags").fill("a, b,");
  await page.getByLabel("Playbooks").fill("etl/**, report,");
  for (const [field, text] of [
    ["host", "db"],
    ["port", "5432"],
    ["user", "u"],
    ["password", CANARY],
    ["database", "d"],
  ] as const) {
    await page.locator(`#data-${field}`).fill(text);
  }
  assert.equal(await page.locator("#data-password").getAttribute("type"), "password");
  await page.getByRole("button", { name: "Another field" }).click();
  await page.getByLabel("Name", { exact: true }).last().fill("sslmode");
  await page.getByLabel("Value").fill("require");
  await page.getByRole("button", { name: "Make it" }).click();
  await page.getByRole("heading", { name: "pg_new" }).waitFor();
  const { body } = await recordOf("pg_new");
  assert.deepEqual(body["data"], {
    host: "db",
    port: 5432,
    user: "u",
    password: CANARY,
    database: "d",
    sslmode: "require",
  });
  assert.deepEqual(body["tags"], ["a", "b"]);
  assert.deepEqual(body["playbooks"], ["etl/**", "report"]);
  await page.getByText("etl/**, report").waitFor();
  assert.doesNotMatch(await page.content(), new RegExp(CANARY));
  assert.doesNotMatch(await page.evaluate<string>("JSON.stringify({ ...localStorage, ...sessionStorage })"), /canary/);
  assert.doesNotMatch(page.url(), /canary/);
  await page.close();
});

test("a new one never replaces one of the same name, and what is pasted as JSON must be JSON", async () => {
  const page = await opened("/credentials?form=new");
  page.removeAllListeners("console");
  await page.getByLabel("Name", { exact: false }).first().fill("tok_b");
  await page.getByLabel("Type").first().selectOption("bearer");
  await page.getByRole("button", { name: "Paste JSON instead" }).click();
  await page.locator("#credential-json").fill('{"token": ');
  await page.getByRole("button", { name: "Make it" }).click();
  await page.getByRole("alert").getByText("The data is not valid JSON").waitFor();
  await page.locator("#credential-json").fill('{"token": "other"}');
  await page.getByRole("button", { name: "Make it" }).click();
  await page.getByRole("alert").getByText("A credential 'tok_b' already exists").waitFor();
  assert.deepEqual((await recordOf("tok_b")).body["data"], { token: CANARY });
  await page.close();
});

test("a replacement replaces the data and keeps what is no secret", async () => {
  const page = await opened("/credentials?name=tok_a&form=replace");
  assert.equal(await page.locator("#data-token").inputValue(), "");
  await page.locator("#data-token").fill("second");
  await page.getByRole("button", { name: "Replace it" }).click();
  await page.getByRole("region", { name: "History" }).getByText("replaced").waitFor();
  const { body } = await recordOf("tok_a");
  assert.deepEqual(body["data"], { token: "second" });
  assert.deepEqual([body["meta"], body["tags"]], [{ owner: "team a" }, ["eu", "prod"]]);
  // Its owner has not said which playbooks may use it.
  await page.getByText("No playbook may use it yet").waitFor();
  await page.goto(`${serving.url}/credentials?name=tok_a&form=replace`);
  await page.getByLabel("Playbooks").fill("team/**");
  await page.locator("#data-token").fill("third");
  await page.getByRole("button", { name: "Replace it" }).click();
  await page.getByText("team/**", { exact: true }).first().waitFor();
  assert.deepEqual((await recordOf("tok_a")).body["meta"], { owner: "team a", playbooks: ["team/**"] });
  await page.close();
});

test("deleting a credential shows its uses first; afterwards its page says that it is gone", async () => {
  const page = await opened("/credentials?name=tok_a");
  page.removeAllListeners("console");
  await page.getByRole("button", { name: "Delete …" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("uses/tok_a").waitFor();
  assert.deepEqual(await accessibility(page), []);
  await dialog.getByRole("button", { name: "No" }).click();
  assert.equal((await recordOf("tok_a")).status, 200);
  await page.getByRole("button", { name: "Delete …" }).click();
  await page.getByRole("button", { name: "Delete tok_a" }).click();
  await page.getByRole("heading", { name: "Credentials", exact: true }).waitFor();
  assert.equal((await recordOf("tok_a")).status, 404);
  await page.goto(`${serving.url}/credentials?name=tok_a`);
  await page.getByRole("heading", { name: "Page not found" }).waitFor();
  await page.getByRole("region", { name: "Uses" }).getByText("uses/tok_a").waitFor();
  await page.close();
});

test("markup in names, tags and descriptions is only ever text, and odd names lead to their pages", async () => {
  const page = await opened("/credentials");
  page.on("dialog", (dialog) => assert.fail(`a script ran: ${dialog.message()}`));
  await page.getByRole("link", { name: "odd" }).click();
  await page.getByRole("heading", { name: `odd ${MARKUP}/?#%` }).waitFor();
  await page.getByRole("region", { name: "Uses" }).getByText("uses it in its newest version").waitFor();
  assert.equal(await page.locator("main img, main svg").count(), 0);
  await page.close();
});

test("users who may not manage credentials see why not", async () => {
  const page = await browser.newTab();
  await page.route("**/api/credentials*", (route) =>
    route.fulfill({
      status: 403,
      json: { error: "No role of yours gives manage_credentials", code: "FORBIDDEN", request_id: "7" },
    }),
  );
  await page.goto(`${serving.url}/credentials`);
  await page.getByRole("heading", { name: "You may not see this" }).waitFor();
  assert.deepEqual(await accessibility(page), []);
  await page.close();
});
