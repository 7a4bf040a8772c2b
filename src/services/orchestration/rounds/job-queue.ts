import type { CachedExecution, ExecutionCache } from "../memory/execution-cache.ts";
import type { IdAllocator } from "../memory/id-allocator.ts";
import type { Job } from "./round.ts";

/** Jobs of one round: enough to share a commit, few enough to keep its statement short. */
const JOBS_MAX = 256;
/** Executions of one round. */
export const EXECUTIONS_MAX = 512;

/** What a queue of jobs works with. */
export interface JobQueueDeps {
  cache: ExecutionCache;
  ids: IdAllocator;
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
  isUsable(cached: CachedExecution): boolean;
  length(): number;
}

/** An empty queue. */
export function createJobQueue({ cache, ids, onLoaded, onFailed }: JobQueueDeps): JobQueue {
  let queue: Job[] = [];
  /** Executions that are being made usable. */
  const preparing = new Set<CachedExecution>();

  const prepare = async (cached: CachedExecution) => {
    preparing.add(cached);
    try {
      await cache.load(cached);
      await ids.ready(cached.live?.lastEventId ?? 0);
    } catch (error) {
      preparing.delete(cached);
      return onFailed(error, cached.executionId);
    }
    preparing.delete(cached);
    onLoaded();
  };
  const isUsable = (cached: CachedExecution): boolean => {
    if (cached.busy) return false;
    // Ids that this server is about to give must be above those that another one gave to this execution.
    if (cached.missing || (cached.live !== null && ids.isReady(cached.live.lastEventId))) return true;
    if (!preparing.has(cached)) void prepare(cached);
    return false;
  };

  return {
    push: (job) => void queue.push(job),
    unshift(jobs) {
      queue = [...jobs, ...queue];
    },
    take() {
      const { taken, kept } = divide(queue, (executionId) => isUsable(cache.entry(executionId)));
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
