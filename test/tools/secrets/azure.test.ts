import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import { type Answer, credential, formFields, secretBench } from "../../support/service/secret-source.ts";

// cloud_c (azure): client credentials at the login endpoint, then the vault with their token.

const CLIENT = { tenant_id: "tenant-1", client_id: "client-1", client_secret: "s3cret" };
const TOKEN_PATH = "/tenant-1/oauth2/v2.0/token";

async function opened(t: Parameters<typeof secretBench>[0], secret: (url: string) => Answer, login?: Answer) {
  const bench = await secretBench(
    t,
    (request) => {
      if (request.url.endsWith("/token"))
        return login ?? [200, { access_token: "eyJ0", expires_in: 3599, token_type: "Bearer" }];
      return request.headers["authorization"] === "Bearer eyJ0" ? secret(request.url) : [401, {}];
    },
    (origin) => ({ addresses: { azureLoginUrl: origin } }),
  );
  const reach = credential("custom", { ...CLIENT, vault_url: bench.server.origin });
  const obtain = (definition: JsonObject, by = reach) =>
    bench.source.obtain("secret_manager", { provider: "cloud_c", ...definition }, by, bench.signal);
  return { ...bench, obtain };
}

test("the token is asked for as the login endpoint documents, and reads the secret", async (t) => {
  const { server, obtain } = await opened(t, () => [200, { value: "hunter2", id: "https://v/secrets/db/1" }]);
  assert.deepEqual((await obtain({ map: { password: "db" } })).fields, { password: "hunter2" });
  const [login, read] = server.requests;
  assert.deepEqual([login?.method, login?.url], ["POST", TOKEN_PATH]);
  assert.equal(login?.headers["content-type"], "application/x-www-form-urlencoded");
  assert.deepEqual(formFields(login?.body ?? ""), {
    grant_type: "client_credentials",
    client_id: "client-1",
    client_secret: "s3cret",
    scope: "https://vault.azure.net/.default",
  });
  assert.deepEqual([read?.method, read?.url, read?.body], ["GET", "/secrets/db?api-version=7.4", ""]);
});

test("paths name a version, or a whole identifier", async (t) => {
  const { server, obtain } = await opened(t, (url) => [200, { value: url.includes("/db/") ? '{"user":"ann"}' : "x" }]);
  const identifier = `${server.origin}/secrets/api/v2`;
  const map = { user: "db/v1#user", api: identifier, other: { path: "db", version: "v1", key: "user" } };
  assert.deepEqual((await obtain({ map })).fields, { user: "ann", api: "x", other: "ann" });
  const urls = server.requests.map(({ url }) => url).filter((url) => url !== TOKEN_PATH);
  assert.deepEqual(urls.sort(), [
    "/secrets/api/v2?api-version=7.4",
    "/secrets/db/v1?api-version=7.4",
    "/secrets/db/v1?api-version=7.4",
  ]);
  assert.equal(server.requests.filter(({ url }) => url === TOKEN_PATH).length, 1, "one token for all of them");
});

test("a token_url of the credential is used instead of the login endpoint", async (t) => {
  const { server, obtain } = await opened(t, () => [200, { value: "x" }]);
  const data = {
    client_id: "c",
    client_secret: "s",
    token_url: `${server.origin}/own/token`,
    vault_url: server.origin,
  };
  await obtain({ map: { a: "s" } }, credential("oauth2", data));
  assert.equal(server.requests[0]?.url, "/own/token");
});

test("a client that the login endpoint refuses fails the entry with its reason and without the secret", async (t) => {
  const login: Answer = [401, { error: "invalid_client", error_description: "AADSTS7000215: Invalid client secret" }];
  const { obtain, server } = await opened(t, () => [200, { value: "x" }], login);
  await assert.rejects(obtain({ map: { a: "s" } }), (error: Error) => {
    assert.match(error.message, /\/tenant-1\/oauth2\/v2.0\/token answered 401: AADSTS7000215: Invalid client secret/);
    assert.doesNotMatch(error.message, /s3cret/);
    return true;
  });
  assert.equal(server.requests.length, 1);
});

for (const [what, answer, code, message] of [
  [
    "forbidden",
    [403, { error: { code: "Forbidden", message: "no get permission" } }],
    "UNAUTHENTICATED",
    /403: no get permission/,
  ],
  [
    "missing",
    [404, { error: { code: "SecretNotFound", message: "s was not found" } }],
    "NOT_FOUND",
    /404: s was not found/,
  ],
  ["without a value", [200, { id: "s" }], "UNAVAILABLE", /without a value/],
] as const) {
  test(`an answer of the vault that is ${what} fails the entry`, async (t) => {
    const { obtain } = await opened(t, () => answer as unknown as Answer);
    await assert.rejects(obtain({ map: { a: "s" } }), { code, message });
  });
}

for (const [what, data, message] of [
  ["no vault", CLIENT, /has no 'vault_url'/],
  ["no tenant", { client_id: "c", client_secret: "s", vault_url: "https://v" }, /has no 'tenant_id'/],
  ["no client", { tenant_id: "t", vault_url: "https://v" }, /has no 'client_id'/],
] as const) {
  test(`a credential with ${what} is refused`, async (t) => {
    const { obtain } = await opened(t, () => [200, { value: "x" }]);
    await assert.rejects(obtain({ map: { a: "s" } }, credential("custom", data)), { code: "INVALID_INPUT", message });
  });
}

test("the vault's token goes to vaults alone, and never to another address that a playbook writes", async (t) => {
  const { server, obtain } = await opened(t, () => [200, { value: "x" }]);
  const other = server.origin.replace("127.0.0.1", "localhost");
  for (const definition of [{ map: { a: `${other}/secrets/s` } }, { vault: other, map: { a: "s" } }]) {
    await assert.rejects(obtain(definition), { code: "INVALID_INPUT", message: /'localhost' is no vault of cloud_c/ });
  }
  assert.equal(server.requests.length, 0);
});
