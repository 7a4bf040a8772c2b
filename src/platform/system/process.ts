import { readFile } from "node:fs/promises";
import { runProgram } from "./run-program.ts";

/** True when a process with this id exists, of any user. */
export function isAlive(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it exists, and belongs to another user.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/**
 * False if the process certainly does not run this program: it runs another one, or it is a zombie, which in containers may
 * stay for ever. True also if the system does not say.
 */
export async function mayRun(program: string, pid: number): Promise<boolean> {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => undefined);
  if (status !== undefined) return status.startsWith(`Name:\t${program}\n`) && !/^State:\tZ/m.test(status);
  // Not Linux, or the process is gone.
  const { code, output } = await runProgram("ps", ["-o", "comm=", "-p", String(pid)]);
  return code !== 0 || output.split("/").at(-1) === program;
}
