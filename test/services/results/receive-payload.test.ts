import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { removeSpooledRemains, type TakeOptions, takePayload } from "../../../src/services/results/receive-payload.ts";
import { gathered } from "../../support/service/payload-body.ts";

const folders: string[] = [];
after(async () => {
  for (const folder of folders) await rm(folder, { recursive: true, force: true });
});

async function setup(more: Partial<TakeOptions> = {}) {
  const folder = await mkdtemp(join(tmpdir(), "flow-take-"));
  folders.push(folder);
  const base = { folder, memoryBytesMax: 1_000, bytesMax: 1_000_000, compression: undefined, isJson: true };
  const options: TakeOptions = { ...base, ...more };
  const take = (text: string | Uint8Array, size = 700) => takePayload(inParts(Buffer.from(text), size), options);
  return { folder, take };
}

async function* inParts(bytes: Uint8Array, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

const sha256 = (text: string | Uint8Array) => createHash("sha256").update(text).digest("hex");

test("a short payload stays in memory, a long one goes to a file; both are known by length and checksum", async () => {
  const { folder, take } = await setup();
  for (const [length, files] of [
    [998, 0],
    [999, 1],
  ] as const) {
    const text = JSON.stringify("x".repeat(length));
    const taken = await take(text);
    assert.deepEqual([taken.bytes, taken.sha256], [text.length, sha256(text)]);
    assert.equal(taken.body.bytes, text.length);
    assert.equal((await readdir(folder)).length, files);
    assert.equal(taken.buffer === undefined, files === 1);
    for (let time = 0; time < 2; time += 1) assert.equal(String(await gathered(taken.body.read())), text);
    await taken.discard();
    assert.deepEqual(await readdir(folder), []);
  }
});

test("a file that a store has taken is left alone", async () => {
  const { folder, take } = await setup();
  const taken = await take(JSON.stringify("x".repeat(5_000)));
  await taken.body.moveTo?.(join(folder, "kept"));
  await taken.discard();
  assert.deepEqual(await readdir(folder), ["kept"]);
});

test("compression is of what is stored: length and checksum of the payload stay its own", async () => {
  const text = JSON.stringify({ rows: Array.from({ length: 500 }, (_, id) => ({ id })) });
  for (const memoryBytesMax of [100, 100_000]) {
    const { take } = await setup({ memoryBytesMax, compression: "gzip" });
    const taken = await take(text);
    assert.deepEqual([taken.compression, taken.bytes, taken.sha256], ["gzip", text.length, sha256(text)]);
    const stored = await gathered(taken.body.read());
    assert.equal(String(gunzipSync(stored)), text);
    assert.deepEqual([taken.body.bytes, taken.body.sha256], [stored.length, sha256(stored)]);
    await taken.discard();
  }
  const none = await setup({ memoryBytesMax: 100_000, compression: "none" });
  assert.equal((await none.take(text)).compression, null);
  const own = await setup({ memoryBytesMax: 100_000 });
  assert.equal((await own.take(text)).compression, "gzip", "it shrinks well");
});

test("what is no JSON text is refused, wherever it is cut; other types may be anything", async () => {
  const { folder, take } = await setup({ memoryBytesMax: 100 });
  const accents = JSON.stringify("é".repeat(300));
  for (let size = 1; size < 40; size += 1) {
    const taken = await take(accents, size);
    assert.equal(taken.sha256, sha256(accents));
    await taken.discard();
  }
  const broken = Buffer.from(accents);
  broken[200] = 0x22;
  for (const text of [broken, '{"rows": [1', "plain", "", '"é'.repeat(100), Buffer.from(accents).subarray(0, -2)]) {
    await assert.rejects(take(text, 7), { code: "INVALID_INPUT" });
  }
  assert.deepEqual(await readdir(folder), []);
  const any = await setup({ isJson: false });
  const bytes = Buffer.from([0xff, 0x00, 0xfe]);
  assert.deepEqual(await gathered((await any.take(bytes)).body.read()), bytes);
});

test("sealed tokens are noticed, also where a part ends within one", async () => {
  const { take } = await setup();
  const text = `${JSON.stringify(`${"x".repeat(90)} [sealed:k1:abc] y`)}`;
  for (let size = 1; size < 120; size += 1) assert.equal((await take(text, size)).isSealed, true, String(size));
  assert.equal((await take('"[sealed"')).isSealed, false);
});

test("too long a payload, and one that breaks off, leave no file", async () => {
  const { folder, take } = await setup({ bytesMax: 3_000 });
  await assert.rejects(take(JSON.stringify("x".repeat(3_000))), { code: "TOO_LARGE" });
  const broken = (async function* () {
    yield Buffer.from(`"${"x".repeat(2_000)}`);
    throw new Error("gone");
  })();
  const options = { folder, memoryBytesMax: 10, bytesMax: 10_000, isJson: true };
  for (const compression of [undefined, "gzip"] as const) {
    await assert.rejects(takePayload(broken, { ...options, compression }));
  }
  assert.deepEqual(await readdir(folder), []);
});

test("the error for a folder that cannot be written names it", async () => {
  const { folder } = await setup();
  await writeFile(join(folder, "file"), "");
  const { take } = await setup({ folder: join(folder, "file") });
  await assert.rejects(take(JSON.stringify("x".repeat(2_000))), { code: "NOT_STORED", message: /FLOW_HOME/ });
});

test("what a process that died has left is removed, what is being written is not", async () => {
  const { folder } = await setup();
  for (const name of ["old.part", "fresh.part", "kept"]) await writeFile(join(folder, name), "");
  await utimes(join(folder, "old.part"), new Date(0), new Date(0));
  await utimes(join(folder, "kept"), new Date(0), new Date(0));
  assert.equal(await removeSpooledRemains(folder, Date.now()), 1);
  assert.deepEqual((await readdir(folder)).sort(), ["fresh.part", "kept"]);
  assert.equal(await removeSpooledRemains(join(folder, "none"), Date.now()), 0);
});
