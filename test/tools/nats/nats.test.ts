import assert from "node:assert/strict";
import { after, test } from "node:test";
import { connect } from "nats";
import { createEgressGuard } from "../../../src/platform/http/egress.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../src/schema/words/json.ts";
import type { Credential } from "../../../src/tools/contract/tool.ts";
import { createNatsTool } from "../../../src/tools/nats/nats.ts";
import { startTestNats } from "../../support/servers/nats-server.ts";
import { toolCall } from "../../support/service/tool-call.ts";

// Language document, section 8: kind `nats`, against a real server.

const nats = await startTestNats({ user: "flow", password: "p@ss", maxPayload: 100_000 });
const egress = createEgressGuard({ allowPrivate: "all" });
const tool = createNatsTool({ egress });
after(() => tool.close?.());

const broker: Credential = {
  name: "nats_k8s",
  type: "broker",
  data: { url: `nats://127.0.0.1:${nats.port}`, user: "flow", password: "p@ss" },
};

function run(config: JsonObject, more: { auth?: Record<string, Credential>; signal?: AbortSignal } = {}) {
  return tool.run(toolCall(config, { auth: { default: broker }, ...more }));
}

async function data(config: JsonObject): Promise<JsonObject> {
  const result = await run(config);
  assert.ok(isJsonObject(result.data), JSON.stringify(result));
  return result.data;
}

let buckets = 0;
function freshBucket(): string {
  buckets += 1;
  return `bucket_${buckets}`;
}

test("the first put makes the bucket, and a get gives value and revision", async () => {
  const bucket = freshBucket();
  const value = { user: "ada", roles: ["admin"], at: null };
  assert.deepEqual(await data({ operation: "kv_put", bucket, key: "s.1", value }), {
    status: "success",
    bucket,
    key: "s.1",
    revision: 1,
  });
  assert.deepEqual(await data({ operation: "kv_get", bucket, key: "s.1" }), {
    status: "success",
    bucket,
    key: "s.1",
    value,
    revision: 1,
  });
});

test("what is not there is a result with status not_found, whatever is missing", async () => {
  const bucket = freshBucket();
  const absent = { status: "not_found", bucket, key: "k", value: null, revision: null };
  assert.deepEqual(await data({ operation: "kv_get", bucket, key: "k" }), absent);
  assert.deepEqual(await data({ operation: "kv_delete", bucket, key: "k" }), {
    status: "not_found",
    bucket,
    key: "k",
    revision: null,
  });
  assert.deepEqual(await data({ operation: "kv_keys", bucket }), { status: "not_found", bucket, keys: [], count: 0 });
  await data({ operation: "kv_put", bucket, key: "other", value: 1 });
  assert.deepEqual(await data({ operation: "kv_get", bucket, key: "k" }), absent);
});

test("a deleted key is gone, and can be put again under a higher revision", async () => {
  const bucket = freshBucket();
  await data({ operation: "put", bucket, key: "k", value: "one" });
  assert.equal((await data({ operation: "delete", bucket, key: "k" }))["status"], "success");
  assert.equal((await data({ operation: "get", bucket, key: "k" }))["status"], "not_found");
  assert.equal((await data({ operation: "delete", bucket, key: "k" }))["status"], "not_found");
  assert.equal((await data({ operation: "put", bucket, key: "k", value: "two" }))["revision"], 3);
});

for (const [written, read] of [
  ["plain text", "plain text"],
  ['{"a": [1, 2]}', { a: [1, 2] }],
  [{ a: { b: "é" } }, { a: { b: "é" } }],
  [
    [1, "x"],
    [1, "x"],
  ],
  [42, 42],
  [false, false],
  ["", ""],
  ["9007199254740993", "9007199254740993"],
] as [Json, Json][]) {
  test(`a value ${JSON.stringify(written)} is read as ${JSON.stringify(read)}`, async () => {
    const bucket = freshBucket();
    await data({ operation: "kv_put", bucket, key: "k", value: written });
    assert.deepEqual((await data({ operation: "kv_get", bucket, key: "k" }))["value"], read);
  });
}

test("format text gives JSON as the text that it is", async () => {
  const bucket = freshBucket();
  await data({ operation: "kv_put", bucket, key: "k", value: "007" });
  await data({ operation: "kv_put", bucket, key: "n", value: "7" });
  assert.equal((await data({ operation: "kv_get", bucket, key: "k" }))["value"], "007");
  assert.equal((await data({ operation: "kv_get", bucket, key: "n", format: "text" }))["value"], "7");
});

test("other programs read what was put, and what they put is read, bytes as base64", async () => {
  const bucket = freshBucket();
  await data({ operation: "kv_put", bucket, key: "a", value: { n: 1 } });
  const connection = await connect({ servers: `127.0.0.1:${nats.port}`, user: "flow", pass: "p@ss" });
  const kv = await connection.jetstream().views.kv(bucket);
  assert.equal((await kv.get("a"))?.string(), '{"n":1}');
  await kv.put("b", Uint8Array.of(0xff, 0x00));
  await connection.close();
  const found = await data({ operation: "kv_get", bucket, key: "b" });
  assert.deepEqual([found["value"], found["encoding"]], ["/wA=", "base64"]);
});

test("kv_keys gives the keys in order, those of deleted values left out, and takes a pattern", async () => {
  const bucket = freshBucket();
  for (const key of ["user.2", "user.1", "job.1", "gone"]) await data({ operation: "kv_put", bucket, key, value: key });
  await data({ operation: "kv_delete", bucket, key: "gone" });
  assert.deepEqual(await data({ operation: "keys", bucket }), {
    status: "success",
    bucket,
    keys: ["job.1", "user.1", "user.2"],
    count: 3,
  });
  assert.deepEqual((await data({ operation: "kv_keys", bucket, key: "user.*" }))["keys"], ["user.1", "user.2"]);
  assert.deepEqual((await data({ operation: "kv_keys", bucket, key: "none.>" }))["keys"], []);
});

test("a key may be any text", async () => {
  const bucket = freshBucket();
  for (const key of ["a b", "user@example.com", "*", "..", "é", "=x", "a/b"]) {
    await data({ operation: "kv_put", bucket, key, value: key });
    assert.equal((await data({ operation: "kv_get", bucket, key }))["value"], key);
  }
  assert.deepEqual((await data({ operation: "kv_keys", bucket }))["keys"], [
    "*",
    "..",
    "=x",
    "a b",
    "a/b",
    "user@example.com",
    "é",
  ]);
});

test("a value with a ttl is gone when its time has passed, and there until then", async () => {
  const bucket = freshBucket();
  await data({ operation: "kv_put", bucket, key: "long", value: "x", ttl: 600 });
  await data({ operation: "kv_put", bucket, key: "short", value: "x", ttl: "0.001" });
  assert.equal((await data({ operation: "kv_get", bucket, key: "long" }))["value"], "x");
  // Until the millisecond has passed by any clock's reading.
  const past = Date.now() + 2;
  while (Date.now() <= past) await new Promise(setImmediate);
  assert.equal((await data({ operation: "kv_get", bucket, key: "short" }))["status"], "not_found");
});

for (const [config, message] of [
  [{}, /key "operation": expects kv_get, kv_put, kv_delete or kv_keys.*key "bucket"/],
  [{ operation: "kv_watch", bucket: "b", key: "k" }, /key "operation"/],
  [{ operation: "kv_get", bucket: "a.b", key: "k" }, /key "bucket": expects letters/],
  [{ operation: "kv_get", bucket: "b" }, /no "key", which kv_get needs/],
  [{ operation: "kv_put", bucket: "b", key: "k", value: null }, /no "value" to put.*kv_delete/],
  [{ operation: "kv_put", bucket: "b", key: "k", value: 1, ttl: "soon" }, /key "ttl": expects seconds/],
  [{ operation: "kv_put", bucket: "b", key: "k", value: 1, ttl: -1 }, /key "ttl"/],
  [{ operation: "kv_get", bucket: "b", key: "k", ttl: 5 }, /"ttl" is for kv_put/],
  [{ operation: "kv_get", bucket: "b", key: "x".repeat(2000) }, /1024 bytes at most/],
  [{ operation: "kv_keys", bucket: "b", key: "a b" }, /"key" chooses/],
  [{ operation: "kv_get", bucket: "b", key: "k", url: "http://host" }, /not one of NATS/],
  [{ operation: "kv_get", bucket: "b", key: "k", url: "nats://" }, /not one of NATS/],
] as [JsonObject, RegExp][]) {
  test(`a task ${JSON.stringify(config).slice(0, 80)} is a configuration error`, async () => {
    const { error } = await run(config);
    assert.equal(error?.kind, "configuration", JSON.stringify(error));
    assert.match(error?.message ?? "", message);
  });
}

test("a task without a credential, or with one that has no address, says how to give one", async () => {
  const task = { operation: "kv_get", bucket: "b", key: "k" };
  assert.match((await run(task, { auth: {} })).error?.message ?? "", /no credential.*type broker/);
  const empty = { default: { name: "nats_k8s", type: "broker", data: {} } };
  assert.match((await run(task, { auth: empty })).error?.message ?? "", /Credential "nats_k8s" has no url/);
});

test("the address may hold the user, and the task's own address wins", async () => {
  const task = { operation: "kv_get", bucket: "none", key: "k" };
  const url = `nats://flow:${encodeURIComponent("p@ss")}@127.0.0.1:${nats.port}`;
  assert.equal((await run({ ...task, url }, { auth: {} })).status, "ok");
  const dead = { default: { ...broker, data: { ...broker.data, url: "nats://127.0.0.1:1" } } };
  assert.equal((await run({ ...task, url: `127.0.0.1:${nats.port}` }, { auth: dead })).status, "ok");
});

test("a wrong password is an auth error that shows neither address nor password", async () => {
  const wrong = {
    default: { ...broker, data: { ...broker.data, url: `nats://u:geheim@127.0.0.1:${nats.port}`, password: "wrong" } },
  };
  const { error } = await run({ operation: "kv_get", bucket: "b", key: "k" }, { auth: wrong });
  assert.deepEqual([error?.kind, error?.retryable], ["auth", false]);
  assert.doesNotMatch(JSON.stringify(error), /wrong|geheim/);
});

test("a value larger than the server takes is refused with a way out", async () => {
  const { error } = await run({ operation: "kv_put", bucket: freshBucket(), key: "k", value: "x".repeat(200_000) });
  assert.deepEqual([error?.kind, error?.code], ["client_error", "VALUE_TOO_LARGE"]);
  assert.match(error?.message ?? "", /max_payload/);
});

test("a private address that is not allowed is never dialled", async () => {
  const guarded = createNatsTool({ egress: createEgressGuard({ allowPrivate: [] }) });
  const named = createEgressGuard({
    allowPrivate: [],
    resolve: () => Promise.resolve([{ address: "10.1.2.3", family: 4 }]),
  });
  const guardedByName = createNatsTool({ egress: named });
  const task = { operation: "kv_get", bucket: "b", key: "k" };
  const literal = await guarded.run(toolCall(task, { auth: { default: broker } }));
  assert.equal(literal.error?.code, "EGRESS_REFUSED");
  const name = await guardedByName.run(toolCall({ ...task, url: "nats://nats.example" }));
  assert.equal(name.error?.code, "EGRESS_REFUSED");
  assert.match(name.error?.message ?? "", /nats\.example, which resolves to 10\.1\.2\.3/);
});

test("a server that is not there is a connection error that may be tried again", async () => {
  const { error } = await run({ operation: "kv_get", bucket: "b", key: "k", url: "nats://127.0.0.1:1" });
  assert.deepEqual([error?.kind, error?.code, error?.retryable], ["connection", "CONNECTION_REFUSED", true]);
  assert.match(error?.message ?? "", /kv_get in bucket 'b' at 127\.0\.0\.1:1 failed/);
});

test("another server of the address is used when the first is not there", async () => {
  const url = `nats://127.0.0.1:1,nats://127.0.0.1:${nats.port}`;
  assert.equal((await run({ operation: "kv_get", bucket: "none", key: "k", url })).status, "ok");
});

test("a server without JetStream says what to start it with", async () => {
  const plain = await startTestNats({ jetStream: false });
  for (const operation of ["kv_get", "kv_put", "kv_keys", "kv_delete"]) {
    const { error } = await run({ operation, bucket: "b", key: "k", value: 1, url: plain.url }, { auth: {} });
    assert.deepEqual([operation, error?.kind, error?.code], [operation, "configuration", "JETSTREAM_NOT_ENABLED"]);
  }
});

test("a server that came back is found again by the next task", async () => {
  const own = await startTestNats();
  const task = { operation: "kv_put", bucket: "b", key: "k", value: 1, url: own.url };
  assert.equal((await run(task, { auth: {} })).status, "ok");
  await own.stop();
  assert.equal((await run(task, { auth: {} })).error?.kind, "connection");
  await own.start();
  assert.equal((await run({ ...task, operation: "kv_get" }, { auth: {} })).status, "ok");
});

test("a task that is cancelled, or out of time, ends although the server does not answer", async () => {
  const own = await startTestNats();
  const task = { operation: "kv_get", bucket: "b", key: "k", url: own.url };
  assert.equal((await run(task, { auth: {} })).status, "ok");
  own.freeze();
  const cancelled = new AbortController();
  const waiting = run(task, { auth: {}, signal: cancelled.signal });
  cancelled.abort();
  assert.equal((await waiting).error?.kind, "cancelled");
  const { error } = await run(task, { auth: {}, signal: AbortSignal.timeout(20) });
  assert.equal(error?.kind, "timeout");
  own.thaw();
});
