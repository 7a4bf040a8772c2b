import { readdir, readFile } from "node:fs/promises";

/** CPU time that processes have used so far, microseconds. */
export type ProcessTime = () => Promise<number>;

/** Of the kernel's clock ticks there are so many in a second, on every Linux. */
const TICKS_PER_SECOND = 100;

/** All threads of these processes, by the scheduler's statistics: exact, where the clock ticks of `stat` are samples. */
export function timeOf(pids: readonly number[]): ProcessTime {
  return async () => sum(await Promise.all(pids.map(threadsOf)));
}

/**
 * A process and its children, those that end meanwhile among them: PostgreSQL and its backends. What a child had used when it ended, the
 * kernel adds to its parent, in clock ticks.
 */
export function timeOfTree(pid: number): ProcessTime {
  return async () => {
    const { ended } = await statOf(pid);
    const children = await childrenOf(pid);
    return ended + sum(await Promise.all([pid, ...children].map(threadsOf)));
  };
}

/** The parent of a process. */
export async function parentOf(pid: number): Promise<number> {
  return (await statOf(pid)).parent;
}

async function threadsOf(pid: number): Promise<number> {
  const threads = await readdir(`/proc/${pid}/task`).catch(() => []);
  const times = threads.map(async (thread) => {
    // Nanoseconds at work, nanoseconds waiting for a core, turns. A thread that has just ended has no file.
    const text = await readFile(`/proc/${pid}/task/${thread}/schedstat`, "latin1").catch(() => "0");
    return Number(text.split(" ", 1)[0]) / 1_000;
  });
  return sum(await Promise.all(times));
}

async function childrenOf(pid: number): Promise<number[]> {
  const all = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
  const parents = await Promise.all(all.map(async (child) => (await statOf(child)).parent));
  return all.filter((_, index) => parents[index] === pid);
}

async function statOf(pid: number): Promise<{ parent: number; ended: number }> {
  const stat = await readFile(`/proc/${pid}/stat`, "latin1").catch(() => "");
  // The fields after the program's name, which may have spaces: proc(5) numbers the first of them 3.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const field = (number: number) => Number(fields[number - 3] ?? 0);
  return { parent: field(4), ended: ((field(16) + field(17)) * 1e6) / TICKS_PER_SECOND };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
