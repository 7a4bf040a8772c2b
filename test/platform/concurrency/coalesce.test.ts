import assert from "node:assert/strict";
import { test } from "node:test";
import { coalesce, GROUP_MAX } from "../../../src/platform/concurrency/coalesce.ts";

/** Reads that are held until they are let go, one after the other. */
function heldReads() {
  const begun: { key: string; askers: readonly number[]; end(error?: Error): void }[] = [];
  const ask = coalesce(
    (key: string, askers: readonly [number, ...number[]]) =>
      new Promise<string>((resolve, reject) => {
        const end = (error?: Error) => (error === undefined ? resolve(`${key} ${begun.length}`) : reject(error));
        begun.push({ key, askers, end });
      }),
  );
  return { begun, ask };
}

test("a call alone is made at once; those that come meanwhile are the next one together, and read afterwards", async () => {
  const { begun, ask } = heldReads();
  const first = ask("k", 1);
  const others = [ask("k", 2), ask("k", 3)];
  const elsewhere = ask("other", 4);
  assert.deepEqual(
    begun.map(({ key, askers }) => [key, askers]),
    [
      ["k", [1]],
      ["other", [4]],
    ],
  );
  begun[0]?.end();
  assert.equal(await first, "k 2");
  begun[1]?.end();
  await elsewhere;
  assert.deepEqual(begun[2]?.askers, [2, 3]);
  begun[2].end();
  assert.deepEqual(await Promise.all(others), ["k 3", "k 3"]);
  const later = ask("k", 5);
  assert.deepEqual(begun[3]?.askers, [5]);
  begun[3].end();
  await later;
});

test("a call that fails fails for its group alone", async () => {
  const { begun, ask } = heldReads();
  const first = assert.rejects(ask("k", 1), /away/);
  const second = ask("k", 2);
  begun[0]?.end(new Error("the database is away"));
  await first;
  assert.deepEqual(begun[1]?.askers, [2]);
  begun[1].end();
  assert.equal(await second, "k 2");
});

test("a group is bounded", async () => {
  const { begun, ask } = heldReads();
  const calls = Array.from({ length: GROUP_MAX + 2 }, (_, number) => ask("k", number));
  for (let at = 0; at < 3; at += 1) {
    begun[at]?.end();
    await new Promise(setImmediate);
  }
  await Promise.all(calls);
  assert.deepEqual(
    begun.map(({ askers }) => askers.length),
    [1, GROUP_MAX, 1],
  );
});
