import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../../../src/adapters/system-clock.ts";
import { createLocalKeychain } from "../../../src/local/keychain.ts";
import type { KeychainKey, KeychainStore } from "../../../src/ports/keychain.ts";
import { readAtOnce } from "../../support/service/keychain-storm.ts";
import { type Answer, secretBench } from "../../support/service/secret-source.ts";

// Renewal storm: many workers meet one expired token at the same moment. (Over a real server: test/roles/keychain.test.ts.)

const KEY: KeychainKey = { catalogId: "7", name: "api", scope: "global", executionId: "", rootExecutionId: "" };

async function storm(
  t: Parameters<typeof secretBench>[0],
  handle: () => Answer,
  prepare: (keychain: KeychainStore, origin: string) => Promise<unknown> = () => Promise.resolve(),
) {
  const { server, source } = await secretBench(t, handle);
  const store = createLocalKeychain(systemClock);
  await prepare(store, server.origin);
  const definition = { endpoint: `${server.origin}/token`, auto_renew: true };
  const ends = await readAtOnce({ workers: 200, catalogId: "7", store, secretSource: source, definition });
  return { ends, server };
}

test("200 workers that meet one expired token make one renewal request, and all have its token", async (t) => {
  const fresh: Answer = [200, { access_token: "fresh", expires_in: 60 }];
  const { ends, server } = await storm(
    t,
    () => fresh,
    async (keychain, origin) => {
      const renewConfig = { endpoint: `${origin}/renew` };
      const old = { data: { access_token: "old" }, credentialType: "oauth2", cacheType: "token" } as const;
      await keychain.set(KEY, { ...old, autoRenew: true, renewConfig, ttlSeconds: 0 });
    },
  );
  const got = new Set(ends.map((end) => (end.status === "fulfilled" ? end.value : end.reason)));
  assert.deepEqual(got, new Set(["fresh"]));
  assert.deepEqual(
    server.requests.map(({ url }) => url),
    ["/renew"],
  );
});

test("200 workers that meet an absent entry make one request", async (t) => {
  const { ends, server } = await storm(t, () => [200, { access_token: "first" }]);
  assert.ok(ends.every((end) => end.status === "fulfilled" && end.value === "first"));
  assert.equal(server.requests.length, 1);
});

test("200 workers hear of one failed request, and make no other", async (t) => {
  const { ends, server } = await storm(t, () => [500, { error: "down" }]);
  for (const end of ends) {
    assert.ok(end.status === "rejected");
    assert.match(String(end.reason), /KEYCHAIN: Entry 'api' not found: POST .* answered 500: down/);
  }
  assert.equal(server.requests.length, 1);
});
