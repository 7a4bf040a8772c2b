import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { connectServer } from "../../../src/adapters/server/connection.ts";
import { createServerKeychain } from "../../../src/adapters/server/keychain.ts";
import { systemClock } from "../../../src/adapters/system-clock.ts";
import { createSecret } from "../../../src/platform/crypto/secret.ts";
import type { KeychainKey, KeychainStore, KeychainWrite } from "../../../src/ports/keychain.ts";
import { listen } from "../../../src/roles/http/listen.ts";
import { startHttpServer } from "../../support/servers/http-server.ts";
import { openApi, TOKENS } from "../../support/service/api.ts";
import { ONE_STEP, workWith } from "../../support/service/api-work.ts";

const api = await openApi();
const work = workWith(api);
const server = await listen(
  { fetch: (request) => api.guarded.fetch(request), malformed: () => new Response(null, { status: 400 }) },
  { host: "127.0.0.1", port: 0 },
);

/** A worker's store, at a server. */
function storeAt(url: string, signal = new AbortController().signal): KeychainStore {
  const token = createSecret(TOKENS.operator);
  const connection = connectServer({ url, token, connections: 4 });
  const waits = connectServer({ url, token, connections: 250 });
  after(() => Promise.all([connection.close(), waits.close()]));
  return createServerKeychain({ connection, waits, clock: systemClock, random: Math.random }, signal);
}

const store = storeAt(server.url);
after(() => server.close());

let executionId: string;
let catalogId: string;
before(async () => {
  await work.register("kc", ONE_STEP);
  catalogId = String((await work.get("/api/catalog/resource/kc")).body["catalog_id"]);
  executionId = await work.execute("kc");
});

const key = (name: string, scope: KeychainKey["scope"] = "global"): KeychainKey => ({
  ...{ catalogId, name, scope, executionId, rootExecutionId: executionId },
});
const write = (more: Partial<KeychainWrite> = {}): KeychainWrite => ({
  ...{ data: { access_token: "t" }, credentialType: "oauth2", cacheType: "token", autoRenew: false },
  ...more,
});

test("what a worker sets it reads, in every scope and under any name", async () => {
  for (const scope of ["global", "local", "shared"] as const) {
    for (const name of ["api", "a/b: c"]) {
      assert.deepEqual(await store.get(key(name, scope)), { status: "not_found" });
      const { expiresAt } = await store.set(key(name, scope), write({ data: { scope }, ttlSeconds: 60 }));
      assert.ok(Math.abs(expiresAt - Date.now() - 60_000) < 10_000);
      assert.deepEqual(await store.get(key(name, scope)), { status: "success", data: { scope }, expiresAt });
    }
  }
});

test("an entry that has expired gives what renews it", async () => {
  const renewConfig = { endpoint: "https://idp", data: { client_secret: "s" } };
  for (const [name, more] of [
    ["plain", {}],
    ["renewed", { autoRenew: true, renewConfig }],
  ] as const) {
    const { expiresAt } = await store.set(key(name), write(more));
    await api.database.sql`update flow.keychain set expires_at = now() - interval '5 s' where keychain_name = ${name}`;
    const found = await store.get(key(name));
    assert.ok(found.status === "expired" && found.expiredAt < expiresAt);
    assert.deepEqual([found.autoRenew, found.renewConfig], name === "plain" ? [false, undefined] : [true, renewConfig]);
    const { credentialType, cacheType } = write(more);
    assert.deepEqual(found.form, name === "plain" ? undefined : { credentialType, cacheType });
  }
});

test("refusals come with the server's code and every failure", async () => {
  const schema = { required: ["user"], types: { access_token: "integer" } };
  await assert.rejects(store.set(key("bad"), write({ schema })), {
    code: "INVALID_SECRET",
    detail: {
      message: "Credential validation failed",
      errors: ["Missing required field: user", "Field 'access_token' must be integer, got string"],
    },
  });
  await assert.rejects(store.set({ ...key("bad"), catalogId: "77" }, write()), { code: "NOT_FOUND" });
  await assert.rejects(store.set({ ...key("bad", "local"), executionId: "4711" }, write()), { code: "NOT_FOUND" });
  assert.deepEqual(await store.get(key("bad")), { status: "not_found" });
});

test("200 workers that meet one expired token: one renews it over HTTP, and all others read it", async () => {
  await store.set(key("storm"), write({ autoRenew: true }));
  await api.database.sql`update flow.keychain set expires_at = now() - interval '5 s' where keychain_name = 'storm'`;
  let renewals = 0;
  const tokens = await Promise.all(
    Array.from({ length: 200 }, async (_, number) => {
      for (;;) {
        const found = await store.get(key("storm"));
        if (found.status === "success") return found.data["access_token"];
        const answer = await store.lease(key("storm"), { holder: `w${number}`, leaseMs: 60_000, waitMs: 20_000 });
        if (answer.status !== "granted") continue;
        renewals += 1;
        await store.set(key("storm"), write({ data: { access_token: `fresh-${renewals}` }, autoRenew: true }));
      }
    }),
  );
  assert.equal(renewals, 1);
  assert.deepEqual([...new Set(tokens)], ["fresh-1"]);
});

test("a holder that fails reports its error, shortened, to those who wait", async () => {
  const ask = (holder: string) => store.lease(key("failing"), { holder, leaseMs: 60_000, waitMs: 20_000 });
  assert.deepEqual(await ask("a"), { status: "granted" });
  const waiting = ask("b");
  await store.fail(key("failing"), "a", `\u0000${"x".repeat(10_000)}😀`);
  const told = await waiting;
  assert.ok(told.status === "failed" && told.message.startsWith("\ufffdxxx") && told.message.length === 4_096);
  await store.fail(key("other"), "nobody", "no lease of this one");
});

test("calls are made again while the server is busy, and end when the worker does", async () => {
  const none = { status: "not_found", keychain_name: "x", catalog_id: 7, cache_key: "x:7:global" };
  let calls = 0;
  const busy = await startHttpServer((_, response) => {
    calls += 1;
    response.statusCode = calls < 3 ? 503 : 200;
    response.end(JSON.stringify(calls < 3 ? { error: "busy", code: "UNAVAILABLE" } : none));
  });
  after(() => busy.close());
  assert.deepEqual(await storeAt(busy.origin).get(key("x")), { status: "not_found" });
  assert.equal(calls, 3);
  calls = -1_000;
  const ending = new AbortController();
  const waiting = storeAt(busy.origin, ending.signal).get(key("x"));
  ending.abort(new Error("the worker stops"));
  await assert.rejects(waiting, /the worker stops/);
});

test("an answer in an unknown form is an error", async () => {
  const odd = await startHttpServer((_, response) => void response.end('{"status": "granted?"}'));
  after(() => odd.close());
  const other = storeAt(odd.origin);
  await assert.rejects(other.get(key("x")), { code: "SERVER_UNREACHABLE" });
  await assert.rejects(other.set(key("x"), write()), { code: "SERVER_UNREACHABLE" });
  await assert.rejects(other.lease(key("x"), { holder: "a", leaseMs: 1, waitMs: 0 }), { code: "SERVER_UNREACHABLE" });
});
