import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";
import { type CryptoKey, exportJWK, generateKeyPair, type JWTPayload, SignJWT, UnsecuredJWT } from "jose";
import { createIdTokens, type IdTokenSettings } from "../../../src/adapters/login/id-tokens.ts";
import { FlowError } from "../../../src/schema/words/errors.ts";

const NOW = Date.parse("2026-06-01T12:00:00Z");
const SECONDS = NOW / 1_000;
const own = await generateKeyPair("RS256");
const other = await generateKeyPair("RS256");
let asked = 0;
const key = { ...(await exportJWK(own.publicKey)), kid: "one", alg: "RS256", use: "sig" };
const server = createServer((_, response) => {
  asked += 1;
  response.setHeader("content-type", "application/json").end(JSON.stringify({ keys: [key] }));
});
await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
after(() => server.close());
const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

const settings: IdTokenSettings = {
  domains: ["idp.example"],
  audience: undefined,
  providers: new Map([["local.example", { issuer, jwksUri: `${issuer}/jwks`, audience: "browser-app" }]]),
};
const tokens = createIdTokens(settings, { fetch: () => Promise.reject(new Error("no network")), now: () => NOW });

const claims: JWTPayload = {
  iss: issuer,
  aud: "browser-app",
  sub: "u-1",
  iat: SECONDS - 10,
  exp: SECONDS + 300,
  email: "Ada@Example.com",
  email_verified: true,
  name: "Ada",
};

function signed(payload: JWTPayload, key: CryptoKey = own.privateKey, header: object = {}): Promise<string> {
  return new SignJWT(payload).setProtectedHeader({ alg: "RS256", kid: "one", ...header }).sign(key);
}

async function refused(token: string | Promise<string>, domain = "local.example"): Promise<FlowError> {
  const error = await tokens.verify(domain, await token).then(
    () => assert.fail("it was believed"),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof FlowError, String(error));
  return error;
}

test("a token of an allowed provider names its user", async () => {
  assert.deepEqual(await tokens.verify(" Local.Example ", await signed(claims)), {
    domain: "local.example",
    issuer,
    subject: "u-1",
    email: "ada@example.com",
    displayName: "Ada",
    expiresAt: (SECONDS + 300) * 1_000,
  });
});

test("a token that was asked for with a nonce must have it", async () => {
  const token = await signed({ ...claims, nonce: "n-1" });
  assert.equal((await tokens.verify("local.example", token, "n-1")).subject, "u-1");
  for (const [given, nonce] of [
    [token, "n-2"],
    [await signed(claims), "n-1"],
  ] as const) {
    await assert.rejects(tokens.verify("local.example", given, nonce), { message: /made for another login/ });
  }
});

test("a domain that is not allowed is refused before any request", async () => {
  const before = asked;
  const error = await refused(signed(claims), "evil.example");
  assert.deepEqual([error.code, asked], ["FORBIDDEN", before]);
  assert.match(error.message, /'evil\.example'.*FLOW_IDP_DOMAINS/);
});

const { email: _email, ...withoutEmail } = claims;
const { email_verified: _verified, ...unsaid } = claims;
const { exp: _exp, ...endless } = claims;
for (const [what, payload, says] of [
  ["is over", { ...claims, exp: SECONDS - 60 }, /its time is over/],
  ["has no end", endless, /'exp'/],
  ["is for another party", { ...claims, aud: "other-app" }, /'aud'/],
  ["is for several parties and does not say for whom", { ...claims, aud: ["browser-app", "x"] }, /several parties/],
  ["was asked for by another party", { ...claims, azp: "x" }, /another party/],
  ["is of another issuer", { ...claims, iss: "https://evil.example" }, /'iss'/],
  ["is not valid yet", { ...claims, nbf: SECONDS + 600 }, /'nbf'/],
  ["has no address", withoutEmail, /'email'/],
  ["has an address that is none", { ...claims, email: "ada" }, /'email'/],
  ["has an address that may be somebody else's", { ...claims, email_verified: false }, /'email_verified'/],
  ["does not say whose the address is", unsaid, /'email_verified'/],
] as const) {
  test(`a token that ${what} is refused`, async () => {
    const error = await refused(signed(payload as JWTPayload));
    assert.equal(error.code, "UNAUTHENTICATED");
    assert.match(error.message, says);
  });
}

test("a token that is signed with another key or algorithm, or not at all, is refused", async () => {
  const good = await signed(claims);
  const [head = "", body = "", signature = ""] = good.split(".");
  const forged = Buffer.from(JSON.stringify({ ...claims, email: "admin@example.com" })).toString("base64url");
  const secret = new TextEncoder().encode(JSON.stringify(await exportJWK(own.publicKey)));
  const symmetric = new SignJWT(claims).setProtectedHeader({ alg: "HS256", kid: "one" }).sign(secret);
  for (const token of [
    signed(claims, other.privateKey),
    `${head}.${forged}.${signature}`,
    `${head}.${body}.`,
    new UnsecuredJWT(claims).encode(),
    symmetric,
    signed(claims, own.privateKey, { kid: "two" }),
    "",
    "a.b.c",
    "x".repeat(20_000),
  ]) {
    const error = await refused(token);
    assert.equal(error.code, "UNAUTHENTICATED", error.message);
    assert.doesNotMatch(error.message, /eyJ/);
  }
});

test("a provider that does not answer is unavailable, and no reason to believe anything", async () => {
  const away = new Map([
    ["away.example", { issuer: "http://127.0.0.1:1", jwksUri: "http://127.0.0.1:1/jwks", audience: "a" }],
  ]);
  const idTokens = createIdTokens({ ...settings, providers: away }, { fetch, now: () => NOW });
  await assert.rejects(idTokens.verify("away.example", await signed(claims)), { code: "UNAVAILABLE" });
});

function discovered(answer: () => unknown, audience: string | undefined) {
  const urls: string[] = [];
  const fake: typeof fetch = (input) => {
    urls.push(String(input));
    return Promise.resolve(Response.json(answer()));
  };
  return { urls, idTokens: createIdTokens({ ...settings, audience }, { fetch: fake, now: () => NOW }) };
}

test("a provider that is discovered must speak for itself, over https", async () => {
  for (const answer of [
    { issuer: "https://evil.example", jwks_uri: "https://idp.example/jwks" },
    { issuer: "https://idp.example", jwks_uri: "http://idp.example/jwks" },
    { issuer: "https://idp.example" },
    "nothing",
  ]) {
    const { idTokens, urls } = discovered(() => answer, "browser-app");
    await assert.rejects(idTokens.verify("idp.example", await signed(claims)), { code: "UNAVAILABLE" });
    assert.deepEqual(urls, ["https://idp.example/.well-known/openid-configuration"]);
  }
});

test("a provider that could not be discovered is asked again with the next login", async () => {
  let tries = 0;
  const { idTokens } = discovered(() => {
    tries += 1;
    return "nothing";
  }, "browser-app");
  for (let login = 0; login < 2; login += 1) {
    await assert.rejects(idTokens.verify("idp.example", await signed(claims)), { code: "UNAVAILABLE" });
  }
  assert.equal(tries, 2);
});

test("without an audience no discovered provider is believed", async () => {
  const { idTokens, urls } = discovered(() => ({}), undefined);
  await assert.rejects(idTokens.verify("idp.example", await signed(claims)), { code: "INVALID_SETTING" });
  assert.deepEqual(urls, []);
});
