import assert from "node:assert/strict";
import { test } from "node:test";
import { tokenSha256 } from "../../../src/platform/crypto/token.ts";
import { sessionCookie } from "../../../src/routes/gateway/session-token.ts";
import { FlowError } from "../../../src/schema/words/errors.ts";
import { EVIL, PAGE, TOKEN, testGateway, withSession } from "../../support/service/gateway-app.ts";

const USER = { user_id: 1, email: "ada@example.com", display_name: "Ada", roles: ["viewer"] };
const NOW = Date.parse("2026-06-01T12:00:00Z");
const EXPIRES = NOW + 3_600_000;

function posted(body: unknown, headers: Record<string, string> = {}) {
  return { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json", ...headers } };
}

const LOGIN = { idp_token: "id-token-canary", idp_domain: "idp.example" };
const loggedIn = {
  now: () => NOW,
  login: () => Promise.resolve({ sessionToken: TOKEN, user: USER, expiresAt: EXPIRES }),
};

test("a login answers with every field of the specification, and with a cookie that no script reads", async () => {
  const { app, log } = testGateway({ login: loggedIn });
  const response = await app.request("/api/auth/login", posted(LOGIN, { origin: PAGE }));
  assert.equal(response.status, 200);
  assert.deepEqual(await response.json(), {
    status: "authenticated",
    session_token: TOKEN,
    user: USER,
    expires_at: "2026-06-01T13:00:00.000",
    message: "Logged in as ada@example.com",
  });
  const cookie = response.headers.get("set-cookie")?.split("; ");
  assert.deepEqual(cookie?.toSorted(), [
    "HttpOnly",
    "Max-Age=3600",
    "Path=/",
    "SameSite=Lax",
    "Secure",
    `session_token=${TOKEN}`,
  ]);
  assert.equal(response.headers.get("cache-control"), "no-store");
  assert.equal(response.headers.get("access-control-allow-origin"), PAGE);
  assert.doesNotMatch(log(), new RegExp(`canary|${TOKEN}`));
});

const SECURE = "__Host-session_token";

test("behind https the cookie is one that no other host and no plain http can plant; the one without prefix is no session", async () => {
  const { app, revoked } = testGateway({
    login: { ...loggedIn, cookie: sessionCookie({ url: "https://a.example", path: "" }) },
  });
  const old = `session_token=${"B".repeat(43)}`;
  const response = await app.request("/api/auth/login", posted(LOGIN, { origin: PAGE, cookie: old }));
  const [cookie = "", former = "", ...more] = response.headers.getSetCookie();
  assert.equal(cookie, `${SECURE}=${TOKEN}; Max-Age=3600; Path=/; HttpOnly; Secure; SameSite=Lax`);
  assert.match(former, /^session_token=; Max-Age=0; Path=\/; /);
  assert.deepEqual(more, []);
  const ask = async (cookie: string) => (await app.request("/flow/executions", { headers: { cookie } })).status;
  assert.deepEqual(
    [await ask(`${SECURE}=${TOKEN}`), await ask(`${old}; ${SECURE}=${TOKEN}`), await ask(`session_token=${TOKEN}`)],
    [200, 200, 401],
  );
  const headers = { cookie: `${SECURE}=${TOKEN}`, origin: PAGE };
  const out = await app.request("/api/auth/logout", { method: "POST", headers });
  assert.deepEqual(revoked, [tokenSha256(TOKEN)]);
  assert.match(
    out.headers.get("set-cookie") ?? "",
    /^__Host-session_token=; Max-Age=0; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
  );
});

test("the cookie's prefix is what browsers accept at the gateway's address", () => {
  for (const [url, path, name] of [
    ["https://a.example", "", SECURE],
    ["https://a.example/flow", "/flow", "__Secure-session_token"],
    ["http://127.0.0.1:8090", "", "session_token"],
    ["http://127.0.0.1:8090/flow", "/flow", "session_token"],
  ] as const) {
    assert.deepEqual(sessionCookie({ url, path }), { name, path: path || "/" });
  }
  assert.deepEqual(sessionCookie(undefined), { name: "session_token", path: "/" });
});

test("a page that may not call cannot log its visitor in", async () => {
  let logins = 0;
  const login = () => {
    logins += 1;
    return loggedIn.login();
  };
  const { app } = testGateway({ login: { ...loggedIn, login } });
  const response = await app.request("/api/auth/login", posted(LOGIN, { origin: EVIL }));
  assert.deepEqual([response.status, response.headers.get("set-cookie"), logins], [403, null, 0]);
});

for (const body of [{}, { idp_token: "x" }, { idp_domain: "x" }, { idp_token: 7, idp_domain: "x" }, [], "x", null]) {
  test(`a login with ${JSON.stringify(body)} is malformed`, async () => {
    const { app } = testGateway({ login: loggedIn });
    assert.equal((await app.request("/api/auth/login", posted(body))).status, 422);
  });
}

for (const [code, status, message] of [
  ["UNAUTHENTICATED", 401, "The ID token was rejected: its time is over"],
  ["FORBIDDEN", 403, "Logins here do not accept 'x'"],
  ["INVALID_LOGIN", 500, "Invalid email"],
  ["TIMEOUT", 504, "The login took longer"],
  ["SERVER_UNREACHABLE", 502, "The server did not answer"],
] as const) {
  test(`a login that fails as ${code} is ${status}, its reason as 'error', and sets no cookie`, async () => {
    const { app } = testGateway({ login: { login: () => Promise.reject(new FlowError(code, message)) } });
    const response = await app.request("/api/auth/login", posted(LOGIN, { origin: PAGE }));
    const body = (await response.json()) as { error: string; code: string };
    assert.deepEqual([response.status, body.error, body.code], [status, message, code]);
    assert.equal(response.headers.get("set-cookie"), null);
    assert.equal(response.headers.get("access-control-allow-origin"), PAGE, "the page may read why");
  });
}

test("too many logins are 429 and say when to come again", async () => {
  const limited = new FlowError("RATE_LIMITED", "Too many logins", { detail: { retry_after_seconds: 7 } });
  const { app } = testGateway({ login: { login: () => Promise.reject(limited) } });
  const response = await app.request("/api/auth/login", posted(LOGIN));
  assert.deepEqual([response.status, response.headers.get("retry-after")], [429, "7"]);
});

test("a valid session returns its user; an invalid one is 401", async () => {
  const checked: string[] = [];
  const check = (sha256: string) => {
    checked.push(sha256);
    return Promise.resolve(checked.length === 1 ? { user: USER, expiresAt: EXPIRES } : undefined);
  };
  const { app } = testGateway({ login: { check } });
  const response = await app.request("/api/auth/session", withSession());
  assert.deepEqual(
    [response.status, await response.json()],
    [200, { valid: true, user: USER, expires_at: "2026-06-01T13:00:00.000" }],
  );
  assert.deepEqual(checked, [tokenSha256(TOKEN)]);
  assert.equal((await app.request("/api/auth/session", withSession())).status, 401);
  assert.equal((await app.request("/api/auth/session")).status, 401);
  assert.equal(checked.length, 2);
});

test("access is checked in the name of the session's user", async () => {
  const asked: unknown[] = [];
  const isAllowed = (...args: unknown[]) => {
    asked.push(args);
    return Promise.resolve(true);
  };
  const { app } = testGateway({ login: { isAllowed } });
  const body = { action: "execute", path: "reports/daily" };
  const response = await app.request("/api/auth/access", posted(body, withSession().headers));
  assert.deepEqual([response.status, await response.json()], [200, { allowed: true }]);
  assert.deepEqual(asked, [[tokenSha256(TOKEN), body]]);
  assert.equal((await app.request("/api/auth/access", posted(body))).status, 401);
  const wrong = posted({ ...body, action: "delete" }, withSession().headers);
  assert.equal((await app.request("/api/auth/access", wrong)).status, 422);
  assert.equal(asked.length, 1);
});

test("a logout ends the session and takes the cookie away", async () => {
  const { app, revoked } = testGateway();
  const headers = { cookie: `session_token=${TOKEN}`, origin: PAGE };
  const response = await app.request("/api/auth/logout", { method: "POST", headers });
  assert.equal(response.status, 200);
  assert.deepEqual(revoked, [tokenSha256(TOKEN)]);
  assert.match(
    response.headers.get("set-cookie") ?? "",
    /^session_token=; Max-Age=0; Path=\/; HttpOnly; Secure; SameSite=Lax/,
  );
});

test("a page that may not call cannot log a user out, and a failed logout keeps the cookie for another try", async () => {
  const { app, revoked } = testGateway();
  const headers = { cookie: `session_token=${TOKEN}`, origin: EVIL };
  const refused = await app.request("/api/auth/logout", { method: "POST", headers });
  assert.deepEqual([refused.status, refused.headers.get("set-cookie"), revoked], [403, null, []]);
  const failing = testGateway({ login: { revoke: () => Promise.reject(new FlowError("SERVER_UNREACHABLE", "away")) } });
  const failed = await failing.app.request("/api/auth/logout", { method: "POST", ...withSession() });
  assert.deepEqual([failed.status, failed.headers.get("set-cookie")], [502, null]);
  const gone = testGateway({ login: { revoke: () => Promise.reject(new FlowError("UNAUTHENTICATED", "over")) } });
  const over = await gone.app.request("/api/auth/logout", { method: "POST", ...withSession() });
  assert.equal(over.status, 401);
  assert.match(over.headers.get("set-cookie") ?? "", /^session_token=; Max-Age=0/);
});

test("with authentication bypassed every caller is an administrator without a name", async () => {
  const { app } = testGateway({ bypass: true });
  const session = (await (await app.request("/api/auth/session")).json()) as {
    valid: boolean;
    user: { user_id: number };
  };
  assert.deepEqual([session.valid, session.user.user_id], [true, 0]);
  const response = await app.request("/api/auth/access", posted({ action: "modify", path: "a" }));
  assert.deepEqual(await response.json(), { allowed: true });
});
