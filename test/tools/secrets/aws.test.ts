import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import { expectedAuthorization } from "../../support/servers/sign-v4-check.ts";
import { type Answer, credential, secretBench } from "../../support/service/secret-source.ts";

// cloud_b (aws): GetSecretValue over JSON 1.1, signed with Signature Version 4.

const KEYS = { access_key_id: "AKIDEXAMPLE", secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY" };
const REACH = credential("custom", { ...KEYS, region: "eu-west-1" });
const NOW = Date.UTC(2026, 0, 2, 3, 4, 5);
const ARN = "arn:aws:secretsmanager:us-west-2:123456789012:secret:db-AbCdEf";

function opened(t: Parameters<typeof secretBench>[0], handle: (body: JsonObject) => Answer) {
  return secretBench(
    t,
    (request) => {
      // What the service does first: a request whose signature is not this one is refused.
      const isSigned = request.headers["authorization"] === expectedAuthorization(request, KEYS.secret_access_key);
      if (!isSigned) return [403, { __type: "InvalidSignatureException", message: "the signature does not match" }];
      return handle(JSON.parse(request.body) as JsonObject);
    },
    (origin) => ({ addresses: { awsUrl: origin }, now: () => NOW }),
  );
}

test("a secret is asked for with the request that the service documents, signed, byte for byte", async (t) => {
  const { source, server, signal } = await opened(t, () => [200, { Name: "db", SecretString: "hunter2" }]);
  const definition = { provider: "cloud_b", map: { password: "prod/db" } };
  assert.deepEqual(await source.obtain("secret_manager", definition, REACH, signal), {
    fields: { password: "hunter2" },
  });
  const [request] = server.requests;
  assert.deepEqual([request?.method, request?.url, request?.body], ["POST", "/", '{"SecretId":"prod/db"}']);
  assert.equal(request?.headers["content-type"], "application/x-amz-json-1.1");
  assert.equal(request?.headers["x-amz-target"], "secretsmanager.GetSecretValue");
  assert.equal(request?.headers["x-amz-date"], "20260102T030405Z");
  const signed = "content-type;host;x-amz-date;x-amz-target";
  const head = `AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260102/eu-west-1/secretsmanager/aws4_request, SignedHeaders=${signed}, `;
  assert.ok(request?.headers["authorization"]?.startsWith(head), request?.headers["authorization"]);
});

test("a session token travels and is signed", async (t) => {
  const { source, server, signal } = await opened(t, () => [200, { SecretString: "x" }]);
  const reach = credential("custom", { ...REACH.data, session_token: "FwoGZXIvYXdzE" });
  await source.obtain("secret_manager", { provider: "aws", map: { a: "s" } }, reach, signal);
  assert.equal(server.requests[0]?.headers["x-amz-security-token"], "FwoGZXIvYXdzE");
  assert.match(server.requests[0]?.headers["authorization"] ?? "", /SignedHeaders=[^,]*x-amz-security-token/);
});

for (const [path, body] of [
  ["prod/db", { SecretId: "prod/db" }],
  ["prod/db#user", { SecretId: "prod/db" }],
  ["prod/db:user", { SecretId: "prod/db" }],
  ["prod/db:user:AWSPREVIOUS", { SecretId: "prod/db", VersionStage: "AWSPREVIOUS" }],
  [
    `${ARN}:user::11111111-2222-3333-4444-555555555555`,
    { SecretId: ARN, VersionId: "11111111-2222-3333-4444-555555555555" },
  ],
  [ARN, { SecretId: ARN }],
  [
    { path: "prod/db", key: "user", version: "AWSPENDING" },
    { SecretId: "prod/db", VersionStage: "AWSPENDING" },
  ],
] as const) {
  test(`the path ${JSON.stringify(path)}`, async (t) => {
    const { source, server, signal } = await opened(t, () => [200, { SecretString: '{"user":"ann","port":5432}' }]);
    const definition = { provider: "cloud_b", map: { field: path } };
    const { fields } = await source.obtain("secret_manager", definition, REACH, signal);
    assert.deepEqual(JSON.parse(server.requests[0]?.body ?? ""), body);
    const isWhole = path === "prod/db" || path === ARN;
    assert.equal(fields["field"], isWhole ? '{"user":"ann","port":5432}' : "ann");
    const region = JSON.stringify(path).includes("arn:") ? "us-west-2" : "eu-west-1";
    assert.match(server.requests[0]?.headers["authorization"] ?? "", new RegExp(`/${region}/secretsmanager/`));
  });
}

test("fields of one secret cost one request", async (t) => {
  const { source, server, signal } = await opened(t, () => [200, { SecretString: '{"user":"ann","pass":"p"}' }]);
  const map = { user: "db#user", pass: "db#pass", all: "db" };
  const { fields } = await source.obtain("secret_manager", { provider: "cloud_b", map }, REACH, signal);
  assert.deepEqual(fields, { user: "ann", pass: "p", all: '{"user":"ann","pass":"p"}' });
  assert.equal(server.requests.length, 1);
});

test("a binary secret is given as its text", async (t) => {
  const { source, signal } = await opened(t, () => [200, { SecretBinary: Buffer.from("grün").toString("base64") }]);
  const { fields } = await source.obtain("secret_manager", { provider: "cloud_b", map: { a: "s" } }, REACH, signal);
  assert.deepEqual(fields, { a: "grün" });
});

test("a wrong key is refused by the service, and the error names its reason and no key", async (t) => {
  const { source, signal } = await opened(t, () => [200, { SecretString: "x" }]);
  const reach = credential("custom", { ...REACH.data, secret_access_key: "not-the-key" });
  const definition = { provider: "cloud_b", map: { a: "s" } };
  await assert.rejects(source.obtain("secret_manager", definition, reach, signal), (error: Error) => {
    assert.equal((error as { code?: string }).code, "UNAUTHENTICATED");
    assert.match(error.message, /answered 403: InvalidSignatureException: the signature does not match/);
    assert.doesNotMatch(error.message, /not-the-key/);
    return true;
  });
});

for (const [what, answer, code, message] of [
  [
    "missing",
    [400, { __type: "ResourceNotFoundException", Message: "no such secret" }],
    "UNAUTHENTICATED",
    /ResourceNotFoundException: no such secret/,
  ],
  ["unavailable", [503, {}], "UNAVAILABLE", /answered 503/],
  ["without a secret", [200, { Name: "s" }], "UNAVAILABLE", /answered without a secret/],
  ["no JSON", [200, "<html>"], "UNAVAILABLE", /answered without a secret/],
] as const) {
  test(`an answer that is ${what} fails the entry`, async (t) => {
    const { source, signal } = await opened(t, () => answer);
    const definition = { provider: "cloud_b", map: { a: "s" } };
    await assert.rejects(source.obtain("secret_manager", definition, REACH, signal), { code, message });
  });
}

for (const [what, definition, reach, message] of [
  ["no auth", { map: { a: "s" } }, undefined, /has no 'auth'/],
  ["no key", { map: { a: "s" } }, credential("custom", { region: "x" }), /Credential 'reach' has no 'access_key_id'/],
  ["no region", { map: { a: "s" } }, credential("custom", KEYS), /has no 'region'/],
  ["no map", {}, REACH, /has no 'map'/],
  ["a map without a path", { map: { a: "" } }, REACH, /no path for 'a'/],
  ["a missing field", { map: { a: "s#pass" } }, REACH, /secret 's' has no field 'pass'/],
] as const) {
  test(`an entry with ${what} is refused, and says what is missing`, async (t) => {
    const { source, signal } = await opened(t, () => [200, { SecretString: '{"user":"hunter2"}' }]);
    const wanted = { provider: "cloud_b", ...definition } as JsonObject;
    await assert.rejects(source.obtain("secret_manager", wanted, reach, signal), (error: Error) => {
      assert.match(error.message, message);
      assert.doesNotMatch(error.message, /hunter2/);
      return true;
    });
  });
}

test("an unknown provider is refused", async (t) => {
  const { source, signal } = await opened(t, () => [200, {}]);
  const definition = { provider: "cloud_z", map: { a: "s" } };
  await assert.rejects(source.obtain("secret_manager", definition, REACH, signal), {
    code: "INVALID_INPUT",
    message: /'provider' is 'cloud_z': cloud_a, cloud_b or cloud_c/,
  });
});
