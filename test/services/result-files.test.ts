import assert from "node:assert/strict";
import { mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { createResultFiles } from "../../src/services/result-files.ts";

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "flow-files-"));
  folders.push(folder);
  return folder;
}

const folders: string[] = [];
after(async () => {
  for (const folder of folders) await rm(folder, { recursive: true, force: true });
});

async function* parts(...texts: string[]) {
  for (const text of texts) yield Buffer.from(text);
}

test("a payload has its name only once it is placed, and then replaces what was there", async () => {
  const files = createResultFiles(join(await newFolder(), "results"));
  const name = files.nameOf("noetl://execution/1/../../x");
  assert.match(name, /^[0-9a-f]{64}$/);
  const first = await files.write(parts("ab", "c"));
  assert.equal(first.bytes, 3);
  assert.equal(await files.read(name), undefined);
  await first.place(name);
  await first.discard();
  assert.equal(String(await files.read(name)), "abc");
  const second = await files.write(parts("d"));
  await second.place(name);
  assert.equal(String(await files.read(name)), "d");
  await files.remove([name, "0".repeat(64)]);
  assert.equal(await files.read(name), undefined);
});

test("a payload that breaks off leaves nothing behind", async () => {
  const folder = await newFolder();
  const files = createResultFiles(folder);
  const broken = (async function* () {
    yield Buffer.from("ab");
    throw new Error("gone");
  })();
  await assert.rejects(files.write(broken), /gone/);
  const discarded = await files.write(parts("x"));
  await discarded.discard();
  assert.deepEqual(await readdir(folder), []);
});

test("a folder that cannot be written to is told as such", async () => {
  const folder = join(await newFolder(), "file");
  await writeFile(folder, "");
  const files = createResultFiles(folder);
  await assert.rejects(files.write(parts("x")), { code: "NOT_STORED" });
});

test("what a process that died has left is removed, what is being written is not", async () => {
  const folder = await newFolder();
  const files = createResultFiles(folder);
  await writeFile(join(folder, "old.part"), "");
  await utimes(join(folder, "old.part"), new Date(0), new Date(0));
  const fresh = await files.write(parts("x"));
  assert.equal(await files.removeRemains(), 1);
  assert.equal((await readdir(folder)).length, 1);
  await fresh.discard();
  assert.equal(await createResultFiles(join(folder, "none")).removeRemains(), 0);
});
