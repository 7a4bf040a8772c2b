import { readFileSync } from "node:fs";

/**
 * Processor time that the main thread of this process has used, milliseconds. Other than time, it does not count what the machine
 * does beside it, nor the garbage collector's helpers. Where the system does not tell it: that of the process.
 */
export function threadMs(): number {
  try {
    const [ns] = readFileSync(`/proc/self/task/${process.pid}/schedstat`, "latin1").split(" ", 1);
    return Number(ns) / 1e6;
  } catch {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000;
  }
}
