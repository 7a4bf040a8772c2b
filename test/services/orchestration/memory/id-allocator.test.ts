import assert from "node:assert/strict";
import { test } from "node:test";
import { FlowError } from "../../../../src/schema/words/errors.ts";
import { createIdAllocator } from "../../../../src/services/orchestration/memory/id-allocator.ts";

/** A counter that several servers share, and how often it was asked. */
function counter() {
  const shared = { last: 1_000, asked: 0, now: 0 };
  const reserve = async (count: number) => {
    shared.asked += 1;
    shared.last += count;
    return shared.last;
  };
  return { shared, reserve, now: () => shared.now };
}

test("ids grow by one, and a block is fetched once, however many callers wait for it", async () => {
  const { shared, reserve, now } = counter();
  const ids = createIdAllocator(reserve, now);
  assert.equal(ids.isReady(), false);
  await Promise.all([ids.ready(), ids.ready(), ids.ready()]);
  assert.equal(shared.asked, 1);
  assert.deepEqual([ids.next(), ids.next(), ids.next()], [1_001, 1_002, 1_003]);
});

test("without a block there is no id", () => {
  const { reserve, now } = counter();
  const ids = createIdAllocator(reserve, now);
  assert.throws(
    () => ids.next(),
    (error: unknown) => error instanceof FlowError && error.code === "UNAVAILABLE",
  );
});

test("ids of two servers differ, and each can continue above the other's ids", async () => {
  const { reserve, now } = counter();
  const [left, right] = [createIdAllocator(reserve, now), createIdAllocator(reserve, now)];
  await left.ready();
  await right.ready();
  const given = right.next();
  assert.ok(left.next() < given);
  assert.equal(left.isReady(given), false);
  await left.ready(given);
  assert.ok(left.next() > given);
});

test("an old block is thrown away, so that ids show when they were assigned", async () => {
  const { shared, reserve, now } = counter();
  const ids = createIdAllocator(reserve, now);
  await ids.ready();
  const early = ids.next();
  shared.now = 5_000;
  assert.equal(ids.isReady(), false);
  await ids.ready();
  assert.ok(ids.next() > early + 1);
});

test("a failed reservation is tried again by the next caller", async () => {
  const { reserve, now } = counter();
  let fails = true;
  const ids = createIdAllocator(async (count) => {
    if (fails) throw new Error("away");
    return await reserve(count);
  }, now);
  await assert.rejects(ids.ready(), /away/);
  fails = false;
  await ids.ready();
  assert.equal(ids.next(), 1_001);
});

test("a counter that was set back below assigned ids is not trusted", async () => {
  const { reserve, now } = counter();
  const ids = createIdAllocator(reserve, now);
  await assert.rejects(ids.ready(1e12), /behind those that were given/);
});
