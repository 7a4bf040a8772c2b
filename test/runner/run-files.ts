import { AsyncResource } from "node:async_hooks";
import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe } from "node:test";
import { pathToFileURL } from "node:url";
import "../support/each-test.ts";
import { watchCpu } from "./watch-cpu.ts";

/** A file to which each test file of such a process adds what it took; unset: none does. */
export const TIMES_VARIABLE = "FLOW_TEST_TIMES";

/** A line of it. */
export interface FileTime {
  name: string;
  durationMs: number;
  cpuMs: number;
}

/**
 * Runs test files one after another in this process, each as a suite of its own: its hooks run for its tests alone, and its
 * resources are closed before the next file begins. A new process would load some 300 modules again: 0.6 s of each file.
 */
export function runFiles(root: string, files: readonly string[]): void {
  let ended = Promise.resolve();
  const note = noteTimes();
  // All suites are there from the beginning: when none is left, the hooks of the process run.
  for (const file of files) {
    const address = pathToFileURL(join(root, file)).href;
    const loaded = ended.then(() => loadImports(address));
    ended = describe(file, async () => {
      // The runner knows by the asynchronous context to which suite a test belongs; after a wait it is another one.
      const suite = new AsyncResource("TestFile");
      await loaded;
      await suite.runInAsyncScope(() => import(address));
    }).then(() => note(file));
  }
}

/** Gives what notes the time that has passed since the last file ended. */
function noteTimes(): (name: string) => void {
  const times = process.env[TIMES_VARIABLE];
  if (times === undefined) return () => undefined;
  const cpuOfFile = watchCpu(true);
  let began = performance.now();
  return (name) => {
    const now = performance.now();
    const time: FileTime = { name, durationMs: now - began, cpuMs: cpuOfFile() };
    appendFileSync(times, `${JSON.stringify(time)}\n`);
    began = now;
  };
}

/**
 * Loads what a file imports. A hook at the top of a module that files share belongs to the process so, not to the first file;
 * and the tests of a file belong to its suite only if its own code is all that is left to run.
 */
async function loadImports(address: string): Promise<void> {
  const code = readFileSync(new URL(address), "utf8");
  for (const [, specifier = ""] of code.matchAll(/^(?:import|export)\b[^"';]*"(\.[^"]+)";$/gm)) {
    // The file's own suite fails with this error.
    await import(new URL(specifier, address).href).catch(() => undefined);
  }
}
