import assert from "node:assert/strict";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { appendFile, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { packagePath } from "../../src/platform/system/package-file.ts";
import { folderWith } from "../support/service/cli-process.ts";
import { type ProgramEnd, runProgram } from "./installed-program.ts";

/*
 * `./flow` in a checkout: what it builds, when, and how often. The packages are those of this checkout, by a link; where one
 * is to be installed, a script in npm's place notes that it was called and makes that link.
 */

const COPIED = ["flow", "bin", "src", "package.json", "package-lock.json", "tsconfig.json", "migrations"];
const HELLO = packagePath("playbooks/examples/hello.yaml");
const { PATH, HOME } = process.env;

interface Checkout {
  folder: string;
  run(...words: string[]): Promise<ProgramEnd>;
}

/** `isSmall`: its program prints a version and no more, which is built in a tenth of the time. */
async function checkout(
  context: TestContext,
  { environment = {}, isSmall = false }: { environment?: NodeJS.ProcessEnv; isSmall?: boolean } = {},
): Promise<Checkout> {
  const folder = await folderWith(context, {});
  for (const name of COPIED) {
    if (!isSmall || name !== "src") cpSync(packagePath(name), join(folder, name), { recursive: true });
  }
  if (isSmall) writeSmallProgram(folder);
  if (environment["npm_execpath"] === undefined) linkPackages(folder);
  return {
    folder,
    run: (...words) => runProgram([join(folder, "flow"), ...words], folder, { PATH, HOME, ...environment }),
  };
}

/** The files that a build begins with, and the folders of which it takes all files. */
function writeSmallProgram(folder: string): void {
  for (const name of ["src/tools/python/harness", "src/tools/sandbox"]) {
    mkdirSync(join(folder, name), { recursive: true });
  }
  for (const [name, text] of [
    ["src/main.ts", 'process.stdout.write("0.1.0\\n");\n'],
    ["src/adapters/server/heartbeat-thread.ts", "export {};\n"],
    ["src/services/catalog/document-thread.ts", "export {};\n"],
  ] as const) {
    mkdirSync(join(folder, name, ".."), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
}

function linkPackages(folder: string): void {
  symlinkSync(packagePath("node_modules"), join(folder, "node_modules"));
}

const entryOf = (folder: string) => join(folder, "dist/flow/main.js");
const builtAt = (folder: string) => statSync(entryOf(folder)).mtimeMs;

test("a checkout is built once, also for two at the same time, and then starts silently", async (t) => {
  const { folder, run } = await checkout(t);
  const both = await Promise.all([run("run", HELLO, "--json"), run("run", HELLO, "--json")]);
  for (const { code, stdout, stderr } of both) {
    assert.equal(code, 0, stderr);
    assert.equal((JSON.parse(stdout) as { status: string }).status, "COMPLETED");
  }
  const said = both.map(({ stderr }) => stderr).join("");
  assert.equal(said.match(/^flow: building the program$/gm)?.length, 1, said);
  assert.match(said, /^flow: waiting for another set-up of this checkout$/m);
  assert.doesNotMatch(said, /installing|page/, "the packages are there, and a run shows no page");

  const before = builtAt(folder);
  assert.deepEqual(await run("--version"), { code: 0, stdout: "0.1.0\n", stderr: "" });
  assert.equal(builtAt(folder), before);
});

test("what has changed is built again, and what only looks changed is not", async (t) => {
  const { folder, run } = await checkout(t, { isSmall: true });
  const source = join(folder, "src/main.ts");
  const part = join(folder, "src/part.ts");
  await appendFile(source, 'if (process.argv.includes("part")) await import("./part.ts");\n');
  await writeFile(part, 'process.stdout.write("part\\n");\n');
  assert.equal((await run("part")).stdout, "0.1.0\npart\n");
  const first = builtAt(folder);
  await utimes(source, new Date(), new Date());
  assert.equal((await run("--version")).stderr, "");
  assert.equal(builtAt(folder), first, "only its time has changed");

  const chunks = readdirSync(join(folder, "dist/flow"));
  await writeFile(part, readFileSync(part, "utf8").replace("part", "part, mended"));
  const { stdout, stderr } = await run("part");
  assert.match(stderr, /^flow: building the program\n$/);
  assert.equal(stdout, "0.1.0\npart, mended\n");
  // A service that runs has not loaded all of its files yet.
  const built = readdirSync(join(folder, "dist/flow"));
  assert.ok(built.length > chunks.length, "the part that has changed is a new file");
  for (const name of chunks) assert.ok(built.includes(name), `${name} was removed`);
  assert.equal((await run("--version")).stderr, "");
});

test("what cannot be built says why, and is tried again", async (t) => {
  const { folder, run } = await checkout(t, { isSmall: true });
  const source = join(folder, "src/main.ts");
  const text = readFileSync(source, "utf8");
  await appendFile(source, "\nconst = 3;\n");
  const { code, stdout, stderr } = await run("--version");
  assert.deepEqual([code, stdout], [1, ""]);
  assert.match(stderr, /'node bin\/bundle\.js' failed/);
  assert.match(stderr, /src\/main\.ts:\d+/);
  assert.ok(!existsSync(join(folder, "dist/.set-up.lock")));
  await writeFile(source, text);
  assert.equal((await run("--version")).code, 0);
});

test("packages are installed when they are missing and when the lock file has changed", async (t) => {
  const npm = join(await folderWith(t, {}), "npm-cli.js");
  const called = `${npm}.called`;
  await writeFile(
    npm,
    `const { appendFileSync, cpSync, existsSync, mkdirSync, readdirSync, symlinkSync } = require("node:fs");
     appendFileSync(${JSON.stringify(called)}, process.argv[2] + "\\n");
     const from = ${JSON.stringify(packagePath("node_modules"))};
     if (!existsSync("node_modules")) {
       mkdirSync("node_modules");
       for (const name of readdirSync(from)) {
         if (name !== ".package-lock.json") symlinkSync(from + "/" + name, "node_modules/" + name);
       }
     }
     cpSync(from + "/.package-lock.json", "node_modules/.package-lock.json");`,
  );
  const { folder, run } = await checkout(t, { environment: { npm_execpath: npm }, isSmall: true });
  const first = await run("--version");
  assert.equal(first.code, 0, first.stderr);
  assert.equal(first.stderr, "flow: installing packages (npm ci)\nflow: building the program\n");
  assert.equal((await run("--version")).stderr, "");
  assert.equal(readFileSync(called, "utf8"), "ci\n");
  const lock = join(folder, "package-lock.json");
  await writeFile(
    lock,
    readFileSync(lock, "utf8").replace(/"version": "[^"]+"(?=,\s+"integrity")/, '"version": "0.0.9"'),
  );
  assert.match((await run("--version")).stderr, /^flow: installing packages/);
  assert.equal(readFileSync(called, "utf8"), "ci\nci\n");
});

test("packages that cannot be installed are reported with npm's message", async (t) => {
  const npm = join(await folderWith(t, {}), "npm-cli.js");
  await writeFile(npm, 'process.stderr.write("npm error network ENOTFOUND\\n"); process.exit(1);');
  const { code, stdout, stderr } = await (await checkout(t, { environment: { npm_execpath: npm }, isSmall: true })).run(
    "--version",
  );
  assert.deepEqual([code, stdout], [1, ""]);
  assert.match(
    stderr,
    /could not be installed by 'npm ci'\. It ended with 1:\nnpm error network ENOTFOUND\n.*registry/,
  );
});

test("a killed set-up does not block the next one for long", async (t) => {
  const { folder, run } = await checkout(t, { isSmall: true });
  const lock = join(folder, "dist/.set-up.lock");
  mkdirSync(join(folder, "dist"));
  await writeFile(lock, "somebody who is gone");
  const longAgo = new Date(Date.now() - 60_000);
  await utimes(lock, longAgo, longAgo);
  assert.equal((await run("--version")).code, 0);
  assert.ok(!existsSync(lock));
});

test("it runs in any folder, through a link, and with an older Node it says which one it needs", async (t) => {
  const { folder } = await checkout(t);
  const elsewhere = await folderWith(t, { "one.yaml": readFileSync(HELLO, "utf8") });
  symlinkSync(join(folder, "flow"), join(elsewhere, "flow"));
  const linked = await runProgram([join(elsewhere, "flow"), "validate", "one.yaml"], elsewhere, { PATH, HOME });
  assert.equal(linked.code, 0, linked.stderr);

  const old = await folderWith(t, {});
  await writeFile(join(old, "old.cjs"), 'Object.defineProperty(process.versions, "node", { value: "18.19.1" });');
  const environment = { PATH, HOME, NODE_OPTIONS: `--require ${join(old, "old.cjs")}` };
  const refused = await runProgram([join(folder, "flow"), "--version"], elsewhere, environment);
  assert.deepEqual([refused.code, refused.stderr], [1, "flow needs Node 20.19 or later; this is 18.19.1.\n"]);

  // A PATH on which there is a shell's toolbox, and no Node.
  const tools = await folderWith(t, {});
  for (const name of ["sh", "dirname", "readlink"]) symlinkSync(`/bin/${name}`, join(tools, name));
  const none = await runProgram([join(folder, "flow"), "--version"], elsewhere, { PATH: tools });
  assert.equal(none.code, 127);
  assert.match(none.stderr, /needs Node 20\.19 or later, and there is no 'node' on PATH/);
  rmSync(tools, { recursive: true });
});
