import { isOfOtherPool } from "../../../../src/schema/rules/pool-label.ts";
import type { OpenCommand, Worker } from "../../api/types.ts";

/**
 * Why no worker claims waiting commands: which requirement no worker meets, or that all suitable workers are full. Undefined if
 * a worker has room for each of them.
 */
export function whyFree(commands: readonly OpenCommand[], workers: readonly Worker[]): string | undefined {
  const ready = workers.filter(
    (worker) => worker.status === "ready" && commands.some(({ labels = {} }) => !isOfOtherPool(worker.labels, labels)),
  );
  if (ready.length === 0) return "No worker is ready.";
  for (const command of commands) {
    if (ready.some((worker) => hasKinds(worker, command) && hasLabels(worker, command))) continue;
    const { kinds = [], labels = {} } = command;
    const runs = `runs ${kinds.join(" and ")}`;
    const names = Object.entries(labels).map(([name, value]) => `${name}=${value}`);
    const has = `has the label${names.length === 1 ? "" : "s"} ${names.join(", ")}`;
    if (!ready.some((worker) => hasKinds(worker, command))) return `No ready worker ${runs}.`;
    if (!ready.some((worker) => hasLabels(worker, command))) return `No ready worker ${has}.`;
    return `No ready worker that ${runs} ${has}.`;
  }
  const able = ready.filter((worker) =>
    commands.some((command) => hasKinds(worker, command) && hasLabels(worker, command)),
  );
  return able.every(({ running, capacity }) => running >= capacity)
    ? "All workers that could take it are busy."
    : undefined;
}

function hasKinds({ capabilities }: Worker, { kinds = [] }: OpenCommand): boolean {
  return kinds.every((kind) => capabilities.includes(kind));
}

function hasLabels(worker: Worker, { labels = {} }: OpenCommand): boolean {
  if (isOfOtherPool(worker.labels, labels)) return false;
  return Object.entries(labels).every(([name, value]) => worker.labels[name] === value);
}
