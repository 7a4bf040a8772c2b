import assert from "node:assert/strict";
import { test } from "node:test";
import type { NatsConnection } from "nats";
import { createEgressGuard } from "../../../src/platform/http/egress.ts";
import { createNatsPool, type NatsPoolOptions } from "../../../src/tools/nats/pool.ts";
import type { NatsTarget } from "../../../src/tools/nats/target.ts";
import { startTestNats } from "../../support/servers/nats-server.ts";

const nats = await startTestNats();

function pool(options: Partial<NatsPoolOptions> = {}) {
  const egress = createEgressGuard({ allowPrivate: "all" });
  return createNatsPool({ egress, idleMs: 60_000, connectTimeoutMs: 2_000, connectionsMax: 2, ...options });
}

/** Another credential for each token; the server asks for none. */
function target(token: string, port = nats.port): NatsTarget {
  return { servers: [{ host: "127.0.0.1", port }], options: { token }, creds: undefined };
}

test("tasks of one credential share a connection, also while it is being made", async () => {
  const connections = pool();
  const seen = await Promise.all([1, 2, 3].map(() => connections.use(target("a"), (made) => Promise.resolve(made))));
  assert.equal(new Set(seen).size, 1);
  assert.equal(connections.size(), 1);
  await connections.close();
});

test("an unused connection is closed after a while, and not before", async () => {
  const connections = pool({ idleMs: 1 });
  let used: NatsConnection | undefined;
  await connections.use(target("a"), async (made) => {
    used = made;
    await made.flush();
    assert.equal(made.isClosed(), false);
  });
  await used?.closed();
  assert.equal(connections.size(), 0);
});

test("an idle connection makes room for another credential, one in use does not", async () => {
  const connections = pool({ connectionsMax: 1 });
  await connections.use(target("a"), () => Promise.resolve());
  await connections.use(target("b"), async () => {
    await assert.rejects(
      connections.use(target("c"), () => Promise.resolve()),
      { code: "TOO_MANY_CONNECTIONS" },
    );
  });
  assert.equal(connections.size(), 1);
  await connections.close();
});

test("a connection that cannot be made fails all its waiters, and is forgotten", async () => {
  const connections = pool();
  const attempts = [1, 2].map(() => connections.use(target("a", 1), () => Promise.resolve()));
  for (const attempt of attempts) await assert.rejects(attempt, { code: "CONNECTION_REFUSED" });
  assert.equal(connections.size(), 0);
});

test("a closed pool closes what is in use and opens nothing more", async () => {
  const connections = pool();
  await connections.use(target("a"), async (made) => {
    await connections.close();
    assert.equal(made.isClosed(), true);
  });
  await assert.rejects(
    connections.use(target("a"), () => Promise.resolve()),
    { code: "CONNECTION_CLOSED" },
  );
});
