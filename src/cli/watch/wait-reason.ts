import type { OpenCommandAnswer } from "../../schema/api/executions.ts";
import type { PoolItem } from "../../schema/api/workers.ts";

/** What of a worker decides whether it takes a command. */
type Worker = Pick<PoolItem, "status" | "capabilities" | "labels" | "running" | "capacity">;

/** Why no worker has a command yet. */
export interface WaitReason {
  /** `no worker that is ready has the label gpu=true`. */
  text: string;
  /** Nothing will change by itself: somebody has to start a worker. */
  isStuck: boolean;
}

/** Why a command that no worker has waits, judged by the workers that there are. */
export function waitReason(
  { kinds = [], labels = {} }: Pick<OpenCommandAnswer, "kinds" | "labels">,
  workers: readonly Worker[],
): WaitReason {
  const ready = workers.filter(({ status }) => status === "ready");
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
