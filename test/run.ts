import { readdirSync } from "node:fs";
import { spec } from "node:test/reporters";
import { runUnit, type TestUnit, type UnitRun } from "./runner/run-unit.ts";
import { startSharedDatabase } from "./runner/shared-database.ts";
import { isAlone, isPure, unitsOf } from "./runner/units.ts";
import { watchCpu } from "./runner/watch-cpu.ts";

/*
 * `npm test`: runs every compiled test file in a process of its own, those of the pure core one folder in a process, and fails
 * when no test ran. (`node --test` on a folder finds no test in some versions and exits 0.) Words on the command line choose
 * files: `npm test -- engine python`.
 * `--pure` runs the pure core alone. `--times` tells at the end which units took longest.
 * `--second-look` runs the files in which a test failed once more, one at a time, and fails for those that fail again; the
 * others are named, because a test that needs a second look is to be mended. That is for CI on a busy machine.
 */

const root = import.meta.dirname;
const wanted = process.argv.slice(2).filter((word) => !word.startsWith("-"));
const secondLook = process.argv.includes("--second-look");
const pureOnly = process.argv.includes("--pure");
const files = readdirSync(root, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".test.js"))
  .filter((name) => wanted.length === 0 || wanted.some((word) => name.includes(word)))
  .filter((name) => !pureOnly || isPure(name))
  .sort();
/** More than this at once is no matter of luck. */
const SECOND_LOOK_FILES_MAX = 5;
/** How many `--times` shows. */
const TIMES_SHOWN = 60;
/**
 * Units that run at once. The smallest machine has two cores; a third of the time the tests wait for the databases, browsers
 * and servers that they start, so that a third unit finds work to do.
 */
const CONCURRENCY = 3;

interface Total {
  passed: number;
  failed: number;
  failedFiles: Set<string>;
  times: { name: string; durationMs: number; cpuMs: number }[];
}

/** Runs units, `concurrency` at a time, and shows each one when it has ended. */
async function runUnits(units: readonly TestUnit[], concurrency: number): Promise<Total> {
  const total: Total = { passed: 0, failed: 0, failedFiles: new Set(), times: [] };
  const began = performance.now();
  const reporter = new spec();
  reporter.pipe(process.stdout, { end: false });
  const ended = new Promise((resolve) => reporter.on("end", resolve));
  const show = ({ events, passed, failed, failedFiles, durationMs }: UnitRun, name: string) => {
    for (const event of events) reporter.write(event);
    total.passed += passed;
    total.failed += failed;
    total.times.push({ name, durationMs, cpuMs: cpuOfEnded() });
    for (const file of failedFiles) total.failedFiles.add(file);
  };
  const cpuOfEnded = watchCpu();
  const queue = [...units];
  let isAloneRunning = false;
  const next = (): TestUnit | undefined => {
    const index = queue.findIndex((unit) => !isAloneRunning || !isAlone(unit));
    // Where no more than those is left, the runner that has one of them goes on with the others.
    return index < 0 ? undefined : queue.splice(index, 1)[0];
  };
  const runner = async () => {
    for (let unit = next(); unit !== undefined; unit = next()) {
      const { name, testMs } = unit;
      const late = (test: string) => {
        process.stdout.write(`${name} is ended: no test began or ended for ${testMs / 1000} s. Running: ${test}\n`);
      };
      const alone = isAlone(unit);
      isAloneRunning ||= alone;
      show(await runUnit(unit, root, late), name);
      if (alone) isAloneRunning = false;
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

/** Runs all that is wanted; false when it failed. */
async function main(): Promise<boolean> {
  const first = await runUnits(unitsOf(root, files, { isAll: wanted.length === 0 }), CONCURRENCY);
  if (process.argv.includes("--times")) showTimes(first);
  const again = files.filter((name) => first.failedFiles.has(name));
  if (first.passed + first.failed === 0) {
    process.stderr.write(`No test ran: ${files.length} files matched.\n`);
    return false;
  }
  if (again.length === 0) return true;
  if (!secondLook || again.length > SECOND_LOOK_FILES_MAX) return false;
  process.stdout.write(`\nA second look at ${again.length} file(s) with a failed test, one at a time:\n`);
  const second = await runUnits(unitsOf(root, again, { apart: true }), 1);
  const lucky = again.filter((name) => !second.failedFiles.has(name));
  if (lucky.length > 0) process.stdout.write(`\nPassed at the second look only, to be mended: ${lucky.join(", ")}\n`);
  return second.failedFiles.size === 0;
}

function showTimes({ times }: Total): void {
  const slowest = times.sort((one, other) => other.durationMs - one.durationMs).slice(0, TIMES_SHOWN);
  const seconds = (ms: number) => `${(ms / 1000).toFixed(1).padStart(7)} s`;
  const lines = slowest.map(({ name, durationMs, cpuMs }) => `${seconds(durationMs)} ${seconds(cpuMs)}  ${name}\n`);
  const all = times.reduce((sum, { cpuMs }) => sum + cpuMs, 0);
  process.stdout.write(`\nThe longest, and their processor time, of ${seconds(all).trim()} in all:\n${lines.join("")}`);
}

// The inner loop has a third of the random cases; `npm test` has all.
if (pureOnly) process.env["FLOW_PROPERTY_RUNS"] ??= "100";

// Files without a database would wait for a server in vain.
const stop = pureOnly || files.every(isPure) ? undefined : await startSharedDatabase();
try {
  if (!(await main())) process.exitCode = 1;
} finally {
  await stop?.();
}
