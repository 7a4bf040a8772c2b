import { readFileSync } from "node:fs";

/** Clock ticks per second in which Linux counts, on all its machines. */
const TICKS_PER_S = 100;

/**
 * The answer gives the milliseconds of processor time of the child processes that ended since it was called last, with all
 * processes that they waited for. Always 0 where the system does not tell.
 */
export function watchCpu(): () => number {
  let last = cpuOfChildrenMs();
  return () => {
    const now = cpuOfChildrenMs();
    const used = now - last;
    last = now;
    return used;
  };
}

/** Linux adds a child's time to this sum when it has ended, and not before. */
function cpuOfChildrenMs(): number {
  let line: string;
  try {
    line = readFileSync("/proc/self/stat", "utf8");
  } catch {
    return 0;
  }
  // After the name, which may contain anything: the 16th and 17th field of proc_pid_stat(5).
  const fields = line.slice(line.lastIndexOf(")") + 2).split(" ");
  return ((Number(fields[13]) + Number(fields[14])) * 1000) / TICKS_PER_S;
}
