import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../../schema/words/errors.ts";
import { withFolderLock } from "../system/folder-lock.ts";
import type { PostgresPlace } from "./place.ts";
import { launch, settledPostmaster } from "./postmaster.ts";
import { findPostmaster, isImpostor } from "./postmaster-file.ts";

const LOOK_MS = 1_000;
/** Pauses between attempts: doubled from the first to the last. */
const FIRST_MS = 1_000;
const LAST_MS = 30_000;

/**
 * Starts the server of a place again whenever it has died, on the same port, which its users keep using. Of several processes that
 * use it one does so. The function that is returned ends it.
 */
export function keepRunning(place: PostgresPlace, port: number, log: (line: string) => void): () => Promise<void> {
  const closing = new AbortController();
  const { signal } = closing;
  const pause = (ms: number) => sleep(ms, undefined, { signal, ref: false }).catch(() => undefined);
  const running = (async () => {
    let pauseMs = FIRST_MS;
    while (!signal.aborted) {
      await pause(LOOK_MS);
      if (signal.aborted || (await runs(place))) continue;
      try {
        await startAgain(place, port, signal, log);
        pauseMs = FIRST_MS;
      } catch (error) {
        log(`${messageOf(error)}. It is tried again in ${pauseMs / 1_000} s`);
        await pause(pauseMs);
        pauseMs = Math.min(2 * pauseMs, LAST_MS);
      }
    }
  })();
  return async () => {
    closing.abort();
    await running;
  };
}

async function runs({ data }: PostgresPlace): Promise<boolean> {
  const found = await findPostmaster(data);
  return found !== undefined && !(await isImpostor(found));
}

async function startAgain(
  place: PostgresPlace,
  port: number,
  signal: AbortSignal,
  log: (line: string) => void,
): Promise<void> {
  const began = Date.now();
  await withFolderLock(place.folder, async () => {
    // Another process may have been faster, or is about to stop everything.
    if (signal.aborted || (await settledPostmaster(place)) !== undefined) return;
    log(`PostgreSQL in ${place.data} has died: it is started again`);
    await launch(place, port);
    log(`PostgreSQL in ${place.data} runs again, after ${Date.now() - began} ms`);
  });
}
