import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { createLocalResults } from "../../src/local/results.ts";
import { FlowError } from "../../src/schema/words/errors.ts";

// Of these tests alone: whatever runs beside them makes such folders too.
const { TMPDIR } = process.env;
const place = mkdtempSync(join(tmpdir(), "flow-test-"));
before(() => {
  process.env["TMPDIR"] = place;
});
after(() => {
  if (TMPDIR === undefined) delete process.env["TMPDIR"];
  else process.env["TMPDIR"] = TMPDIR;
  rmSync(place, { recursive: true, force: true });
});

function setup(t: TestContext) {
  const old = new Set(folders());
  const store = createLocalResults();
  t.after(() => store.close());
  /** Folders that this store has made. */
  const made = () => folders().filter((name) => !old.has(name));
  return { store, made };
}

function folders(): string[] {
  return readdirSync(tmpdir()).filter((name) => name.startsWith("flow-results-"));
}

const MEBIBYTE = 1024 * 1024;

/** JSON text of about 5 MiB; four of them are more than a store keeps in memory. */
function large(letter: string): string {
  return JSON.stringify(letter.repeat(5 * MEBIBYTE));
}

function isMissing(pattern: RegExp) {
  return (error: unknown) =>
    error instanceof FlowError && error.code === "REFERENCE_NOT_AVAILABLE" && pattern.test(error.message);
}

test("a saved result is loaded, with its size and checksum", async (t) => {
  const { store } = setup(t);
  const saved = await store.save("noetl://a", '{"ü":[1,null]}');
  const sha256 = createHash("sha256").update('{"ü":[1,null]}').digest("hex");
  const meta = { bucket: "flow.result", key: "noetl://a" };
  assert.deepEqual(saved, { bytes: 15, sha256, store: "kv", meta });
  assert.deepEqual(await store.load("noetl://a"), { ü: [1, null] });
});

test("saving a reference again replaces what it led to", async (t) => {
  const { store } = setup(t);
  await store.save("noetl://a", "1");
  await store.save("noetl://a", "2");
  assert.equal(await store.load("noetl://a"), 2);
});

test("a reference that was never saved is not available", async (t) => {
  const { store } = setup(t);
  await assert.rejects(
    store.load("noetl://nothing"),
    isMissing(/noetl:\/\/nothing is not available: it was never stored/),
  );
});

test("beyond 16 MiB payloads go to a folder that only the owner can read, and close removes it", async (t) => {
  const { store, made } = setup(t);
  for (const letter of "abc") await store.save(letter, large(letter));
  assert.deepEqual(made(), [], "Three fit in memory");
  await store.save("d", large("d"));
  const [folder] = made();
  assert.ok(folder !== undefined);
  for (const letter of "abcd") assert.equal(String(await store.load(letter))[0], letter);
  await store.close();
  assert.ok(!existsSync(join(tmpdir(), folder)));
  await assert.rejects(store.load("a"), isMissing(/never stored or has been deleted/));
  await store.close();
});

test("memory that was freed by a replacement is used again", async (t) => {
  const { store, made } = setup(t);
  for (let time = 0; time < 20; time += 1) await store.save("a", large("a"));
  assert.deepEqual(made(), []);
});

test("a file that was changed or removed is a result that is not available", async (t) => {
  const { store, made } = setup(t);
  for (const letter of "abcde") await store.save(letter, large(letter));
  const [folder = ""] = made();
  const files = readdirSync(join(tmpdir(), folder));
  assert.equal(files.length, 2);
  for (const file of files) writeFileSync(join(tmpdir(), folder, file), JSON.stringify("damaged"));
  await assert.rejects(store.load("d"), isMissing(/sha256 differs/));
  for (const file of files) rmSync(join(tmpdir(), folder, file));
  await assert.rejects(store.load("e"), isMissing(/its file cannot be read/));
  assert.equal(String(await store.load("a"))[0], "a", "What is in memory is not concerned");
});

/** What a process does that saves 20 MB and leaves without closing its store, with this folder for temporary files. */
function leaveWithoutClosing(temporary: string) {
  const module = new URL("../../src/local/results.js", import.meta.url);
  const code = `
    const { createLocalResults } = await import(${JSON.stringify(module)});
    const json = JSON.stringify("x".repeat(20_000_000));
    await createLocalResults().save("a", json).then(() => console.log("saved"), (error) => console.log(error.code, error.message));
    process.exit(130);`;
  const env = { ...process.env, TMPDIR: temporary };
  return spawnSync(process.execPath, ["--input-type=module", "-e", code], { env, encoding: "utf8" });
}

test("a process that leaves without closing the store leaves no file behind", (t) => {
  const temporary = mkdtempSync(join(tmpdir(), "flow-leaving-"));
  t.after(() => rmSync(temporary, { recursive: true }));
  const { status, stdout, stderr } = leaveWithoutClosing(temporary);
  assert.equal(status, 130, stderr);
  assert.equal(stdout, "saved\n");
  assert.deepEqual(readdirSync(temporary), []);
});

test("the error for a result without room names its size, the place, and what to do", () => {
  const { stdout } = leaveWithoutClosing("/nowhere/at/all");
  assert.match(
    stdout,
    /^NOT_STORED Cannot store a result of 20000002 bytes below \/nowhere\/at\/all: .*ENOENT.*TMPDIR/,
  );
});
