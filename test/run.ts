import { randomInt } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { spec } from "node:test/reporters";
import { parseArgs } from "node:util";
import { withRealPython } from "./runner/python-path.ts";
import { type FileTime, TIMES_VARIABLE } from "./runner/run-files.ts";
import { runUnit, type TestUnit, type UnitRun } from "./runner/run-unit.ts";
import { startSharedDatabase } from "./runner/shared-database.ts";
import { isPure, needsNoDatabase, unitsOf } from "./runner/units.ts";
import { watchCpu } from "./runner/watch-cpu.ts";

/*
 * `npm test`: runs every compiled test file in a process of its own, those of the pure core one folder in a process, and fails
 * when no test ran. (`node --test` on a folder finds no test in some versions and exits 0.)
 */

const HELP = `Usage: npm test -- [words] [options]

Runs all tests, or the files whose path has one of the words: npm test -- engine test/tools/registry.test.ts

  --pure          only the pure core: no database, no server, no browser
  --many-seeds    ten thousand seeds in the simulator
  --every-form    the attacks try every form of every input, not a sample
  --times         says at the end which processes and files took longest
  --second-look   runs failed files once more, one at a time, and fails for those that fail again; the others
                  are named, because a test that needs a second look is to be mended. For CI on a busy machine.
`;

const { positionals, values: options } = readOptions();
/** The compiled files are searched; people name the sources. */
const wanted = positionals.map((word) => word.replace(/^(\.\/)?test\//, "").replace(/\.ts$/, ".js"));

const root = import.meta.dirname;
const secondLook = options["second-look"];
const pureOnly = options.pure;
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
  times: FileTime[];
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
  const runner = async () => {
    for (let unit = queue.shift(); unit !== undefined; unit = queue.shift()) {
      const { name, testMs } = unit;
      const late = (test: string) => {
        process.stdout.write(`${name} is ended: no test began or ended for ${testMs / 1000} s. Running: ${test}\n`);
      };
      show(await runUnit(unit, late), name);
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

/** What stands on the command line. Ends this process for `--help`, and with 2 for an option that is unknown. */
function readOptions() {
  const flag = { type: "boolean", default: false } as const;
  const flags = { pure: flag, "many-seeds": flag, "every-form": flag, times: flag, "second-look": flag };
  try {
    const read = parseArgs({ allowPositionals: true, options: { ...flags, help: { ...flag, short: "h" } } });
    if (!read.values.help) return read;
    process.stdout.write(HELP);
    process.exit(0);
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${HELP}`);
    process.exit(2);
  }
}

/** Runs all that is wanted; false when it failed. */
async function main(): Promise<boolean> {
  const timesOfFiles = options.times ? gatherTimes() : undefined;
  const first = await runUnits(unitsOf(root, files, { isAll: wanted.length === 0 }), CONCURRENCY);
  if (timesOfFiles !== undefined) showTimes(first, timesOfFiles());
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

/** The slowest units; of those of many files, the files too. */
function showTimes({ times }: Total, ofFiles: readonly FileTime[]): void {
  const seconds = (ms: number) => `${(ms / 1000).toFixed(1).padStart(7)} s`;
  const show = (what: string, list: readonly FileTime[]) => {
    const slowest = list.toSorted((one, other) => other.durationMs - one.durationMs).slice(0, TIMES_SHOWN);
    const lines = slowest.map(({ name, durationMs, cpuMs }) => `${seconds(durationMs)} ${seconds(cpuMs)}  ${name}\n`);
    const all = list.reduce((sum, { cpuMs }) => sum + cpuMs, 0);
    process.stdout.write(
      `\nThe longest ${what}, and their processor time, of ${seconds(all).trim()} in all:\n${lines.join("")}`,
    );
  };
  show("processes", times);
  if (ofFiles.length > 0) show("files of a shared process", ofFiles);
}

/** Has the files of shared processes tell their times until the answer is called, which gives them. */
function gatherTimes(): () => FileTime[] {
  const folder = mkdtempSync(join(tmpdir(), "flow-times-"));
  const file = join(folder, "times.jsonl");
  writeFileSync(file, "");
  process.env[TIMES_VARIABLE] = file;
  return () => {
    const lines = readFileSync(file, "utf8")
      .split("\n")
      .filter((line) => line !== "");
    rmSync(folder, { recursive: true, force: true });
    delete process.env[TIMES_VARIABLE];
    return lines.map((line) => JSON.parse(line) as FileTime);
  };
}

// The inner loop has a third of the random cases; `npm test` has all.
if (pureOnly) process.env["FLOW_PROPERTY_RUNS"] ??= "100";

if (options["many-seeds"]) process.env["FLOW_SIMULATOR_SEEDS"] ??= "10000";
if (options["every-form"]) process.env["FLOW_EVERY_FORM"] ??= "1";

// The simulator's new seeds, and the sample of forms, are those of the whole run: a second look that had others would say nothing
// about the first.
process.env["FLOW_SIMULATOR_FRESH"] ??= String(randomInt(1_000_000, 2_000_000_000));
process.env["FLOW_FORMS_SEED"] ??= String(randomInt(2 ** 31));

if (!pureOnly) process.env["PATH"] = withRealPython(process.env["PATH"] ?? "");

// Files without a database would wait for a server in vain.
const stop = pureOnly || files.every(needsNoDatabase) ? undefined : await startSharedDatabase();
try {
  if (!(await main())) process.exitCode = 1;
} finally {
  await stop?.();
}
