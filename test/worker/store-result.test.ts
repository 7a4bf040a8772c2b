import assert from "node:assert/strict";
import { test } from "node:test";
import type { ResultConfig } from "../../src/schema/playbook.ts";
import { INLINE_BYTES_LIMIT, storeResult } from "../../src/worker/store-result.ts";

const PLACE = { executionId: "1", step: "s", task: "t", taskRunId: "r" };

/** Whether a text, of so many bytes with its quotes, is kept inline. */
async function isInline(bytes: number, config: Partial<ResultConfig>): Promise<boolean> {
  const store = {
    kind: "disk",
    load: () => Promise.reject(new Error("Nothing is read")),
    save: async () => ({ sha256: "", bytes: 0 }),
  };
  const data = "x".repeat(bytes - 2);
  const { result } = await storeResult(store, PLACE, data, undefined, { select: [], sensitive: false, ...config });
  assert.equal(result.ref === undefined, result.value === data);
  return result.ref === undefined;
}

test("a result is inline up to the limit of its task, else 65,536 bytes", async () => {
  assert.deepEqual([await isInline(65_536, {}), await isInline(65_537, {})], [true, false]);
  assert.deepEqual(
    [await isInline(10, { inlineMaxBytes: 10 }), await isInline(11, { inlineMaxBytes: 10 })],
    [true, false],
  );
});

test("no limit of a task is beyond what an event has room for", async () => {
  const inlineMaxBytes = 10_000_000;
  assert.equal(await isInline(INLINE_BYTES_LIMIT, { inlineMaxBytes }), true);
  assert.equal(await isInline(INLINE_BYTES_LIMIT + 1, { inlineMaxBytes }), false);
});
