import assert from "node:assert/strict";
import { before, test } from "node:test";
import { connect } from "nats";
import { createNatsKeyValue } from "../../../src/adapters/nats/key-value.ts";
import type { KeyValueStore } from "../../../src/ports/key-value.ts";
import { FlowError } from "../../../src/schema/words/errors.ts";
import { type RecordedLog, recordLog } from "../../support/engine/recorded-log.ts";
import { startTestNats, type TestNats } from "../../support/servers/nats-server.ts";
import { bytes, textOf } from "../key-value-contract.ts";
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
  await assert.rejects(store.update("sessions", "a", bytes("one"), { revision: 0 }), isUnavailable);
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
  const revision = await store.put("sessions", "a", bytes("one"));
  await drop();
  assert.equal(await store.get("sessions", "a"), undefined);
  await store.put("sessions", "a", bytes("two"));
  assert.equal(await textOf(store, "sessions", "a"), "two");
  await drop();
  assert.equal(await store.update("sessions", "a", bytes("three"), { revision }), undefined, "reading makes no bucket");
  assert.ok((await store.update("sessions", "a", bytes("four"), { revision: 0 })) !== undefined);
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
