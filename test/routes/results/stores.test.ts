import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { after, before, test } from "node:test";
import { createBucketPayloads } from "../../../src/adapters/payloads/bucket.ts";
import { parseBucketAccount } from "../../../src/adapters/payloads/bucket-token.ts";
import { createS3Payloads } from "../../../src/adapters/payloads/s3.ts";
import type { PayloadBody, PayloadStore } from "../../../src/ports/payload-store.ts";
import { storedResults } from "../../support/database/stored-results.ts";
import { startTestBucket } from "../../support/servers/bucket-server.ts";
import { startTestS3 } from "../../support/servers/s3-server.ts";
import { openApi } from "../../support/service/api.ts";
import { ONE_STEP } from "../../support/service/api-work.ts";

/* Payloads in every store, over the API: where they go, what is left of them, and what happens while a store is away. */

const s3 = await startTestS3();
const bucket = await startTestBucket();
const inS3 = createS3Payloads(s3.settings);
const account = parseBucketAccount(bucket.account, "key.json");
const inBucket = createBucketPayloads({ endpoint: bucket.origin, bucket: bucket.bucket, account, now: Date.now });

/** What is to happen while a payload is written to `s3`; for one writing. */
let during: (() => Promise<void>) | undefined;
const watched: PayloadStore = {
  ...inS3,
  async write(location, body, about, signal) {
    const hook = during;
    during = undefined;
    const slow: PayloadBody = {
      ...body,
      async *read() {
        await hook?.();
        yield* body.read();
      },
    };
    return inS3.write(location, slow, about, signal);
  },
};
const api = await openApi(
  { FLOW_RESULT_KV_MAX_BYTES: "1000", FLOW_RESULT_MINIO_THRESHOLD_BYTES: "3000" },
  { stores: [watched, inBucket] },
);
after(async () => {
  await inS3.close();
  await inBucket.close();
});
const { work, claimed, refOf, put, get, statusOf, rowsOf } = storedResults(api);
before(() => work.register("one", ONE_STEP));

const text = (bytes: number, letter = "x") => JSON.stringify(letter.repeat(bytes - 2));
const diskFiles = async () =>
  (await readdir(api.resultsFolder, { recursive: true })).filter((name) => /\.(json|part)$/.test(name)).length;
const keysInS3 = async () =>
  (await (await fetch(`${s3.settings.endpoint}/${s3.settings.bucket}`)).text()).split("<Key>").length - 1;
const payloads = async () => {
  const [{ rows = 0 } = {}] = await api.database.sql<
    { rows: number }[]
  >`select count(*)::int as rows from flow.result_part`;
  return { disk: await diskFiles(), s3: await keysInS3(), cloud_bucket: bucket.objects.size, sqldb: rows };
};
const NONE = { disk: 0, s3: 0, cloud_bucket: 0, sqldb: 0 };

test("each payload goes where its size or its author wants it, is read from there, and goes with its execution", async () => {
  const command = await claimed("one");
  const refs: string[] = [];
  for (const [bytes, more, store, hints] of [
    [1_000, {}, "kv", ["bucket", "key"]],
    [1_000, { store: "kv" }, "kv", ["bucket", "key"]],
    [1_001, {}, "s3", ["bucket", "etag", "key"]],
    [3_000, { store: "auto" }, "s3", ["bucket", "etag", "key"]],
    [3_001, {}, "cloud_bucket", ["bucket", "object", "uri"]],
    [50, { store: "s3" }, "s3", ["bucket", "etag", "key"]],
    [50, { store: "cloud_bucket" }, "cloud_bucket", ["bucket", "object", "uri"]],
    [50, { store: "disk" }, "disk", ["file"]],
    [50, { store: "object" }, "disk", ["file"]],
    [50, { store: "sqldb" }, "sqldb", ["payload", "pk", "rows", "schema", "table"]],
    [5_000, { store: "s3", compression: "gzip" }, "s3", ["bucket", "etag", "key"]],
    [5_000, { store: "sqldb", compression: "gzip" }, "sqldb", ["payload", "pk", "rows", "schema", "table"]],
  ] as [number, Record<string, string>, string, string[]][]) {
    const ref = refOf(command, String(refs.length));
    refs.push(ref);
    const { status, body } = await put(command, text(bytes), { ref, ...more });
    assert.equal(status, 200, JSON.stringify(body));
    assert.deepEqual([body["store"], body["bytes"]], [store, bytes], JSON.stringify(more));
    assert.deepEqual(Object.keys(body["meta"] as object).sort(), hints);
    assert.equal(body["compression"], more["compression"] === "gzip" && store !== "sqldb" ? "gzip" : null);
    const answer = await get(ref);
    assert.equal(await answer.text(), text(bytes));
    assert.equal(answer.headers.get("etag"), `"${body["sha256"]}"`);
  }
  assert.deepEqual(await payloads(), { disk: 2, s3: 4, cloud_bucket: 2, sqldb: 2 });
  await work.finish("w", command);
  await work.get(`/api/executions/${command.execution_id}/result?wait_ms=5000`);
  assert.equal((await work.send("DELETE", `/api/executions/${command.execution_id}`)).status, 200);
  assert.deepEqual(await payloads(), NONE);
  assert.deepEqual(await rowsOf(command.execution_id), []);
  for (const ref of refs) assert.equal(await statusOf(ref), 404);
});

test("an unknown store is 422; the error of an unconfigured store names its settings", async () => {
  const command = await claimed("one");
  const unknown = await put(command, "1", { store: "drawer" });
  assert.deepEqual([unknown.status, unknown.body["code"]], [422, "INVALID_INPUT"]);
  const bare = await openApi();
  const other = storedResults(bare);
  await other.work.register("one", ONE_STEP);
  const there = await other.claimed("one");
  const { status, body } = await other.put(there, "1", { store: "s3" });
  assert.deepEqual([status, body["code"]], [507, "NOT_STORED"]);
  assert.match(String(body["error"]), /store 's3' is not configured here; set FLOW_S3_ENDPOINT/);
});

test("a replacing payload takes effect at once, and the old one is deleted", async () => {
  const command = await claimed("one");
  for (const [store, letter] of [
    ["s3", "a"],
    ["cloud_bucket", "b"],
    ["kv", "c"],
    ["disk", "d"],
    ["sqldb", "e"],
    ["s3", "f"],
  ] as const) {
    assert.equal((await put(command, text(500, letter), { store })).status, 200);
    assert.equal(await (await get(refOf(command))).text(), text(500, letter));
    const { disk, ...rest } = await payloads();
    const total = disk + rest.s3 + rest.cloud_bucket + rest.sqldb;
    assert.equal(total, store === "kv" ? 0 : 1, `after ${store}`);
    assert.equal((await rowsOf(command.execution_id)).length, 1);
  }
  await work.finish("w", command);
  await api.service.results.removeOf([command.execution_id], 10);
});

test("a claim that is lost while the payload is written replaces nothing, and leaves nothing", async () => {
  const command = await claimed("one");
  await put(command, text(500, "a"), { store: "s3" });
  during = async () => {
    await api.database.sql`update flow.command set attempt = 2 where command_id = ${command.command_id}`;
  };
  const { status, body } = await put(command, text(500, "b"), { store: "s3" });
  assert.deepEqual([status, body["code"]], [409, "CONFLICT"]);
  assert.equal(await (await get(refOf(command))).text(), text(500, "a"));
  assert.equal(await keysInS3(), 1);
  const early = await put(command, text(500, "b"), { store: "s3" });
  assert.equal(early.status, 409);
  assert.equal((await rowsOf(command.execution_id)).length, 1);
  await api.service.results.removeOf([command.execution_id], 10);
});

test("two uploads at once under one reference: one of them is there, of the other nothing is left", async () => {
  const command = await claimed("one");
  for (let time = 0; time < 5; time += 1) {
    const answers = await Promise.all(
      ["s3", "disk", "s3", "cloud_bucket", "kv"].map((store, index) => put(command, text(500 + index), { store })),
    );
    assert.ok(answers.some(({ status }) => status === 200));
    for (const { status } of answers) assert.ok(status === 200 || status === 503, String(status));
  }
  // A payload that its store could not remove at once is removed a minute later.
  await api.database.sql`
    update flow.result set created_at = now() - interval '2 minutes'
    where execution_id = ${command.execution_id} and state <> 'stored'`;
  await api.service.results.removeLeftovers(10);
  const { disk, s3: objects, cloud_bucket } = await payloads();
  const stored = await rowsOf(command.execution_id);
  assert.equal(stored.length, 1, JSON.stringify(stored));
  assert.equal(disk + objects + cloud_bucket, stored[0]?.store === "kv" ? 0 : 1);
  await api.service.results.removeOf([command.execution_id], 10);
});

test("while a store is away its payloads are refused with 'later', the others are not; then the same works", async () => {
  const command = await claimed("one");
  const kept = refOf(command, "kept");
  await put(command, text(500), { ref: kept, store: "s3" });
  await s3.stop();
  const { status, body } = await put(command, text(500), { store: "s3" });
  assert.deepEqual([status, body["code"]], [503, "UNAVAILABLE"]);
  assert.match(String(body["error"]), /store s3 cannot be reached at the moment/);
  const read = await get(kept);
  assert.deepEqual([read.status, ((await read.json()) as { code: string }).code], [503, "UNAVAILABLE"]);
  assert.equal((await put(command, text(500), { ref: refOf(command, "b"), store: "cloud_bucket" })).status, 200);
  // What could not be removed stays on record: a note of what was never written among it.
  await api.service.results.removeOf([command.execution_id], 10);
  assert.deepEqual(
    (await rowsOf(command.execution_id)).map(({ state, store }) => [state, store]),
    [
      ["deleting", "s3"],
      ["deleting", "s3"],
    ],
  );
  assert.equal(await statusOf(kept), 404, "no reader finds it");
  await s3.start();
  assert.equal((await put(command, text(500), { store: "s3" })).status, 200);
  await api.database.sql`update flow.result set created_at = now() - interval '2 minutes' where state = 'deleting'`;
  assert.equal(await api.service.results.removeLeftovers(10), 2);
  assert.equal(await keysInS3(), 1);
  await api.service.results.removeOf([command.execution_id], 10);
  assert.deepEqual(await payloads(), NONE);
});

test("what a server that died has left half written is found and removed; what is being written is not", async () => {
  const command = await claimed("one");
  const { execution_id: id } = command;
  const insert = async (writing: string, age: string) => {
    const location = inS3.locate(id, writing);
    const half = { bytes: 1, sha256: "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b" };
    const body: PayloadBody = {
      ...half,
      async *read() {
        yield Buffer.from("1");
      },
    };
    await inS3.write(location, body, { contentType: "a/b", ttlMs: 1 }, AbortSignal.timeout(10_000));
    await api.database.sql`
      insert into flow.result (execution_id, ref, writing, root_execution_id, state, store, scope, content_type, bytes, sha256,
        location, created_at)
      values (${id}, ${refOf(command)}, ${writing}, ${id}, 'pending', 's3', 'permanent', 'application/json', 1,
        ${half.sha256}, ${JSON.stringify(location)}::jsonb, now() - ${age}::interval)`;
  };
  await insert("old", "20 minutes");
  await insert("young", "10 minutes");
  assert.equal(await statusOf(refOf(command)), 404);
  assert.equal(await api.service.results.removeLeftovers(10), 1);
  assert.equal(await keysInS3(), 1);
  await api.database.sql`update flow.result set created_at = now() - interval '1 hour' where execution_id = ${id}`;
  assert.equal(await api.service.results.removeLeftovers(10), 1);
  assert.deepEqual(await payloads(), NONE);
});
