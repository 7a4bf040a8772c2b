import assert from "node:assert/strict";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";
import type { BrowserContext, Page } from "playwright-core";
import { assertQuiet, startGuiLogin } from "../support/page/gui-login.ts";
import { assertUsable, changeLook, LOOKS } from "../support/page/looks.ts";
import { DOMAIN } from "../support/servers/identity-provider.ts";

/*
 * Logging in with the browser's page: a real identity provider, gateway, server and worker, and a real browser.
 */

const LEA = { sub: "lea", email: "lea@example.com", name: "Lea" };
const VITO = { sub: "vito", email: "vito@example.com", name: "Vito" };
const BIG = `apiVersion: flow/v2
kind: Playbook
metadata: { name: big, path: team/big }
workflow:
  - step: make
    tool: { kind: python, code: "result = {'rows': ['row %d of many' % n for n in range(20000)]}" }
`;

const gui = await startGuiLogin();
after(() => gui.close());
const { service, url, fresh, enter } = gui;
const LOG_IN = { name: `Log in with ${DOMAIN}` };

/** Answers when a test says so: a step that lasts as long as it is needed. */
const holder = createServer();
const asked = new Promise<ServerResponse>((resolve) => holder.once("request", (_, response) => resolve(response)));
await new Promise<void>((listening) => holder.listen(0, "127.0.0.1", listening));
after(() => {
  holder.close();
  holder.closeAllConnections();
});
const SLOW = `apiVersion: flow/v2
kind: Playbook
metadata: { name: slow, path: team/slow }
workflow:
  - step: wait
    tool: { kind: http, url: "http://127.0.0.1:${(holder.address() as AddressInfo).port}/" }
    next: { arcs: [{ step: done }] }
  - step: done
    tool: { kind: noop }
`;
for (const content of [SLOW, BIG]) await service.operator("POST", "/api/catalog/register", { content });
await gui.add(LEA, "developer");
await gui.add(VITO, "viewer");

const cookies = async (context: BrowserContext) =>
  (await context.cookies(url)).filter(({ name }) => name === "session_token");

/** A page at the login, to which the provider's answer comes with something of what this tab had kept changed. */
async function tampered(context: BrowserContext, change: object): Promise<Page> {
  service.provider.visitor = LEA;
  const page = await context.newPage();
  await page.addInitScript(`{
    const kept = sessionStorage.getItem("flow.login");
    if (location.search.includes("state=") && kept !== null)
      sessionStorage.setItem("flow.login", JSON.stringify({ ...JSON.parse(kept), ...${JSON.stringify(change)} }));
  }`);
  await page.goto(`${url}/login`);
  await page.getByRole("button", LOG_IN).click();
  return page;
}

test("who opens a page without a session logs in at their provider and is back at that page, and no script sees a token", async () => {
  const context = await fresh();
  const answered: string[] = [];
  context.on("response", (response) => {
    if (response.url().endsWith("/api/auth/exchange")) void response.text().then((text) => answered.push(text));
  });
  const page = await enter(context, LEA, "/executions?status=FAILED&path=team%2Fslow");
  await page.getByRole("button", { name: "Account" }).getByText("Lea").waitFor();
  const [cookie] = await cookies(context);
  assert.ok(cookie !== undefined);
  const { httpOnly, secure, sameSite, path } = cookie;
  assert.deepEqual({ httpOnly, secure, sameSite, path }, { httpOnly: true, secure: true, sameSite: "Lax", path: "/" });
  const seen = await page.evaluate<string>(
    "JSON.stringify([document.cookie, { ...sessionStorage }, { ...localStorage }, location.href])",
  );
  for (const text of [seen, ...answered]) {
    assert.ok(!text.includes(cookie.value), "the session's token");
    assert.doesNotMatch(text, /eyJ|code=|verifier/);
  }
  assert.match(answered[0] ?? "", /"status":"authenticated"/);
  assertQuiet(context);
  await context.close();
});

test("the login page is accessible: light, dark and narrow", async () => {
  const context = await fresh();
  const page = await context.newPage();
  await page.goto(`${url}/catalog`);
  for (const look of LOOKS) {
    await changeLook(page, look);
    await page.getByRole("button", LOG_IN).waitFor();
    await page.getByText("After you log in you return to this page.").waitFor();
    await assertUsable(page);
  }
  assertQuiet(context);
  await context.close();
});

for (const [what, change, title, says] of [
  ["another state", { state: "another" }, "This login could not be verified", "not started in this tab"],
  [
    "another nonce",
    { nonce: "another-nonce-than-asked" },
    "This login could not be verified",
    "made for another login",
  ],
  ["another verifier", { verifier: "v".repeat(43) }, "This login could not be verified", "refused the login"],
  [
    "another provider's answer",
    { issuer: "https://evil.example" },
    "This login could not be verified",
    "answered by another provider",
  ],
  [
    "a foreign domain",
    { domain: "evil.example" },
    "You may not log in here",
    "Logins here do not accept 'evil.example'",
  ],
] as const) {
  test(`a login with ${what} is refused in clear words, and can be begun again`, async () => {
    const context = await fresh();
    const page = await tampered(context, change);
    await page.getByRole("heading", { name: title }).waitFor();
    await page.getByText(says).waitFor();
    assert.deepEqual(await cookies(context), []);
    assert.equal(page.url(), `${url}/login`, "nothing of the answer stays in the address");
    await page.getByRole("button", LOG_IN).waitFor();
    assertQuiet(context);
    await context.close();
  });
}

test("an answer without a request logs no user in, and is not sent anywhere", async () => {
  const context = await fresh();
  const page = await context.newPage();
  page.on("request", (request) => assert.doesNotMatch(request.url(), /exchange/));
  await page.goto(`${url}/login?code=of-somebody-else&state=whatever`);
  await page.getByText("not started in this tab").waitFor();
  await context.close();
});

for (const [what, visitor, says] of [
  ["refuses at the provider", undefined, "No, thank you"],
  ["has no verified address", { sub: "eve", email: "eve@example.com", verified: false }, "email_verified"],
] as const) {
  test(`a user who ${what} sees why the login failed`, async () => {
    const context = await fresh();
    service.provider.visitor = visitor;
    const page = await context.newPage();
    await page.goto(`${url}/login`);
    await page.getByRole("button", LOG_IN).click();
    await page.getByText(says).waitFor();
    assert.deepEqual(await cookies(context), []);
    await context.close();
  });
}

test("after a login the browser stays on this site, whatever the address says", async () => {
  const context = await fresh();
  const page = await enter(context, LEA);
  for (const to of [
    "//evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "/.//evil.example",
    "https://evil.example/",
    "javascript:alert(1)",
    "/\t/evil.example",
    "/login?to=/login",
  ]) {
    page.on("dialog", (dialog) => assert.fail(`a script ran: ${dialog.message()}`));
    await page.goto(`${url}/login?to=${encodeURIComponent(to)}`);
    await page.waitForURL(`${url}/`);
  }
  await page.goto(`${url}/login?to=${encodeURIComponent("/catalog?prefix=team%2F")}`);
  await page.waitForURL(`${url}/catalog?prefix=team%2F`);
  assertQuiet(context);
  await context.close();
});

test("who logs out has no cookie, and every tab is locked", async () => {
  const context = await fresh();
  const page = await enter(context, LEA);
  const other = await context.newPage();
  await other.goto(`${url}/catalog`);
  await other.getByText("team/slow").waitFor();
  await page.getByRole("button", { name: "Account" }).click();
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByRole("heading", { name: "Log in" }).waitFor();
  assert.deepEqual(await cookies(context), []);
  await other.getByRole("heading", { name: "Log in" }).waitFor();
  await page.goto(`${url}/executions`);
  await page.getByRole("button", LOG_IN).waitFor();
  assertQuiet(context);
  await context.close();
});

test("a session that ends while the page is open leads to the login, and back to the same page", async () => {
  const context = await fresh();
  const page = await enter(context, LEA, "/catalog?prefix=team%2F");
  await page.getByText("team/slow").waitFor();
  await service.operator("DELETE", `/api/auth/users/${LEA.email}/sessions`);
  await page.getByRole("link", { name: "team/slow" }).first().click();
  const button = page.getByRole("button", LOG_IN);
  await button.waitFor();
  await button.click();
  await page.waitForURL(/\/entry\/team\/slow/);
  await page.getByRole("heading", { name: "team/slow" }).first().waitFor();
  assertQuiet(context);
  await context.close();
});

test("two tabs that ask for a login go on when one of them has logged in", async () => {
  const context = await fresh();
  const waiting = await context.newPage();
  await waiting.goto(`${url}/catalog`);
  await waiting.getByRole("button", LOG_IN).waitFor();
  await enter(context, LEA);
  await waiting.waitForURL(`${url}/catalog`);
  await waiting.getByText("team/slow").waitFor();
  await context.close();
});

test("an execution is followed live through the gateway, also over a connection that was lost", async () => {
  const context = await fresh();
  const page = await enter(context, LEA, "/entry/team/slow?tab=run");
  let streams = 0;
  const isAgain = new Promise<void>((resolve) => {
    void page.route(/\/flow\/executions\/\d+\/stream/, async (route) => {
      streams += 1;
      // The first connection is gone as soon as it is there.
      if (streams === 1)
        return await route.fulfill({ status: 200, contentType: "text/event-stream", body: ": hello\n\n" });
      resolve();
      await route.continue();
    });
  });
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.waitForURL(/\/executions\/\d+/);
  await page.locator('[data-status="RUNNING"]').first().waitFor();
  await isAgain;
  (await asked).setHeader("content-type", "application/json").end("{}");
  await page.getByText("Completed in").waitFor();
  assertQuiet(context);
  await context.close();
});

test("a result that is kept beside the log is read through the gateway", async () => {
  const { execution_id: id } = await service.run("team/big");
  const context = await fresh();
  const page = await enter(context, LEA, `/executions/${id}`);
  await page.getByText("Completed in").waitFor();
  const text = await page.evaluate<string>(`(async () => {
    const { events } = await (await fetch("/flow/executions/${id}/events?limit=500")).json();
    const [, ref] = /"ref":"([^"]+)"/.exec(JSON.stringify(events)) ?? [];
    return await (await fetch("/flow/results/resolve?ref=" + encodeURIComponent(ref))).text();
  })()`);
  assert.match(text, /row 19999 of many/);
  await context.close();
});

test("a viewer is not shown what is not for them, reads why they may not run, and why a page stays closed", async () => {
  const context = await fresh();
  const page = await enter(context, VITO, "/entry/team/slow?tab=run");
  const pages = page.getByRole("navigation", { name: "Pages" });
  await pages.getByRole("link", { name: "Access" }).waitFor({ state: "detached" });
  assert.deepEqual(await pages.getByRole("link").allTextContents(), [
    "Home",
    "Executions",
    "Playbooks",
    "Triggers",
    "Inbox",
    "Agents",
  ]);
  const why = /^Your role \(viewer\) does not let you run team\/slow\. An administrator can change that\.$/;
  const run = page.getByRole("button", { name: "Run", exact: true });
  await page.getByText(why).first().waitFor();
  assert.equal(await run.getAttribute("aria-disabled"), "true");
  await run.press("Enter");
  const { executions } = await service.operator<{ executions: unknown[] }>("GET", "/api/executions?path=team/slow");
  await page.goto(`${url}/catalog`);
  await page.locator('[aria-disabled="true"]').getByText("Register …").waitFor();
  await page.goto(`${url}/executions?path=team%2Fslow`);
  await page.locator('[aria-disabled="true"]').getByText("Act on all …").waitFor();
  const later = await service.operator<{ executions: unknown[] }>("GET", "/api/executions?path=team/slow");
  assert.equal(later.executions.length, executions.length, "nothing was started");
  await page.goto(`${url}/access`);
  await page.getByRole("heading", { name: "You may not see this" }).first().waitFor();
  assertQuiet(context);
  await context.close();
});

test("a new user without a role sees what to do", async () => {
  const context = await fresh();
  const page = await enter(context, { sub: "new", email: "new@example.com", name: "New" });
  await page.getByRole("heading", { name: "You have no role yet" }).waitFor();
  await service.operator("PUT", "/api/auth/users/new@example.com/roles/viewer");
  await page.getByRole("button", { name: "Look again" }).click();
  await page.getByRole("heading", { name: "You have no role yet" }).waitFor({ state: "detached" });
  await context.close();
});

test("a page that a task has stored is framed behind the gateway by the session alone, closed in, and gone with the session", async () => {
  const code = `import os\nopen(os.environ["FLOW_ARTIFACTS"] + "/r.html", "w").write("<style>h1 { color: rgb(1, 2, 3) }</style><h1>Framed</h1><script>document.title = 'run'</script>")`;
  const content = JSON.stringify({
    ...{ apiVersion: "flow/v2", kind: "Playbook", metadata: { name: "framed", path: "team/framed" } },
    workflow: [{ step: "write", tool: { kind: "python", code } }],
  });
  await service.operator("POST", "/api/catalog/register", { content });
  const started = await service.operator("POST", "/api/execute", { path: "team/framed", wait_ms: 30_000 });
  const id = String((started as { execution_id: string }).execution_id);
  const context = await fresh();
  const page = await enter(context, VITO, `/executions/${id}?tab=files`);
  const answered = page.waitForResponse((response) => response.url().includes("frame=true"));
  await page.getByRole("button", { name: "Show", exact: true }).click();
  const frame = page.frameLocator("iframe");
  await frame.getByRole("heading", { name: "Framed" }).waitFor();
  const response = await answered;
  const address = response.url();
  assert.equal(response.status(), 200);
  const headers = await response.allHeaders();
  assert.match(headers["content-security-policy"] ?? "", /^sandbox; default-src 'none';.*frame-ancestors 'self'$/);
  assert.deepEqual([headers["x-frame-options"], headers["content-disposition"]], [undefined, "inline"]);
  // Only the cookie lets it in, which no script reads: neither the page's nor one in the frame.
  const sent = await response.request().allHeaders();
  assert.equal(sent["authorization"], undefined);
  assert.doesNotMatch(address, /token|session/);
  const [session] = await cookies(context);
  assert.deepEqual([session?.httpOnly, (sent["cookie"] ?? "").includes(session?.value ?? "-")], [true, true]);
  assert.equal(
    await page
      .evaluate("document.cookie + JSON.stringify({ ...localStorage, ...sessionStorage })")
      .then((text) => String(text).includes(session?.value ?? "-")),
    false,
  );
  assert.notEqual(await page.title(), "run");
  await context.clearCookies();
  assert.equal((await page.request.get(address)).status(), 401);
  await context.close();
});
