import { setTimeout as delay } from "node:timers/promises";
import { isUnclaimed } from "../../engine/state/evolve-wait.ts";
import type { OpenCommandAnswer } from "../../schema/api/commands.ts";
import type { PoolItem } from "../../schema/api/workers.ts";
import { EXECUTION_ROUTES } from "../../schema/routes/executions.ts";
import { isOfOtherPool } from "../../schema/rules/pool-label.ts";
import type { RunModel } from "../progress/run-model.ts";
import { callServer } from "../server/client.ts";
import { listWorkers } from "../server/executions-api.ts";
import type { ServerTarget } from "../server/target.ts";

/** The fields that decide whether a worker takes a command. */
type Worker = Pick<PoolItem, "status" | "capabilities" | "labels" | "running" | "capacity">;

/** Why no worker has a command yet. */
export interface WaitReason {
  /** `no worker that is ready has the label gpu=true`. */
  text: string;
  /** Nothing will change by itself: a worker has to be started. */
  isStuck: boolean;
}

/** Why a command without a worker waits, judged by the known workers. */
export function waitReason(
  { kinds = [], labels = {} }: Pick<OpenCommandAnswer, "kinds" | "labels">,
  workers: readonly Worker[],
): WaitReason {
  const ready = workers.filter((worker) => worker.status === "ready" && !isOfOtherPool(worker.labels, labels));
  const stuck = (text: string) => ({ text, isStuck: true });
  if (ready.length === 0) return stuck("no worker is ready");
  const required = Object.entries(labels);
  const hasLabels = (worker: Worker) => required.every(([name, value]) => worker.labels[name] === value);
  const runsKinds = ({ capabilities }: Worker) => kinds.every((kind) => capabilities.includes(kind));
  const pairs = required.map(([name, value]) => `${name}=${value}`).join(", ");
  const noun = required.length === 1 ? "label" : "labels";
  if (!ready.some(hasLabels)) return stuck(`no worker that is ready has the ${noun} ${pairs}`);
  if (!ready.some(runsKinds)) return stuck(`no worker that is ready runs ${kinds.join(" and ")}`);
  const able = ready.filter((worker) => hasLabels(worker) && runsKinds(worker));
  if (able.length === 0)
    return stuck(`no worker that is ready has the ${noun} ${pairs} and runs ${kinds.join(" and ")}`);
  const isFull = able.every(({ running, capacity }) => running >= capacity);
  return { text: isFull ? "every worker that could take it is full" : "a worker is about to take it", isStuck: false };
}

/** Time between two checks; work that waits through two of them is explained. */
const WORKER_MS = 2_500;

/**
 * Finds out why steps of a running execution wait for a worker: sets the reason in their rows (`StepRow.waits`), and reports
 * each reason once if it will not pass by itself. Ends when the signal is aborted. Never throws.
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
      const open = Object.entries(root.state.commands).filter(([, command]) => isUnclaimed(command));
      // Twice in a row: a new command is usually claimed within milliseconds.
      const isLong = open.some(([id]) => waited.has(id));
      waited = new Set(open.map(([id]) => id));
      if (!isLong) continue;
      const { commands = [] } = await callServer(target, EXECUTION_ROUTES.detail, {
        params: { execution_id: root.state.executionId },
        signal,
      });
      const workers = await listWorkers(target, signal);
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
    // Only a hint is lost.
  }
}
