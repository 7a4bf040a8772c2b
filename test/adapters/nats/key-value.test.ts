import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { before, test } from "node:test";
import { connect } from "nats";
import { createNatsKeyValue } from "../../../src/adapters/nats/key-value.ts";
import { KEY_BYTES_MAX, type KeyValueStore, VALUE_BYTES_MAX } from "../../../src/ports/key-value.ts";
import { FlowError } from "../../../src/schema/words/errors.ts";
import { type RecordedLog, recordLog } from "../../support/engine/recorded-log.ts";
import { startTestNats, type TestNats } from "../../support/servers/nats-server.ts";
import { openLink } from "../nats-pair.ts";

const LIMIT = { timeout: 300_000 };

let shared: TestNats;
before(async () => {
  shared = await startTestNats();
});

function openStore(nats: TestNats, now: () => number = Date.now): { store: KeyValueStore; log: RecordedLog } {
  const log = recordLog();
  return { store: createNatsKeyValue({ link: openLink(nats.url, log), now }), log };
}

async function online(log: RecordedLog, count = 1): Promise<void> {
  await log.until(() => log.matching("connected to the broker").length >= count);
}

function isUnavailable(error: unknown): boolean {
  return error instanceof FlowError && error.code === "UNAVAILABLE";
}

test("without NATS every call says that the store cannot be reached; it works once NATS is there", LIMIT, async () => {
  const nats = await startTestNats({ started: false });
  const { store, log } = openStore(nats);
  await assert.rejects(store.get("sessions", "a"), isUnavailable);
  await assert.rejects(store.put("sessions", "a", bytes("one")), isUnavailable);
  await assert.rejects(store.delete("sessions", "a"), isUnavailable);
  await nats.start();
  await online(log);
  await store.put("sessions", "a", bytes("one"));
  assert.equal(await textOf(store, "sessions", "a"), "one");
});

test("values outlive a restart of NATS", LIMIT, async () => {
  const nats = await startTestNats();
  const { store, log } = openStore(nats);
  await online(log);
  await store.put("sessions", "a", bytes("one"));
  await nats.stop();
  await log.until(({ message }) => message.includes("broker is gone"));
  await nats.start();
  await online(log, 2);
  assert.equal(await textOf(store, "sessions", "a"), "one");
});

test("a bucket that is deleted under a live connection is empty, and made again", LIMIT, async () => {
  const nats = await startTestNats();
  const { store, log } = openStore(nats);
  await online(log);
  const drop = async () => {
    const connection = await connect({ servers: `127.0.0.1:${nats.port}` });
    await (await connection.jetstreamManager()).streams.delete("KV_sessions");
    await connection.close();
  };
  await store.put("sessions", "a", bytes("one"));
  await drop();
  assert.equal(await store.get("sessions", "a"), undefined);
  await store.put("sessions", "a", bytes("two"));
  assert.equal(await textOf(store, "sessions", "a"), "two");
  await drop();
  await store.delete("sessions", "a");
});

test("a NATS without JetStream has no key-value store, and says so", LIMIT, async () => {
  const { store, log } = openStore(await startTestNats({ jetStream: false }));
  await online(log);
  await assert.rejects(store.get("sessions", "a"), isUnavailable);
});

test("a NATS with its own limit refuses a value that does not fit and names the setting", LIMIT, async () => {
  const { store, log } = openStore(shared);
  await online(log);
  await store.put("limits", "a", new Uint8Array(1_048_000), { ttlMs: 1_000 });
  await assert.rejects(store.put("limits", "a", new Uint8Array(1_048_576), { ttlMs: 1_000 }), (error) => {
    assert.ok(error instanceof FlowError && error.code === "TOO_LARGE");
    assert.match(error.message, /max_payload/);
    return true;
  });
});

test("a time to live is counted by the clock that the store was given", LIMIT, async () => {
  let now = 1_000_000;
  const { store, log } = openStore(shared, () => now);
  await online(log);
  await store.put("clocks", "a", bytes("one"), { ttlMs: 60_000 });
  now += 59_999;
  assert.equal(await textOf(store, "clocks", "a"), "one");
  now += 1;
  assert.equal(await textOf(store, "clocks", "a"), undefined);
});

test("other programs read what has no time to live, and are read", LIMIT, async () => {
  const { store, log } = openStore(shared);
  await online(log);
  const connection = await connect({ servers: `127.0.0.1:${shared.port}` });
  const bucket = await connection.jetstream().views.kv("shared");
  await store.put("shared", "user.1", bytes("ours"));
  assert.equal((await bucket.get("user.1"))?.string(), "ours");
  await bucket.put("user.2", "theirs");
  assert.equal(await textOf(store, "shared", "user.2"), "theirs");
  await connection.close();
});

/** Bytes of a text. */
function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** The value as text, or undefined if it is missing. */
async function textOf(store: KeyValueStore, bucket: string, key: string): Promise<string | undefined> {
  const entry = await store.get(bucket, key);
  return entry && new TextDecoder().decode(entry);
}

/** Resolves when the value has expired. */
async function gone(store: KeyValueStore, bucket: string, key: string): Promise<void> {
  while ((await store.get(bucket, key)) !== undefined);
}

/* Two ends of one store, as of two servers. The tests share them, not their keys. */

const BUCKET = "sessions";

let ends: { here: KeyValueStore; there: KeyValueStore };
before(async () => {
  // A deployment's NATS takes messages of 2 MB, as the largest value and what stands around it need.
  const nats = await startTestNats({ maxPayload: 2_000_000 });
  const open = async () => {
    const { store, log } = openStore(nats);
    await online(log);
    return store;
  };
  ends = { here: await open(), there: await open() };
});

function check(title: string, body: (given: typeof ends & { key: string }) => Promise<void>): void {
  test(title, LIMIT, () => body({ ...ends, key: randomUUID() }));
}

check("what was put is there for everyone, the last one", async ({ here, there, key }) => {
  assert.equal(await there.get(BUCKET, key), undefined);
  await here.put(BUCKET, key, bytes("one"));
  assert.equal(await textOf(there, BUCKET, key), "one");
  await there.put(BUCKET, key, bytes("two"));
  assert.equal(await textOf(here, BUCKET, key), "two");
});

check("a key of one bucket is not there in another", async ({ here, key }) => {
  await here.put(BUCKET, key, bytes("one"));
  assert.equal(await here.get("other-bucket", key), undefined);
});

check("what was deleted is gone; deleting it again is nothing", async ({ here, there, key }) => {
  await here.delete(BUCKET, key);
  await here.put(BUCKET, key, bytes("one"));
  await there.delete(BUCKET, key);
  assert.equal(await here.get(BUCKET, key), undefined);
  await here.delete(BUCKET, key);
});

check("what has expired is not there, and can be written again", async ({ here, there, key }) => {
  await here.put(BUCKET, key, bytes("one"), { ttlMs: 1 });
  await gone(there, BUCKET, key);
  await there.put(BUCKET, key, bytes("three"), { ttlMs: 3_600_000 });
  assert.equal(await textOf(here, BUCKET, key), "three");
});

check("writing again sets the time to live anew, or takes it away", async ({ here, key }) => {
  await here.put(BUCKET, key, bytes("one"), { ttlMs: 3_600_000 });
  await here.put(BUCKET, key, bytes("two"), { ttlMs: 1 });
  await gone(here, BUCKET, key);
  await here.put(BUCKET, key, bytes("three"), { ttlMs: 1 });
  await here.put(BUCKET, key, bytes("four"));
  assert.equal(await textOf(here, BUCKET, key), "four");
});

check("values are bytes: none, any, up to the limit, with a time to live or without", async ({ here, there, key }) => {
  const marked = Uint8Array.of(0x01, 0x66, 0x6c, 0x31, 0, 0, 0, 0, 0, 0, 0, 0, 7);
  for (const value of [new Uint8Array(), Uint8Array.of(0), marked, randomBytes(VALUE_BYTES_MAX)]) {
    for (const ttl of [{}, { ttlMs: 3_600_000 }]) {
      await here.put(BUCKET, key, value, ttl);
      const found = await there.get(BUCKET, key);
      assert.ok(found !== undefined && Buffer.compare(value, found) === 0, `${value.length} bytes`);
    }
  }
});

check("keys are any text, and no two of them are one", async ({ here, there, key }) => {
  const forms = [
    "a",
    "A",
    "a.b",
    "a.b.",
    ".",
    "..",
    "*",
    ">",
    "a b",
    "=YQ",
    "YQ",
    "=",
    "é",
    "e\u0301",
    "😀",
    "'; drop",
    "/",
  ];
  const keys = [...forms.map((form) => `${form}${key}`), ...forms.map((form) => `${key}${form}`), `${key}\n`];
  keys.push(key.padEnd(KEY_BYTES_MAX, "x"), key.padEnd(KEY_BYTES_MAX - 1, " "));
  await Promise.all(keys.map((each) => here.put(BUCKET, each, bytes(each))));
  for (const each of keys) assert.equal(await textOf(there, BUCKET, each), each);
});

check("what no store can hold is refused, and the key is not repeated", async ({ here, key }) => {
  const value = bytes("canary");
  const refused = (call: Promise<unknown>, code: string) =>
    assert.rejects(call, (error) => {
      assert.ok(error instanceof FlowError && error.code === code, String(error));
      assert.doesNotMatch(error.message, /canary/);
      return true;
    });
  for (const bucket of ["", "a b", "a.b", "*", "x".repeat(65)]) await refused(here.get(bucket, key), "INVALID_INPUT");
  for (const bad of ["", "canary\0", "canary\ud800", "canary".repeat(200), "é".repeat(513)]) {
    await refused(here.get(BUCKET, bad), "INVALID_INPUT");
    await refused(here.put(BUCKET, bad, value), "INVALID_INPUT");
    await refused(here.delete(BUCKET, bad), "INVALID_INPUT");
  }
  for (const ttlMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY])
    await refused(here.put(BUCKET, key, value, { ttlMs }), "INVALID_INPUT");
  await refused(here.put(BUCKET, key, new Uint8Array(VALUE_BYTES_MAX + 1)), "TOO_LARGE");
  assert.equal(await here.get(BUCKET, key), undefined);
});
