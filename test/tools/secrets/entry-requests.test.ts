import assert from "node:assert/strict";
import { test } from "node:test";
import type { Json, JsonObject } from "../../../src/schema/words/json.ts";
import { closedPort } from "../../support/servers/http-server.ts";
import { type Answer, credential, formFields, secretBench } from "../../support/service/secret-source.ts";

// Requests of keychain entries of kind `oauth2` and `http`, and renewals (interface specification, Renewal configuration).

const TOKEN: Answer = [200, { access_token: "t-1", token_type: "Bearer", expires_in: 120 }];

test("an oauth2 entry sends its data as form fields, and the answer's fields become the entry's", async (t) => {
  const { source, server, signal } = await secretBench(t, () => TOKEN);
  const data = { grant_type: "client_credentials", client_id: "c", client_secret: "a b&c", audience: null };
  const definition = { endpoint: `${server.origin}/token`, headers: { "X-Tenant": "acme" }, data };
  assert.deepEqual(await source.obtain("oauth2", definition, undefined, signal), {
    fields: { access_token: "t-1", token_type: "Bearer", expires_in: 120 },
    ttlSeconds: 120,
  });
  const [request] = server.requests;
  assert.deepEqual([request?.method, request?.url], ["POST", "/token"]);
  assert.equal(request?.headers["content-type"], "application/x-www-form-urlencoded");
  assert.equal(request?.headers["x-tenant"], "acme");
  assert.equal(request?.headers["accept"], "application/json");
  const expected = { grant_type: "client_credentials", client_id: "c", client_secret: "a b&c" };
  assert.deepEqual(formFields(request?.body ?? ""), expected);
});

test("the content type decides how the data are written", async (t) => {
  const { source, server, signal } = await secretBench(t, () => TOKEN);
  const definition = {
    endpoint: `${server.origin}/token`,
    headers: { "Content-Type": "application/json; charset=utf-8" },
    data: { user: "u", scopes: ["a", "b"] },
  };
  await source.obtain("oauth2", definition, undefined, signal);
  assert.equal(server.requests[0]?.body, '{"user":"u","scopes":["a","b"]}');
  assert.equal(server.requests[0]?.headers["content-type"], "application/json; charset=utf-8");
  await source.obtain(
    "oauth2",
    { endpoint: `${server.origin}/token`, method: "get", data: { a: 1 } },
    undefined,
    signal,
  );
  assert.deepEqual([server.requests[1]?.method, server.requests[1]?.url], ["GET", "/token?a=1"]);
});

test("a token that is called otherwise is read by its name, and as access_token too", async (t) => {
  const { source, server, signal } = await secretBench(t, () => [200, { data: { jwt: "t-9" }, life: "90" }]);
  const definition = { endpoint: `${server.origin}/`, token_field: "data.jwt", ttl_field: "life" };
  const obtained = await source.obtain("oauth2", definition, undefined, signal);
  assert.deepEqual(obtained, { fields: { data: { jwt: "t-9" }, life: "90", access_token: "t-9" }, ttlSeconds: 90 });
});

test("an oauth2 entry that names a credential and no endpoint takes that credential's token", async (t) => {
  const { source, server, signal } = await secretBench(t, () => TOKEN);
  const data = { client_id: "c", client_secret: "s", token_url: `${server.origin}/token`, scope: "read write" };
  const { fields } = await source.obtain("oauth2", {}, credential("oauth2", data), signal);
  assert.equal(fields["access_token"], "t-1");
  const form = formFields(server.requests[0]?.body ?? "");
  assert.deepEqual(form, { grant_type: "client_credentials", client_id: "c", client_secret: "s", scope: "read write" });
});

test("an http entry sends JSON, may authenticate, and its answer may be anything", async (t) => {
  const { source, server, signal } = await secretBench(t, ({ url }) =>
    url === "/text" ? [200, "plain"] : [200, { a: 1 }],
  );
  const auth = credential("basic", { username: "u", password: "p" });
  const definition = { endpoint: `${server.origin}/login`, data: { user: "u" } };
  assert.deepEqual(await source.obtain("http", definition, auth, signal), { fields: { a: 1 } });
  const [login] = server.requests;
  assert.deepEqual([login?.method, login?.body], ["POST", '{"user":"u"}']);
  assert.equal(login?.headers["authorization"], `Basic ${Buffer.from("u:p").toString("base64")}`);
  const text = await source.obtain("http", { endpoint: `${server.origin}/text` }, undefined, signal);
  assert.deepEqual(text, { fields: { value: "plain" } });
  assert.equal(server.requests[1]?.method, "GET");
});

test("a renewal is a POST of its data, read by token_field and ttl_field", async (t) => {
  const { source, server, signal } = await secretBench(t, () => [200, { jwt: "t-2", seconds: 60 }]);
  const config = {
    endpoint: `${server.origin}/renew`,
    headers: { Authorization: "Bearer refresh" },
    data: { refresh_token: "r" },
    token_field: "jwt",
    ttl_field: "seconds",
  };
  assert.deepEqual(await source.renew(config, signal), {
    fields: { jwt: "t-2", seconds: 60, access_token: "t-2" },
    ttlSeconds: 60,
  });
  const [request] = server.requests;
  assert.deepEqual([request?.method, request?.url, request?.body], ["POST", "/renew", "refresh_token=r"]);
  assert.equal(request?.headers["authorization"], "Bearer refresh");
});

test("a renewal whose answer has no lifetime lasts an hour", async (t) => {
  const { source, server, signal } = await secretBench(t, () => [200, { access_token: "t-2", expires_in: "soon" }]);
  assert.equal((await source.renew({ endpoint: server.origin }, signal)).ttlSeconds, 3600);
});

for (const [what, answer, message] of [
  ["201, which is not 200", [201, { access_token: "t" }], /answered 201/],
  ["a redirect", [302, {}], /answered 302, a redirect, which is not followed/],
  ["an error", [401, { error: "invalid_grant", error_description: "expired" }], /answered 401: expired/],
  ["no token", [200, { id_token: "t" }], /answered 200 without a field 'access_token'/],
  ["an empty token", [200, { access_token: "" }], /without a field 'access_token'/],
  ["no JSON", [200, "<html>"], /answered 200 with no JSON object/],
  ["a list", [200, ["t"]], /answered 200 with no JSON object/],
  ["a cut connection", undefined, /got no answer/],
] as const) {
  test(`a renewal that is answered with ${what} fails, and is not tried again`, async (t) => {
    const { source, server, signal } = await secretBench(t, () => answer as Answer | undefined);
    await assert.rejects(source.renew({ endpoint: `${server.origin}/x?key=canary` }, signal), (error: Error) => {
      assert.match(error.message, message);
      assert.doesNotMatch(error.message, /canary/);
      return true;
    });
    assert.equal(server.requests.length, 1);
  });
}

test("a service that does not listen fails as unavailable", async (t) => {
  const { source, signal } = await secretBench(t, () => TOKEN);
  const endpoint = `http://127.0.0.1:${await closedPort()}/`;
  await assert.rejects(source.renew({ endpoint }, signal), { code: "UNAVAILABLE", message: /Nothing listens there/ });
});

test("a request ends with its time, and at once with its signal", async (t) => {
  const never = () => new Promise<never>(() => undefined);
  const { source, server } = await secretBench(
    t,
    () => TOKEN,
    () => ({ requestMs: 50 }),
  );
  const slow = await (await import("../../support/servers/http-server.ts")).startHttpServer(() => void never());
  t.after(() => slow.close());
  await assert.rejects(source.renew({ endpoint: slow.origin }, new AbortController().signal), {
    code: "UNAVAILABLE",
    message: /did not answer within 0.05 s/,
  });
  const stop = new AbortController();
  stop.abort(new Error("told to stop"));
  await assert.rejects(source.renew({ endpoint: server.origin }, stop.signal), /told to stop/);
});

test("an answer of more than a MiB is refused", async (t) => {
  const { source, server, signal } = await secretBench(t, () => [200, { access_token: "x".repeat(1_100_000) }]);
  await assert.rejects(source.renew({ endpoint: server.origin }, signal), { code: "UNAVAILABLE", message: /1024 KiB/ });
});

test("private addresses are refused unless they are allowed, or the operator has set them for what they are", async (t) => {
  const { source, server, signal } = await secretBench(
    t,
    () => [200, { value: "x", access_token: "t" }],
    (origin) => ({ allowPrivate: [], addresses: { azureUrl: origin, metadataUrl: origin } }),
  );
  const definition = { provider: "cloud_c", map: { a: "s" } };
  const { fields } = await source.obtain("secret_manager", definition, credential("bearer", { token: "t" }), signal);
  assert.deepEqual(fields, { a: "x" });
  const refusal = { code: "EGRESS_REFUSED", message: /FLOW_HTTP_ALLOW_PRIVATE/ };
  // The same address, but written in a playbook: what stands there besides is none of its business.
  await assert.rejects(source.renew({ endpoint: `${server.origin}/computeMetadata` }, signal), refusal);
  await assert.rejects(source.obtain("http", { endpoint: server.origin }, undefined, signal), refusal);
  assert.equal(server.requests.length, 1);
});

for (const [what, config, message] of [
  ["no endpoint", {}, /renew_config has no 'endpoint'/],
  [
    "an endpoint that is no address",
    { endpoint: "auth.example.com/token" },
    /renew_config's 'endpoint' is 'auth.example.com\/token'/,
  ],
  ["an endpoint of another scheme", { endpoint: "file:///etc/passwd" }, /an address that begins with https/],
  ["a method that is none", { endpoint: "https://x", method: "PO ST" }, /'method' is no method of HTTP/],
] as [string, JsonObject, RegExp][]) {
  test(`a renewal with ${what} is refused`, async (t) => {
    const { source, signal } = await secretBench(t, () => TOKEN);
    await assert.rejects(source.renew(config, signal), { code: "INVALID_INPUT", message });
  });
}

test("headers take scalars, and leave null out", async (t) => {
  const { source, server, signal } = await secretBench(t, () => TOKEN);
  const headers: Json = { "X-Number": 1, "X-None": null };
  await source.renew({ endpoint: server.origin, headers }, signal);
  assert.equal(server.requests[0]?.headers["x-number"], "1");
  assert.equal(server.requests[0]?.headers["x-none"], undefined);
});
