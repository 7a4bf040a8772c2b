import type { CachedExecution, ExecutionCache } from "../memory/execution-cache.ts";
import type { IdAllocator } from "../memory/id-allocator.ts";
import type { Job } from "./round.ts";

/** Jobs of one round: enough to share a commit, few enough to keep its statement short. */
const JOBS_MAX = 256;
/**
 * Of so many jobs one is taken that has no caller (`mayWait`), while there are others: ten thousand timers that are due together hold up no
 * request, and neither do requests stop them.
 */
const CALLERLESS_SHARE = 4;
/** Executions of one round. */
export const EXECUTIONS_MAX = 512;

/** What a job queue needs. */
export interface JobQueueDeps {
  cache: ExecutionCache;
  ids: IdAllocator;
  /** An execution that jobs wait for has been loaded. */
  onLoaded(): void;
  /** An execution could not be loaded, and its jobs are still in the queue. */
  onFailed(error: unknown, executionId: string): void;
}

/**
 * Jobs that wait for a round. Those of one execution run in the order in which they came. Executions take turns, so that one
 * with hundreds of jobs does not hold up the others, and jobs with callers go before those without. A job costs the same however many
 * others wait.
 */
export interface JobQueue {
  push(job: Job): void;
  /** Puts jobs before all others, in this order: they finish work that was begun. */
  unshift(jobs: readonly Job[]): void;
  /** Takes the jobs that can run now: of two jobs on one execution the later one waits for the earlier one. */
  take(): Job[];
  /** The round that worked on this execution has ended: its next job may run. */
  free(cached: CachedExecution): void;
  /** Removes the jobs that work on this execution, or all. */
  withdraw(executionId?: string): Job[];
  /** True if it is in no round and loaded; otherwise starts to load it. */
  isUsable(cached: CachedExecution): boolean;
  length(): number;
  /** True if a job waits for this execution. */
  has(executionId: string): boolean;
  /** Requests that wait for this execution. */
  waiting(executionId: string): number;
  /** Bytes of the requests that wait. */
  bytes(): number;
}

/** A job in the queue. */
interface Entry {
  job: Job;
  executionIds: readonly string[];
  isUrgent: boolean;
  /** It is in `offered`. */
  isOffered: boolean;
}

/** An empty queue. */
export function createJobQueue({ cache, ids, onLoaded, onFailed }: JobQueueDeps): JobQueue {
  const lines = createJobLines();
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
    lines.release(cached.executionId);
    onLoaded();
  };
  const isUsable = (cached: CachedExecution): boolean => {
    if (cached.busy) return false;
    // Ids that this server is about to assign must be above those that another server assigned in this execution.
    if (cached.missing || (cached.live !== null && ids.isReady(cached.live.lastEventId))) return true;
    if (!preparing.has(cached)) void prepare(cached);
    return false;
  };
  /** The next job that can run. One that cannot is offered again when its executions are released. */
  const next = (): Entry | undefined => {
    for (let entry = lines.next(); entry !== undefined; entry = lines.next()) {
      if (entry.job.isAbandoned()) lines.remove(entry);
      // Check every execution, without stopping at the first: the check starts loading those that are not in memory.
      else if (entry.executionIds.map((id) => isUsable(cache.entry(id))).every(Boolean)) return entry;
    }
    return undefined;
  };

  return {
    push: (job) => lines.add(job, false),
    unshift(jobs) {
      for (const job of jobs.toReversed()) lines.add(job, true);
    },
    take: () => takeRound(lines, next),
    free(cached) {
      cache.free(cached);
      lines.release(cached.executionId);
    },
    withdraw(executionId) {
      const hit = lines.of(executionId);
      for (const entry of hit) lines.remove(entry);
      return hit.map(({ job }) => job);
    },
    isUsable,
    length: lines.count,
    has: lines.has,
    waiting: lines.waiting,
    bytes: lines.bytes,
  };
}

/** The jobs of one round, taken out of their lines. */
function takeRound(lines: JobLines, next: () => Entry | undefined): Job[] {
  const taken: Job[] = [];
  const members = new Set<string>();
  const apart: Entry[] = [];
  while (taken.length < JOBS_MAX && members.size < EXECUTIONS_MAX && taken[0]?.alone !== true) {
    const entry = next();
    if (entry === undefined) break;
    if (entry.job.alone && taken.length > 0) {
      apart.push(entry);
      continue;
    }
    lines.remove(entry);
    taken.push(entry.job);
    for (const id of entry.executionIds) members.add(id);
  }
  for (const entry of apart.reverse()) lines.offer(entry);
  return taken;
}

/** The jobs of each execution in a line, and which of them come next. */
interface JobLines {
  /** Behind the other jobs of its executions, or, being urgent, before them. */
  add(job: Job, isUrgent: boolean): void;
  /** Removes a job, and offers those that waited for it. */
  remove(entry: Entry): void;
  /** Offers a job that is the first in all of its lines. */
  offer(entry: Entry): void;
  /** Offers the first job of an execution, if it is the first in its other lines too. */
  release(executionId: string): void;
  /** The job that was offered first: the urgent ones before the others, and of these those with callers, but for a share. It stays in its lines. */
  next(): Entry | undefined;
  /** The jobs of an execution, or all. */
  of(executionId: string | undefined): Entry[];
  count(): number;
  has(executionId: string): boolean;
  waiting(executionId: string): number;
  bytes(): number;
}

function createJobLines(): JobLines {
  const entries = new Set<Entry>();
  /** A job of several executions is in the line of each. */
  const lines = new Map<string, JobLine>();
  const offered = { urgent: emptyLine<Entry>(), called: emptyLine<Entry>(), callerless: emptyLine<Entry>() };
  let bytes = 0;
  /** Jobs that were taken since one without a caller was. */
  let called = 0;

  const isFirst = (entry: Entry) => entry.executionIds.every((id) => lines.get(id)?.first?.value === entry);
  const offer = (entry: Entry | undefined) => {
    if (entry === undefined || entry.isOffered || !isFirst(entry)) return;
    entry.isOffered = true;
    if (entry.isUrgent) prepend(offered.urgent, entry);
    else append(entry.job.mayWait === true ? offered.callerless : offered.called, entry);
  };
  const takeOffered = (): Entry | undefined => {
    const urgent = takeFirst(offered.urgent);
    if (urgent !== undefined) return urgent;
    const entry = called < CALLERLESS_SHARE - 1 ? takeFirst(offered.called) : undefined;
    if (entry !== undefined) called += 1;
    else called = 0;
    return entry ?? takeFirst(offered.callerless) ?? takeFirst(offered.called);
  };
  const release = (executionId: string) => offer(lines.get(executionId)?.first?.value);
  return {
    add(job, isUrgent) {
      const entry = { job, executionIds: [...job.executionIds], isUrgent, isOffered: false };
      entries.add(entry);
      bytes += job.bytes ?? 0;
      for (const id of entry.executionIds) {
        const line = lines.get(id) ?? { ...emptyLine<Entry>(), requests: 0 };
        lines.set(id, line);
        if (job.bytes !== undefined) line.requests += 1;
        if (isUrgent) prepend(line, entry);
        else append(line, entry);
      }
      offer(entry);
    },
    remove(entry) {
      entries.delete(entry);
      bytes -= entry.job.bytes ?? 0;
      for (const id of entry.executionIds) {
        const line = lines.get(id);
        if (line === undefined) continue;
        removeFrom(line, entry);
        if (entry.job.bytes !== undefined) line.requests -= 1;
        if (line.size === 0) lines.delete(id);
        else release(id);
      }
    },
    offer,
    release,
    next() {
      for (;;) {
        const entry = takeOffered();
        if (entry === undefined) return undefined;
        entry.isOffered = false;
        // It may have been withdrawn, or an urgent job may have come before it.
        if (entries.has(entry) && isFirst(entry)) return entry;
      }
    },
    of: (executionId) => (executionId === undefined ? [...entries] : valuesOf(lines.get(executionId))),
    count: () => entries.size,
    has: (executionId) => lines.has(executionId),
    waiting: (executionId) => lines.get(executionId)?.requests ?? 0,
    bytes: () => bytes,
  };
}

interface JobLine extends Line<Entry> {
  /** Those that a caller waits for; the others are what follows from them. */
  requests: number;
}

/** Values one after the other. An array would move all that is left with each `shift`, once it is long. */
interface Line<T> {
  first: Link<T> | undefined;
  last: Link<T> | undefined;
  size: number;
}

interface Link<T> {
  value: T;
  next: Link<T> | undefined;
}

function emptyLine<T>(): Line<T> {
  return { first: undefined, last: undefined, size: 0 };
}

function append<T>(line: Line<T>, value: T): void {
  const link = { value, next: undefined };
  if (line.last === undefined) line.first = link;
  else line.last.next = link;
  line.last = link;
  line.size += 1;
}

function prepend<T>(line: Line<T>, value: T): void {
  line.first = { value, next: line.first };
  line.last ??= line.first;
  line.size += 1;
}

function takeFirst<T>(line: Line<T>): T | undefined {
  const { first } = line;
  if (first === undefined) return undefined;
  line.first = first.next;
  if (line.first === undefined) line.last = undefined;
  line.size -= 1;
  return first.value;
}

/** Looks at each value before it; mostly it is the first. */
function removeFrom<T>(line: Line<T>, value: T): void {
  let before: Link<T> | undefined;
  for (let link = line.first; link !== undefined; link = link.next) {
    if (link.value === value) {
      if (before === undefined) line.first = link.next;
      else before.next = link.next;
      if (line.last === link) line.last = before;
      line.size -= 1;
      return;
    }
    before = link;
  }
}

function valuesOf<T>(line: Line<T> | undefined): T[] {
  const values: T[] = [];
  for (let link = line?.first; link !== undefined; link = link.next) values.push(link.value);
  return values;
}
