import assert from "node:assert/strict";
import { test } from "node:test";
import { createWorkers } from "../../../src/services/workers/workers.ts";
import { openServiceDatabase } from "../../repositories/service-database.ts";

// A command that a worker lists although it has ended.

test("a worker that lists an ended command for 30 s is told to stop it; one whose report is just being answered is not", async () => {
  const time = { now: 0 };
  const workers = createWorkers({
    database: await openServiceDatabase(),
    orchestrator: { offer: async () => undefined, claimOne: async () => undefined, dismiss: () => undefined },
    onReturned: () => undefined,
    cancelNotices: { listen: () => assert.fail("no heartbeat of this test waits") },
    onFault: (error) => assert.ifError(error),
    policy: { staleMs: 60_000, hardTimeoutMs: 60_000 },
    leaseMs: 120_000,
    now: () => time.now,
  });
  const about = { capacity: 1, labels: {}, capabilities: [], about: {} };
  for (const name of ["w", "v"]) await workers.register({ name, ...about });
  const beat = async (at: number, name: string, ...ids: string[]) => {
    time.now = at;
    const running = ids.map((commandId) => ({ commandId, attempt: 1 }));
    return (await workers.heartbeat({ name, running, draining: false })).lost;
  };
  assert.deepEqual(await beat(0, "w", "4711"), []);
  assert.deepEqual(await beat(15_000, "w", "4711", "4712"), []);
  assert.deepEqual(await beat(29_999, "w", "4711", "4712"), []);
  assert.deepEqual(await beat(30_000, "v", "4711"), [], "another worker");
  assert.deepEqual(await beat(30_000, "w", "4711", "4712"), ["4711"]);
  assert.deepEqual(await beat(40_000, "w", "4711"), ["4711"], "until it stops listing it");
  assert.deepEqual(await beat(41_000, "w"), []);
  assert.deepEqual(await beat(42_000, "w", "4711", "4712"), [], "counted anew");
});
