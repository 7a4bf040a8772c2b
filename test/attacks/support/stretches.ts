import { appendFileSync } from "node:fs";
import { isMainThread } from "node:worker_threads";
import { threadMs } from "../../support/thread-time.ts";

/*
 * Loaded into a server before its program (`NODE_OPTIONS=--import …`): writes down how much processor time the server's own thread
 * uses between two turns of its event loop. Processor time and not time, so that the machine's other work does not count.
 */

/** How often it looks, milliseconds: a stretch is counted with what is done before and after it within this time. */
const LOOK_MS = 5;
/** Shorter stretches are not written. */
const LEAST_MS = 20;

const file = process.env["STRETCHES_FILE"];
if (isMainThread && file !== undefined) {
  let before = threadMs();
  setInterval(() => {
    const now = threadMs();
    const stretch = now - before;
    before = now;
    if (stretch > LEAST_MS) appendFileSync(file, `${Math.round(stretch)}\n`);
  }, LOOK_MS).unref();
}
