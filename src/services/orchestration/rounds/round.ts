import type { BatchChange, ExecutionStart } from "../../../ports/execution-store.ts";
import type { Lane } from "../memory/execution-cache.ts";
import type { LiveExecution } from "../memory/load-execution.ts";
import type { ClaimedCommand, ClaimInput, RoundTimings } from "../orchestrator.ts";
import type { FollowDeps } from "./apply-event.ts";
import { createDraft, type Draft, type Marker } from "./change-set.ts";
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
  demand?: Demand;
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
export interface Demand {
  input: ClaimInput;
  /** Claimed in a round that is under way. Two rounds never claim for one demand: its answer ends with the first. */
  held: HeldClaim[];
  /** Called after the commit of a round that claimed for it; with fewer, or none, where that did not work out. */
  deliver(commands: ClaimedCommand[]): void;
}

/** A claim that is not yet durable. */
export interface HeldClaim {
  entry: ReadyEntry;
  attempt: number;
  draft: Draft;
}

/** What is gathered for one flush. */
export interface Round {
  /** The draft of an execution of this round; undefined where there is no such execution. */
  draft(executionId: string): Draft | undefined;
  /** An execution that begins in this round. */
  begin(live: LiveExecution, start: ExecutionStart): Draft;
  /** A batch row to write. */
  batch(change: BatchChange): void;
  follow: FollowDeps;
}

/** A round with its insides. */
export interface OpenRound extends Round {
  lanes: Map<string, Lane>;
  drafts: Map<string, Draft>;
  batches: Map<string, BatchChange>;
  /** Whoever is answered when the round is written. */
  demands: Demand[];
  /** Markers that were taken from the lanes. */
  taken: Map<string, Marker[]>;
  /** Commands that the round issued and put into the queue of ready ones, with their executions. */
  offered: Map<string, string>;
  /** Lets a further execution join, which is loaded and in no other round. */
  join(lane: Lane): Draft;
}

/** Opens a round over these lanes, all of them loaded and not busy; they are busy from now on. */
export function openRound(
  lanes: Iterable<Lane>,
  deps: { newId(): number; leaseMs: number; follow: FollowDeps; now(): number },
): OpenRound {
  const members = new Map<string, Lane>();
  const drafts = new Map<string, Draft>();
  const batches = new Map<string, BatchChange>();
  const demands: Demand[] = [];
  const taken = new Map<string, Marker[]>();
  const enter = (lane: Lane) => {
    lane.busy = true;
    members.set(lane.executionId, lane);
  };
  for (const lane of lanes) enter(lane);

  const open = (lane: Lane, live: LiveExecution, start?: ExecutionStart) => {
    const options = { newId: deps.newId, leaseMs: deps.leaseMs, ...(start !== undefined && { start }) };
    const draft = createDraft(live, options);
    const markers = lane.markers;
    lane.markers = [];
    taken.set(lane.executionId, markers);
    for (const marker of markers) draft.marker(marker);
    drafts.set(lane.executionId, draft);
    return draft;
  };
  const draft = (executionId: string) => {
    const known = drafts.get(executionId);
    if (known !== undefined) return known;
    const lane = members.get(executionId);
    return lane?.live == null ? undefined : open(lane, lane.live);
  };

  return {
    lanes: members,
    drafts,
    batches,
    demands,
    taken,
    offered: new Map(),
    follow: deps.follow,
    draft,
    begin(live, start) {
      const { executionId } = live.state;
      const lane = members.get(executionId);
      if (lane === undefined) throw new Error(`Execution ${executionId} is in no lane of the round`);
      lane.live = live;
      lane.missing = false;
      return open(lane, live, start);
    },
    batch: (change) => void batches.set(change.requestId, change),
    join(lane) {
      enter(lane);
      const joined = draft(lane.executionId);
      if (joined === undefined) throw new Error(`Execution ${lane.executionId} is not loaded`);
      return joined;
    },
  };
}
