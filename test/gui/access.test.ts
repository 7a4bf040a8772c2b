import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { assertQuiet, startGuiLogin } from "../support/page/gui-login.ts";
import { assertUsable, assertViewsUsable, setLook } from "../support/page/looks.ts";

/*
 * Users, roles, permissions and the audit log in the browser, for those who look after them, through the gateway.
 */

const ADA = { sub: "ada", email: "ada@example.com", name: "Ada" };
const VERA = { sub: "vera", email: "vera@example.com", name: "Vera" };
/** Markup wherever an outsider can write. */
const MALLORY = { sub: "m", email: "mallory@example.com", name: "<img src=x onerror=alert(1)>" };

const gui = await startGuiLogin();
after(() => gui.close());
const { service, url, fresh, enter } = gui;
await gui.add(ADA, "admin");
await gui.add(VERA, "viewer");
await gui.add(MALLORY, "viewer");
await service.login(MALLORY);
await service.operator("POST", "/api/auth/roles", { name: "team-a", description: "<script>alert(2)</script>" });

const context = await fresh();
context.on("page", (page) => page.on("dialog", (dialog) => assert.fail(`a script ran: ${dialog.message()}`)));
// One for all tests: a new one would be a new process.
const shown = await enter(context, ADA);
const { user_id: vera } = await service.operator<{ user_id: number }>("GET", `/api/auth/users/${VERA.email}`);
const { user_id: ada } = await service.operator<{ user_id: number }>("GET", `/api/auth/users/${ADA.email}`);
const { user_id: mallory } = await service.operator<{ user_id: number }>("GET", `/api/auth/users/${MALLORY.email}`);

async function opened(path: string): Promise<Page> {
  await setLook(shown, {});
  await shown.goto(`${url}${path}`);
  return shown;
}

/** Opens the dialog of a button and confirms it. */
async function confirm(page: Page, button: string | RegExp, action: string): Promise<void> {
  await page.getByRole("button", { name: button }).first().click();
  await page.getByRole("dialog").getByRole("button", { name: action, exact: true }).click();
}

test("each view shows its subject, light, dark and narrow, without serious accessibility problems", async (t) => {
  const page = await opened("/access");
  await assertViewsUsable(t, page, [
    ["/access", "vera@example.com"],
    [`/access?tab=users&user=${mallory}`, "Their actions"],
    ["/access?tab=roles", "team-a"],
    ["/access?tab=roles&role=admin", "The role admin stays as it is"],
    ["/access?tab=roles&role=team-a", "None: it grants no access to playbooks."],
    ["/access?tab=permissions", "view_audit"],
    ["/access?tab=check", "The path need not be registered."],
    ["/access?tab=audit", "session.open"],
  ]);
  assertQuiet(context);
});

test("a user is found, given a role, and has it with their next call; then it is taken away", async () => {
  const page = await opened("/access");
  await page.getByLabel("Name or address").fill("vera");
  await page.keyboard.press("Enter");
  await page.waitForURL(/q=vera/);
  await page.getByRole("cell", { name: ADA.email }).waitFor({ state: "detached" });
  await page.getByRole("link", { name: "Vera" }).click();
  await page.getByLabel("Role to add").selectOption("developer");
  await page.getByRole("button", { name: "Add role" }).click();
  await page.getByRole("link", { name: "developer" }).waitFor();
  const { body } = await service.login(VERA);
  assert.deepEqual(body.user.roles, ["developer", "viewer"]);
  await confirm(page, "Remove developer", "Remove");
  await page.getByRole("link", { name: "developer" }).waitFor({ state: "detached" });
  const me = await service.as(body.session_token, "GET", "/flow/auth/me");
  assert.deepEqual(me.body["roles"], ["viewer"]);
  assertQuiet(context);
});

test("a user's sessions are listed and ended", async () => {
  const { body } = await service.login(VERA);
  const page = await opened(`/access?tab=users&user=${vera}`);
  const session = page.getByRole("button", { name: /^End the session/ });
  await session.first().waitFor();
  for (let left = await session.count(); left > 0; left -= 1) {
    await confirm(page, /^End the session/, "End it");
    await session.nth(left - 1).waitFor({ state: "detached" });
  }
  await page.getByText("No sessions.").waitFor();
  assert.equal((await service.as(body.session_token, "GET", "/flow/auth/me")).status, 401);
  assertQuiet(context);
});

test("who is locked out has no session and no login, until they are let in again", async () => {
  const { body } = await service.login(MALLORY);
  const page = await opened(`/access?tab=users&user=${mallory}`);
  await confirm(page, "Lock out …", "Lock out");
  await page.getByText("locked out: no session, no login").waitFor();
  assert.equal((await service.as(body.session_token, "GET", "/flow/auth/me")).status, 401);
  assert.equal((await service.login(MALLORY)).status, 403);
  await confirm(page, "Let in …", "Let in");
  await page.getByRole("button", { name: "Lock out …" }).waitFor();
  assert.equal((await service.login(MALLORY)).status, 200);
  assertQuiet(context);
});

test("the last administrator can neither be locked out nor lose the role, and it is said why", async () => {
  const page = await opened(`/access?tab=users&user=${ada}`);
  for (const [button, action] of [
    ["Remove admin", "Remove"],
    ["Lock out …", "Lock out"],
    ["Delete …", "Delete"],
  ] as const) {
    await confirm(page, button, action);
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("alert").getByText("is the last user who may manage users").waitFor();
    await dialog.getByRole("button", { name: "Close" }).click();
  }
  await page.reload();
  await page.getByRole("link", { name: "admin", exact: true }).waitFor();
  assertQuiet(context);
});

test("a user is added before their first login, and deleted again; an existing one is not added twice", async () => {
  const page = await opened("/access");
  await page.getByRole("button", { name: "Add a user …" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Address").fill(VERA.email);
  await dialog.getByRole("button", { name: "Add", exact: true }).click();
  await dialog.getByRole("alert").waitFor();
  await dialog.getByLabel("Address").fill("new@example.com");
  await dialog.getByRole("button", { name: "Add", exact: true }).click();
  // The only provider of the service, which alone may vouch for the address.
  await page.getByText(service.provider.issuer).waitFor();
  await confirm(page, "Delete …", "Delete");
  await page.waitForURL(`${url}/access?tab=users`);
  await page.getByText(VERA.email).first().waitFor();
  await page.getByRole("link", { name: "new@example.com" }).waitFor({ state: "detached" });
  assertQuiet(context);
});

test("a role is made, allows paths but not some, gives a permission, and is asked about; then it goes", async () => {
  const page = await opened("/access?tab=roles");
  await page.getByRole("button", { name: "Add a role …" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("loaders");
  await dialog.getByRole("button", { name: "Add", exact: true }).click();
  await page.waitForURL(/role=loaders/);
  await page.getByText("Allow more playbooks").click();
  await page.getByLabel("Paths").fill("etl/**");
  await page.getByLabel("But not").fill("etl/private/**");
  await page.getByLabel("run and cancel").check();
  await page.getByRole("button", { name: "Allow", exact: true }).click();
  await page.getByRole("cell", { name: "see, run", exact: true }).waitFor();
  const operations = { name: /view_operations/ };
  await page.getByRole("checkbox", operations).click();
  await page.getByRole("checkbox", { ...operations, checked: true, disabled: false }).waitFor();
  await service.operator("PUT", `/api/auth/users/${VERA.email}/roles/loaders`);
  await page.reload();
  await page.getByRole("checkbox", { ...operations, checked: true }).waitFor();
  await page.getByRole("link", { name: "Vera" }).waitFor();
  for (const [path, answer] of [
    ["etl/load", "✓ Yes"],
    ["etl/private/load", "✕ No"],
  ] as const) {
    await page.goto(`${url}/access?tab=check`);
    await page.getByLabel("User").fill(VERA.email);
    await page.getByLabel("Do what").selectOption("execute");
    await page.getByLabel("Path").fill(path);
    await page.getByRole("button", { name: "Ask" }).click();
    await page.getByRole("heading", { name: answer }).waitFor();
  }
  await page.goto(`${url}/access?tab=roles&role=loaders`);
  await confirm(page, /^Remove see, run/, "Remove");
  await page.getByText("None: it grants no access to playbooks.").waitFor();
  await confirm(page, "Deactivate …", "Deactivate");
  await page.getByText("(inactive)").first().waitFor();
  await confirm(page, "Delete …", "Delete");
  await page.waitForURL(`${url}/access?tab=roles`);
  await page.getByRole("link", { name: "loaders" }).waitFor({ state: "detached" });
  assertQuiet(context);
});

test("a rule that allows nothing is refused in the form, and an unknown user is not checked", async () => {
  const page = await opened("/access?tab=roles&role=team-a");
  await page.getByText("Allow more playbooks").click();
  await page.getByLabel("Paths").fill("etl/**");
  await page.getByLabel("see", { exact: true }).uncheck();
  await page.getByRole("button", { name: "Allow", exact: true }).click();
  await page.getByRole("alert").getByText("can_execute").waitFor();
  await page.goto(`${url}/access?tab=check`);
  await page.getByLabel("User").fill("nobody@example.com");
  await page.getByLabel("Path").fill("a/b");
  await page.getByRole("button", { name: "Ask" }).click();
  await page.getByText("There is no active user nobody@example.com").waitFor();
});

test("the role admin is shown and cannot be changed", async () => {
  const page = await opened("/access?tab=roles&role=admin");
  const remove = page.getByRole("button", { name: "Delete …" });
  await remove.waitFor();
  assert.equal(await remove.getAttribute("aria-disabled"), "true");
  await remove.click({ force: true });
  assert.equal(await page.getByRole("dialog").count(), 0);
  assertQuiet(context);
});

test("the audit log is narrowed by who, what and how it ended, in the address, and an entry shows all of itself", async () => {
  const page = await opened("/access?tab=audit");
  await page.getByLabel("Did").fill("session.open");
  await page.getByLabel("Who").fill(MALLORY.email);
  await page.getByLabel("Result").selectOption("allow");
  await page.getByRole("button", { name: "Show" }).click();
  await page.waitForURL(/action=session.open/);
  await page.reload();
  await page.getByRole("cell", { name: "session.open" }).first().waitFor();
  const who = await page.locator("table.audit tbody td:nth-child(2)").allTextContents();
  assert.ok(who.length > 0 && who.every((text) => text === MALLORY.email), JSON.stringify(who));
  await page.locator("table.audit tbody button").first().click();
  await page.getByText("Decided by").waitFor();
  await page.goto(`${url}/access?tab=audit&actor=nobody`);
  await page.getByText("No matching lines").waitFor();
  assertQuiet(context);
});

test("no column of the audit log is out of sight on a narrow page", async () => {
  for (const width of [360, 390]) {
    const page = await opened("/access?tab=audit");
    await page.setViewportSize({ width, height: 800 });
    await page.locator("table.audit tbody tr").first().waitFor();
    const [inner, outer] = await page.evaluate<[number, number]>(
      "[document.querySelector('.panel.scroll').scrollWidth, document.querySelector('.panel.scroll').clientWidth]",
    );
    assert.ok(inner <= outer, `${inner} px of ${outer}`);
    await page.locator("table.audit tbody button").first().click();
    await page.getByText("Decided by").waitFor();
    await assertUsable(page);
    assertQuiet(context);
  }
});

test("who may see the audit log alone gets that alone", async () => {
  await service.operator("POST", "/api/auth/roles", { name: "auditor", permissions: ["view_audit"] });
  await gui.add({ sub: "otto", email: "otto@example.com", name: "Otto" }, "auditor");
  const other = await fresh();
  const page = await enter(other, { sub: "otto", email: "otto@example.com", name: "Otto" });
  await page.getByRole("link", { name: "Access" }).click();
  await page.getByRole("cell", { name: "session.open" }).first().waitFor();
  const views = page.getByRole("navigation", { name: "Views" }).getByRole("link");
  assert.deepEqual(await views.allTextContents(), ["Audit log"]);
  await page.goto(`${url}/access?tab=users`);
  await page.getByText("role (auditor) does not let you manage users").waitFor();
  assertQuiet(other);
  await other.close();
});
