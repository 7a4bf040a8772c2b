import type { BatchChange, ExecutionStart } from "../../../ports/execution-store.ts";
import type { CachedExecution } from "../memory/execution-cache.ts";
import type { LiveExecution } from "../memory/load-execution.ts";
import type { ClaimedCommand, ClaimInput, RoundTimings } from "../orchestrator.ts";
import type { ApplyDeps } from "./apply-event.ts";
import { type ChangeSet, createChangeSet, type Marker } from "./change-set.ts";
import type { ReadyEntry } from "./ready-queue.ts";

/** A piece of work on one execution or several. */
export interface Job {
  /** Executions that it works on; it waits until none of them is in another round. */
  executionIds: string[];
  /** Run it in a round of its own: a round with it and others has failed, and this finds out whose fault it was. */
  alone: boolean;
  /**
   * The state that it was refused on was loaded for it. A state that is kept in memory may be behind what another server wrote:
   * the first refusal on it is no answer, it is loaded anew and asked again.
   */
  isVerified: boolean;
  /** Who is answered with commands when it is written. */
  pendingClaim?: PendingClaim;
  /** Whoever waits for it has given up: it is not to be begun. */
  isAbandoned(): boolean;
  /** Refuses by throwing `FlowError`, before anything has been changed. */
  check(round: Round): void;
  /** Folds and decides. Whatever it throws, the executions are loaded anew. */
  apply(round: Round): Promise<void>;
  /** Its changes are durable. */
  settle(committed: Committed): void;
  /** It was refused, or could not be written. */
  fail(error: unknown): void;
  /**
   * Only a part was written: that of the executions in `moved`; the others have been changed by another server meanwhile.
   * The rest is run again.
   */
  keepRest(moved: ReadonlySet<string>): void;
}

/** What became of a round. */
export interface Committed {
  /** The store's clock, milliseconds since 1970. */
  at: number;
  /** How long the parts took, in milliseconds. */
  timings: RoundTimings;
}

/** Somebody who wants commands, and those that a round has put aside for it. */
export interface PendingClaim {
  input: ClaimInput;
  /** Claimed in a round that is under way. Two rounds never claim for the same one: its answer ends with the first. */
  tentative: TentativeClaim[];
  /** Called after the commit of a round that claimed for it; with fewer, or none, where that did not work out. */
  deliver(commands: ClaimedCommand[]): void;
}

/** A claim that is not yet durable. */
export interface TentativeClaim {
  entry: ReadyEntry;
  attempt: number;
  changes: ChangeSet;
}

/** What is gathered for one flush. */
export interface Round {
  /** The change set of an execution of this round; undefined where there is no such execution. */
  changes(executionId: string): ChangeSet | undefined;
  /** An execution that begins in this round. */
  begin(live: LiveExecution, start: ExecutionStart): ChangeSet;
  /** A batch row to write. */
  batch(change: BatchChange): void;
  applyDeps: ApplyDeps;
}

/** A round with its insides. */
export interface OpenRound extends Round {
  executions: Map<string, CachedExecution>;
  changeSets: Map<string, ChangeSet>;
  batches: Map<string, BatchChange>;
  /** Whoever is answered when the round is written. */
  pendingClaims: PendingClaim[];
  /** Markers that were taken from the executions. */
  taken: Map<string, Marker[]>;
  /** Commands that the round issued and put into the queue of ready ones, with their executions. */
  offered: Map<string, string>;
  /** Lets a further execution join, which is loaded and in no other round. */
  join(cached: CachedExecution): ChangeSet;
}

/** Opens a round over these executions, all of them loaded and not busy; they are busy from now on. */
export function openRound(
  executions: Iterable<CachedExecution>,
  deps: { newId(): number; leaseMs: number; applyDeps: ApplyDeps; now(): number },
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
    const options = { newId: deps.newId, leaseMs: deps.leaseMs, ...(start !== undefined && { start }) };
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
