import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { isAlive, mayRun } from "../system/process.ts";

/** What `postmaster.pid` in a data folder says of the server that wrote it. */
export interface Postmaster {
  pid: number;
  port: number;
  /** It listens on a unix socket in its data folder too. */
  hasSocket: boolean;
  /** It takes connections; else it starts or stops. */
  ready: boolean;
}

/** Lines of `postmaster.pid`, from 0 (PostgreSQL's `pidfile.h`). */
const PID_LINE = 0;
const PORT_LINE = 3;
const SOCKET_FOLDER_LINE = 4;
const STATUS_LINE = 7;

/** The server that runs in a data folder. Undefined when none does: no file, or a file that a killed server left. */
export async function findPostmaster(data: string): Promise<Postmaster | undefined> {
  const text = await readFile(pidFile(data), "utf8").catch(() => "");
  const lines = text.split("\n").map((line) => line.trim());
  const pid = Number(lines[PID_LINE]);
  if (!isAlive(pid)) return undefined;
  const hasSocket = (lines[SOCKET_FOLDER_LINE] ?? "") !== "";
  return { pid, port: Number(lines[PORT_LINE]), hasSocket, ready: lines[STATUS_LINE] === "ready" };
}

/**
 * True when no PostgreSQL is behind the file although a process has its id: the server was killed, and the id belongs to what
 * is left of it or was given to another program, which is the rule in containers, where ids are small. PostgreSQL itself would
 * refuse to start beside it.
 */
export async function isImpostor({ pid }: Postmaster): Promise<boolean> {
  return !(await mayRun("postgres", pid));
}

/** Where the server of a data folder writes its process id. */
export function pidFile(data: string): string {
  return join(data, "postmaster.pid");
}
