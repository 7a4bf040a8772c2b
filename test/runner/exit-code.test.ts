import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";

/*
 * The exit code of `npm test`, which is all that CI asks. A library with an exit hook, imported into the runner itself, once
 * made it 0 whatever had failed.
 */

const PASSES = 'import { test } from "node:test";\ntest("passes", () => {});\n';
const FAILS = 'import { test } from "node:test";\ntest("fails", () => { throw new Error("as it should"); });\n';

/** Runs the runner on a folder of its own with these files; its exit code, and what it printed. */
async function outcomeOf(files: Readonly<Record<string, string>>, ...words: string[]) {
  const compiled = join(import.meta.dirname, "..");
  // Beside the compiled tests, so that the packages are found from it.
  const root = mkdtempSync(join(compiled, "../runner-"));
  try {
    for (const part of ["run.js", "runner", "support"]) {
      const isTest = (path: string) => path.endsWith(".test.js");
      cpSync(join(compiled, part), join(root, part), { recursive: true, filter: (path) => !isTest(path) });
    }
    for (const [path, content] of Object.entries(files)) {
      mkdirSync(join(root, path, ".."), { recursive: true });
      writeFileSync(join(root, path), content);
    }
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    // A word, because a run of all tests wants every folder.
    const args = [
      "--enable-source-maps",
      join(root, "run.js"),
      ...(words.some((word) => !word.startsWith("-")) ? [] : [".test"]),
      ...words,
    ];
    const runner = spawn(process.execPath, args, {
      env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const exited = new Promise<number | null>((resolve) => runner.once("exit", resolve));
    const [code, printed, errors] = await Promise.all([exited, text(runner.stdout), text(runner.stderr)]);
    return { code, printed: printed + errors };
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

test("a run in which all tests pass exits with 0", async () => {
  const { code, printed } = await outcomeOf({ "engine/one.test.js": PASSES, "routes/two.test.js": PASSES });
  assert.match(printed, /pass 2/);
  assert.equal(code, 0, printed);
});

test("a run with a failed test exits with 1: with a database, of the pure core, and at the second look", async () => {
  const withDatabase = await outcomeOf({ "engine/one.test.js": PASSES, "routes/two.test.js": FAILS });
  assert.match(withDatabase.printed, /fail 1/);
  assert.equal(withDatabase.code, 1, withDatabase.printed);
  const pure = await outcomeOf({ "engine/one.test.js": FAILS }, "--pure");
  assert.equal(pure.code, 1, pure.printed);
  const twice = await outcomeOf({ "engine/one.test.js": FAILS }, "--second-look");
  assert.match(twice.printed, /A second look/);
  assert.equal(twice.code, 1, twice.printed);
});

test("the second look is at the file that failed, wherever it stands among those that share its process", async () => {
  const others = Array.from({ length: 9 }, (_, index) => [`engine/even${index}.test.js`, PASSES]);
  const all = Object.fromEntries(others) as Record<string, string>;
  for (const name of ["engine/a.test.js", "engine/even4.test.js", "engine/odd.test.js"]) {
    const { code, printed } = await outcomeOf({ ...all, [name]: FAILS }, "--second-look");
    assert.match(printed, /A second look at 1 file/, name);
    assert.equal(code, 1, printed);
  }
});

test("the second look is at a file whose tests stand elsewhere, and at those that a process did not come to the end of", async () => {
  const shared = FAILS.replace('test("fails"', 'export const contract = () => test("fails"');
  const files = {
    "engine/support.js": shared,
    "engine/a.test.js": 'import { contract } from "./support.js";\ncontract();\n',
    "engine/b.test.js": PASSES,
    "engine/c.test.js": PASSES,
  };
  assert.match((await outcomeOf(files, "--second-look")).printed, /A second look at 1 file/);
  const exits = 'import { test } from "node:test";\ntest("exits", () => process.exit(3));\n';
  const cut = await outcomeOf({ ...files, "engine/a.test.js": PASSES, "engine/b.test.js": exits }, "--second-look");
  assert.match(cut.printed, /A second look at 2 file/);
  assert.equal(cut.code, 1, cut.printed);
});

test("a run in which no test ran exits with 1", async () => {
  const { code, printed } = await outcomeOf({ "engine/one.test.js": PASSES }, "nothing/of/this/name");
  assert.match(printed, /No test ran/);
  assert.equal(code, 1, printed);
});
