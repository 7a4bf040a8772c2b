import assert from "node:assert/strict";
import { test } from "node:test";
import type { KeyValueStore } from "../../../src/ports/key-value.ts";
import { decodeSession, encodeSession, type KnownSession } from "../../../src/schema/api/gateway.ts";
import { createSessions, SESSION_AGE_MS, type Sessions } from "../../../src/services/login/sessions.ts";

const ADA = { user_id: 1, email: "ada@example.com", display_name: "Ada", roles: ["viewer"] };
const BEN = { user_id: 2, email: "ben@example.com", display_name: "Ben", roles: [] };
const HOUR_MS = 3_600_000;

/** A gateway's sessions, a server that answers `truth`, and how often it was asked. */
function setup(options: { store?: Map<string, Uint8Array>; now?: () => number; isHeard?: boolean } = {}) {
  let at = 1_000_000;
  const now = options.now ?? (() => at);
  const truth = new Map<string, KnownSession>([
    ["a", { user: ADA, expiresAt: now() + HOUR_MS }],
    ["b", { user: BEN, expiresAt: now() + HOUR_MS }],
  ]);
  const asked: string[] = [];
  const checkedBy: string[] = [];
  let answer = (tokenSha256: string): Promise<KnownSession | undefined> => Promise.resolve(truth.get(tokenSha256));
  const sessions = createSessions({
    ask(tokenSha256) {
      asked.push(tokenSha256);
      return answer(tokenSha256);
    },
    store: options.store && storeOf(options.store),
    now,
    onChecked: (by) => checkedBy.push(by),
    onFault: () => undefined,
  });
  if (options.isHeard !== false) sessions.onListening(true);
  const pass = (ms: number) => {
    at += ms;
  };
  pass(1);
  const answerWith = (other: typeof answer) => {
    answer = other;
  };
  return { sessions, truth, asked, checkedBy, pass, answerWith };
}

function storeOf(values: Map<string, Uint8Array>): KeyValueStore {
  return {
    get: (_, key) => Promise.resolve(values.get(key)),
    put: (_, key, value) => Promise.resolve(void values.set(key, value)),
    delete: (_, key) => Promise.resolve(void values.delete(key)),
  };
}

async function emailOf(sessions: Sessions, tokenSha256: string): Promise<string | undefined> {
  return (await sessions.check(tokenSha256, undefined))?.user.email;
}

test("a session that was asked for is believed for a minute", async () => {
  const { sessions, asked, pass } = setup();
  assert.equal(await emailOf(sessions, "a"), "ada@example.com");
  pass(SESSION_AGE_MS);
  assert.equal(await emailOf(sessions, "a"), "ada@example.com");
  assert.deepEqual(asked, ["a"]);
  pass(1);
  assert.equal(await emailOf(sessions, "a"), "ada@example.com");
  assert.deepEqual(asked, ["a", "a"]);
});

test("a session that is not valid is asked for again each time", async () => {
  const { sessions, asked } = setup();
  assert.equal(await emailOf(sessions, "x"), undefined);
  assert.equal(await emailOf(sessions, "x"), undefined);
  assert.deepEqual(asked, ["x", "x"]);
});

test("a session is over when its time is, whatever is cached", async () => {
  const { sessions, truth, pass } = setup();
  truth.set("a", { user: ADA, expiresAt: 1_000_010 });
  assert.equal(await emailOf(sessions, "a"), "ada@example.com");
  truth.delete("a");
  pass(9);
  assert.equal(await emailOf(sessions, "a"), undefined);
});

for (const [what, change] of [
  ["this session", ["x", "a"]],
  ["perhaps all", "all"],
] as const) {
  test(`after a change of ${what} the server is asked again`, async () => {
    const { sessions, truth, pass } = setup();
    await emailOf(sessions, "a");
    truth.delete("a");
    pass(1);
    sessions.changed(change);
    assert.equal(await emailOf(sessions, "a"), undefined);
  });
}

test("a change of one session leaves the others cached", async () => {
  const { sessions, asked, pass } = setup();
  await emailOf(sessions, "a");
  await emailOf(sessions, "b");
  pass(1);
  sessions.changed(["a"]);
  await emailOf(sessions, "b");
  assert.deepEqual(asked, ["a", "b"]);
});

test("while changes are not received, every check queries the server, and the cache is ignored", async () => {
  const { sessions, asked, pass } = setup({ isHeard: false });
  await emailOf(sessions, "a");
  await emailOf(sessions, "a");
  assert.deepEqual(asked, ["a", "a"]);
  sessions.onListening(true);
  pass(1);
  await emailOf(sessions, "a");
  await emailOf(sessions, "a");
  assert.deepEqual(asked, ["a", "a", "a"]);
  sessions.onListening(false);
  await emailOf(sessions, "a");
  assert.equal(asked.length, 4);
});

test("an answer that was on its way when something changed is not kept", async () => {
  const { sessions, truth, answerWith, pass } = setup();
  let release = (_: KnownSession | undefined) => {};
  answerWith(() => new Promise((resolve) => (release = resolve)));
  const asking = sessions.check("a", undefined);
  await new Promise((turn) => setImmediate(turn));
  const old = truth.get("a");
  pass(1);
  sessions.changed(["a"]);
  pass(1);
  release(old);
  await asking;
  answerWith(() => Promise.resolve(undefined));
  assert.equal(await emailOf(sessions, "a"), undefined);
});

test("who asks after a change does not get the answer that was asked for before it", async () => {
  const { sessions, answerWith } = setup();
  const releases: ((session: KnownSession | undefined) => void)[] = [];
  answerWith(() => new Promise((resolve) => releases.push(resolve)));
  const before = sessions.check("a", undefined);
  sessions.changed(["a"]);
  const after = sessions.check("a", undefined);
  await new Promise((turn) => setImmediate(turn));
  releases[0]?.({ user: ADA, expiresAt: 1_000_000 + HOUR_MS });
  releases[1]?.(undefined);
  assert.equal((await before)?.user.email, "ada@example.com");
  assert.equal(await after, undefined);
});

test("many who ask at once are one question", async () => {
  const { sessions, asked } = setup();
  await Promise.all(Array.from({ length: 20 }, () => sessions.check("a", undefined)));
  assert.deepEqual(asked, ["a"]);
});

test("an unavailable server is reported, and no session is accepted", async () => {
  const { sessions, answerWith } = setup();
  answerWith(() => Promise.reject(new Error("away")));
  await assert.rejects(sessions.check("a", undefined), /away/);
  answerWith(() => Promise.resolve(undefined));
  assert.equal(await emailOf(sessions, "a"), undefined);
});

test("another gateway finds what one has asked for in the broker's store; after a change neither does", async () => {
  let at = 1_000_000;
  const now = () => at;
  const store = new Map<string, Uint8Array>();
  const one = setup({ store, now });
  const two = setup({ store, now });
  at += 10_000;
  await emailOf(one.sessions, "a");
  assert.equal(await emailOf(two.sessions, "a"), "ada@example.com");
  assert.equal(await emailOf(two.sessions, "a"), "ada@example.com");
  assert.deepEqual([one.asked, two.asked], [["a"], []]);
  assert.deepEqual([one.checkedBy, two.checkedBy], [["server"], ["broker", "memory"]]);
  for (const { sessions, truth } of [one, two]) {
    truth.delete("a");
    sessions.changed(["a"]);
  }
  assert.equal(await emailOf(two.sessions, "a"), undefined);
  assert.equal(await emailOf(one.sessions, "a"), undefined);
});

test("entries written before a gateway received changes are not used", async () => {
  const stale = encodeSession({ user: ADA, expiresAt: 1_000_000 + HOUR_MS, askedAt: 999_000 });
  const { sessions, asked } = setup({ store: new Map([["a", stale]]) });
  await emailOf(sessions, "a");
  assert.deepEqual(asked, ["a"]);
});

test("what another program has written into the store, or a store that fails, costs a question to the server", async () => {
  const { sessions, asked } = setup({ store: new Map([["a", Buffer.from("{}")]]) });
  assert.equal(await emailOf(sessions, "a"), "ada@example.com");
  assert.deepEqual(asked, ["a"]);
  assert.equal(decodeSession(Buffer.from("no JSON")), undefined);
  const faults: unknown[] = [];
  const away = () => Promise.reject(new Error("away"));
  const failing = createSessions({
    ask: () => Promise.resolve({ user: ADA, expiresAt: 2_000_000 }),
    store: { get: away, put: away, delete: away },
    now: () => 1_000_000,
    onChecked: () => undefined,
    onFault: (error) => faults.push(error),
  });
  failing.onListening(true);
  assert.equal(await emailOf(failing, "a"), "ada@example.com");
  assert.ok(faults.length > 0);
});

test("more changes than are remembered one by one count as a change of everything", async () => {
  const { sessions, asked, pass } = setup();
  await emailOf(sessions, "a");
  pass(1);
  sessions.changed(Array.from({ length: 10_001 }, (_, index) => `other ${index}`));
  await emailOf(sessions, "a");
  assert.deepEqual(asked, ["a", "a"]);
});
