import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { runProgram } from "../../src/platform/system/run-program.ts";

/** A process of a candidate. */
export interface Child {
  process: ChildProcess;
  /** The promise's value; rejects with the program's last words when the program ends first, or after a minute. */
  before<T>(what: string, promise: Promise<T>): Promise<T>;
  /** Resident memory, MB (10^6 bytes). */
  memoryMb(): Promise<number>;
  /** SIGTERM, and SIGKILL after ten seconds. May be called twice. */
  stop(): Promise<void>;
}

const STOP_MAX_MS = 10_000;
const START_MAX_MS = 60_000;
const OUTPUT_MAX = 65_536;

/** If the benchmark fails half-way, nothing of it goes on working. */
const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** Starts a program. The last 64 KiB of its output are kept for error messages. */
export function startChild(file: string, args: readonly string[], options: SpawnOptions = {}): Child {
  const child = spawn(file, args, { stdio: ["ignore", "pipe", "pipe"], ...options });
  let output = "";
  const keep = (chunk: Buffer) => {
    output = (output + chunk.toString()).slice(-OUTPUT_MAX);
  };
  child.stdout?.on("data", keep);
  child.stderr?.on("data", keep);
  const ended = new Promise<string>((resolve) => {
    child.on("error", (error) => resolve(error.message));
    child.on("close", (code, signal) => resolve(`it ended with ${signal ?? code}`));
  });
  running.add(child);
  child.once("exit", () => running.delete(child));
  const before = async <T>(what: string, promise: Promise<T>): Promise<T> => {
    const over = new AbortController();
    const late = sleep(START_MAX_MS, `not within ${START_MAX_MS / 1_000} s`, { signal: over.signal });
    const fail = (why: string): never => {
      throw new Error(`${[file, ...args].join(" ")}: ${what}: ${why}\n${output.slice(-2_000)}`);
    };
    try {
      return await Promise.race([promise, Promise.race([ended, late]).then(fail)]);
    } finally {
      late.catch(() => undefined);
      over.abort();
    }
  };
  const stop = async () => {
    child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MAX_MS);
    await ended;
    clearTimeout(timer);
  };
  return { process: child, before, memoryMb: () => memoryOf(child.pid ?? 0), stop };
}

async function memoryOf(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  const resident = /^VmRSS:\s+(\d+) kB/m.exec(status)?.[1];
  // Not Linux.
  const kib = resident ?? (await runProgram("ps", ["-o", "rss=", "-p", String(pid)])).output;
  return (Number(kib) * 1_024) / 1e6;
}
