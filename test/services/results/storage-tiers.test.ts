import assert from "node:assert/strict";
import { test } from "node:test";
import type { PayloadStore } from "../../../src/ports/payload-store.ts";
import type { ResultStoreName } from "../../../src/schema/api/results.ts";
import { checkStore, tiersFor } from "../../../src/services/results/storage-tiers.ts";

const LIMITS = { kvBytesMax: 100, s3BytesMax: 1_000 };

/** Stores of these names; nothing of them is used but their limits. */
function storesOf(...names: ResultStoreName[]) {
  const bounded = (kind: ResultStoreName) => ({ kind, ...(kind === "sqldb" && { bytesMax: 500 }) }) as PayloadStore;
  return new Map(names.map((name) => [name, bounded(name)]));
}

const ALL = storesOf("s3", "cloud_bucket", "disk", "sqldb");

test("auto goes by size, through the tiers that are there, and ends on the disk", () => {
  for (const [bytes, stores, expected] of [
    [100, ALL, ["kv", "s3", "cloud_bucket", "disk"]],
    [101, ALL, ["s3", "cloud_bucket", "disk"]],
    [1_000, ALL, ["s3", "cloud_bucket", "disk"]],
    [1_001, ALL, ["cloud_bucket", "disk"]],
    [500, storesOf("cloud_bucket", "disk"), ["cloud_bucket", "disk"]],
    [500, storesOf("s3", "disk"), ["s3", "disk"]],
    [1_001, storesOf("s3", "disk"), ["disk"]],
    [50, storesOf("disk"), ["kv", "disk"]],
    [500, storesOf("disk"), ["disk"]],
  ] as const) {
    assert.deepEqual(tiersFor("auto", bytes, stores, LIMITS), expected, `${bytes} of ${[...stores.keys()]}`);
  }
});

test("a named store is used or refused; the removed object tier is the disk", () => {
  for (const name of ["kv", "s3", "cloud_bucket", "disk", "sqldb"]) {
    assert.deepEqual(tiersFor(name, 50, ALL, LIMITS), [name]);
  }
  assert.deepEqual(tiersFor("object", 5_000, ALL, LIMITS), ["disk"]);
  // Thresholds are of auto: who names s3 means it.
  assert.deepEqual(tiersFor("s3", 5_000, ALL, LIMITS), ["s3"]);
});

test("a store that is not there is refused, with the settings that make it be there", () => {
  const stores = storesOf("disk");
  assert.throws(() => checkStore("s3", stores), {
    code: "NOT_STORED",
    message: /store 's3' is not configured here; set FLOW_S3_ENDPOINT, FLOW_S3_BUCKET, FLOW_S3_ACCESS_KEY_ID/,
  });
  assert.throws(() => checkStore("cloud_bucket", stores), { code: "NOT_STORED", message: /set FLOW_CLOUD_BUCKET and/ });
  assert.throws(() => checkStore("drawer", stores), {
    code: "INVALID_INPUT",
    message: /no store 'drawer'; use auto, kv, s3, cloud_bucket, sqldb, disk/,
  });
  for (const name of ["auto", "kv", "disk", "object"]) checkStore(name, stores);
});

test("what a named store does not hold is refused before it is written", () => {
  assert.throws(() => tiersFor("kv", 101, ALL, LIMITS), {
    code: "NOT_STORED",
    message: /101 bytes long.*'kv' holds 100/,
  });
  assert.throws(() => tiersFor("sqldb", 501, ALL, LIMITS), { code: "NOT_STORED", message: /'sqldb' holds 500/ });
});
