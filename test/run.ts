import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";

/*
 * `npm test`: runs every compiled test file, each in a process of its own, and fails when no test ran. (`node --test` on a
 * folder finds no test in some versions and exits 0.) Words on the command line choose files: `npm test -- engine python`.
 * `npm test -- --second-look` runs the files in which a test failed once more, one at a time, and fails for those that fail
 * again; the others are named, because a test that needs a second look is to be mended. That is for CI on a busy machine.
 */

const root = import.meta.dirname;
const wanted = process.argv.slice(2).filter((word) => !word.startsWith("-"));
const secondLook = process.argv.includes("--second-look");
const files = readdirSync(root, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".test.js"))
  .filter((name) => wanted.length === 0 || wanted.some((word) => name.includes(word)))
  .sort()
  .map((name) => join(root, name));
/** More than this at once is no matter of luck. */
const SECOND_LOOK_FILES_MAX = 5;

function imports(path: string, module: string): boolean {
  return readFileSync(path, "utf8").includes(`/${module}"`);
}

/** Runs files, shows how it goes, and gives how many tests passed and the files in which one failed. */
async function runFiles(paths: string[], concurrency: number): Promise<{ passed: number; failed: Set<string> }> {
  let passed = 0;
  const failed = new Set<string>();
  const stream = run({ files: paths, concurrency, timeout: 600_000 });
  stream.on("test:pass", (event) => {
    if (event.details.type !== "suite") passed += 1;
  });
  // A file that ends before its tests do is itself the test that failed: it has no other name.
  stream.on("test:fail", (event) => failed.add(event.file ?? event.name));
  const end = new Promise((resolve) => stream.on("end", resolve));
  stream.pipe(new spec()).pipe(process.stdout);
  await end;
  return { passed, failed };
}

// Two at a time: the tests start real databases, interpreters and servers, and the smallest machine has two cores.
const first = await runFiles(files, 2);
// A test that several files have from one module is told by that module: each of them is looked at.
const modules = [...first.failed]
  .filter((path) => !files.includes(path) && existsSync(path))
  .map((path) => basename(path));
const again = files.filter(
  (path) => first.failed.has(path) || (modules.length > 0 && modules.some((name) => imports(path, name))),
);
// What failed without a file of ours to run again counts as it is.
const hasOthers = [...first.failed].some((path) => !files.includes(path) && !existsSync(path));
if (first.passed + first.failed.size === 0) {
  process.stderr.write(`No test ran: ${files.length} files matched.\n`);
  process.exitCode = 1;
} else if (!secondLook || hasOthers || again.length > SECOND_LOOK_FILES_MAX) {
  if (first.failed.size > 0) process.exitCode = 1;
} else if (again.length > 0) {
  process.stdout.write(`\nA second look at ${again.length} file(s) with a failed test, one at a time:\n`);
  const second = await runFiles(again, 1);
  if (second.failed.size > 0) process.exitCode = 1;
  const lucky = again.filter((path) => !second.failed.has(path)).map((path) => relative(root, path));
  if (lucky.length > 0) process.stdout.write(`\nPassed at the second look only, to be mended: ${lucky.join(", ")}\n`);
}
