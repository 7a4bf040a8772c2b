import assert from "node:assert/strict";
import { test } from "node:test";
import { createLoginProviders, type LoginProviderSettings } from "../../../src/adapters/login/providers.ts";

/*
 * With whom pages log in: discovery, and the exchange of codes. The exchange at a real provider is in test/gui/login.test.ts.
 */

const DISCOVERY = {
  issuer: "https://idp.example",
  jwks_uri: "https://idp.example/jwks",
  authorization_endpoint: "https://idp.example/auth",
  token_endpoint: "https://idp.example/token",
};
const CODE = { code: "c-1", codeVerifier: "v".repeat(43), redirectUri: "https://flow.example.com/login", nonce: "n" };

/** An ID token as far as the exchange looks at one: signatures are checked by `id-tokens`. */
function idToken(claims: object = {}, alg = "ES256"): string {
  const now = Math.floor(Date.now() / 1_000);
  const all = { iss: DISCOVERY.issuer, aud: "page", sub: "ada", iat: now, exp: now + 60, ...claims };
  const [head, body] = [{ alg }, all].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"));
  return `${head}.${body}.c2ln`;
}

function setup(answer: (url: string) => Response | Promise<Response>, settings: Partial<LoginProviderSettings> = {}) {
  const asked: { url: string; body: string }[] = [];
  const time = { now: 0 };
  const fake: typeof fetch = async (input, init) => {
    asked.push({ url: String(input), body: String(init?.body ?? "") });
    return await answer(String(input));
  };
  const providers = createLoginProviders(
    { domains: ["idp.example"], audience: "page", providers: new Map(), ...settings },
    { fetch: fake, now: () => time.now },
  );
  return { providers, asked, time };
}

test("a provider is found by its domain, once an hour", async () => {
  const { providers, asked, time } = setup(() => Response.json(DISCOVERY));
  const provider = {
    domain: "idp.example",
    name: "idp.example",
    clientId: "page",
    issuer: "https://idp.example",
    authorizationEndpoint: "https://idp.example/auth",
    tokenEndpoint: "https://idp.example/token",
  };
  const listed = [{ domain: "idp.example", name: "idp.example", provider }];
  assert.deepEqual(await providers.list(), listed);
  assert.deepEqual(await providers.list(), listed);
  assert.equal(asked.length, 1);
  time.now = 3_600_001;
  await providers.list();
  assert.deepEqual(
    asked.map(({ url }) => url),
    Array.from({ length: 2 }, () => "https://idp.example/.well-known/openid-configuration"),
  );
});

test("a provider that does not answer says why beside those that do, and is not asked with every look", async () => {
  const { providers, asked, time } = setup(
    (url) => (url.includes("away") ? Promise.reject(new Error("no route to host")) : Response.json(DISCOVERY)),
    { domains: ["away.example", "idp.example"] },
  );
  for (let looks = 0; looks < 3; looks += 1) {
    const [away, found] = await providers.list();
    assert.ok(away !== undefined && "problem" in away);
    assert.match(away.problem, /does not answer at https:\/\/away\.example.*no route to host/);
    assert.ok(found !== undefined && "provider" in found);
  }
  assert.equal(asked.length, 2);
  time.now = 10_001;
  await providers.list();
  assert.equal(asked.length, 3);
});

test("a provider without discovery is listed by the pages that are set, under its name", async () => {
  const set = { issuer: "https://staff.example/", audience: "app", name: "Staff" };
  const pages = { authorizationEndpoint: "https://staff.example/a", tokenEndpoint: "https://staff.example/t" };
  const { providers, asked } = setup(() => Response.json({}), {
    domains: [],
    providers: new Map([["staff.example", { ...set, ...pages }]]),
  });
  const provider = { domain: "staff.example", name: "Staff", clientId: "app", issuer: set.issuer, ...pages };
  assert.deepEqual(await providers.list(), [{ domain: "staff.example", name: "Staff", provider }]);
  assert.deepEqual(asked, []);
});

for (const [what, answer, says] of [
  ["speaks in another's name", { ...DISCOVERY, issuer: "https://evil.example" }, /does not describe/],
  ["has no page", { issuer: DISCOVERY.issuer, jwks_uri: DISCOVERY.jwks_uri }, /no page to log in at/],
  ["has a page that is not https", { ...DISCOVERY, authorization_endpoint: "http://idp.example/auth" }, /not https/],
  ["has a page on this machine", { ...DISCOVERY, token_endpoint: "http://127.0.0.1/token" }, /not https/],
  ["has a page that is a script", { ...DISCOVERY, authorization_endpoint: "javascript:alert(1)" }, /not https/],
] as const) {
  test(`a provider that ${what} is not used for logins`, async () => {
    const [listed] = await setup(() => Response.json(answer)).providers.list();
    assert.ok(listed !== undefined && "problem" in listed);
    assert.match(listed.problem, says);
  });
}

test("a code is exchanged with its verifier, at the provider of its domain alone", async () => {
  const token = idToken();
  const { providers, asked } = setup((url) =>
    Response.json(url.endsWith("/token") ? { id_token: token, access_token: "x", token_type: "Bearer" } : DISCOVERY),
  );
  assert.equal(await providers.exchange(" IDP.example ", CODE), token);
  const { url, body } = asked[1] ?? { url: "", body: "" };
  assert.equal(url, "https://idp.example/token");
  assert.deepEqual(Object.fromEntries(new URLSearchParams(body)), {
    grant_type: "authorization_code",
    code: "c-1",
    redirect_uri: "https://flow.example.com/login",
    client_id: "page",
    code_verifier: CODE.codeVerifier,
  });
});

test("a code for a domain that is not allowed is sent nowhere", async () => {
  const { providers, asked } = setup(() => Response.json(DISCOVERY));
  await assert.rejects(providers.exchange("evil.example", CODE), {
    code: "FORBIDDEN",
    message: /'evil\.example'.*FLOW_IDP_DOMAINS/,
  });
  assert.deepEqual(asked, []);
});

for (const [what, answer, code, says] of [
  [
    "refuses",
    () => Response.json({ error: "invalid_grant", error_description: "code was used" }, { status: 400 }),
    "UNAUTHENTICATED",
    /refused the login: code was used/,
  ],
  [
    "gives no ID token",
    () => Response.json({ access_token: "x", token_type: "Bearer" }),
    "UNAUTHENTICATED",
    /gave no ID token/,
  ],
  ["answers with a page", () => new Response("<html>"), "UNAVAILABLE", /does not exchange codes/],
  ["does not answer", () => Promise.reject(new Error("away")), "UNAVAILABLE", /does not exchange codes.*away/],
] as const) {
  test(`an exchange at a provider that ${what} fails as ${code}`, async () => {
    const { providers } = setup((url) => (url.endsWith("/token") ? answer() : Response.json(DISCOVERY)));
    await assert.rejects(providers.exchange("idp.example", CODE), { code, message: says });
  });
}

for (const [what, claims] of [
  ["another provider", { iss: "https://evil.example" }],
  ["another party", { aud: "other" }],
  ["another time", { exp: 1_000 }],
] as const) {
  test(`an ID token of ${what} is refused at the exchange`, async () => {
    const answer = { id_token: idToken(claims), access_token: "x", token_type: "Bearer" };
    const { providers } = setup((url) => Response.json(url.endsWith("/token") ? answer : DISCOVERY));
    const message = /answered with the token of another login/;
    await assert.rejects(providers.exchange("idp.example", CODE), { code: "UNAUTHENTICATED", message });
  });
}

test("an ID token with a symmetric signature is refused at the exchange, whatever the provider says it signs with", async () => {
  const answer = { id_token: idToken({}, "HS256"), access_token: "x", token_type: "Bearer" };
  const discovery = { ...DISCOVERY, id_token_signing_alg_values_supported: ["HS256"] };
  const { providers } = setup((url) => Response.json(url.endsWith("/token") ? answer : discovery));
  await assert.rejects(providers.exchange("idp.example", CODE), { code: "UNAVAILABLE", message: /exchange codes/ });
});
