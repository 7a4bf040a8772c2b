import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import type { Credential } from "../../../src/tools/contract/tool.ts";
import { describeTarget, readNatsTarget, targetKey } from "../../../src/tools/nats/target.ts";

function broker(data: JsonObject, name = "nats_k8s", type = "broker"): Credential {
  return { name, type, data };
}

const HOST = { host: "nats", port: 4222 };

for (const [data, servers, options] of [
  [{ url: "nats://nats:4222" }, [HOST], {}],
  [{ url: "nats" }, [HOST], {}],
  [{ url: "tls://nats" }, [HOST], { tls: {} }],
  [{ url: "nats:4222, [::1]:5000" }, [HOST, { host: "::1", port: 5000 }], {}],
  [{ servers: ["nats:4222", "b:1"] }, [HOST, { host: "b", port: 1 }], {}],
  [{ url: "nats", user: "u", password: "p" }, [HOST], { user: "u", pass: "p" }],
  [{ nats_url: "nats", nats_user: "u", nats_password: "p" }, [HOST], { user: "u", pass: "p" }],
  [{ url: "nats", token: "t" }, [HOST], { token: "t" }],
  [{ url: "nats://u:p%40@nats" }, [HOST], { user: "u", pass: "p@" }],
  [{ url: "nats://t@nats" }, [HOST], { token: "t" }],
  [{ url: "nats://other:x@nats", user: "u", password: "p" }, [HOST], { user: "u", pass: "p" }],
] as const) {
  test(`a credential ${JSON.stringify(data)} is read`, () => {
    const target = readNatsTarget({}, { default: broker(data as unknown as JsonObject) });
    assert.deepEqual(target, { servers, options, creds: undefined });
  });
}

test("the text of a creds file is kept, and never shown", () => {
  const target = readNatsTarget({}, { default: broker({ url: "nats", creds: "-----BEGIN NATS USER JWT-----" }) });
  assert.equal(target.creds, "-----BEGIN NATS USER JWT-----");
  assert.equal(describeTarget(target), "nats:4222");
  assert.doesNotMatch(targetKey(target), /BEGIN/);
});

test("of several credentials the one of a broker is used; of several brokers none", () => {
  const auth = { db: broker({ host: "x" }, "pg", "sqldb"), cache: broker({ url: "nats" }) };
  assert.deepEqual(readNatsTarget({}, auth).servers, [HOST]);
  const two = { left: broker({ url: "a" }, "a"), right: broker({ url: "b" }, "b") };
  assert.throws(() => readNatsTarget({}, two), { code: "INVALID_INPUT", message: /2 credentials \(left, right\)/ });
});

for (const url of ["http://nats", "nats://", "nats://:4222", "ws://nats", "", "nats://u:geheim@/"]) {
  test(`an address '${url}' is refused, and not shown`, () => {
    const refused = () => readNatsTarget({ url }, { default: broker({}) });
    assert.throws(refused, (error: Error) => !error.message.includes("geheim") && /nats/.test(error.message));
  });
}
