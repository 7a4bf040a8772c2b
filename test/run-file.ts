import { basename } from "node:path";
import { run } from "node:test";
import type { TestEvent } from "node:test/reporters";

/** What happened in a test file. */
export interface FileRun {
  /** In the order of the file, without the sums that Node tells at its end. */
  events: TestEvent[];
  /** Suites are not counted. */
  passed: number;
  failed: number;
}

/**
 * Runs one compiled test file in a process of its own. When no test in it begins or ends for `testMs`, which is the longest
 * that a test may take, the process is ended and the file has failed: from outside, because a test that spins lets no timer of
 * its own process fire. `onLate` is told which test it was.
 */
export async function runFile(path: string, testMs: number, onLate: (test: string) => void): Promise<FileRun> {
  const result: FileRun = { events: [], passed: 0, failed: 0 };
  const tooLong = new AbortController();
  const running = new Map<string, string>();
  const timer = setTimeout(() => {
    onLate([...running.values()].join(" > ") || basename(path));
    tooLong.abort();
  }, testMs);
  const stream = run({ files: [path], signal: tooLong.signal });
  for await (const event of stream as AsyncIterable<TestEvent>) {
    // These two come as it happens; all others wait for what stands before them in the file.
    if (event.type === "test:dequeue" || event.type === "test:complete") {
      timer.refresh();
      if (event.type === "test:dequeue") running.set(placeOf(event.data), event.data.name);
      else running.delete(placeOf(event.data));
    }
    if (event.type === "test:fail") result.failed += 1;
    if (event.type === "test:pass" && event.data.details.type !== "suite") result.passed += 1;
    if (event.type !== "test:diagnostic" || event.data.nesting > 0) result.events.push(event);
  }
  clearTimeout(timer);
  return result;
}

function placeOf({ name, line, column }: { name: string; line?: number; column?: number }): string {
  return `${line}:${column} ${name}`;
}
