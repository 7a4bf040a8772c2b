import type { ExecutionState } from "../../../engine/state/state.ts";
import type { ExecutionStore } from "../../../ports/execution-store.ts";
import { FlowError, messageOf } from "../../../schema/words/errors.ts";
import type { Json } from "../../../schema/words/json.ts";
import type { ExecutionCache } from "../memory/execution-cache.ts";
import type { Committed, Job, OpenRound } from "./round.ts";

/** What running a round needs. */
export interface RoundDeps {
  store: Pick<ExecutionStore, "flush">;
  cache: ExecutionCache;
  now(): number;
  resultOf(state: ExecutionState): Json;
  /** Gives commands that are ready to those who want them; called once everything has been decided. */
  assign(round: OpenRound): void;
  /** A round to be tried again: its error is of a kind that passes by itself. */
  isRetryable(error: unknown): boolean;
  /** The error of one job that was done before: it asks what became of that, and nothing is wrong. */
  isDuplicateKey(error: unknown): boolean;
  /** The error as it is told to whoever waits, for one that says "no database now". */
  unavailable(error: unknown): FlowError | undefined;
  /** A fault of the program, which is not told to callers. */
  onFault(error: unknown, executionIds: readonly string[]): void;
}

/** How a round ended. */
export interface RoundEnd {
  committed: Committed | undefined;
  /** Jobs to be run again, in order. */
  again: Job[];
  /** Executions that were written. */
  moved: ReadonlySet<string>;
}

/** Checks, decides, assigns, writes. Every job is settled, failed, or given back to be run again. */
export async function runRound(round: OpenRound, jobs: readonly Job[], deps: RoundDeps): Promise<RoundEnd> {
  const began = deps.now();
  const failed = new Set<string>();
  const again: Job[] = [];
  const applied: Job[] = [];
  for (const job of jobs) {
    if (job.executionIds.some((id) => failed.has(id))) again.push(job);
    else if (await prepare(round, job, failed, deps, again)) applied.push(job);
  }
  const unaffected = unaffectedBy(applied, failed, again);
  dropStates(round, failed, deps.cache);
  for (const { pendingClaim } of unaffected) if (pendingClaim !== undefined) round.pendingClaims.push(pendingClaim);
  deps.assign(round);
  const decided = deps.now();
  const end = await write(round, unaffected, deps);
  const flushMs = deps.now() - decided;
  const events = end.events;
  const timings = { engineMs: decided - began, flushMs, executions: end.moved.size, events };
  const committed = end.at === undefined ? undefined : { at: end.at, timings };
  if (committed !== undefined) for (const job of end.done) job.settle(committed);
  return { committed, again: [...again, ...end.again], moved: end.moved };
}

/** True when the job has changed the round; false when it was refused. An error half-way makes its executions unusable. */
async function prepare(
  round: OpenRound,
  job: Job,
  failed: Set<string>,
  deps: RoundDeps,
  again: Job[],
): Promise<boolean> {
  try {
    job.check(round);
  } catch (error) {
    if (job.isVerified) {
      job.fail(error);
      return false;
    }
    job.isVerified = true;
    for (const id of job.executionIds) failed.add(id);
    again.push(job);
    return false;
  }
  try {
    await job.apply(round);
    return true;
  } catch (error) {
    for (const id of job.executionIds) failed.add(id);
    const away = deps.unavailable(error);
    if (away === undefined) deps.onFault(error, job.executionIds);
    const message = `What follows from this could not be worked out: ${messageOf(error)}`;
    job.fail(
      away ?? (error instanceof FlowError ? error : new FlowError("processing_error", message, { cause: error })),
    );
    return false;
  }
}

/** Jobs that share an execution with one that failed half-way are run again, and so are those that share one with them. */
function unaffectedBy(applied: readonly Job[], failed: Set<string>, again: Job[]): Job[] {
  let unaffected = [...applied];
  for (;;) {
    const affected = unaffected.filter((job) => job.executionIds.some((id) => failed.has(id)));
    if (affected.length === 0) return unaffected;
    for (const job of affected) for (const id of job.executionIds) failed.add(id);
    unaffected = unaffected.filter((job) => !affected.includes(job));
    again.unshift(...affected);
  }
}

function dropStates(round: OpenRound, ids: Iterable<string>, cache: ExecutionCache): void {
  for (const id of ids) {
    const cached = round.executions.get(id);
    if (cached !== undefined) {
      cache.drop(cached);
      cached.markers = [...(round.taken.get(id) ?? []), ...cached.markers];
    }
    round.changeSets.delete(id);
  }
}

interface Written {
  at: number | undefined;
  done: Job[];
  again: Job[];
  moved: ReadonlySet<string>;
  events: number;
}

const NOTHING_MOVED: ReadonlySet<string> = new Set();

async function write(round: OpenRound, jobs: Job[], deps: RoundDeps): Promise<Written> {
  const changeSets = [...round.changeSets.values()].filter((changes) => changes.count() > 0);
  const executions = changeSets.map((changes) => changes.change(deps.resultOf));
  const unaffected = new Set(jobs.flatMap(({ executionIds }) => executionIds));
  const batches = [...round.batches.values()].filter(({ executionIds }) =>
    executionIds.every((id) => unaffected.has(id)),
  );
  const events = executions.reduce((sum, change) => sum + change.events.length, 0);
  if (executions.length === 0 && batches.length === 0) {
    return { at: deps.now(), done: jobs, again: [], moved: NOTHING_MOVED, events };
  }
  try {
    const { moved, at } = await deps.store.flush({ executions, batches });
    const left = executions.map(({ executionId }) => executionId).filter((id) => !moved.has(id));
    dropStates(round, left, deps.cache);
    const { done, again } = divide(jobs, moved, left);
    return { at, done, again, moved, events };
  } catch (error) {
    dropStates(round, [...round.changeSets.keys()], deps.cache);
    return { at: undefined, done: [], again: refuse(jobs, error, deps), moved: NOTHING_MOVED, events: 0 };
  }
}

/** Jobs whose executions were all written are done; of the others what is left is run again, on the newer state. */
function divide(jobs: Job[], moved: ReadonlySet<string>, left: readonly string[]): { done: Job[]; again: Job[] } {
  if (left.length === 0) return { done: jobs, again: [] };
  const isLeft = new Set(left);
  const again = jobs.filter((job) => job.executionIds.some((id) => isLeft.has(id)));
  for (const job of again) job.keepRest(moved);
  return { done: jobs.filter((job) => !again.includes(job)), again };
}

/**
 * Nothing was written, or nobody knows. Passing faults are tried again. When the database is away, callers are told: whether
 * it wrote shows when they send again under their idempotency key. Any other fault is that of one of the jobs: each is run in
 * a round of its own, so that it fails alone.
 */
function refuse(jobs: Job[], error: unknown, deps: RoundDeps): Job[] {
  if (deps.isRetryable(error)) return jobs;
  const away = deps.unavailable(error);
  if (away === undefined && jobs.length > 1) {
    for (const job of jobs) job.alone = true;
    return jobs;
  }
  const executionIds = jobs.flatMap((job) => job.executionIds);
  if (away === undefined && !deps.isDuplicateKey(error)) deps.onFault(error, executionIds);
  for (const job of jobs) job.fail(away ?? error);
  return [];
}
