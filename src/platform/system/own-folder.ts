import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";

/** Those that this process has made. */
const own = new Set<string>();

/**
 * A new temporary folder of this process, which only its user may enter: `flow-<what>-<machine>-<pid>-…`. What processes of this machine
 * that were killed have left of the same kind is removed. Who asks for it removes it.
 */
export function ownFolder(what: string): string {
  // Containers may share a folder, and each counts its processes from 1.
  const machine = createHash("sha256").update(hostname()).digest("hex").slice(0, 6);
  const kind = `flow-${what}-${machine}-`;
  for (const name of entriesOf(tmpdir())) {
    const path = join(tmpdir(), name);
    const [, pid] = /^(\d+)-/.exec(name.startsWith(kind) ? name.slice(kind.length) : "") ?? [];
    if (pid !== undefined && !own.has(path) && !isOther(Number(pid))) removed(path);
  }
  const folder = mkdtempSync(join(tmpdir(), `${kind}${process.pid}-`));
  own.add(folder);
  return folder;
}

function entriesOf(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Whether another process has this id now. EPERM: one of another user. */
function isOther(pid: number): boolean {
  if (pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** What belongs to another user stays. */
function removed(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch {}
}
