import { randomBytes } from "node:crypto";
import { link, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { FlowError } from "../../schema/words/errors.ts";
import { isAlive } from "./process.ts";

const POLL_MS = 50;
const WAIT_MAX_MS = 60_000;

/**
 * Runs `work` while no other process does so for the same folder. A file with this process's id is the lock; that of a
 * process that is gone is taken over. Throws `FlowError` UNAVAILABLE when it is held for more than a minute.
 */
export async function withFolderLock<T>(folder: string, work: () => Promise<T>): Promise<T> {
  const file = join(folder, "lock");
  const ownMark = `${process.pid} ${randomBytes(8).toString("hex")}`;
  for (let waitedMs = 0; !(await tryLock(file, ownMark)); waitedMs += POLL_MS) {
    const held = await readFile(file, "utf8").catch(() => "");
    if (held !== "" && !isAlive(Number.parseInt(held, 10))) await removeLock(file, held);
    else if (waitedMs >= WAIT_MAX_MS) throw stillHeld(file, held);
    else await sleep(POLL_MS);
  }
  try {
    return await work();
  } finally {
    await removeLock(file, ownMark);
  }
}

/** The file appears with its content in it: no reader finds an empty one and takes its owner for dead. */
async function tryLock(file: string, ownMark: string): Promise<boolean> {
  const draft = `${file}.${ownMark.replace(" ", ".")}`;
  await writeFile(draft, ownMark, { mode: 0o600 });
  try {
    await link(draft, file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

/** Removes the lock with this content. A lock that another process created in between is put back. */
async function removeLock(file: string, content: string): Promise<void> {
  const aside = `${file}.${randomBytes(8).toString("hex")}`;
  try {
    await rename(file, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
    throw error;
  }
  if ((await readFile(aside, "utf8")) !== content) await link(aside, file).catch(() => undefined);
  await rm(aside, { force: true });
}

function stillHeld(file: string, held: string): FlowError {
  const owner = held === "" ? "another process" : `process ${Number.parseInt(held, 10)}`;
  const message = `The lock ${file} is held by ${owner} for more than ${WAIT_MAX_MS / 1_000} s`;
  return new FlowError("UNAVAILABLE", `${message}. End that process, or delete the file if it is not of this program`);
}
