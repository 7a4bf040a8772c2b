import { readFileSync } from "node:fs";

/** Clock ticks per second in which Linux counts, on all its machines. */
const TICKS_PER_S = 100;

/**
 * The answer gives the milliseconds of processor time of the child processes that ended since it was called last, with all
 * processes that they waited for; `withOwn`: and of this process. Always 0 where the system does not tell.
 */
export function watchCpu(withOwn = false): () => number {
  let last = cpuMs(withOwn);
  return () => {
    const now = cpuMs(withOwn);
    const used = now - last;
    last = now;
    return used;
  };
}

/** Linux adds a child's time to its parent's when it has ended, and not before. */
function cpuMs(withOwn: boolean): number {
  let line: string;
  try {
    line = readFileSync("/proc/self/stat", "utf8");
  } catch {
    return 0;
  }
  // After the name, which may contain anything: the 14th to 17th field of proc_pid_stat(5), its own and its children's.
  const fields = line.slice(line.lastIndexOf(")") + 2).split(" ");
  const ticks = fields.slice(withOwn ? 11 : 13, 15).reduce((sum, field) => sum + Number(field), 0);
  return (ticks * 1000) / TICKS_PER_S;
}
