import { evolve } from "../../../engine/state/evolve.ts";
import { isTerminal, openCommand } from "../../../engine/state/state.ts";
import type { ExecutionStore } from "../../../ports/execution-store.ts";
import { iterationSlots } from "../../../schema/rules/iteration-slots.ts";
import type { Command } from "../../../schema/words/command.ts";
import type { FlowEvent } from "../../../schema/words/event.ts";
import type { Json, JsonObject } from "../../../schema/words/json.ts";
import type { CachedExecution, ExecutionCache } from "../memory/execution-cache.ts";
import type { LiveExecution } from "../memory/load-execution.ts";
import type { ChangeSet } from "../rounds/change-set.ts";
import type { ReadyEntry, ReadyQueue, Verdict } from "../rounds/ready-queue.ts";
import type { OpenRound, PendingClaim, RoundEnd, TentativeClaim } from "../rounds/round.ts";
import type { ClaimedCommand } from "../rounds/types.ts";

/** Most commands in one answer; further commands come with the next answer. */
export const CLAIM_MAX = 256;

/**
 * Assigns ready commands to waiting workers, as events of the round: the oldest command first; first to the workers whose
 * reports this round answers, then to the waiting claims, one command each in turn, so that work spreads over workers.
 *
 * A command can be assigned if its execution is part of the round, or can join it: loaded, and in no other round.
 */
export function assignCommands(
  round: OpenRound,
  waiting: Iterable<PendingClaim>,
  ready: ReadyQueue,
  cache: ExecutionCache,
  deps: JoinDeps,
): void {
  if (ready.size() === 0) return;
  const behind = new Set<CachedExecution>();
  const give = (pendingClaim: PendingClaim): boolean => {
    const { input, tentative } = pendingClaim;
    if (slotsOf(tentative) >= Math.min(input.limit, CLAIM_MAX)) return false;
    const { runsPath } = input;
    const judge = (entry: ReadyEntry) => judgeEntry(entry, round, cache, { ...deps, behind, runsPath });
    const entry = ready.take(input, judge);
    if (entry === undefined) return false;
    const changes = round.changes(entry.executionId) ?? round.join(cache.entry(entry.executionId));
    tentative.push(claimEntry(entry, changes, input.worker, deps.now()));
    return true;
  };
  for (const pendingClaim of round.pendingClaims) while (give(pendingClaim));
  const answered: PendingClaim[] = [];
  for (const pendingClaim of waiting) {
    if (ready.size() === 0) break;
    // Another round, not yet committed, has claimed commands for it: that round answers it, and a claim has only one answer.
    if (pendingClaim.tentative.length === 0 && give(pendingClaim)) answered.push(pendingClaim);
  }
  for (let hungry = answered; hungry.length > 0; ) hungry = hungry.filter(give);
  for (const pendingClaim of answered) inOneAnswer(pendingClaim, round.pendingClaims);
  round.pendingClaims.push(...answered);
  for (const cached of behind) {
    if (cached.busy) continue;
    cache.drop(cached);
    deps.isUsable(cached);
  }
}

/**
 * Of two answers to one worker either may arrive first. So commands assigned to its reports go into the answer to its waiting
 * claim, before the commands assigned to that claim later. Thus the iterations of a loop begin in order even right after an
 * ordinary step. Commands that do not fit into that answer stay with the reports.
 */
function inOneAnswer({ input, tentative }: PendingClaim, reports: readonly PendingClaim[]): void {
  const own = reports.filter((report) => report.input.worker === input.worker && report.tentative.length > 0);
  const counts = own.map((report) => report.tentative.length);
  const claims = [...own.flatMap((report) => report.tentative.splice(0)), ...tentative.splice(0)];
  tentative.push(...claims.splice(0, Math.min(input.limit, CLAIM_MAX)));
  for (const [index, report] of own.entries()) report.tentative.push(...claims.splice(0, counts[index]));
}

/** How long the state of a paused execution counts before it is loaded again for a command that a worker has given back. */
const ASKED_AGAIN_MS = 1_000;

/** What is needed to let executions join a round. */
interface JoinDeps {
  /** Milliseconds since 1970. */
  now(): number;
  /** Whether an execution can be part of a round now; if not, starts making it usable. */
  isUsable(cached: CachedExecution): boolean;
  /** Most executions of a round. */
  joinMax: number;
}

function judgeEntry(
  entry: ReadyEntry,
  round: OpenRound,
  cache: ExecutionCache,
  deps: JoinDeps & { behind: Set<CachedExecution>; runsPath: PendingClaim["input"]["runsPath"] },
): Verdict {
  const member = round.executions.get(entry.executionId);
  const cached = member ?? cache.entry(entry.executionId);
  if (cached.missing) return "drop";
  if (member === undefined && (round.executions.size >= deps.joinMax || !deps.isUsable(cached))) return "skip";
  if (cached.live === null) return "skip";
  if (isTerminal(cached.live.state.status)) return "drop";
  const isPaused = cached.live.state.status === "PAUSED";
  const open = openCommand(cached.live.state, entry.commandId);
  // A worker that was given up may have parked it after all: then it is claimed when it is woken.
  if (open?.attempt === entry.attempt && open.parked === undefined && !isPaused)
    return deps.runsPath?.(cached.live.state.path) === false ? "skip" : "take";
  if (!isBehind(cached.live, entry) && !isPaused) return "drop";
  // Another server has changed the execution since it was loaded here, or may have resumed it.
  if (member !== undefined || deps.behind.has(cached)) return "skip";
  const now = deps.now();
  // No row says that a worker has given a command back: one of a paused execution stays here, and is looked at again.
  if (entry.askedAt !== undefined && !(isPaused && entry.attempt > 0)) return "drop";
  if (entry.askedAt !== undefined && now < entry.askedAt + ASKED_AGAIN_MS) return "skip";
  entry.askedAt = now;
  deps.behind.add(cached);
  return "skip";
}

/**
 * Whether the entry is newer than the state: a command's id is below that of its first event. Of one that waits in this state it is not
 * known: another server may have woken it.
 */
export function isBehind(
  { state, lastEventId }: LiveExecution,
  { commandId, attempt }: Pick<ReadyEntry, "commandId" | "attempt">,
): boolean {
  const open = openCommand(state, commandId);
  if (open === undefined) return Number(commandId) > lastEventId;
  return open.attempt < attempt || (open.parked !== undefined && open.attempt === attempt);
}

function slotsOf(claims: readonly TentativeClaim[]): number {
  let sum = 0;
  for (const { slots } of claims) sum += slots;
  return sum;
}

/** Folds the claim into the execution. No decision follows from a claim. */
export function claimEntry(entry: ReadyEntry, changes: ChangeSet, worker: string, now: number): TentativeClaim {
  const attempt = entry.attempt + 1;
  const open = openCommand(changes.live.state, entry.commandId);
  const step = open?.step ?? "";
  const event: FlowEvent = {
    type: "command.claimed",
    at: now,
    command_id: entry.commandId,
    attempt,
    step,
    worker,
    ...(entry.lostBy != null && { lost_by: entry.lostBy }),
  };
  evolve(changes.live.state, event);
  changes.event(event);
  const goesOn = open?.woken === undefined ? {} : { woken: open.woken };
  if (open?.iterations == null) return { entry, attempt, slots: 1, changes, ...goesOn };
  const { from, to, endedBelow: below, endedAbove: above, overridden = [] } = open.iterations;
  // Those of `exec: local` run as one, and what one writes is seen by the next: it begins again, without what a person has ended.
  if (changes.live.source.program.steps.get(step)?.loop?.loop.exec === "local") {
    return {
      entry,
      attempt,
      slots: 1,
      changes,
      ...(overridden.length > 0 && { ended: { below: from, above: overridden } }),
    };
  }
  const claim = { entry, attempt, slots: iterationSlots(to - below - above.length), changes, ...goesOn };
  return below + above.length === from ? claim : { ...claim, ended: { below, above: [...above] } };
}

/** A claim in the form of the answer. */
export function claimedCommand(tentative: TentativeClaim, command: Command, leaseExpiresAt: number): ClaimedCommand {
  const step = tentative.changes.live.source.program.steps.get(command.step)?.step;
  const spec: JsonObject = {
    pipeline: step?.pipeline ?? false,
    ...(step?.timeoutMs !== undefined && { timeout_ms: step.timeoutMs }),
    ...(step !== undefined && { result: step.result as unknown as Json }),
  };
  const { trustDomain } = tentative.changes.live;
  const { attempt, slots, ended, woken } = tentative;
  const loop = ended !== undefined && command.loop !== undefined ? { ...command.loop, ended } : command.loop;
  return {
    command: {
      ...command,
      ...(loop !== undefined && { loop }),
      ...(woken !== undefined && { woken }),
    },
    attempt,
    slots,
    trustDomain,
    leaseExpiresAt,
    tool: (step?.tasks ?? []) as unknown as Json,
    spec,
  };
}

/** Commands issued by a round can be claimed in the same round: this saves a commit and a wait. */
export function offerIssued(round: OpenRound, ready: ReadyQueue, readyAt: number): void {
  for (const [executionId, changes] of round.changeSets) {
    for (const { commandId, kinds, labels, attempt, body } of changes.unclaimed()) {
      const batch = changes.batch === undefined ? {} : { batch: changes.batch };
      ready.add({ commandId, executionId, kinds, labels, attempt, readyAt, body, ...batch, isTentative: true });
      round.offered.set(commandId, executionId);
    }
  }
}

/**
 * Takes back offered commands whose issue or wake was not written; returns those that were written and not claimed, including those
 * that did not fit into the queue: another server may have a worker for them.
 */
export function keepIssued(round: OpenRound, ready: ReadyQueue, moved: ReadonlySet<string>): string[] {
  for (const [commandId, executionId] of round.offered) ready.settle(commandId, moved.has(executionId));
  const written = [...round.changeSets].filter(([executionId]) => moved.has(executionId));
  const unclaimed = written.flatMap(([, changes]) => changes.unclaimed());
  // The command is in the store only now: a read since it was left out has not found it.
  for (const command of unclaimed) if (!ready.has(command.commandId)) ready.leftOut(command);
  return unclaimed.map(({ commandId }) => commandId);
}

/** What answering claims needs. */
export interface ClaimDeps {
  store: Pick<ExecutionStore, "commandBodies">;
  ready: ReadyQueue;
  leaseMs: number;
  /** A claim is durable. */
  onClaimed(entry: ReadyEntry): void;
  /** The commands' bodies could not be loaded. */
  onFailed(error: unknown): void;
}

/**
 * Answers the claims for which the round has claimed commands. If no caller awaits the answer anymore, its commands are
 * returned at once.
 */
export async function deliverClaims(
  { pendingClaims }: OpenRound,
  { committed, moved }: RoundEnd,
  deps: ClaimDeps,
): Promise<void> {
  const { ready } = deps;
  const isDurable = ({ entry }: TentativeClaim) => committed !== undefined && moved.has(entry.executionId);
  const durable = pendingClaims.flatMap(({ tentative }) => tentative.filter(isDurable));
  const bodies = await bodiesOf(durable, deps.store).catch((error: unknown) => {
    deps.onFailed(error);
    return new Map<string, Command>();
  });
  const leaseExpiresAt = (committed?.at ?? 0) + deps.leaseMs;
  for (const pendingClaim of pendingClaims) {
    const claims = pendingClaim.tentative.splice(0);
    const commands = claims.flatMap((claim) => {
      const { attempt } = claim;
      const { isTentative, ...entry } = claim.entry;
      const body = isDurable(claim) ? (entry.body ?? bodies.get(entry.commandId)) : undefined;
      if (body !== undefined) {
        deps.onClaimed(entry);
        return [claimedCommand(claim, body, leaseExpiresAt)];
      }
      if (isDurable(claim)) ready.add({ ...entry, attempt, lostBy: null });
      else if (isTentative === undefined) ready.add(entry);
      return [];
    });
    pendingClaim.deliver(commands);
  }
}

/** The bodies of commands that are no longer in memory, or were issued by another process, as they were issued. */
async function bodiesOf(claims: readonly TentativeClaim[], store: ClaimDeps["store"]): Promise<Map<string, Command>> {
  const missing = claims.flatMap(({ entry }) => (entry.body === undefined ? [entry.commandId] : []));
  const bodies = missing.length === 0 ? [] : await store.commandBodies(missing);
  return new Map(bodies.map((body) => [body.command_id, body]));
}
