import assert from "node:assert/strict";
import { mock, test } from "node:test";
import {
  findLiveWorker,
  noteGone,
  recordHeartbeat,
  registerRuntime,
} from "../../../src/repositories/workers/workers.ts";
import { createBrokenOff, GONE_MS, type WorkerProcess } from "../../../src/services/workers/broken-off.ts";
import { openServiceDatabase } from "../../repositories/service-database.ts";

const A = { name: "w", instance: "a" };
const B = { name: "w", instance: "b" };

test("a process whose heartbeat broke off is noted after 5 s without another one, and not before", (t) => {
  mock.timers.enable({ apis: ["setTimeout"] });
  t.after(() => mock.timers.reset());
  const noted: WorkerProcess[] = [];
  const brokenOff = createBrokenOff(
    async (worker) => noted.push(worker),
    (error) => assert.ifError(error),
  );
  brokenOff.came(A);
  brokenOff.left(A);
  mock.timers.tick(GONE_MS - 1);
  assert.deepEqual(noted, []);
  // Another process of that name says nothing about this one.
  brokenOff.came(B);
  mock.timers.tick(1);
  assert.deepEqual(noted, [A]);
  brokenOff.left(A);
  brokenOff.came(A);
  mock.timers.tick(GONE_MS * 2);
  assert.deepEqual(noted, [A], "one that came again");
});

test("a note that cannot be written is a fault, and throws nowhere", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const why = new Error("no database");
  const fault = await new Promise((resolve) => {
    createBrokenOff(() => Promise.reject(why), resolve).left(A);
    mock.timers.tick(GONE_MS);
  });
  mock.timers.reset();
  assert.equal(fault, why);
});

test("the name of a process that is gone is free; one that came to another server meanwhile, or is another, keeps it", async () => {
  const database = await openServiceDatabase();
  const stale = 60_000;
  const entry = { runtimeId: "1", kind: "worker", capacity: 1, labels: {}, capabilities: [] } as const;
  await registerRuntime(database, { ...entry, ...A, about: { instance: A.instance } });
  const live = async () => (await findLiveWorker(database, A.name, stale))?.instance;
  const silent = (ms: number) =>
    database.sql`update flow.runtime set heartbeat_at = now() - ${ms}::float8 * interval '1 millisecond'`;
  await noteGone(database, { ...A, silentMs: GONE_MS });
  assert.equal(await live(), "a", "its heartbeat is younger than 5 s");
  await silent(GONE_MS);
  await noteGone(database, { ...B, silentMs: GONE_MS });
  assert.equal(await live(), "a", "another process was noted");
  await noteGone(database, { ...A, silentMs: GONE_MS });
  assert.equal(await live(), undefined);
  await recordHeartbeat(database, { ...A, running: [], draining: false, leaseMs: 1_000, graceMs: 0 });
  assert.equal(await live(), "a", "it lives after all");
});
