import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { packagePath } from "../../src/platform/system/package-file.ts";
import { createTestDatabase } from "../support/database/postgres.ts";
import { ownDatabase } from "../support/engine/key-ring.ts";
import { folderWith } from "../support/service/cli-process.ts";
import { runProgram, serveProgram } from "./installed-program.ts";

/* The single-file executable, built from the bundle: about five seconds. */

const built = mkdtempSync(join(tmpdir(), "flow-binary-"));
const binary = join(built, "flow");
const cache = join(built, "cache");
const environment = () => ({ PATH: process.env["PATH"], XDG_CACHE_HOME: cache });
after(() => rmSync(built, { recursive: true }));

before(async () => {
  const build = [process.execPath, packagePath("bin/build-binary.js"), binary];
  const { code, stdout, stderr } = await runProgram(build, built, process.env);
  assert.deepEqual([code, stderr], [0, ""]);
  assert.match(stdout, /flow: \d+ MiB, Node v\d+/);
});

test("the executable prints its version and runs a playbook, Python included", async (t) => {
  const python = "{kind: python, code: 'result = {\"answer\": 40 + 2}'}";
  const text = `apiVersion: flow/v2\nkind: Playbook\nmetadata: {name: py}\nworkflow:\n  - {step: start, tool: ${python}}\n`;
  const folder = await folderWith(t, { "py.yaml": text });
  const version = await runProgram([binary, "--version"], folder, environment());
  assert.deepEqual([version.code, version.stderr], [0, ""]);
  const run = await runProgram([binary, "run", "py.yaml", "--json"], folder, environment());
  assert.deepEqual((JSON.parse(run.stdout) as { result: unknown }).result, { answer: 42 }, run.stderr);
});

test("it unpacks itself once", async (t) => {
  const folder = await folderWith(t, {});
  await Promise.all([1, 2, 3].map(() => runProgram([binary, "--version"], folder, { XDG_CACHE_HOME: folder })));
  assert.deepEqual(readdirSync(join(folder, "flow")).length, 1);
});

test("it serves on a database that is given", async (t) => {
  const folder = await folderWith(t, {});
  const { url: databaseUrl } = await createTestDatabase();
  const settings = { ...environment(), ...ownDatabase(databaseUrl) };
  const { url, stop } = await serveProgram(t, [binary, "serve", "--role=server", "--port=0"], folder, settings);
  assert.deepEqual(await (await fetch(`${url}/api/health`)).json(), { status: "ok" });
  assert.match(await (await fetch(`${url}/executions`)).text(), /<title>flow<\/title>/, "and the page");
  assert.equal((await stop()).code, 0);
});

test("without a database it says that the embedded one is not in it", async (t) => {
  const folder = await folderWith(t, {});
  const { code, stderr } = await runProgram([binary, "serve", "--role=server", "--port=0"], folder, environment());
  assert.equal(code, 1);
  assert.match(stderr, /There is no embedded PostgreSQL.*set FLOW_DATABASE_URL/);
});

// A role may start processes of the program by the path of the running script, as every Node program does.
test("a process that it starts of itself by its script's path is the program again", async (t) => {
  const folder = await folderWith(t, {});
  const script = join(cache, "flow", unpackedName(), "dist/flow/main.js");
  const { code, stdout } = await runProgram([binary, script, "--version"], folder, environment());
  assert.deepEqual([code, /^\d+\.\d+\.\d+/.test(stdout)], [0, true]);
});

test("a cache folder that others can write is not trusted", async (t) => {
  const folder = await folderWith(t, {});
  const planted = join(folder, "flow", unpackedName());
  mkdirSync(join(planted, "dist/flow"), { recursive: true });
  writeFileSync(join(planted, "package.json"), '{"type": "module"}');
  writeFileSync(join(planted, "start.cjs"), 'console.log("planted")');
  chmodSync(join(folder, "flow"), 0o777);
  const elsewhere = { XDG_CACHE_HOME: folder, TMPDIR: join(folder, "tmp") };
  mkdirSync(elsewhere.TMPDIR);
  const { code, stdout } = await runProgram([binary, "--version"], folder, elsewhere);
  assert.deepEqual([code, stdout.includes("planted")], [0, false]);
  assert.equal(readdirSync(elsewhere.TMPDIR).length, 1, "it unpacked into a folder of the user's own");
});

test("where it can write nowhere it says what to set", async (t) => {
  const folder = await folderWith(t, { file: "" });
  const nowhere = { XDG_CACHE_HOME: join(folder, "file"), TMPDIR: join(folder, "file") };
  const { code, stderr } = await runProgram([binary, "--version"], folder, nowhere);
  assert.equal(code, 1);
  assert.match(stderr, /^flow: cannot unpack the program: .*Set XDG_CACHE_HOME to a folder that this user can write/);
});

/** The folder that the program made of itself in the cache; the first test has run it. */
function unpackedName(): string {
  const [name] = readdirSync(join(cache, "flow"));
  assert.ok(name);
  return name;
}
