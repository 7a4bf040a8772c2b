import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { withFolderLock } from "../../../src/platform/system/folder-lock.ts";

async function newFolder(context: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "flow-lock-"));
  context.after(() => rm(folder, { recursive: true }));
  return folder;
}

test("one at a time works in a folder, and nothing is left of the lock", async (context) => {
  const folder = await newFolder(context);
  let inside = 0;
  const work = async () => {
    inside += 1;
    assert.equal(inside, 1);
    await readFile(join(folder, "lock"));
    inside -= 1;
    return "done";
  };
  const results = await Promise.all(Array.from({ length: 5 }, () => withFolderLock(folder, work)));
  assert.deepEqual(results, Array(5).fill("done"));
  assert.deepEqual(await readdir(folder), []);
});

test("work that fails gives its error and the lock back", async (context) => {
  const folder = await newFolder(context);
  const fault = new Error("no");
  await assert.rejects(
    withFolderLock(folder, () => Promise.reject(fault)),
    (error) => error === fault,
  );
  assert.equal(await withFolderLock(folder, async () => 1), 1);
});

test("the lock of a process that is gone is taken over by exactly one of those who wait", async (context) => {
  await Promise.all(Array.from({ length: 40 }, () => takeOver(context)));
});

async function takeOver(context: TestContext): Promise<void> {
  const folder = await newFolder(context);
  // No process has this id: it is above every limit.
  await writeFile(join(folder, "lock"), "2000000000 0123456789abcdef");
  let inside = 0;
  const work = async () => {
    inside += 1;
    assert.equal(inside, 1);
    await new Promise((resolve) => setImmediate(resolve));
    inside -= 1;
  };
  await Promise.all(Array.from({ length: 8 }, () => withFolderLock(folder, work)));
  assert.deepEqual(await readdir(folder), []);
}

test("one that was killed while it removed a lock that was left keeps no other from it", async (context) => {
  const folder = await newFolder(context);
  await writeFile(join(folder, "lock"), "2000000000 0123456789abcdef");
  await writeFile(join(folder, "lock.removing"), "2000000000 fedcba9876543210");
  assert.equal(await withFolderLock(folder, async () => 1), 1);
  assert.deepEqual(await readdir(folder), []);
});
