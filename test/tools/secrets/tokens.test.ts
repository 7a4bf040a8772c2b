import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { type TestContext, test } from "node:test";
import { SignJWT } from "jose";
import { createTokenCache } from "../../../src/platform/crypto/token-cache.ts";
import type { SecretSourceOptions } from "../../../src/tools/secrets/secret-source.ts";
import type { RecordedRequest } from "../../support/servers/http-server.ts";
import { type Answer, credential, formFields, secretBench } from "../../support/service/secret-source.ts";
import { checkedAssertion, serviceAccount } from "../../support/service/service-account.ts";

// OAuth tokens of credentials: requested once, kept until shortly before they end.

/** Every token is a new one, so that a test sees which request gave it. */
function counting(t: TestContext, more: (origin: string) => Partial<SecretSourceOptions> = () => ({})) {
  let count = 0;
  return secretBench(t, () => [200, { access_token: `t-${++count}`, expires_in: 100 }], more);
}

const client = (origin: string, more = {}) =>
  credential("oauth2", { client_id: "c", client_secret: "s", token_url: `${origin}/token`, ...more });

test("a token is requested once however many ask at once", async (t) => {
  const { source, server, signal } = await counting(t);
  const asked = Array.from({ length: 200 }, () => source.token(client(server.origin), {}, signal));
  assert.deepEqual(new Set((await Promise.all(asked)).map(({ token }) => token)), new Set(["t-1"]));
  assert.equal(server.requests.length, 1);
});

test("a token is kept until a tenth of its life is left", async (t) => {
  let now = 1_000_000;
  const { source, server, signal } = await counting(t, () => ({ now: () => now }));
  const token = async () => (await source.token(client(server.origin), {}, signal)).token;
  assert.equal(await token(), "t-1");
  now += 89_000;
  assert.equal(await token(), "t-1");
  now += 2_000;
  assert.equal(await token(), "t-2");
});

test("another scope, another secret and a refused token are requests of their own", async (t) => {
  const { source, server, signal } = await counting(t);
  const ask = async (more = {}, scopes?: string[]) =>
    (await source.token(client(server.origin, more), scopes === undefined ? {} : { scopes }, signal)).token;
  assert.deepEqual([await ask(), await ask({}, ["a", "b"]), await ask({}, ["a", "b"])], ["t-1", "t-2", "t-2"]);
  assert.equal(await ask({ client_secret: "changed" }), "t-3");
  source.forget("t-1");
  await new Promise(setImmediate);
  assert.equal(await ask(), "t-4");
  assert.equal(formFields(server.requests[1]?.body ?? "")["scope"], "a b");
});

test("a failure is reported to all waiting callers, and is not cached", async (t) => {
  let answer: Answer = [500, {}];
  const { source, server, signal } = await secretBench(t, () => answer);
  const asked = [1, 2, 3].map(() => source.token(client(server.origin), {}, signal));
  for (const { status } of await Promise.allSettled(asked)) assert.equal(status, "rejected");
  assert.equal(server.requests.length, 1);
  answer = [200, { access_token: "t", expires_in: 10 }];
  assert.equal((await source.token(client(server.origin), {}, signal)).token, "t");
});

test("who gives up waiting stops no other", async (t) => {
  const { source, server, signal } = await counting(t);
  const stop = new AbortController();
  const given = source.token(client(server.origin), {}, stop.signal);
  const waiting = source.token(client(server.origin), {}, signal);
  stop.abort(new Error("told to stop"));
  await assert.rejects(given, /told to stop/);
  assert.equal((await waiting).token, "t-1");
});

test("client credentials may go into the header, and a refresh token is used if present", async (t) => {
  const { source, server, signal } = await counting(t);
  await source.token(
    client(server.origin, { client_auth: "basic", client_id: "a:b", client_secret: "c d" }),
    {},
    signal,
  );
  const [basic] = server.requests;
  assert.equal(basic?.headers["authorization"], `Basic ${Buffer.from("a%3Ab:c+d").toString("base64")}`);
  assert.deepEqual(formFields(basic?.body ?? ""), { grant_type: "client_credentials" });
  await source.token(client(server.origin, { refresh_token: "r", params: { tenant: "x" } }), {}, signal);
  assert.deepEqual(formFields(server.requests[1]?.body ?? ""), {
    grant_type: "refresh_token",
    refresh_token: "r",
    client_id: "c",
    client_secret: "s",
    tenant: "x",
  });
});

test("a service account's assertion names its scopes, and an EC key signs with ES256", async (t) => {
  const { source, server, signal } = await counting(t);
  const uri = `${server.origin}/token`;
  const rsa = serviceAccount(uri);
  await source.token(rsa.credential, { scopes: ["a", "b"] }, signal);
  const { payload } = await checkedAssertion(server.requests[0]!, rsa.publicKey, uri);
  assert.equal(payload["scope"], "a b");
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
  const pem = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  const { credential: ec } = serviceAccount(uri, {
    private_key: pem.replaceAll("\n", "\\n"),
    subject: "ann@example.com",
  });
  await source.token(ec, {}, signal);
  const checked = await checkedAssertion(server.requests[1]!, publicKey, uri);
  assert.deepEqual([checked.header.alg, checked.payload.sub], ["ES256", "ann@example.com"]);
});

test("an assertion of another key does not pass the check that the endpoint makes", async (t) => {
  const { source, server, signal } = await counting(t);
  const uri = `${server.origin}/token`;
  await source.token(serviceAccount(uri).credential, {}, signal);
  await assert.rejects(checkedAssertion(server.requests[0]!, serviceAccount(uri).publicKey, uri), /signature/);
});

/** An identity token as the platform gives it, for the audience that was asked for. */
async function identityFor(request: RecordedRequest, audience: string, exp: number): Promise<string> {
  return await new SignJWT({ aud: audience, sub: request.url })
    .setProtectedHeader({ alg: "HS256" })
    .setExpirationTime(exp)
    .sign(new TextEncoder().encode("a key of the platform alone, nobody else's"));
}

test("google_id_token exchanges an assertion with target_audience for an identity token", async (t) => {
  const exp = Math.floor(Date.now() / 1_000) + 3_000;
  let identity = "";
  const { source, server, signal } = await secretBench(t, () => [200, { id_token: identity }]);
  const uri = `${server.origin}/token`;
  const account = serviceAccount(uri);
  identity = await identityFor({ url: "/" } as RecordedRequest, "https://service.example.com", exp);
  const definition = { target_audience: "https://service.example.com" };
  const { fields, ttlSeconds = 0 } = await source.obtain("google_id_token", definition, account.credential, signal);
  assert.deepEqual(fields, { id_token: identity, token: identity });
  assert.ok(ttlSeconds > 2_980 && ttlSeconds <= 3_000, `lives ${ttlSeconds} s`);
  const { payload } = await checkedAssertion(server.requests[0]!, account.publicKey, uri);
  assert.equal(payload["target_audience"], "https://service.example.com");
  assert.equal(payload["scope"], undefined);
});

test("the key of the service account may lie in a secret manager", async (t) => {
  const exp = Math.floor(Date.now() / 1_000) + 3_000;
  let key = "";
  let identity = "";
  const { source, server, signal } = await secretBench(
    t,
    ({ url }) => {
      if (!url.includes(":access")) return [200, { id_token: identity }];
      return [200, { payload: { data: Buffer.from(key).toString("base64") } }];
    },
    (origin) => ({ addresses: { googleUrl: origin } }),
  );
  const account = serviceAccount(`${server.origin}/token`);
  key = JSON.stringify(account.credential.data);
  identity = await identityFor({ url: "/" } as RecordedRequest, "https://a", exp);
  const reach = { name: "manager", type: "bearer", data: { token: "t" } };
  const definition = {
    target_audience: "https://a",
    service_account_secret: "projects/p/secrets/account/versions/latest",
  };
  const { fields } = await source.obtain("google_id_token", definition, reach, signal);
  assert.deepEqual(fields, { id_token: identity, token: identity });
  assert.equal(server.requests[0]?.url, "/v1/projects/p/secrets/account/versions/latest:access");
  key = "no key";
  await assert.rejects(source.obtain("google_id_token", definition, reach, signal), {
    message: /'service_account_secret' names is no key of a service account/,
  });
});

for (const [what, definition, reach, answer, message] of [
  ["no audience", {}, "account", {}, /has no 'target_audience'/],
  ["no account", { target_audience: "a" }, undefined, {}, /has no 'auth': a service account/],
  ["an answer without a token", { target_audience: "a" }, "account", {}, /without a field 'id_token'/],
  ["an answer that is no identity", { target_audience: "a" }, "account", { id_token: "x" }, /no identity token/],
  ["client credentials", { target_audience: "a" }, "client", {}, /of type oauth2 gives no identity token/],
] as const) {
  test(`a google_id_token entry with ${what} fails`, async (t) => {
    const { source, server, signal } = await secretBench(t, () => [200, answer]);
    const by = { account: serviceAccount(`${server.origin}/token`).credential, client: client(server.origin) };
    const named = reach === undefined ? undefined : by[reach];
    await assert.rejects(source.obtain("google_id_token", definition, named, signal), { message });
  });
}

test("adc asks the machine's metadata service, with scopes or an audience", async (t) => {
  const exp = Math.floor(Date.now() / 1_000) + 600;
  const identity = await identityFor({ url: "/" } as RecordedRequest, "https://a", exp);
  const { source, server, signal } = await secretBench(
    t,
    (request) => {
      if (request.headers["metadata-flavor"] !== "Google") return [403, "no flavor"];
      return request.url.includes("/identity") ? [200, identity] : [200, { access_token: "machine", expires_in: 600 }];
    },
    (origin) => ({ allowPrivate: [], addresses: { metadataUrl: origin } }),
  );
  const adc = { name: "inline", type: "custom", data: { source: "adc", scopes: ["a", "b"] } };
  assert.equal((await source.token(adc, {}, signal)).token, "machine");
  const path = "/computeMetadata/v1/instance/service-accounts/default";
  assert.equal(server.requests[0]?.url, `${path}/token?scopes=a%2Cb`);
  const { fields } = await source.obtain("google_id_token", { target_audience: "https://a" }, adc, signal);
  assert.equal(fields["id_token"], identity);
  assert.equal(server.requests[1]?.url, `${path}/identity?audience=https%3A%2F%2Fa&format=full`);
});

test("adc takes the token that the operator has given, and is refused where neither is there", async (t) => {
  const adc = { name: "inline", type: "custom", data: { source: "adc" } };
  const given = await counting(t, () => ({ adcAccessToken: "of the operator" }));
  assert.equal((await given.source.token(adc, {}, given.signal)).token, "of the operator");
  const none = await counting(t, () => ({ addresses: { metadataUrl: "http://127.0.0.1:1" }, requestMs: 2_000 }));
  await assert.rejects(none.source.token(adc, {}, none.signal), {
    message: /machine's own identity: .*FLOW_METADATA_URL/,
  });
  const other = { name: "inline", type: "custom", data: { source: "vault" } };
  await assert.rejects(none.source.token(other, {}, none.signal), { message: /source 'vault': adc is supported/ });
});

for (const [what, by, message] of [
  ["no token_url", credential("oauth2", { client_id: "c" }), /has no 'token_url'/],
  ["no client", credential("oauth2", { token_url: "https://x" }), /has no 'client_id'/],
  ["a grant that nobody knows", client("https://x", { grant_type: "password" }), /grant_type 'password'/],
  [
    "a key that is none",
    credential("service_account", { client_email: "a", private_key: "hunter2", token_uri: "https://x" }),
    /'private_key' is no private key/,
  ],
  ["a type without tokens", credential("sqldb", { host: "h" }), /type sqldb gives no token/],
] as const) {
  test(`a credential with ${what} gives no token, and says why`, async (t) => {
    const { source, signal } = await counting(t);
    await assert.rejects(source.token(by, {}, signal), (error: Error) => {
      assert.match(error.message, message);
      assert.doesNotMatch(error.message, /hunter2/);
      return true;
    });
  });
}

test("a bearer credential's token is itself", async (t) => {
  const { source, server, signal } = await counting(t);
  assert.equal((await source.token(credential("bearer", { token: "b" }), {}, signal)).token, "b");
  assert.equal((await source.token(credential("oauth2", { access_token: "o" }), {}, signal)).token, "o");
  assert.equal(server.requests.length, 0);
});

test("the cache holds a thousand tokens and drops the one that was not asked for longest", async () => {
  const cache = createTokenCache(() => 0);
  let fetched = 0;
  const ask = (key: string) =>
    cache.get(key, () => Promise.resolve({ token: `${key}-${++fetched}`, expiresAt: 1_000_000 }));
  for (let index = 0; index < 1_000; index += 1) await ask(`k${index}`);
  await ask("k0");
  await ask("k1000");
  assert.equal((await ask("k0")).token, "k0-1");
  assert.equal((await ask("k1")).token, "k1-1002");
});
