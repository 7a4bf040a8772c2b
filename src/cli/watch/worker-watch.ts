import { setTimeout as delay } from "node:timers/promises";
import type { PoolItem } from "../../schema/api/workers.ts";
import type { RunModel } from "../progress/run-model.ts";
import { listWorkers, readExecution } from "../server/executions-api.ts";
import type { ServerTarget } from "../server/target.ts";
import { waitReason } from "./wait-reason.ts";

/** How long work may wait for a worker before somebody who waits with it wants to know why. */
const WORKER_MS = 2_500;

/**
 * Looks, while an execution goes on, why steps of it wait for a worker: their rows say so (`StepRow.waits`), and what will not
 * change by itself is reported once. Ends when the signal is aborted. Never throws.
 */
export async function watchForWorkers(
  target: ServerTarget,
  model: RunModel,
  notify: (text: string) => void,
  signal: AbortSignal,
  everyMs: number = WORKER_MS,
): Promise<void> {
  const reported = new Set<string>();
  try {
    for (let waited = new Set<string>(); ; ) {
      await delay(everyMs, undefined, { signal });
      const root = model.root();
      if (root === undefined) continue;
      const open = Object.entries(root.state.commands).filter(([, { worker }]) => worker === null);
      // Twice in a row: what has just been issued is about to be claimed.
      const isLong = open.some(([id]) => waited.has(id));
      waited = new Set(open.map(([id]) => id));
      if (!isLong) continue;
      const { commands = [] } = await readExecution(target, root.state.executionId, signal);
      const workers = await listAllWorkers(target, signal);
      for (const command of commands) {
        if (command.worker !== null || !waited.has(command.command_id)) continue;
        const { text, isStuck } = waitReason(command, workers);
        const row = root.byName.get(command.step);
        if (row !== undefined) row.waits = { commandId: command.command_id, text };
        if (!isStuck || reported.has(text)) continue;
        reported.add(text);
        notify(`${command.step} waits: ${text} at ${target.url}; 'flow workers' lists them`);
      }
    }
  } catch {
    // It was about a hint.
  }
}

/** The workers that a server knows, as far as one call lists them. */
export async function listAllWorkers(target: ServerTarget, signal: AbortSignal): Promise<PoolItem[]> {
  return (await listWorkers(target, new URLSearchParams({ limit: "500" }), signal)).items;
}
