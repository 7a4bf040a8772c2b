import type { ExecutionState } from "../engine/state.ts";
import type { ExecutionStore } from "../ports/execution-store.ts";
import type { Command } from "../schema/command.ts";
import { FlowError } from "../schema/errors.ts";
import type { Json } from "../schema/json.ts";
import type { Commit } from "./advance.ts";
import { assignCommands, claimedCommand } from "./claims.ts";
import type { FollowDeps } from "./follow.ts";
import type { IdBlocks } from "./id-blocks.ts";
import type { Lane, Lanes } from "./lanes.ts";
import type { ReadyCommands, ReadyEntry } from "./ready-commands.ts";
import { type Demand, type HeldClaim, type Job, type OpenRound, openRound } from "./round.ts";
import { type RoundDeps, type RoundEnd, runRound } from "./run-round.ts";

/** Jobs of one round: enough to share a commit, few enough to keep its statement short. */
const JOBS_MAX = 256;
/** Executions of one round. */
const EXECUTIONS_MAX = 512;

/** What a pump works with. */
export interface PumpDeps {
  store: ExecutionStore;
  lanes: Lanes;
  ids: IdBlocks;
  ready: ReadyCommands;
  follow: FollowDeps;
  /** Milliseconds since 1970. */
  now(): number;
  /** Calls later, when what arrived together has been queued: `setImmediate`. */
  defer(call: () => void): void;
  leaseMs: number;
  /**
   * Rounds under way at a time. With two, one decides while the other waits for its commit; each further one makes rounds
   * smaller, and uses one more connection.
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

/** Runs jobs in rounds: as many as have come while the round before was written. */
export interface Pump {
  /** Who waits for commands. Add and remove here, and {@link Pump.wake} after adding. */
  waiting: Set<Demand>;
  push(job: Job): void;
  /** Puts a job before all others: it ends what another one has begun. */
  unshift(job: Job): void;
  /** Commands have become ready, or somebody waits for some. */
  wake(): void;
  depth(): number;
  /** Resolves when nothing is queued and nothing is under way. */
  idle(): Promise<void>;
}

/** Starts a pump; it does nothing until there is a job. */
export function createPump(deps: PumpDeps): Pump {
  const { lanes, ids, ready } = deps;
  let queue: Job[] = [];
  const waiting = new Set<Demand>();
  let underWay = 0;
  let isScheduled = false;
  /** Something has changed since claims were last tried in vain. */
  let isClaimable = false;
  let idlers: (() => void)[] = [];
  /** Lanes that are being made usable. */
  const preparing = new Set<Lane>();

  const schedule = () => {
    if (isScheduled || underWay >= deps.roundsMax) return;
    isScheduled = true;
    deps.defer(() => {
      isScheduled = false;
      turn();
    });
  };

  const turn = () => {
    if (underWay >= deps.roundsMax) return;
    if (!ids.isReady()) {
      ids.ready().then(schedule, (error) => failAll(error));
      return;
    }
    const jobs = takeJobs();
    const canClaim = isClaimable && waiting.size > 0 && ready.size() > 0;
    if (jobs.length === 0 && !canClaim) return rest();
    isClaimable = false;
    underWay += 1;
    const members = jobs.flatMap(({ executionIds }) => executionIds.map((id) => lanes.of(id)));
    const round = openRound(members, { ...deps, newId: () => ids.next() });
    void run(round, jobs).finally(() => {
      underWay -= 1;
      for (const lane of round.lanes.values()) lanes.free(lane);
      if (round.lanes.size > 0) isClaimable = true;
      schedule();
    });
    if (queue.length > 0) schedule();
  };

  const rest = () => {
    if (queue.length > 0 || underWay > 0) return;
    for (const idler of idlers.splice(0)) idler();
  };

  /** The jobs that can run now, in order: of two jobs on one execution the later one waits for the earlier one. */
  const takeJobs = (): Job[] => {
    const blocked = new Set<string>();
    const taken: Job[] = [];
    const kept: Job[] = [];
    const members = new Set<string>();
    const isFull = () => taken.length >= JOBS_MAX || members.size >= EXECUTIONS_MAX || taken[0]?.alone === true;
    for (const job of queue) {
      if (job.isAbandoned()) continue;
      const isFree = job.executionIds.map((id) => !blocked.has(id) && isUsable(lanes.of(id))).every(Boolean);
      if (isFree && !isFull() && (!job.alone || taken.length === 0)) {
        taken.push(job);
        for (const id of job.executionIds) members.add(id);
      } else {
        kept.push(job);
        for (const id of job.executionIds) blocked.add(id);
      }
    }
    queue = kept;
    return taken;
  };

  /** In no round, and loaded; begins to load it where it is not. */
  const isUsable = (lane: Lane): boolean => {
    if (lane.busy) return false;
    // Ids that this server is about to give must be above those that another one gave to this execution.
    if (lane.missing || (lane.live !== null && ids.isReady(lane.live.lastEventId))) return true;
    if (preparing.has(lane)) return false;
    preparing.add(lane);
    prepare(lane)
      .then(
        () => {
          isClaimable = true;
          schedule();
        },
        (error) => failAll(error, lane.executionId),
      )
      .finally(() => preparing.delete(lane));
    return false;
  };

  const prepare = async (lane: Lane) => {
    await lanes.load(lane);
    await ids.ready(lane.live?.lastEventId ?? 0);
  };

  /** Ends the jobs that need what cannot be had: one execution, or anything at all. */
  const failAll = (error: unknown, executionId?: string) => {
    const away = deps.unavailable(error) ?? error;
    const hit = queue.filter((job) => executionId === undefined || job.executionIds.includes(executionId));
    queue = queue.filter((job) => !hit.includes(job));
    if (!(away instanceof FlowError)) deps.onFault(error, executionId === undefined ? [] : [executionId]);
    for (const job of hit) job.fail(away);
    rest();
  };

  const run = async (round: OpenRound, jobs: readonly Job[]): Promise<void> => {
    try {
      const end = await runRound(round, jobs, roundDeps);
      queue = [...end.again, ...queue];
      announce(round, end);
      await deliver(round, end);
    } catch (error) {
      // Nothing above throws but for a fault of ours. THE JOBS MUST END all the same: somebody waits for each.
      deps.onFault(error, [...round.lanes.keys()]);
      for (const lane of round.lanes.values()) lanes.drop(lane);
      for (const job of jobs) job.fail(error);
    }
  };

  /** What the round has just issued can be claimed in it: one commit less, and no wait. */
  const offer = (round: OpenRound) => {
    const readyAt = deps.now();
    for (const [executionId, draft] of round.drafts) {
      for (const { commandId, kinds, labels, attempt, body } of draft.unclaimed()) {
        const batch = draft.batch === undefined ? {} : { batch: draft.batch };
        ready.add({ commandId, executionId, kinds, labels, attempt, readyAt, body, ...batch });
        round.offered.set(commandId, executionId);
      }
    }
  };

  const roundDeps: RoundDeps = {
    ...deps,
    assign(round) {
      offer(round);
      assignCommands(round, [...waiting], ready, lanes, { now: deps.now, isUsable, joinMax: EXECUTIONS_MAX });
    },
  };

  /** Takes back what was not written, and tells the others of what nobody has claimed. */
  const announce = (round: OpenRound, { moved, committed }: RoundEnd) => {
    for (const [commandId, executionId] of round.offered) if (!moved.has(executionId)) ready.remove(commandId);
    if (committed === undefined) return;
    const unclaimed = [...round.offered.keys()].filter((commandId) => ready.has(commandId));
    const steps = [...round.drafts.values()].flatMap((draft) => draft.steps);
    const ended = [...round.drafts.values()].flatMap((draft) => (draft.hasEnded() ? [draft.live.state] : []));
    deps.onCommitted({ moved, unclaimed, steps, ended, timings: committed.timings });
  };

  /** Answers those for whom the round has claimed commands. A claim that nobody hears of is for others at once. */
  const deliver = async (round: OpenRound, { committed, moved }: RoundEnd): Promise<void> => {
    const { demands } = round;
    const held = demands.flatMap((demand) => demand.held);
    const isDurable = ({ entry }: HeldClaim) => committed !== undefined && moved.has(entry.executionId);
    const bodies = await bodiesOf(held.filter(isDurable), deps.store).catch((error: unknown) => {
      if (deps.unavailable(error) === undefined) deps.onFault(error, [...moved]);
      return new Map<string, Command>();
    });
    const leaseExpiresAt = (committed?.at ?? 0) + deps.leaseMs;
    for (const demand of demands) {
      const claims = demand.held.splice(0);
      const commands = claims.flatMap((claim) => {
        const { entry, attempt } = claim;
        const body = isDurable(claim) ? (entry.body ?? bodies.get(entry.commandId)) : undefined;
        if (body !== undefined) {
          deps.onClaimed(entry);
          return [claimedCommand(claim, body, leaseExpiresAt)];
        }
        if (isDurable(claim)) ready.add({ ...entry, attempt });
        else if (!round.offered.has(entry.commandId)) ready.add(entry);
        return [];
      });
      demand.deliver(commands);
    }
  };

  return {
    waiting,
    push(job) {
      queue.push(job);
      schedule();
    },
    unshift(job) {
      queue.unshift(job);
      schedule();
    },
    wake() {
      isClaimable = true;
      schedule();
    },
    depth: () => queue.length,
    idle: () =>
      new Promise((resolve) => {
        idlers = [...idlers, resolve];
        schedule();
      }),
  };
}

/** Commands that were issued by another process or too long ago, as they were issued. */
async function bodiesOf(
  claims: readonly HeldClaim[],
  store: Pick<ExecutionStore, "commandBodies">,
): Promise<Map<string, Command>> {
  const missing = claims.flatMap(({ entry }) => (entry.body === undefined ? [entry.commandId] : []));
  const bodies = missing.length === 0 ? [] : await store.commandBodies(missing);
  return new Map(bodies.map((body) => [body.command_id, body]));
}
