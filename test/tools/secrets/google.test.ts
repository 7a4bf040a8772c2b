import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import { crc32c } from "../../../src/tools/secrets/google.ts";
import { type Answer, credential, secretBench } from "../../support/service/secret-source.ts";
import { checkedAssertion, serviceAccount } from "../../support/service/service-account.ts";

// cloud_a (gcp): a service account's JWT grant, then versions:access with its token.

const payload = (text: string, more: JsonObject = {}): Answer => [
  200,
  { name: "projects/1/secrets/s/versions/1", payload: { data: Buffer.from(text).toString("base64"), ...more } },
];

async function opened(t: Parameters<typeof secretBench>[0], secret: (url: string) => Answer) {
  const bench = await secretBench(
    t,
    (request) => {
      if (request.url === "/token")
        return [200, { access_token: "ya29.token", expires_in: 3599, token_type: "Bearer" }];
      return request.headers["authorization"] === "Bearer ya29.token" ? secret(request.url) : [401, {}];
    },
    (origin) => ({ addresses: { googleUrl: origin } }),
  );
  const account = serviceAccount(`${bench.server.origin}/token`);
  const obtain = (definition: JsonObject, reach = account.credential) =>
    bench.source.obtain("secret_manager", { provider: "cloud_a", ...definition }, reach, bench.signal);
  return { ...bench, account, obtain };
}

test("the account's assertion is one that a token endpoint takes, and its token reads the secret", async (t) => {
  const { server, account, obtain } = await opened(t, () => payload("hunter2"));
  const { fields } = await obtain({ map: { password: "projects/p/secrets/db/versions/3" } });
  assert.deepEqual(fields, { password: "hunter2" });
  const [grant, access] = server.requests;
  assert.equal(grant?.headers["content-type"], "application/x-www-form-urlencoded");
  const { payload: claims, header } = await checkedAssertion(grant!, account.publicKey, `${server.origin}/token`);
  assert.equal(claims["scope"], "https://www.googleapis.com/auth/cloud-platform");
  assert.equal((claims.exp ?? 0) - (claims.iat ?? 0), 3600);
  assert.deepEqual(header, { alg: "RS256", typ: "JWT", kid: "key-1" });
  assert.deepEqual(
    [access?.method, access?.url, access?.body],
    ["GET", "/v1/projects/p/secrets/db/versions/3:access", ""],
  );
});

for (const [path, url] of [
  ["db", "/v1/projects/project-1/secrets/db/versions/latest:access"],
  ["db/versions/7", "/v1/projects/project-1/secrets/db/versions/7:access"],
  ["projects/p/secrets/db", "/v1/projects/p/secrets/db/versions/latest:access"],
  [
    "projects/p/locations/europe-west3/secrets/db",
    "/v1/projects/p/locations/europe-west3/secrets/db/versions/latest:access",
  ],
  [{ path: "db", version: "2" }, "/v1/projects/project-1/secrets/db/versions/2:access"],
] as const) {
  test(`the path ${JSON.stringify(path)}`, async (t) => {
    const { server, obtain } = await opened(t, () => payload("x"));
    await obtain({ map: { a: path } });
    assert.equal(server.requests[1]?.url, url);
  });
}

test("one token serves all secrets and all entries until it ends", async (t) => {
  const { server, obtain } = await opened(t, (url) => payload(url.includes("/db/") ? '{"user":"ann"}' : "key"));
  const { fields } = await obtain({ map: { user: "db#user", key: "api" } });
  assert.deepEqual(fields, { user: "ann", key: "key" });
  await obtain({ map: { key: "api" } });
  assert.equal(server.requests.filter(({ url }) => url === "/token").length, 1);
});

test("the checksum beside a secret is checked", async (t) => {
  const right = String(crc32c(Buffer.from("hunter2")));
  const good = await opened(t, () => payload("hunter2", { dataCrc32c: right }));
  assert.deepEqual((await good.obtain({ map: { a: "s" } })).fields, { a: "hunter2" });
  const bad = await opened(t, () => payload("hunter3", { dataCrc32c: right }));
  await assert.rejects(bad.obtain({ map: { a: "s" } }), (error: Error) => {
    assert.match(error.message, /does not have the checksum/);
    assert.doesNotMatch(error.message, /hunter/);
    return true;
  });
});

test("CRC-32C is that of RFC 3720, appendix B.4", () => {
  assert.equal(crc32c(new Uint8Array(32)), 0x8a9136aa);
  assert.equal(crc32c(new Uint8Array(32).fill(0xff)), 0x62a8ab43);
  assert.equal(crc32c(Uint8Array.from({ length: 32 }, (_, index) => index)), 0x46dd794e);
});

test("a bearer token reaches it too", async (t) => {
  const { server, obtain } = await opened(t, () => payload("x"));
  await obtain({ map: { a: "projects/p/secrets/s" } }, credential("bearer", { token: "ya29.token" }));
  assert.equal(server.requests.length, 1);
});

for (const [what, answer, code, message] of [
  [
    "forbidden",
    [403, { error: { code: 403, message: "Permission denied on resource" } }],
    "UNAUTHENTICATED",
    /403: Permission denied on resource/,
  ],
  ["missing", [404, { error: { message: "Secret [s] not found" } }], "NOT_FOUND", /404: Secret \[s\] not found/],
  ["unavailable", [503, {}], "UNAVAILABLE", /503/],
  ["without a payload", [200, { name: "s" }], "UNAVAILABLE", /without a payload/],
] as const) {
  test(`an answer that is ${what} fails the entry`, async (t) => {
    const { obtain } = await opened(t, () => answer as unknown as Answer);
    await assert.rejects(obtain({ map: { a: "s" } }), { code, message });
  });
}

for (const [what, definition, reach, message] of [
  ["no project", { map: { a: "s" } }, credential("bearer", { token: "t" }), /has no 'project_id'/],
  [
    "a location that is none",
    { map: { a: "projects/p/locations/x.example.com#/secrets/s" } },
    undefined,
    /is no secret of cloud_a/,
  ],
  ["a path of another provider", { map: { a: "a/b/c" } }, undefined, /'a\/b\/c' is no secret of cloud_a/],
  [
    "a credential that gives no token",
    { map: { a: "projects/p/secrets/s" } },
    credential("basic", { username: "u" }),
    /Credential 'reach' of type basic gives no token/,
  ],
] as const) {
  test(`an entry with ${what} is refused`, async (t) => {
    const { obtain } = await opened(t, () => payload("x"));
    await assert.rejects(obtain(definition as JsonObject, reach), { code: "INVALID_INPUT", message });
  });
}
