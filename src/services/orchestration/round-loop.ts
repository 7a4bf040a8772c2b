import type { ExecutionState } from "../../engine/state/state.ts";
import type { ExecutionStore, IssuedCommand } from "../../ports/execution-store.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { Json } from "../../schema/words/json.ts";
import { assignCommands, deliverClaims, keepIssued, offerIssued } from "./claims/claims.ts";
import type { CachedExecution, ExecutionCache } from "./memory/execution-cache.ts";
import type { IdAllocator } from "./memory/id-allocator.ts";
import type { Ending } from "./memory/subscriptions.ts";
import type { ApplyDeps } from "./rounds/apply-event.ts";
import { createJobQueue, EXECUTIONS_MAX, type JobQueue } from "./rounds/job-queue.ts";
import type { PureSteps } from "./rounds/pure-steps.ts";
import type { ReadyEntry, ReadyQueue } from "./rounds/ready-queue.ts";
import {
  type Job,
  type OpenRound,
  openRound,
  type PendingClaim,
  type RoundDeps,
  type RoundEnd,
  runRound,
} from "./rounds/round.ts";
import type { Commit } from "./rounds/types.ts";

/** What the round loop needs. */
export interface RoundLoopDeps {
  store: ExecutionStore;
  cache: ExecutionCache;
  ids: IdAllocator;
  ready: ReadyQueue;
  applyDeps: ApplyDeps;
  /** Milliseconds since 1970. */
  now(): number;
  /** Calls later, after everything that arrived together has been queued: `setImmediate`. */
  defer(call: () => void): void;
  leaseMs: number;
  /** The pool that runs the playbook of a path. */
  poolOf(path: string): string | undefined;
  /** Runs steps without effects on this server; absent: workers run them. */
  pureSteps?: PureSteps;
  /** A clock in milliseconds, for how long something takes. */
  busy(): number;
  /**
   * Concurrent rounds. With two, one decides while the other waits for its commit; each further round makes rounds smaller and
   * uses one more connection.
   */
  roundsMax: number;
  resultOf(state: ExecutionState): Json;
  isRetryable(error: unknown): boolean;
  isDuplicateKey(error: unknown): boolean;
  unavailable(error: unknown): FlowError | undefined;
  onFault(error: unknown, executionIds: readonly string[]): void;
  onCommitted(commit: Commit): void;
  /** A claim is durable. */
  onClaimed(entry: ReadyEntry): void;
}

/** Runs jobs in rounds: each takes the jobs that came while the round before was written. */
export interface RoundLoop {
  /** Waiting claims. Add and remove here, and call {@link RoundLoop.wake} after adding. */
  waiting: Set<PendingClaim>;
  push(job: Job): void;
  /** Puts a job before all others: it finishes work that another job has begun. */
  unshift(job: Job): void;
  /** Commands have become ready, or a claim is waiting. */
  wake(): void;
  /** Leaves steps without effects to workers from here on: a cycle of such steps would never let a stopping server stop. */
  leaveSteps(): void;
  /** Jobs that wait. */
  depth(): number;
  /** Bytes of their requests. */
  bytes(): number;
  /** True if a job waits for this execution. */
  isAwaited(executionId: string): boolean;
  /** Requests that wait for one execution. */
  waitingFor(executionId: string): number;
  /** Resolves when no job is queued or under way. */
  idle(): Promise<void>;
  /** Resolves when no more than so many jobs wait. */
  below(depth: number): Promise<void>;
}

/** Starts the loop; it does nothing until there is a job. */
export function createRoundLoop(deps: RoundLoopDeps): RoundLoop {
  const { cache, ids, ready } = deps;
  const waiting = new Set<PendingClaim>();
  let underWay = 0;
  /** Something has changed since the last unsuccessful attempt to answer claims. */
  let isClaimable = false;

  const schedule = () => {
    if (underWay < deps.roundsMax) turnSoon();
  };
  const turnSoon = deferred(deps.defer, () => turn());
  const wake = () => {
    isClaimable = true;
    schedule();
  };
  /** Fails the jobs that need an execution that could not be loaded, or all jobs. */
  const failAll = (error: unknown, executionId?: string) => {
    const away = deps.unavailable(error) ?? error;
    if (!(away instanceof FlowError)) deps.onFault(error, executionId === undefined ? [] : [executionId]);
    for (const job of queue.withdraw(executionId)) job.fail(away);
    rest();
  };
  const queue = createJobQueue({ cache, ids, onLoaded: wake, onFailed: failAll });
  const { run, leaveSteps } = roundRunner(deps, waiting, queue.isUsable);

  const turn = () => {
    if (underWay >= deps.roundsMax) return;
    if (!ids.isReady()) {
      ids.ready().then(schedule, (error) => failAll(error));
      return;
    }
    const jobs = queue.take();
    if (jobs.length === 0 && !(isClaimable && waiting.size > 0 && ready.size() > 0)) return rest();
    isClaimable = false;
    underWay += 1;
    const members = jobs.flatMap(({ executionIds }) => executionIds.map((id) => cache.entry(id)));
    const round = openRound(members, { ...deps, newId: () => ids.next() });
    void run(round, jobs, queue).finally(() => {
      underWay -= 1;
      for (const cached of round.executions.values()) queue.free(cached);
      if (round.executions.size > 0) isClaimable = true;
      schedule();
    });
    if (queue.length() > 0) schedule();
    shorter.look();
  };
  const shorter = createThresholds(() => queue.length());
  const resting = createThresholds(() => queue.length() + underWay);
  const rest = () => {
    shorter.look();
    resting.look();
  };

  return {
    waiting,
    push(job) {
      queue.push(job);
      schedule();
    },
    unshift(job) {
      queue.unshift([job]);
      schedule();
    },
    ...{ wake, leaveSteps, depth: queue.length, bytes: queue.bytes, isAwaited: queue.has, waitingFor: queue.waiting },
    below: shorter.reached,
    idle: () => resting.reached(0),
  };
}

/** Those who wait until a number is not above theirs; it is looked at when it may have fallen. */
function createThresholds(now: () => number) {
  const waiting: { most: number; resolve(): void }[] = [];
  const look = () => {
    for (const one of waiting.splice(0)) {
      if (now() <= one.most) one.resolve();
      else waiting.push(one);
    }
  };
  const reached = (most: number) =>
    new Promise<void>((resolve) => {
      waiting.push({ most, resolve });
      look();
    });
  return { look, reached };
}

/** Calls `call` later: once, however often it is asked for until then. */
function deferred(defer: (call: () => void) => void, call: () => void): () => void {
  let isScheduled = false;
  return () => {
    if (isScheduled) return;
    isScheduled = true;
    defer(() => {
      isScheduled = false;
      call();
    });
  };
}

/** Runs a round to its end: written, announced, and its claims answered. The jobs that must run again go back to the queue. */
function roundRunner(
  deps: RoundLoopDeps,
  waiting: ReadonlySet<PendingClaim>,
  isUsable: (cached: CachedExecution) => boolean,
) {
  const { cache, ready } = deps;
  const roundDeps: RoundDeps = {
    ...deps,
    assign(round) {
      offerIssued(round, ready, deps.now());
      assignCommands(round, waiting, ready, cache, { now: deps.now, isUsable, joinMax: EXECUTIONS_MAX });
    },
  };
  const tell = (round: OpenRound, { moved, committed }: RoundEnd) => {
    const unclaimed = keepIssued(round, ready, moved);
    if (committed === undefined) return;
    const steps = [...round.changeSets.values()].flatMap((changes) => changes.steps);
    const ended = [...round.changeSets.values()].flatMap((changes) => (changes.hasEnded() ? [changes.live.state] : []));
    const cancelled = [...round.changeSets].flatMap(([executionId, { cancelled: commands }]) =>
      commands.length === 0 ? [] : [{ executionId, commands }],
    );
    const places = new Map([...moved].map((id) => [id, round.changeSets.get(id)?.live.lastEventId ?? 0]));
    const endings = new Map([...moved].flatMap((id) => endingOf(id, round)));
    // Those that had the least of this round come first in the next: none of them starves. Those that had nothing have nothing written
    // either. What was refused is not here any more: its jobs run again.
    const taken = (id: string) => round.allowance?.taken(id) ?? 0;
    const held = new Map(
      [...round.changeSets.keys()]
        .flatMap((id) => heldOf(id, round))
        .sort(([one], [other]) => taken(one) - taken(other)),
    );
    const woken = [...round.changeSets].flatMap(([id, changes]) => (changes.woken().length > 0 ? [id] : []));
    const soonest = soonestOf(round);
    deps.onCommitted({
      moved: places,
      unclaimed,
      held,
      woken,
      soonest,
      steps,
      ended,
      endings,
      cancelled,
      ...committed,
    });
  };
  const run = async (
    round: OpenRound,
    jobs: readonly Job[],
    queue: Pick<JobQueue, "push" | "unshift">,
  ): Promise<void> => {
    try {
      const end = await runRound(round, jobs, roundDeps);
      queue.unshift(end.again);
      for (const job of end.later) queue.push(job);
      tell(round, end);
      const onFailed = (error: unknown) => {
        if (deps.unavailable(error) === undefined) deps.onFault(error, [...end.moved]);
      };
      await deliverClaims(round, end, { ...deps, onFailed });
    } catch (error) {
      // Only an internal error can throw above. THE JOBS MUST END all the same: a caller waits for each.
      deps.onFault(error, [...round.executions.keys()]);
      for (const cached of round.executions.values()) cache.drop(cached);
      for (const job of jobs) job.fail(error);
    }
  };
  return { run, leaveSteps: () => void delete roundDeps.pureSteps };
}

function soonestOf(round: OpenRound): number | undefined {
  let soonest: number | undefined;
  for (const changes of round.changeSets.values()) {
    const at = changes.soonest();
    if (at !== undefined && (soonest === undefined || at < soonest)) soonest = at;
  }
  return soonest;
}

function endingOf(executionId: string, round: OpenRound): [string, Ending][] {
  const ending = round.changeSets.get(executionId)?.ending();
  return ending === undefined ? [] : [[executionId, ending]];
}

function heldOf(executionId: string, round: OpenRound): [string, readonly IssuedCommand[]][] {
  const held = round.changeSets.get(executionId)?.held() ?? [];
  return held.length === 0 ? [] : [[executionId, held]];
}

/** How much may wait. */
export interface GateLimits {
  /** `FLOW_BATCH_ACCEPT_QUEUE_MAXSIZE`. */
  queueMax: number;
  /** `FLOW_BATCH_ACCEPT_QUEUE_BYTES`. Default: any. */
  queueBytesMax?: number;
}

/** What a refused request is told while the server stops. */
type StoppingCode = "worker_unavailable" | "UNAVAILABLE";

/**
 * Decides which requests may wait to be written. What is let in is answered when it is durable; what would be too much is refused
 * at once, by the length of the queue and not by the time that it takes.
 */
export interface Gate {
  /** Throws `FlowError` with the given code if the server is stopping, and queue_unavailable if the queue is full. */
  check(code: StoppingCode): void;
  /**
   * {@link Gate.check}, and takes a place until the request is in the queue: the function that is returned gives it back; further
   * calls of it do nothing.
   */
  enter(code: StoppingCode, bytes: number): () => void;
  /** Throws `FlowError` queue_unavailable if one of these executions has its share of the places already. */
  checkShare(executionIds: readonly string[]): void;
  isClosed(): boolean;
  close(): void;
}

/**
 * The part of the places that the requests of one execution may have. An execution that cannot be written (another holds its row,
 * or it is being loaded) does not take the places of all others.
 */
const SHARE = 1 / 4;

/** Open. */
export function createGate(
  { queueMax, queueBytesMax = Number.POSITIVE_INFINITY }: GateLimits,
  queue: Pick<RoundLoop, "depth" | "bytes" | "waitingFor">,
): Gate {
  const shareMax = Math.max(1, Math.floor(queueMax * SHARE));
  const entering = { count: 0, bytes: 0 };
  let closed = false;
  const check = (code: StoppingCode, bytes: number) => {
    if (closed)
      throw new FlowError(code, "This server is stopping. Send the same again to another one, or in a few seconds");
    const waiting = queue.depth() + entering.count;
    if (waiting >= queueMax) throw full(`Already ${waiting} requests wait to be written`);
    const held = queue.bytes() + entering.bytes;
    // One that is larger than all places together has them when nothing else waits.
    if (held > 0 && held + bytes > queueBytesMax) throw full(`Requests of ${held} bytes wait to be written already`);
  };
  return {
    check: (code) => check(code, 0),
    enter(code, bytes) {
      check(code, bytes);
      entering.count += 1;
      entering.bytes += bytes;
      let isIn = true;
      return () => {
        if (!isIn) return;
        isIn = false;
        entering.count -= 1;
        entering.bytes -= bytes;
      };
    },
    checkShare(executionIds) {
      const over = executionIds.find((id) => queue.waitingFor(id) >= shareMax);
      if (over !== undefined) throw full(`Already ${shareMax} requests of execution ${over} wait to be written`);
    },
    isClosed: () => closed,
    close() {
      closed = true;
    },
  };
}

function full(why: string): FlowError {
  return new FlowError("queue_unavailable", `${why}. Try again in a second`);
}
