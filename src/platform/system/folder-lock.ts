import { randomBytes } from "node:crypto";
import { link, readFile, rm, writeFile } from "node:fs/promises";
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
    const held = await textOf(file);
    if (isLeft(held) && (await removeLeft(file, held, ownMark))) continue;
    if (waitedMs >= WAIT_MAX_MS) throw stillHeld(file, held);
    await sleep(POLL_MS);
  }
  try {
    return await work();
  } finally {
    // Its own: no other process removes the lock of a live one.
    await rm(file, { force: true });
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

/**
 * Removes the lock of a process that is gone; false while another process is about to do so. One at a time, and each looks once more:
 * the lock that a third one has taken in between stays. Moving it away and back would let a fourth one in, or keep it for ever.
 */
async function removeLeft(file: string, held: string, ownMark: string): Promise<boolean> {
  const removing = `${file}.removing`;
  if (!(await tryLock(removing, ownMark))) {
    if (isLeft(await textOf(removing))) await rm(removing, { force: true });
    return false;
  }
  try {
    if ((await textOf(file)) === held) await rm(file, { force: true });
    return true;
  } finally {
    await rm(removing, { force: true });
  }
}

/** Empty when it is gone. */
async function textOf(file: string): Promise<string> {
  return await readFile(file, "utf8").catch(() => "");
}

/** Whether the lock was left by a process that is gone. */
function isLeft(held: string): boolean {
  return held !== "" && !isAlive(Number.parseInt(held, 10));
}

function stillHeld(file: string, held: string): FlowError {
  const owner = held === "" ? "another process" : `process ${Number.parseInt(held, 10)}`;
  const message = `The lock ${file} is held by ${owner} for more than ${WAIT_MAX_MS / 1_000} s`;
  return new FlowError("UNAVAILABLE", `${message}. End that process, or delete the file if it is not of this program`);
}
