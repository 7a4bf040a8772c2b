import assert from "node:assert/strict";
import { test } from "node:test";
import { batchLookup } from "../../../src/platform/concurrency/coalesce.ts";

/** A question that is answered when the test says so. */
function slow() {
  const asked: string[][] = [];
  const answers: (() => void)[] = [];
  const fails: ((error: Error) => void)[] = [];
  const ask = (keys: readonly string[]) =>
    new Promise<Map<string, string>>((resolve, reject) => {
      asked.push([...keys]);
      answers.push(() => resolve(new Map(keys.filter((key) => key !== "none").map((key) => [key, key.toUpperCase()]))));
      fails.push(reject);
    });
  return { ask, asked, answers, fails };
}

test("what arrives while a question is on its way goes together with the next one, each key once", async () => {
  const { ask, asked, answers } = slow();
  const find = batchLookup(ask);
  const first = find("a");
  const later = [find("b"), find("c"), find("b"), find("none")];
  assert.deepEqual(asked, [["a"]]);
  answers[0]?.();
  assert.equal(await first, "A");
  assert.deepEqual(asked[1], ["b", "c", "none"]);
  answers[1]?.();
  assert.deepEqual(await Promise.all(later), ["B", "C", "B", undefined]);
});

test("a question that fails fails for those who asked it, and the next one is asked", async () => {
  const { ask, answers, fails } = slow();
  const find = batchLookup(ask);
  const first = find("a");
  const second = find("b");
  fails[0]?.(new Error("away"));
  await assert.rejects(first, /away/);
  answers[1]?.();
  assert.equal(await second, "B");
});

test("no question has more keys than it may", async () => {
  const { ask, asked, answers } = slow();
  const find = batchLookup(ask, 2);
  const all = ["a", "b", "c", "d"].map((key) => find(key));
  answers[0]?.();
  await all[0];
  answers[1]?.();
  await all[1];
  answers[2]?.();
  await Promise.all(all);
  assert.deepEqual(asked, [["a"], ["b", "c"], ["d"]]);
});
