import type { Lane, Lanes } from "../memory/execution-cache.ts";
import type { IdBlocks } from "../memory/id-allocator.ts";
import type { Job } from "./round.ts";

/** Jobs of one round: enough to share a commit, few enough to keep its statement short. */
const JOBS_MAX = 256;
/** Executions of one round. */
export const EXECUTIONS_MAX = 512;

/** What a queue of jobs works with. */
export interface JobQueueDeps {
  lanes: Lanes;
  ids: IdBlocks;
  /** An execution that jobs wait for has been loaded. */
  onLoaded(): void;
  /** One could not be loaded, and its jobs are still in the queue. */
  onFailed(error: unknown, executionId: string): void;
}

/** Jobs that wait for a round, in their order. */
export interface JobQueue {
  push(job: Job): void;
  /** Before all others, in this order: what ends something that was begun. */
  unshift(jobs: readonly Job[]): void;
  /** Takes the jobs that can run now: of two jobs on one execution the later one waits for the earlier one. */
  take(): Job[];
  /** Takes out the jobs that work on this execution, or all. */
  withdraw(executionId?: string): Job[];
  /** In no round, and loaded; begins to load it where it is not. */
  isUsable(lane: Lane): boolean;
  length(): number;
}

/** An empty queue. */
export function createJobQueue({ lanes, ids, onLoaded, onFailed }: JobQueueDeps): JobQueue {
  let queue: Job[] = [];
  /** Lanes that are being made usable. */
  const preparing = new Set<Lane>();

  const prepare = async (lane: Lane) => {
    preparing.add(lane);
    try {
      await lanes.load(lane);
      await ids.ready(lane.live?.lastEventId ?? 0);
    } catch (error) {
      preparing.delete(lane);
      return onFailed(error, lane.executionId);
    }
    preparing.delete(lane);
    onLoaded();
  };
  const isUsable = (lane: Lane): boolean => {
    if (lane.busy) return false;
    // Ids that this server is about to give must be above those that another one gave to this execution.
    if (lane.missing || (lane.live !== null && ids.isReady(lane.live.lastEventId))) return true;
    if (!preparing.has(lane)) void prepare(lane);
    return false;
  };

  return {
    push: (job) => void queue.push(job),
    unshift(jobs) {
      queue = [...jobs, ...queue];
    },
    take() {
      const { taken, kept } = divide(queue, (executionId) => isUsable(lanes.of(executionId)));
      queue = kept;
      return taken;
    },
    withdraw(executionId) {
      const hit = queue.filter((job) => executionId === undefined || job.executionIds.includes(executionId));
      queue = queue.filter((job) => !hit.includes(job));
      return hit;
    },
    isUsable,
    length: () => queue.length,
  };
}

/** The jobs of the next round, and those that wait. Nobody waits for the abandoned ones. */
function divide(queue: readonly Job[], isUsable: (executionId: string) => boolean): { taken: Job[]; kept: Job[] } {
  const taken: Job[] = [];
  const kept: Job[] = [];
  const blocked = new Set<string>();
  const members = new Set<string>();
  const isFull = () => taken.length >= JOBS_MAX || members.size >= EXECUTIONS_MAX || taken[0]?.alone === true;
  for (const job of queue) {
    if (job.isAbandoned()) continue;
    // Every one is asked: that begins to load what is not in memory.
    const isFree = job.executionIds.map((id) => !blocked.has(id) && isUsable(id)).every(Boolean);
    if (isFree && !isFull() && (!job.alone || taken.length === 0)) {
      taken.push(job);
      for (const id of job.executionIds) members.add(id);
    } else {
      kept.push(job);
      for (const id of job.executionIds) blocked.add(id);
    }
  }
  return { taken, kept };
}
