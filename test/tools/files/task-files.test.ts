import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { TASK_FILES_MAX } from "../../../src/schema/words/outcome.ts";
import { FILE_BYTES_MAX, NAME_CHARS_MAX } from "../../../src/tools/files/file-names.ts";
import { FILES_BYTES_MAX, listFiles } from "../../../src/tools/files/list-files.ts";
import { openSafely, removeSafely } from "../../../src/tools/files/safe-folder.ts";

/* What is taken of the folder that a task writes its files to, whatever the task has made of it. */

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "flow-task-files-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const at = (...names: string[]) => join(folder, ...names);
const lines: string[] = [];
const list = async () => await listFiles(folder, (line) => lines.push(line));
const namesOf = async () => (await list()).map(({ name }) => name);
const refusal = (pattern: RegExp) => ({ code: "INVALID_INPUT", message: pattern });

test("files are found in folders too, with the type of their names, empty ones among them", async () => {
  mkdirSync(at("plots", "north"), { recursive: true });
  mkdirSync(at("nothing"));
  writeFileSync(at("report.html"), "<p>");
  writeFileSync(at("plots", "north", "a.PNG"), Buffer.from([0xff, 0x00]));
  writeFileSync(at("empty"), "");
  const files = await list();
  assert.deepEqual(
    files.map(({ name, contentType }) => [name, contentType]),
    [
      ["empty", "application/octet-stream"],
      ["plots/north/a.PNG", "image/png"],
      ["report.html", "text/html; charset=utf-8"],
    ],
  );
  const contents = await Promise.all(files.map(async ({ content }) => Buffer.from(await content())));
  assert.deepEqual(contents, [Buffer.from(""), Buffer.from([0xff, 0x00]), Buffer.from("<p>")]);
});

test("links, pipes and sockets are left out, which the task's log says, and nothing waits for them", async () => {
  symlinkSync("/etc/passwd", at("passwd"));
  symlinkSync("/etc", at("etc"));
  symlinkSync("..", at("up"));
  symlinkSync("gone", at("dangling"));
  execFileSync("sh", ["-c", `mkfifo "$1"`, "sh", at("pipe")]);
  const socket = createServer().listen(at("socket"));
  await once(socket, "listening");
  writeFileSync(at("kept.txt"), "kept");
  lines.length = 0;
  assert.deepEqual(await namesOf(), ["kept.txt"]);
  assert.deepEqual(lines.toSorted(), [
    "dangling was not kept: it is a link, and only files are",
    "etc was not kept: it is a link, and only files are",
    "passwd was not kept: it is a link, and only files are",
    "pipe was not kept: it is a pipe, and only files are",
    "socket was not kept: it is a socket, and only files are",
    "up was not kept: it is a link, and only files are",
  ]);
  socket.close();
});

test("a file or folder that becomes a link between list and reading is not followed", async () => {
  mkdirSync(at("sub"));
  writeFileSync(at("sub", "passwd"), "own");
  writeFileSync(at("own.txt"), "own");
  const [own, sub] = await list();
  rmSync(at("sub"), { recursive: true });
  symlinkSync("/etc", at("sub"));
  rmSync(at("own.txt"));
  symlinkSync("/etc/passwd", at("own.txt"));
  await assert.rejects(async () => await own?.content(), refusal(/"own\.txt" cannot be read/));
  await assert.rejects(async () => await sub?.content(), refusal(/"sub\/passwd" cannot be read/));
});

test("an open folder stays the same when its name becomes a link", async () => {
  mkdirSync(at("sub"));
  writeFileSync(at("sub", "a"), "own");
  const open = await openSafely(at("sub"));
  execFileSync("mv", [at("sub"), at("moved")]);
  symlinkSync("/etc", at("sub"));
  assert.equal(readFileSync(open.at("a"), "utf8"), "own");
  await open.close();
  await assert.rejects(openSafely(at("sub")), { code: /ENOTDIR|ELOOP/ });
});

test("a file that is still being written has what it holds when it is read", async () => {
  writeFileSync(at("a.log"), "one\n");
  const [file] = await list();
  writeFileSync(at("a.log"), "one\ntwo\n");
  assert.equal(Buffer.from((await file?.content()) ?? []).toString(), "one\ntwo\n");
  truncateSync(at("a.log"), FILE_BYTES_MAX + 1);
  await assert.rejects(async () => await file?.content(), refusal(/has 16,777,217 bytes, and 16,777,216 are allowed/));
});

test("names that are not the same everywhere are refused, with their folders; hard ones are kept", async () => {
  const kept = ["Bericht für März.html", "日本.txt", "a b", "-rf", "%2e%2e", "a'\"$(x)`", "..a"];
  for (const name of kept) writeFileSync(at(name), "x");
  assert.deepEqual((await namesOf()).toSorted(), kept.toSorted());
  for (const name of ["a\nb", "a\u001b[2J", "back\\slash", " a", "x\u202egnp", Buffer.from([0x61, 0xff]), "..."]) {
    const path = Buffer.concat([Buffer.from(`${folder}/`), Buffer.from(name as string)]);
    writeFileSync(path, "x");
    await assert.rejects(list(), refusal(/has a name that is not the same everywhere/), String(name));
    unlinkSync(path);
  }
});

test("a name has 200 characters at most, with its folders", async () => {
  const inner = "d".repeat(99);
  mkdirSync(at(inner));
  writeFileSync(at(inner, "f".repeat(NAME_CHARS_MAX - 100)), "");
  assert.equal((await list())[0]?.name.length, NAME_CHARS_MAX);
  writeFileSync(at(inner, "f".repeat(NAME_CHARS_MAX - 99)), "");
  await assert.rejects(list(), refusal(/200 characters at most/));
});

test("the limits of a file, of their number and of all together, each to the byte", async () => {
  writeFileSync(at("large"), "");
  truncateSync(at("large"), FILE_BYTES_MAX);
  assert.deepEqual(await namesOf(), ["large"]);
  truncateSync(at("large"), FILE_BYTES_MAX + 1);
  await assert.rejects(list(), refusal(/"large" has 16,777,217 bytes, and 16,777,216 are allowed/));
  for (let file = 0; file * FILE_BYTES_MAX < FILES_BYTES_MAX; file += 1) {
    writeFileSync(at(`${file}`), "");
    truncateSync(at(`${file}`), FILE_BYTES_MAX);
  }
  rmSync(at("large"));
  assert.equal((await list()).length, FILES_BYTES_MAX / FILE_BYTES_MAX);
  writeFileSync(at("more"), "x");
  await assert.rejects(list(), refusal(/more than 67,108,864 bytes together/));
});

test("a hundred files are kept, and one more is refused", async () => {
  for (let file = 0; file < TASK_FILES_MAX - 1; file += 1) writeFileSync(at(`${file}`), "");
  assert.equal((await list()).length, TASK_FILES_MAX - 1);
  writeFileSync(at("100th"), "");
  assert.equal((await list()).length, TASK_FILES_MAX);
  writeFileSync(at("101st"), "");
  await assert.rejects(list(), refusal(/more than 100 files/));
});

test("folders without end are refused and removed", async () => {
  for (let number = 0; number < 1_001; number += 1) mkdirSync(at(`${number}`));
  await assert.rejects(list(), refusal(/more than 1000 folders and links/));
  await removeSafely(folder);
  assert.throws(() => readdirSync(folder), { code: "ENOENT" });
});

test("a folder is removed with what its user may not enter and with names that are no text, and never what a link leads to", async () => {
  const elsewhere = mkdtempSync(join(tmpdir(), "flow-elsewhere-"));
  writeFileSync(join(elsewhere, "stays"), "x");
  mkdirSync(at("locked", "inner"), { recursive: true });
  writeFileSync(at("locked", "inner", "a"), "x");
  writeFileSync(Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0xff, 0xfe])]), "x");
  symlinkSync(elsewhere, at("locked", "link"));
  chmodSync(at("locked", "inner"), 0);
  chmodSync(at("locked"), 0);
  await removeSafely(folder);
  assert.throws(() => readdirSync(folder), { code: "ENOENT" });
  assert.deepEqual(readdirSync(elsewhere), ["stays"]);
  rmSync(elsewhere, { recursive: true });
});
