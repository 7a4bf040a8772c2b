import { setTimeout as delay } from "node:timers/promises";
import type { RunModel } from "./run-model.ts";
import { listWorkers } from "./server-executions.ts";
import type { ServerTarget } from "./server-target.ts";

/** How long work may wait for a worker before somebody who waits with it wants to know why. */
const WORKER_MS = 5_000;

/**
 * Tells once when work waits and there is no worker that is ready: it would be waited for without an end and without a
 * reason to be seen. Ends when the signal is aborted. Never throws.
 */
export async function watchForWorkers(
  target: ServerTarget,
  model: RunModel,
  tell: (text: string) => void,
  signal: AbortSignal,
  everyMs: number = WORKER_MS,
): Promise<void> {
  try {
    for (let waits = false; ; ) {
      await delay(everyMs, undefined, { signal });
      const before = waits;
      const commands = Object.values(model.root()?.state.commands ?? {});
      waits = commands.length > 0 && commands.every(({ worker }) => worker === null);
      // Twice in a row: what has just been issued is about to be claimed.
      if (!waits || !before) continue;
      const { items } = await listWorkers(target, new URLSearchParams({ limit: "500" }), signal);
      if (items.some(({ status }) => status === "ready")) continue;
      tell(`The work waits: no worker is ready at ${target.url}. 'flow workers' shows them, 'flow serve' starts one`);
      return;
    }
  } catch {
    // It was about a hint.
  }
}
