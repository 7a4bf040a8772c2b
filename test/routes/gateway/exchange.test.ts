import assert from "node:assert/strict";
import { test } from "node:test";
import type { LoginRequest } from "../../../src/services/login/login.ts";
import { EVIL, PAGE, TOKEN, testGateway } from "../../support/service/gateway-app.ts";

const USER = { user_id: 1, email: "ada@example.com", display_name: "Ada", roles: ["viewer"] };
const NOW = Date.parse("2026-06-01T12:00:00Z");
const BODY = {
  idp_domain: "idp.example",
  code: "code-canary",
  code_verifier: "v".repeat(43),
  redirect_uri: `${PAGE}/login`,
  nonce: "nonce-of-the-test",
};

function setup() {
  const asked: LoginRequest[] = [];
  const login = (one: LoginRequest) => {
    asked.push(one);
    return Promise.resolve({ sessionToken: TOKEN, user: USER, expiresAt: NOW + 3_600_000 });
  };
  return { asked, ...testGateway({ login: { login, now: () => NOW } }) };
}

function posted(body: unknown, headers: Record<string, string> = { origin: PAGE }) {
  return { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json", ...headers } };
}

test("a code logs in, and the session's token is in the cookie alone", async () => {
  const { app, asked, log } = setup();
  const response = await app.request("/api/auth/exchange", posted(BODY));
  assert.equal(response.status, 200);
  assert.deepEqual(await response.json(), {
    status: "authenticated",
    user: USER,
    expires_at: "2026-06-01T13:00:00.000",
    message: "Logged in as ada@example.com",
  });
  assert.match(response.headers.get("set-cookie") ?? "", new RegExp(`^session_token=${TOKEN}; .*HttpOnly`));
  assert.equal(response.headers.get("cache-control"), "no-store");
  const { code_verifier: codeVerifier, redirect_uri: redirectUri, code, nonce } = BODY;
  assert.deepEqual(
    asked.map((one) => ("code" in one ? one.code : one.idpToken)),
    [{ code, codeVerifier, redirectUri, nonce }],
  );
  assert.doesNotMatch(log(), /canary/);
});

for (const [what, body, headers, status] of [
  ["from a page that may not call", BODY, { origin: EVIL }, 403],
  ["for an answer that came to another page", { ...BODY, redirect_uri: `${EVIL}/login` }, { origin: PAGE }, 403],
  ["whose redirect is no address", { ...BODY, redirect_uri: "login" }, { origin: PAGE }, 422],
  ["with a verifier that can be guessed", { ...BODY, code_verifier: "short" }, { origin: PAGE }, 422],
  ["without a nonce", { ...BODY, nonce: undefined }, { origin: PAGE }, 422],
  ["without a code", { ...BODY, code: "" }, { origin: PAGE }, 422],
] as const) {
  test(`an exchange ${what} is refused with ${status}, without a call to the provider`, async () => {
    const { app, asked } = setup();
    const response = await app.request("/api/auth/exchange", posted(body, headers));
    assert.deepEqual([response.status, response.headers.get("set-cookie"), asked.length], [status, null, 0]);
  });
}

test("the list of providers is public, without the fields that only the gateway needs", async () => {
  const provider = {
    domain: "idp.example",
    name: "Staff",
    issuer: "https://idp.example",
    clientId: "page",
    authorizationEndpoint: "https://idp.example/auth",
    tokenEndpoint: "https://idp.example/token",
  };
  const providers = () =>
    Promise.resolve([
      { domain: "idp.example", name: "Staff", provider },
      { domain: "away.example", name: "away.example", problem: "It does not answer" },
    ]);
  const { app } = testGateway({ login: { providers } });
  const response = await app.request("/api/auth/providers");
  assert.deepEqual(await response.json(), {
    providers: [
      {
        domain: "idp.example",
        name: "Staff",
        issuer: "https://idp.example",
        client_id: "page",
        authorization_endpoint: "https://idp.example/auth",
        problem: null,
      },
      {
        domain: "away.example",
        name: "away.example",
        issuer: null,
        client_id: null,
        authorization_endpoint: null,
        problem: "It does not answer",
      },
    ],
  });
});
