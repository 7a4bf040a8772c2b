import { run } from "node:test";
import type { TestEvent } from "node:test/reporters";
import { descendantsOfChild } from "./descendants.ts";

/** Test files that run in one process. */
export interface TestUnit {
  /** As the times show it: its file, or its folder. */
  name: string;
  /** The module that the process begins with. */
  entry: string;
  /** Relative to the folder of all compiled tests. */
  files: readonly string[];
  /** Milliseconds that may pass while no test begins or ends: the longest that a test may take. */
  testMs: number;
}

/** What happened in the process of a {@link TestUnit}. */
export interface UnitRun {
  /** In the order of the files, without the sums that Node tells at its end. */
  events: TestEvent[];
  /** Suites are not counted. */
  passed: number;
  failed: number;
  /** Files with a failed test, and those that the process did not come to the end of. */
  failedFiles: Set<string>;
  durationMs: number;
}

/**
 * Runs a unit in a process of its own. When no test in it begins or ends for `testMs`, the process is ended, with all that it started, and
 * the unit has failed: from outside, because a test that spins lets no timer of its own process fire. `onLate` is told which test it was.
 */
export async function runUnit(unit: TestUnit, onLate: (test: string) => void): Promise<UnitRun> {
  const result: UnitRun = { events: [], passed: 0, failed: 0, failedFiles: new Set(), durationMs: 0 };
  const began = performance.now();
  const tooLong = new AbortController();
  const running = new Map<string, string>();
  /** Files that have not ended. */
  const left = new Set(unit.files);
  const timer = setTimeout(() => {
    onLate([...running.values()].join(" > ") || unit.name);
    const started = descendantsOfChild(unit.entry);
    tooLong.abort();
    for (const pid of started) end(pid);
  }, unit.testMs);
  const stream = run({ files: [unit.entry], signal: tooLong.signal });
  for await (const event of stream as AsyncIterable<TestEvent>) {
    // These two come as it happens; all others wait for what stands before them in the file.
    if (event.type === "test:dequeue" || event.type === "test:complete") {
      timer.refresh();
      if (event.type === "test:dequeue") running.set(placeOf(event.data), event.data.name);
      else running.delete(placeOf(event.data));
    }
    if (isStray(event, unit)) {
      const message = `'${event.data.name}' ran outside of its file's suite, with hooks of other files: see runner/run-files.ts`;
      result.events.push({ type: "test:stderr", data: { file: unit.entry, message: `${message}\n` } });
      result.failed += 1;
      for (const name of unit.files) result.failedFiles.add(name);
    }
    if ((event.type === "test:pass" || event.type === "test:fail") && event.data.nesting === 0)
      left.delete(event.data.name);
    if (event.type === "test:fail") {
      // A suite fails with its tests, which were counted.
      const isSuite = (event.data.details.error as { failureType?: string }).failureType === "subtestsFailed";
      if (!isSuite) result.failed += 1;
      for (const name of failedWith(event, unit, left)) result.failedFiles.add(name);
    }
    if (event.type === "test:pass" && event.data.details.type !== "suite") result.passed += 1;
    if (!isSum(event)) result.events.push(event);
  }
  clearTimeout(timer);
  result.durationMs = performance.now() - began;
  return result;
}

/**
 * Files that have failed by this event. In a process of several each is a suite, which fails with its tests, wherever these were
 * written; at the end the process fails with its suites, and with it the files that it did not come to the end of.
 */
function failedWith({ data }: Extract<TestEvent, { type: "test:fail" }>, { files }: TestUnit, left: Iterable<string>) {
  if (files.length === 1) return files;
  if (data.nesting > 0) return [];
  return files.includes(data.name) ? [data.name] : left;
}

/** True for what Node tells at the end of a process: how many tests passed, failed, and so on. A test may tell something too. */
function isSum({ type, data }: TestEvent): boolean {
  return type === "test:diagnostic" && data.nesting === 0 && SUM.test(data.message);
}

const SUM = /^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) [\d.]+$/;

/** True for the end of a test that should have run in the suite of its file: in a process of several files. */
function isStray(event: TestEvent, { entry, files }: TestUnit): event is Extract<TestEvent, { type: "test:pass" }> {
  if (event.type !== "test:pass" && event.type !== "test:fail") return false;
  const { nesting, name, details } = event.data;
  return !files.some((file) => entry.endsWith(file)) && nesting === 0 && details.type !== "suite" && name !== entry;
}

/** What a unit started outlives it: no hook of its tests runs any more. */
function end(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended by itself meanwhile.
  }
}

function placeOf({
  file,
  name,
  line,
  column,
}: {
  file?: string;
  name: string;
  line?: number;
  column?: number;
}): string {
  return `${file}:${line}:${column} ${name}`;
}
