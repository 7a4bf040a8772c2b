import { readdirSync } from "node:fs";
import { join } from "node:path";
import { spec } from "node:test/reporters";
import { type FileRun, runFile } from "./run-file.ts";

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
  .sort();
/** More than this at once is no matter of luck. */
const SECOND_LOOK_FILES_MAX = 5;

/** The longest that a test may take. */
const TEST_MS_MAX = 60_000;
/** Files with a test that has more than a minute of work, and what it may take on a busy machine. */
const LONGER_MS: Readonly<Record<string, number>> = {
  // Ten thousand simulated runs are one test.
  "simulator/simulator.test.js": 600_000,
};

interface Total {
  passed: number;
  failed: number;
  failedFiles: Set<string>;
}

/** Runs files, `concurrency` at a time, and shows each one when it has ended. */
async function runFiles(names: readonly string[], concurrency: number): Promise<Total> {
  const total: Total = { passed: 0, failed: 0, failedFiles: new Set() };
  const began = performance.now();
  const reporter = new spec();
  reporter.pipe(process.stdout, { end: false });
  const ended = new Promise((resolve) => reporter.on("end", resolve));
  const show = ({ events, passed, failed }: FileRun, name: string) => {
    for (const event of events) reporter.write(event);
    total.passed += passed;
    total.failed += failed;
    if (failed > 0) total.failedFiles.add(name);
  };
  const queue = [...names];
  const runner = async () => {
    for (let name = queue.shift(); name !== undefined; name = queue.shift()) {
      const file = name;
      const limitMs = LONGER_MS[file] ?? TEST_MS_MAX;
      const late = (test: string) => {
        process.stdout.write(`${file} is ended: no test began or ended for ${limitMs / 1000} s. Running: ${test}\n`);
      };
      show(await runFile(join(root, file), limitMs, late), file);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, runner));
  const sums = [`tests ${total.passed + total.failed}`, `pass ${total.passed}`, `fail ${total.failed}`];
  for (const message of [...sums, `duration_ms ${Math.round(performance.now() - began)}`]) {
    reporter.write({ type: "test:diagnostic", data: { nesting: 0, message, level: "info" } });
  }
  reporter.end();
  await ended;
  return total;
}

// Two at a time: the tests start real databases, interpreters and servers, and the smallest machine has two cores.
const first = await runFiles(files, 2);
const again = files.filter((name) => first.failedFiles.has(name));
if (first.passed + first.failed === 0) {
  process.stderr.write(`No test ran: ${files.length} files matched.\n`);
  process.exitCode = 1;
} else if (!secondLook || again.length > SECOND_LOOK_FILES_MAX) {
  if (again.length > 0) process.exitCode = 1;
} else if (again.length > 0) {
  process.stdout.write(`\nA second look at ${again.length} file(s) with a failed test, one at a time:\n`);
  const second = await runFiles(again, 1);
  if (second.failedFiles.size > 0) process.exitCode = 1;
  const lucky = again.filter((name) => !second.failedFiles.has(name));
  if (lucky.length > 0) process.stdout.write(`\nPassed at the second look only, to be mended: ${lucky.join(", ")}\n`);
}
