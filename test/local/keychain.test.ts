import assert from "node:assert/strict";
import { test } from "node:test";
import { createLocalKeychain } from "../../src/local/keychain.ts";
import type { KeychainKey, KeychainWrite } from "../../src/ports/keychain.ts";
import { createSteppedClock } from "../../src/testing/stepped-clock.ts";

// The keychain of one process follows the rules of the server's (interface specification, Keychain).

const START = 1_767_225_600_000;
const ENTRY: KeychainWrite = { data: { token: "t" }, credentialType: "bearer", cacheType: "secret", autoRenew: false };

function setup() {
  const clock = createSteppedClock(START);
  return { clock, keychain: createLocalKeychain(clock) };
}

function key(scope: KeychainKey["scope"], executionId = "2", rootExecutionId = "1"): KeychainKey {
  return { catalogId: "7", name: "api", scope, executionId, rootExecutionId };
}

test("lifetimes are those of the scopes unless one is given", async () => {
  const { keychain } = setup();
  for (const [scope, seconds] of [
    ["local", 3_600],
    ["global", 86_400],
    ["shared", 86_400],
  ] as const) {
    assert.deepEqual(await keychain.set(key(scope), ENTRY), { expiresAt: START + seconds * 1_000 });
  }
  assert.deepEqual(await keychain.set(key("local"), { ...ENTRY, ttlSeconds: 5 }), { expiresAt: START + 5_000 });
});

test("an entry whose renewal names no endpoint, or is of a wrong type, is refused", async () => {
  const { keychain } = setup();
  for (const renewConfig of [{}, { endpoint: 5 }, { endpoint: "x", headers: "y" }]) {
    await assert.rejects(keychain.set(key("global"), { ...ENTRY, autoRenew: true, renewConfig }), {
      code: "INVALID_INPUT",
      message: /renew_config describes no request/,
    });
  }
  assert.deepEqual(await keychain.get(key("global")), { status: "not_found" });
});

test("an entry is live until its moment, then expired, with its renewal only where it renews", async () => {
  const { keychain, clock } = setup();
  await keychain.set(key("global"), { ...ENTRY, ttlSeconds: 5, renewConfig: { endpoint: "x" } });
  const renewing = { ...key("global"), name: "renewing" };
  await keychain.set(renewing, { ...ENTRY, ttlSeconds: 5, autoRenew: true, renewConfig: { endpoint: "x" } });
  await clock.advance(4_999);
  assert.deepEqual(await keychain.get(key("global")), {
    status: "success",
    data: { token: "t" },
    expiresAt: START + 5_000,
  });
  await clock.advance(1);
  const expired = { status: "expired", expiredAt: START + 5_000 };
  assert.deepEqual(await keychain.get(key("global")), { ...expired, autoRenew: false });
  assert.deepEqual(await keychain.get(renewing), {
    ...{ ...expired, autoRenew: true, renewConfig: { endpoint: "x" } },
    form: { credentialType: ENTRY.credentialType, cacheType: ENTRY.cacheType },
  });
  assert.deepEqual(await keychain.get({ ...renewing, name: "other" }), { status: "not_found" });
});

test("each scope is read by whom it is for", async () => {
  const { keychain } = setup();
  const found = async (at: KeychainKey) => (await keychain.get(at)).status === "success";
  await keychain.set(key("local"), ENTRY);
  assert.deepEqual([await found(key("local")), await found(key("local", "3"))], [true, false]);
  await keychain.set(key("shared"), ENTRY);
  assert.deepEqual([await found(key("shared", "9", "1")), await found(key("shared", "9", "8"))], [true, false]);
  await keychain.set(key("global"), ENTRY);
  assert.equal(await found(key("global", "99", "98")), true);
  assert.equal(await found({ ...key("global"), catalogId: "8" }), false);
});

test("local entries end with their execution, shared ones with the root's, global ones with neither", async () => {
  const { keychain } = setup();
  for (const scope of ["local", "shared", "global"] as const) await keychain.set(key(scope), ENTRY);
  const status = async () =>
    await Promise.all(
      (["local", "shared", "global"] as const).map(async (scope) => (await keychain.get(key(scope))).status),
    );
  keychain.ended("2");
  assert.deepEqual(await status(), ["not_found", "success", "success"]);
  keychain.ended("1");
  assert.deepEqual(await status(), ["not_found", "not_found", "success"]);
});

test("what was given and what is read cannot be changed from outside", async () => {
  const { keychain } = setup();
  const data = { token: { deep: "a" } };
  await keychain.set(key("global"), { ...ENTRY, data });
  data.token.deep = "b";
  const first = await keychain.get(key("global"));
  assert.ok(first.status === "success");
  (first.data["token"] as { deep: string }).deep = "c";
  const second = await keychain.get(key("global"));
  assert.ok(second.status === "success");
  assert.deepEqual(second.data, { token: { deep: "a" } });
});

test("one is granted the lease, and the others hear that the entry was set", async () => {
  const { keychain } = setup();
  const ask = (holder: string) => keychain.lease(key("global"), { holder, leaseMs: 60_000, waitMs: 10_000 });
  assert.deepEqual(await ask("a"), { status: "granted" });
  assert.deepEqual(await ask("a"), { status: "granted" }, "who holds it may ask again");
  const others = [ask("b"), ask("c")];
  await keychain.set(key("global"), ENTRY);
  assert.deepEqual(await Promise.all(others), [{ status: "set" }, { status: "set" }]);
  assert.deepEqual(await ask("d"), { status: "set" }, "a live entry needs no work");
});

test("a failure is reported to those who wait, and for five seconds to later requests", async () => {
  const { keychain, clock } = setup();
  const ask = (holder: string) => keychain.lease(key("global"), { holder, leaseMs: 60_000, waitMs: 10_000 });
  await ask("a");
  const waiting = ask("b");
  await keychain.fail(key("global"), "b", "not the holder's to say");
  await keychain.fail(key("global"), "a", "refused");
  assert.deepEqual(await waiting, { status: "failed", message: "refused" });
  await clock.advance(4_999);
  assert.deepEqual(await ask("c"), { status: "failed", message: "refused" });
  await clock.advance(1);
  assert.deepEqual(await ask("c"), { status: "granted" });
});

test("waiting ends after its time, and a lease after its own: the next one is granted it", async () => {
  const { keychain, clock } = setup();
  const ask = (holder: string, waitMs: number) => keychain.lease(key("global"), { holder, leaseMs: 1_000, waitMs });
  await ask("a", 0);
  assert.deepEqual(await clock.runUntil(ask("b", 500)), { status: "held" });
  await clock.advance(500);
  assert.deepEqual(await ask("c", 0), { status: "granted" });
  await keychain.fail(key("global"), "a", "too late");
  assert.deepEqual(await clock.runUntil(ask("d", 100)), { status: "held" }, "who lost the lease ends nothing");
});

test("data that violate the schema are refused with every failure, and nothing is kept", async () => {
  const { keychain } = setup();
  const schema = { fields: ["a"], required: ["a"], types: { token: "integer" } };
  await assert.rejects(keychain.set(key("global"), { ...ENTRY, schema }), (error: Error) => {
    assert.match(error.message, /Missing required field: a/);
    assert.match(error.message, /Field 'token' must be integer, got string/);
    assert.match(error.message, /Unexpected fields: token/);
    return true;
  });
  assert.equal((await keychain.get(key("global"))).status, "not_found");
  await assert.rejects(keychain.set(key("global"), { ...ENTRY, schema: { fields: "a" } }), /its schema is invalid/);
});
