import assert from "node:assert/strict";
import { test } from "node:test";
import { createIds } from "../../../src/platform/system/ids.ts";

const NOW = Date.UTC(2026, 0, 1);

test("ids are decimal texts of positive integers that JavaScript counts exactly, until 2093", () => {
  for (const time of [Date.UTC(2024, 0, 1), NOW, Date.UTC(2093, 0, 1)]) {
    const id = createIds(() => time)();
    const next = createIds(() => time + 1)();
    assert.match(next, /^[1-9]\d*$/);
    assert.ok(Number.isSafeInteger(Number(next)), next);
    assert.equal(String(Number(id)), id);
  }
});

test("a burst within one millisecond gives ids that are unique and grow", () => {
  const newId = createIds(() => NOW);
  const ids = Array.from({ length: 20_000 }, () => Number(newId()));
  assert.equal(new Set(ids).size, 20_000);
  assert.ok(ids.every((id, index) => index === 0 || id > (ids[index - 1] ?? 0)));
});

test("a clock that steps back does not make ids shrink or repeat", () => {
  const times = [NOW, NOW + 5, NOW - 3_600_000, NOW - 3_600_000, NOW, NOW + 5, NOW + 6, 0];
  const newId = createIds(() => times.shift() ?? 0);
  const ids = Array.from({ length: 8 }, () => Number(newId()));
  assert.deepEqual(
    ids,
    [...ids].sort((left, right) => left - right),
  );
  assert.equal(new Set(ids).size, 8);
});

test("ids catch up with the clock after a burst", () => {
  let now = NOW;
  const newId = createIds(() => now);
  for (let count = 0; count < 10_000; count += 1) newId();
  now += 60_000;
  assert.equal(newId(), createIds(() => now)());
});

test("a clock before the epoch of ids gives positive ids nevertheless", () => {
  const newId = createIds(() => 0);
  assert.deepEqual([newId(), newId()], ["1", "2"]);
});
