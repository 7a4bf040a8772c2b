import type { ExecutionState } from "../../../engine/state/state.ts";
import type { BatchChange, ExecutionStart, ExecutionStore } from "../../../ports/execution-store.ts";
import type { Marker } from "../../../schema/rules/event-record.ts";
import type { CommandLoop, Woken } from "../../../schema/words/command.ts";
import { FlowError, messageOf } from "../../../schema/words/errors.ts";
import type { Json } from "../../../schema/words/json.ts";
import type { CachedExecution, ExecutionCache } from "../memory/execution-cache.ts";
import type { LiveExecution } from "../memory/load-execution.ts";
import type { ApplyDeps } from "./apply-event.ts";
import { type ChangeSet, createChangeSet } from "./change-set.ts";
import { type Allowance, openAllowance, type PureSteps, runPureSteps } from "./pure-steps.ts";
import type { ReadyEntry } from "./ready-queue.ts";
import type { ClaimedCommand, ClaimInput, RoundTimings } from "./types.ts";

/** A unit of work on one or several executions. */
export interface Job {
  /** Executions that it works on; it waits until none of them is in another round. */
  executionIds: string[];
  /** Length of the request that it is, in bytes; of what follows from another job: undefined. */
  bytes?: number;
  /** Run it in a round of its own: a round with several jobs has failed, and this finds out which one caused it. */
  alone: boolean;
  /**
   * The state on which it was refused was loaded for it. A state kept in memory may be older than what another server wrote: so
   * after the first refusal on it, the execution is loaded again and the job checked again.
   */
  isVerified: boolean;
  /** The claim that is answered when the job is written. */
  pendingClaim?: PendingClaim;
  /** No caller waits for it: where a round has no time for the steps that follow from it, it goes behind the jobs that wait for a later one. */
  mayWait?: true;
  /** Steps without effects that follow from it are left to workers: running them here has failed. */
  isWithoutSteps?: true;
  /** True if its caller has given up: do not start it. */
  isAbandoned(): boolean;
  /** Refuses by throwing `FlowError`, before anything has been changed. */
  check(round: Round): void;
  /** Folds and decides. If it throws, its executions are loaded again. */
  apply(round: Round): Promise<void>;
  /** Its changes are durable. */
  settle(committed: Committed): void;
  /** It was refused, or could not be written. */
  fail(error: unknown): void;
  /**
   * Only a part was written: that of the executions in `moved`; another server has changed the others meanwhile. The rest is
   * run again.
   */
  keepRest(moved: ReadonlySet<string>): void;
}

/** The outcome of a round. */
export interface Committed {
  /** The store's clock, milliseconds since 1970. */
  at: number;
  /** Durations of its parts, in milliseconds. */
  timings: RoundTimings;
}

/** A pending claim, and the commands that a round has set aside for it. */
export interface PendingClaim {
  input: ClaimInput;
  /** Claimed in a round that is under way. Two rounds never claim for the same pending claim: its answer ends with the first. */
  tentative: TentativeClaim[];
  /** Called after the commit of a round that claimed for it; with fewer commands, or an empty list, if that failed. */
  deliver(commands: ClaimedCommand[]): void;
}

/** A claim that is not yet durable. */
export interface TentativeClaim {
  entry: ReadyEntry;
  attempt: number;
  /** What it takes of the number that the worker asked for. */
  slots: number;
  /** Iterations that ended under an earlier claim, where the worker need not run them again. */
  ended?: NonNullable<CommandLoop["ended"]>;
  /** It goes on after a wait. */
  woken?: Woken;
  changes: ChangeSet;
}

/** What one flush will write. */
export interface Round {
  /** The change set of an execution of this round; undefined if the execution does not exist. */
  changes(executionId: string): ChangeSet | undefined;
  /** An execution that begins in this round. */
  begin(live: LiveExecution, start: ExecutionStart): ChangeSet;
  /** A batch row to write. */
  batch(change: BatchChange): void;
  applyDeps: ApplyDeps;
}

/** A round, with the parts that only the round loop uses. */
export interface OpenRound extends Round {
  executions: Map<string, CachedExecution>;
  changeSets: Map<string, ChangeSet>;
  batches: Map<string, BatchChange>;
  /** Claims to be answered when the round is written. */
  pendingClaims: PendingClaim[];
  /** Markers that were taken from the executions. */
  taken: Map<string, Marker[]>;
  /** Commands that the round issued and put into the ready queue, with their executions. */
  offered: Map<string, string>;
  /** What it may still run of steps without effects, since the first of them. */
  allowance?: Allowance;
  /** Adds a further execution, which is loaded and in no other round. */
  join(cached: CachedExecution): ChangeSet;
}

/** Opens a round over these executions, all of them loaded and not busy; they are busy from now on. */
export function openRound(
  executions: Iterable<CachedExecution>,
  deps: {
    newId(): number;
    leaseMs: number;
    poolOf(path: string): string | undefined;
    applyDeps: ApplyDeps;
    now(): number;
  },
): OpenRound {
  const members = new Map<string, CachedExecution>();
  const changeSets = new Map<string, ChangeSet>();
  const batches = new Map<string, BatchChange>();
  const pendingClaims: PendingClaim[] = [];
  const taken = new Map<string, Marker[]>();
  const enter = (cached: CachedExecution) => {
    cached.busy = true;
    members.set(cached.executionId, cached);
  };
  for (const cached of executions) enter(cached);

  const open = (cached: CachedExecution, live: LiveExecution, start?: ExecutionStart) => {
    const { newId, leaseMs, poolOf } = deps;
    const options = { newId, leaseMs, poolOf, ...(start !== undefined && { start }) };
    const changes = createChangeSet(live, options);
    const markers = cached.markers;
    cached.markers = [];
    taken.set(cached.executionId, markers);
    for (const marker of markers) changes.marker(marker);
    changeSets.set(cached.executionId, changes);
    return changes;
  };
  const changes = (executionId: string) => {
    const known = changeSets.get(executionId);
    if (known !== undefined) return known;
    const cached = members.get(executionId);
    return cached?.live == null ? undefined : open(cached, cached.live);
  };

  return {
    executions: members,
    changeSets,
    batches,
    pendingClaims,
    taken,
    offered: new Map(),
    applyDeps: deps.applyDeps,
    changes,
    begin(live, start) {
      const { executionId } = live.state;
      const cached = members.get(executionId);
      if (cached === undefined) throw new Error(`Execution ${executionId} is not part of the round`);
      cached.live = live;
      cached.missing = false;
      return open(cached, live, start);
    },
    batch: (change) => void batches.set(change.requestId, change),
    join(cached) {
      enter(cached);
      const joined = changes(cached.executionId);
      if (joined === undefined) throw new Error(`Execution ${cached.executionId} is not loaded`);
      return joined;
    },
  };
}

/** What it takes to run a round. */
export interface RoundDeps {
  store: Pick<ExecutionStore, "flush">;
  cache: ExecutionCache;
  now(): number;
  resultOf(state: ExecutionState): Json;
  /** Runs steps without effects on this server; absent: workers run them. */
  pureSteps?: PureSteps;
  /** A clock in milliseconds, for how long something takes. */
  busy(): number;
  /** Assigns ready commands to waiting claims; called after everything has been decided. */
  assign(round: OpenRound): void;
  /** True if the round should be tried again: the error is transient. */
  isRetryable(error: unknown): boolean;
  /** True for the error of a job that was already done: the job looks up the outcome, and nothing is wrong. */
  isDuplicateKey(error: unknown): boolean;
  /** The error to return to callers if the database is unavailable; otherwise undefined. */
  unavailable(error: unknown): FlowError | undefined;
  /** A fault of the program, which is not shown to callers. */
  onFault(error: unknown, executionIds: readonly string[]): void;
}

/** How a round ended. */
export interface RoundEnd {
  committed: Committed | undefined;
  /** Jobs to run again, in order. */
  again: Job[];
  /** Jobs that it had no time for. */
  later: Job[];
  /** Executions that were written. */
  moved: ReadonlySet<string>;
}

/** Checks, decides, assigns, writes. Every job is settled, failed, or given back to be run again. */
export async function runRound(round: OpenRound, jobs: readonly Job[], deps: RoundDeps): Promise<RoundEnd> {
  const began = deps.now();
  const failed = new Set<string>();
  const again: Job[] = [];
  const applied: Job[] = [];
  const later: Job[] = [];
  for (const job of jobs) {
    if (job.executionIds.some((id) => failed.has(id))) again.push(job);
    else if (job.mayWait === true && round.allowance?.isUsedUp() === true) later.push(job);
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
  return { committed, again: [...again, ...end.again], later, moved: end.moved };
}

/** True if the job has changed the round; false if it was refused. An error half-way makes its executions unusable. */
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
    if (await runSteps(round, job, deps)) return true;
    for (const id of job.executionIds) failed.add(id);
    again.push(job);
    return false;
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

/** Runs the steps without effects that follow from a job. False if that failed: then the job runs again, without them. */
async function runSteps(round: OpenRound, job: Job, deps: RoundDeps): Promise<boolean> {
  const { pureSteps, busy } = deps;
  if (pureSteps === undefined || job.isWithoutSteps === true) return true;
  try {
    for (const id of job.executionIds) {
      const changes = round.changeSets.get(id);
      if (changes === undefined) continue;
      round.allowance ??= openAllowance(busy);
      await runPureSteps(changes, pureSteps, round.allowance, round.applyDeps);
    }
    return true;
  } catch (error) {
    if (deps.unavailable(error) !== undefined) throw error;
    deps.onFault(error, job.executionIds);
    job.isWithoutSteps = true;
    return false;
  }
}

/**
 * The jobs that share no execution with a failed job. Jobs that share one with a job that failed half-way, directly or through
 * others, go to `again`.
 */
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
    for (const { live } of changeSets) live.attached.clear();
    const left = executions.map(({ executionId }) => executionId).filter((id) => !moved.has(id));
    dropStates(round, left, deps.cache);
    const { done, again } = divide(jobs, moved, left);
    return { at, done, again, moved, events };
  } catch (error) {
    dropStates(round, [...round.changeSets.keys()], deps.cache);
    return { at: undefined, done: [], again: refuse(jobs, error, deps), moved: NOTHING_MOVED, events: 0 };
  }
}

/** Jobs whose executions were all written are done; the rest of the others runs again, on the newer state. */
function divide(jobs: Job[], moved: ReadonlySet<string>, left: readonly string[]): { done: Job[]; again: Job[] } {
  if (left.length === 0) return { done: jobs, again: [] };
  const isLeft = new Set(left);
  const again = jobs.filter((job) => job.executionIds.some((id) => isLeft.has(id)));
  for (const job of again) job.keepRest(moved);
  return { done: jobs.filter((job) => !again.includes(job)), again };
}

/**
 * Nothing was written, or the outcome is unknown. Transient faults are retried. If the database is unavailable, callers get an
 * error: they find out whether it was written by sending again with their idempotency key. Any other fault is caused by one of
 * the jobs: each is run in a round of its own, so that only that one fails.
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
