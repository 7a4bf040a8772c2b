import assert from "node:assert/strict";
import { test } from "node:test";
import type { Moment } from "../../src/ports/clock.ts";
import { createLease } from "../../src/worker/lease.ts";

const LEASE_MS = 1_000;

/** A lease on clocks that the test moves; `lost` counts how often something began to wait. */
function setup() {
  const now: Moment = { steady: 5_000, wall: 1_000_000 };
  let lost = 0;
  const lease = createLease(
    () => now,
    () => {
      lost += 1;
    },
  );
  const at = (moment: Partial<Moment>) => Object.assign(now, moment);
  const signal = new AbortController().signal;
  return { lease, at, now, lost: () => lost, isHeld: () => lease.held(signal) === undefined };
}

test("nothing is held before the first heartbeat, and what waits for it goes on with it", async () => {
  const { lease, now, lost } = setup();
  const waiting = [0, 1].map(async () => await lease.held(new AbortController().signal));
  assert.equal(lost(), 1);
  lease.renewed({ ...now }, LEASE_MS);
  await Promise.all(waiting);
  assert.equal(lease.held(new AbortController().signal), undefined);
});

for (const clock of ["steady", "wall"] as const) {
  test(`a lease ends with the last heartbeat's age, by the ${clock} clock: to the millisecond`, () => {
    const { lease, at, now, isHeld } = setup();
    const sentAt = { ...now };
    lease.renewed(sentAt, LEASE_MS);
    for (const [ms, held] of [
      [LEASE_MS - 1, true],
      [LEASE_MS, false],
      [LEASE_MS + 1, false],
    ] as const) {
      at({ [clock]: sentAt[clock] + ms });
      assert.equal(isHeld(), held, `after ${ms} ms`);
    }
  });
}

test("an answer to a heartbeat that was sent too long ago does not extend the lease", async () => {
  const { lease, at, now } = setup();
  const old = { ...now };
  at({ steady: now.steady + LEASE_MS, wall: now.wall + LEASE_MS });
  let isOn = false;
  const waiting = lease.held(new AbortController().signal)?.then(() => {
    isOn = true;
  });
  lease.renewed(old, LEASE_MS);
  await new Promise(setImmediate);
  assert.equal(isOn, false);
  lease.renewed({ ...now }, LEASE_MS);
  await waiting;
});

test("who is stopped waits no longer", async () => {
  const { lease } = setup();
  const stop = new AbortController();
  const waiting = lease.held(stop.signal);
  stop.abort();
  await waiting;
  assert.equal(lease.held(stop.signal), undefined, "nor begins to");
});
