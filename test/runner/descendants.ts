import { spawnSync } from "node:child_process";

/** A process of this machine. */
interface Listed {
  pid: number;
  parent: number;
  /** Its program and arguments. */
  command: string;
}

/**
 * Ids of the processes that the child of this process with `word` in its command line started, and of those that they started.
 * None where the system has no `ps`.
 */
export function descendantsOfChild(word: string): number[] {
  const all = listed();
  const children = all.filter(({ parent, command }) => parent === process.pid && command.includes(word));
  const found = children.map(({ pid }) => pid);
  // It grows while it is gone through.
  for (const id of found) for (const { pid, parent } of all) if (parent === id) found.push(pid);
  return found.slice(children.length);
}

function listed(): Listed[] {
  const { stdout } = spawnSync("ps", ["-A", "-o", "pid=,ppid=,args="], {
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
  });
  return (stdout ?? "").split("\n").flatMap((line) => {
    const [, pid, parent, command] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? [];
    return command === undefined ? [] : [{ pid: Number(pid), parent: Number(parent), command }];
  });
}
