import assert from "node:assert/strict";
import { test } from "node:test";
import type { ResultKeeping, SavedResult } from "../../../src/ports/result-store.ts";
import type { Json } from "../../../src/schema/words/json.ts";
import type { ResultConfig } from "../../../src/schema/words/playbook.ts";
import { outlineOf } from "../../../src/tools/python/large-value.ts";
import { INLINE_BYTES_LIMIT, storeLarge, storeResult } from "../../../src/worker/task/store-result.ts";

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

/** The reference of a result that is stored. */
async function stored(data: Json, config: Partial<ResultConfig>, saved: Partial<SavedResult> = {}) {
  const keepings: unknown[] = [];
  const store = {
    kind: "disk",
    load: () => Promise.reject(new Error("Nothing is read")),
    save: async (_ref: string, json: string, keeping?: ResultKeeping) => {
      keepings.push(keeping);
      return { sha256: "ab", bytes: Buffer.byteLength(json), ...saved };
    },
  };
  const all = { select: [], sensitive: false, inlineMaxBytes: 0, ...config };
  const { result } = await storeResult(store, PLACE, data, undefined, all);
  assert.ok(result.ref !== undefined);
  return { ref: result.ref, keepings };
}

test("what spec.result.store says is asked of the store, and stands in the reference", async () => {
  const config = { store: { kind: "s3", scope: "workflow", ttl: "1h", compression: "gzip" } };
  const saved = {
    store: "s3",
    expiresAt: "2026-01-01T00:00:00.000Z",
    compression: "gzip",
    meta: { bucket: "b", key: "k" },
  };
  const { ref, keepings } = await stored({ n: 1 }, config, saved);
  assert.deepEqual(keepings, [{ store: "s3", scope: "workflow", ttl: "1h", compression: "gzip" }]);
  assert.deepEqual(ref, {
    kind: "result_ref",
    ref: "noetl://execution/1/step/s/task/t/run/r",
    store: "s3",
    scope: "workflow",
    expires_at: "2026-01-01T00:00:00.000Z",
    meta: {
      content_type: "application/json",
      bytes: 7,
      sha256: "ab",
      compression: "gzip",
      bucket: "b",
      key: "k",
      fields: ["n"],
    },
    extracted: { n: 1 },
    preview: { truncated: false, bytes: 7, sample: '{"n":1}' },
  });
});

test("nothing is asked of the store where nothing is said, nor for auto", async () => {
  assert.deepEqual((await stored(1, {})).keepings, [undefined]);
  assert.deepEqual((await stored(1, { store: { kind: "auto" } })).keepings, [{}]);
});

test("a preview is so many bytes long at most, and cuts no character in two", async () => {
  for (const [text, max, sample] of [
    ["aaaa", 3, '"aa'],
    ["äää", 4, '"ä'],
    ["\u{1f600}\u{1f600}", 8, '"\u{1f600}'],
    ["aaaa", 0, ""],
  ] as const) {
    const { ref } = await stored(text, { previewMaxBytes: max });
    assert.deepEqual([ref.preview.sample, ref.preview.truncated], [sample, true]);
    assert.ok(Buffer.byteLength(ref.preview.sample) <= max);
  }
});

test("what has no room among the scalars takes none from those after it", async () => {
  const { ref } = await stored(
    { text: "t".repeat(30_000), items: [1], count: 3, note: "n".repeat(257), last: "c2" },
    {},
  );
  assert.deepEqual(ref.extracted, { count: 3, last: "c2" });
  // 63 texts of 256 characters with names of 3 leave 67 of 16,384: one is a character too long for that, the next one fits.
  const texts = Object.fromEntries(Array.from({ length: 63 }, (_, index) => [`t${10 + index}`, "x".repeat(256)]));
  const left = 16_384 - 63 * 259;
  const fits = "f".repeat(left - 4);
  const { ref: full } = await stored({ ...texts, long: `${fits}x`, fits, more: 1 }, {});
  assert.deepEqual(full.extracted, { ...texts, fits });
});

test("a reference has the names of the payload's fields in their order, up to 4,096 characters", async () => {
  const named = (...lengths: number[]) =>
    Object.fromEntries(lengths.map((length, index) => [String.fromCharCode(97 + index).repeat(length), [index]]));
  const count = async (...lengths: number[]) => (await stored(named(...lengths), {})).ref.meta.fields?.length;
  assert.deepEqual((await stored({ b: [1], a: 2 }, {})).ref.meta.fields, ["b", "a"]);
  assert.deepEqual([await count(4_000, 95), await count(4_000, 96), await count(4_000, 97)], [2, 2, 1]);
  assert.equal((await stored([1, 2], {})).ref.meta.fields, undefined);
  assert.equal((await stored({ password: "x" }, { sensitive: true })).ref.meta.fields, undefined);
});

test("scalars stay readable as far as an event has room for them", async () => {
  const many = Object.fromEntries(Array.from({ length: 100_000 }, (_, index) => [`k${index}`, index]));
  const { ref } = await stored(many, {});
  const kept = Object.keys(ref.extracted).length;
  assert.ok(kept > 500 && JSON.stringify(ref.extracted).length < 32_768, `${kept}`);
});

test("no limit of a task is beyond what an event has room for", async () => {
  const inlineMaxBytes = 10_000_000;
  assert.equal(await isInline(INLINE_BYTES_LIMIT, { inlineMaxBytes }), true);
  assert.equal(await isInline(INLINE_BYTES_LIMIT + 1, { inlineMaxBytes }), false);
});

/** What is kept of a value whose text came as a large one, and what was stored; undefined: its value is needed. */
async function storedLarge(data: Json, config: Partial<ResultConfig>) {
  const texts: (string | Uint8Array)[] = [];
  const store = {
    kind: "disk",
    load: () => Promise.reject(new Error("Nothing is read")),
    save: async (_ref: string, text: string | Uint8Array) => {
      texts.push(text);
      return { sha256: "ab", bytes: text.length };
    },
  };
  const large = outlineOf(Buffer.from(JSON.stringify(data)));
  assert.ok(large !== undefined);
  const all = { select: [], sensitive: false, ...config };
  const kept = await storeLarge(store, PLACE, { status: "ok", data: null, large }, all);
  const usual = await storeResult(store, PLACE, data, undefined, all);
  const asText = texts.map((text) => (typeof text === "string" ? text : Buffer.from(text).toString()));
  return { kept, usual, texts: asText };
}

test("a large text is stored as it came, with the same reference as its value", async () => {
  const long = "x".repeat(70_000);
  const values: Json[] = [
    long,
    [long, 1],
    { a: 1, b: null, c: "y".repeat(256), d: "y".repeat(257), e: long, f: { g: 1 }, "": true },
    { "1": 1, "2": long, ["__proto__"]: 1, many: Array.from({ length: 1_000 }, (_, index) => index) },
    Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`k${index}`.padEnd(200, "k"), long.slice(0, 2_000)])),
  ];
  for (const value of values) {
    for (const previewMaxBytes of [0, 1, 2_048, 100_000, 1_000_000]) {
      const { kept, usual, texts } = await storedLarge(value, { previewMaxBytes });
      assert.deepEqual(kept, usual);
      assert.deepEqual(texts, [JSON.stringify(value), JSON.stringify(value)]);
    }
  }
});

test("the value of a large text is needed up to the inline limit, and where it is sensitive or selected from", async () => {
  const text = (bytes: number) => "x".repeat(bytes - 2);
  const isRead = async (data: Json, config: Partial<ResultConfig>) =>
    (await storedLarge(data, config)).kept === undefined;
  assert.deepEqual(await Promise.all([65_535, 65_536, 65_537].map((bytes) => isRead(text(bytes), {}))), [
    true,
    true,
    false,
  ]);
  assert.equal(await isRead(text(70_000), { inlineMaxBytes: 70_000 }), true);
  assert.equal(await isRead(text(70_001), { inlineMaxBytes: 70_000 }), false);
  assert.equal(await isRead(text(70_000), { sensitive: true }), true);
});
