import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, beforeEach, test } from "node:test";
import type { BrowserContext, Page, Response } from "playwright-core";
import { startBrowser, type TestBrowser } from "../../support/page/browser.ts";
import { CLIENT_ID, DOMAIN } from "../../support/servers/identity-provider.ts";
import { type LoginService, startLoginService } from "../../support/service/login-service.ts";

/*
 * What a real browser does with the gateway's cookie and its CORS: for the page that may call, for one of the same site that may
 * not (another port of the host: the cookie is sent along), and for one of another site (another name of the machine).
 */

const HELLO = `apiVersion: flow/v2
kind: Playbook
metadata: {name: hello, path: team/hello}
workflow:
  - step: start
    tool: {kind: noop, result: {text: hello}}
`;
const ADA = { sub: "ada", email: "ada@example.com", name: "Ada" };
/** However slow the machine is. */
const PATIENCE_MS = 300_000;

const closers: (() => unknown)[] = [];
after(async () => {
  for (const close of closers.reverse()) await close();
});

let service: LoginService;
let browser: TestBrowser;
let context: BrowserContext;
const pages = { app: "", sibling: "", foreign: "" };

/** Serves an empty page at every address. */
async function servePages(): Promise<number> {
  const server = createServer(
    (_, response) => void response.setHeader("content-type", "text/html").end("<html></html>"),
  );
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  closers.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as AddressInfo).port;
}

before(async () => {
  pages.app = `http://127.0.0.1:${await servePages()}`;
  const other = await servePages();
  pages.sibling = `http://127.0.0.1:${other}`;
  pages.foreign = `http://localhost:${other}`;
  const closing = { after: (close: () => unknown) => void closers.push(close) };
  service = await startLoginService(closing, { CORS_ALLOWED_ORIGINS: pages.app, FLOW_GATEWAY_LOGIN_SECONDS: "300" });
  await service.operator("POST", "/api/catalog/register", { content: HELLO });
  await service.login(ADA);
  await service.operator("PUT", `/api/auth/users/${ADA.email}/roles/developer`);
  browser = await startBrowser();
  closers.push(() => browser.close());
});

beforeEach(async () => {
  await context?.close();
  context = await browser.newContext();
  context.setDefaultTimeout(PATIENCE_MS);
});

/** A page of this origin. */
async function open(origin: string): Promise<Page> {
  const page = await context.newPage();
  await page.goto(origin);
  return page;
}

/** Logs in as a page does: at the provider with PKCE, and with its token at the gateway. Gives what the gateway answers. */
async function logIn(): Promise<{ page: Page; body: { status: string; session_token: string } }> {
  const page = await context.newPage();
  const verifier = randomBytes(32).toString("base64url");
  const redirect = `${pages.app}/callback`;
  const query = new URLSearchParams({
    client_id: CLIENT_ID,
    response_type: "code",
    scope: "openid email profile",
    redirect_uri: redirect,
    login_hint: ADA.sub,
    // Without it two tokens of one second are the same, and one logs in once.
    nonce: randomBytes(8).toString("hex"),
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256",
  });
  await page.goto(`${service.provider.issuer}/auth?${query}`);
  const code = new URL(page.url()).searchParams.get("code") ?? "";
  const body = await page.evaluate(
    async ({ issuer, gateway, domain, form }) => {
      const exchanged = await fetch(`${issuer}/token`, { method: "POST", body: new URLSearchParams(form) });
      const { id_token } = (await exchanged.json()) as { id_token: string };
      const answer = await fetch(`${gateway}/api/auth/login`, {
        method: "POST",
        credentials: "include",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ idp_token: id_token, idp_domain: domain }),
      });
      return (await answer.json()) as { status: string; session_token: string };
    },
    {
      issuer: service.provider.issuer,
      gateway: service.server.gatewayUrl,
      domain: DOMAIN,
      form: {
        grant_type: "authorization_code",
        client_id: CLIENT_ID,
        code,
        redirect_uri: redirect,
        code_verifier: verifier,
      },
    },
  );
  assert.equal(body.status, "authenticated", JSON.stringify(body));
  return { page, body };
}

/** What a script of the page gets: the status, or the error where the browser keeps the answer from it. */
async function call(page: Page, method: string, path: string, init: object = {}) {
  return await page.evaluate(
    async ({ url, options }) => {
      try {
        const { status, type, headers } = await fetch(url, { credentials: "include", ...options });
        return { status, type: type as string, requestId: headers.get("x-request-id") };
      } catch (error) {
        return { status: 0, type: String(error).split(":")[0] ?? "", requestId: null };
      }
    },
    { url: `${service.server.gatewayUrl}${path}`, options: { method, ...init } },
  );
}

const KEPT = { status: 0, type: "TypeError", requestId: null };
const EXECUTE = { headers: { "content-type": "application/json" }, body: '{"path":"team/hello"}' };
/** Needs no preflight: every page may send it. */
const SIMPLE = { mode: "no-cors", headers: { "content-type": "text/plain" }, body: EXECUTE.body };

/**
 * Does something in the page, as script text, and gives the status of the POST that comes of it: 401 where the cookie did not come
 * along, 403 where it did, from a page that may not call.
 */
async function answerTo(page: Page, path: string, script: string): Promise<number> {
  const isIt = (response: Response) => response.url().endsWith(path) && response.request().method() === "POST";
  const answered = page.waitForResponse(isIt);
  await page.evaluate(script);
  return (await answered).status();
}

/** A form whose one field makes its body JSON, as text/plain. */
function formOf(path: string, json: string): string {
  const name = json.slice(0, -1);
  return `
    const form = document.body.appendChild(document.createElement("form"));
    Object.assign(form, { method: "POST", enctype: "text/plain", action: ${JSON.stringify(service.server.gatewayUrl + path)} });
    const field = form.appendChild(document.createElement("input"));
    field.name = ${JSON.stringify(`${name},"x":"`)};
    field.value = '"}';
    form.submit();`;
}

async function runs(): Promise<number> {
  const { executions } = await service.operator<{ executions: unknown[] }>(
    "GET",
    "/api/executions?path=team/hello&limit=100",
  );
  return executions.length;
}

const sessionCookies = async () =>
  (await context.cookies(service.server.gatewayUrl)).filter(({ name }) => name === "session_token");

test("a page that may call logs its visitor in, and calls with a cookie that no script reads", async () => {
  const { page, body } = await logIn();
  const [cookie] = await sessionCookies();
  const { value, httpOnly, secure, sameSite, path } = cookie ?? {};
  assert.deepEqual(
    { value, httpOnly, secure, sameSite, path },
    { value: body.session_token, httpOnly: true, secure: true, sameSite: "Lax", path: "/" },
  );
  assert.ok(!String(await page.evaluate("document.cookie")).includes("session_token"));
  const before = await runs();
  const seen = await call(page, "GET", "/flow/catalog/resource/team/hello");
  assert.deepEqual([seen.status, seen.type], [200, "cors"]);
  assert.ok(seen.requestId !== null, "the page may read which request it was");
  // JSON takes a preflight.
  assert.equal((await call(page, "POST", "/flow/execute", EXECUTE)).status, 200);
  assert.equal(await runs(), before + 1);
  assert.equal((await call(page, "GET", "/flow/executions", { credentials: "omit" })).status, 401);
  assert.equal((await call(page, "POST", "/api/auth/logout")).status, 200);
  assert.deepEqual(await sessionCookies(), []);
  assert.equal((await call(page, "GET", "/flow/executions")).status, 401);
});

test("a page of the same site that may not call reads nothing and starts nothing, though the cookie comes along", async () => {
  await logIn();
  const page = await open(pages.sibling);
  const before = await runs();
  assert.deepEqual(await call(page, "GET", "/flow/executions"), KEPT);
  assert.deepEqual(await call(page, "GET", "/api/auth/session"), KEPT);
  assert.deepEqual(await call(page, "POST", "/flow/execute", EXECUTE), KEPT);
  const script = `void fetch(${JSON.stringify(`${service.server.gatewayUrl}/flow/execute`)}, { method: "POST",
    credentials: "include", ...${JSON.stringify(SIMPLE)} })`;
  assert.equal(await answerTo(page, "/flow/execute", script), 403);
  const framed = `document.body.appendChild(Object.assign(document.createElement("iframe"), {
    sandbox: "allow-scripts", srcdoc: ${JSON.stringify(`<script>${script}</script>`).replaceAll("</", "<\\/")} }))`;
  assert.equal(await answerTo(page, "/flow/execute", `${framed}; undefined`), 401, "a frame that is of no site");
  assert.equal(await answerTo(page, "/flow/execute", formOf("/flow/execute", EXECUTE.body)), 403);
  const other = await open(pages.sibling);
  assert.equal(await answerTo(other, "/api/auth/logout", formOf("/api/auth/logout", "{}")), 403);
  assert.equal((await sessionCookies()).length, 1);
  assert.equal(await runs(), before);
});

test("a page of another site gets nothing, and the cookie does not come along", async () => {
  const { page: own } = await logIn();
  const page = await open(pages.foreign);
  const before = await runs();
  assert.deepEqual(await call(page, "GET", "/flow/executions"), KEPT);
  assert.deepEqual(await call(page, "DELETE", "/flow/executions/1"), KEPT);
  assert.equal(await answerTo(page, "/flow/execute", formOf("/flow/execute", EXECUTE.body)), 401);
  assert.equal(await runs(), before);
  assert.equal((await call(own, "GET", "/flow/executions")).status, 200);
});

test("a page of another origin cannot log its visitor in as a different user", async () => {
  await logIn();
  const [before] = await sessionCookies();
  const token = await service.provider.idToken({ sub: "mallory", email: "mallory@example.com" });
  const login = JSON.stringify({ idp_token: token, idp_domain: DOMAIN });
  for (const origin of [pages.sibling, pages.foreign]) {
    const answer = await answerTo(await open(origin), "/api/auth/login", formOf("/api/auth/login", login));
    assert.equal(answer, 403, origin);
  }
  assert.deepEqual(await sessionCookies(), [before]);
  assert.equal((await service.loginWith(token)).status, 200, "nobody has logged in with it before");
});

test("a cookie that another page planted does not become the session; beside the real one it is refused", async () => {
  const { body: planted } = await service.login({ sub: "mallory", email: "mallory@example.com" });
  const sibling = await open(pages.sibling);
  await sibling.evaluate(`document.cookie = "session_token=${planted.session_token}; path=/"`);
  const { page, body } = await logIn();
  assert.deepEqual(
    (await sessionCookies()).map(({ value }) => value),
    [body.session_token],
  );
  assert.equal((await call(page, "GET", "/flow/catalog/resource/team/hello")).status, 200);
  // A longer path is sent first; which of the two is the visitor's cannot be known.
  await sibling.evaluate(`document.cookie = "session_token=${planted.session_token}; path=/flow"`);
  assert.equal((await call(page, "GET", "/flow/catalog/resource/team/hello")).status, 401);
});
