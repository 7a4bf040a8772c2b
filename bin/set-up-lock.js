// One set-up of a checkout at a time, over processes: a file that only one of them can make. Its owner touches it while it
// works; a file that nobody touches was left by a process that was killed, and is taken over.
import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { ROOT } from "./parts.js";

const file = join(ROOT, "dist/.set-up.lock");
const TOUCH_MS = 1_000;
const ABANDONED_MS = 15_000;
const POLL_MS = 100;

/** Waits until this process alone sets up the checkout; `onWait` is called while another one does. */
export async function takeLock(onWait) {
  mkdirSync(dirname(file), { recursive: true });
  const token = randomUUID();
  while (!tryTake(token)) {
    onWait();
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  const timer = setInterval(touch, TOUCH_MS);
  const release = () => {
    clearInterval(timer);
    if (read() === token) rmSync(file, { force: true });
  };
  process.once("exit", release);
  return {
    release() {
      process.off("exit", release);
      release();
    },
  };
}

function tryTake(token) {
  try {
    writeFileSync(file, token, { flag: "wx" });
    return true;
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
  }
  const found = statSync(file, { throwIfNoEntry: false });
  if (found !== undefined && Date.now() - found.mtimeMs > ABANDONED_MS) removeAbandoned();
  return false;
}

/** Moved away under a name of its own, so that of two who find it abandoned one removes it and the other finds nothing. */
function removeAbandoned() {
  const aside = `${file}.${process.pid}`;
  try {
    renameSync(file, aside);
    rmSync(aside, { force: true });
  } catch (error) {
    if (error.code !== "ENOENT") throw error;
  }
}

function touch() {
  try {
    const now = new Date();
    utimesSync(file, now, now);
  } catch {
    // It was taken over: this process was stopped for long. Both build the same.
  }
}

function read() {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
