import { isTerminal } from "../../engine/state/state.ts";
import { createClaiming } from "./claim-commands.ts";
import { decideApproval } from "./decide-approval.ts";
import { heldStepsJob, inject, withTimeLimits } from "./jobs.ts";
import { createDeadlines } from "./memory/deadlines.ts";
import { createExecutionCache, type ExecutionCache } from "./memory/execution-cache.ts";
import { createIdAllocator } from "./memory/id-allocator.ts";
import { createIterationPace } from "./memory/iteration-pace.ts";
import { loadExecution } from "./memory/load-execution.ts";
import { createSubscriptions } from "./memory/subscriptions.ts";
import type { Orchestrator, OrchestratorDeps } from "./orchestrator.ts";
import { overrideStep } from "./override-step.ts";
import type { OrchestratorParts } from "./parts.ts";
import { createPreview } from "./preview.ts";
import { createRecovery } from "./recover.ts";
import { createReport, markersOf } from "./report.ts";
import { createGate, createRoundLoop, type RoundLoop, type RoundLoopDeps } from "./round-loop.ts";
import { type ApplyDeps, busyOf, createTurns, type Turns } from "./rounds/apply-event.ts";
import { createReadyQueue } from "./rounds/ready-queue.ts";
import { createRefill } from "./rounds/refill-ready-queue.ts";
import type { Job } from "./rounds/round.ts";
import { sendSignal, signalWaiters } from "./send-signal.ts";
import { createStart } from "./start.ts";
import { takeUp } from "./take-up.ts";

/** Builds the service. It works until {@link Orchestrator.close}. */
export function createOrchestrator(deps: OrchestratorDeps): Orchestrator {
  const { store, clock, limits, observer } = deps;
  const now = () => clock.now();
  const ids = createIdAllocator((count) => store.reserveIds(count), now);
  const labelled = new Set<() => void>();
  const ready = createReadyQueue({ ...limits.ready, onShort: () => refill.short(), labelled });
  const cache = createExecutionCache((id) => loadExecution(deps, id), now, limits.executionsMax);
  const deadlines = createDeadlines(clock);
  const subscriptions = createSubscriptions();
  const turns = createTurns(clock);
  const applyDeps = applyDepsOf(deps, () => ids.next(), turns);
  const roundLoop = createRoundLoop({
    ...deps,
    ...{ cache, ids, ready, applyDeps, now },
    defer: (call) => deps.defer(beginning(turns, call)),
    leaseMs: limits.leaseMs,
    poolOf: deps.poolOf ?? (() => undefined),
    roundsMax: 1 + limits.processors,
    busy: () => busyOf(clock),
    onFault: observer.fault,
    ...announcing(observer, subscriptions, now, {
      push: (job) => roundLoop.push(job),
      takeUp: (executionId) => void takeUp(parts, claiming.offer, executionId),
    }),
  });
  const refill = createRefill({ store, ready, now, onFound: roundLoop.wake, onFailed: faultUnlessAway(deps) });
  const gate = createGate(limits, roundLoop);
  const parts: OrchestratorParts = {
    ...deps,
    ids,
    ready,
    refill,
    cache,
    roundLoop,
    deadlines,
    applyDeps,
    ...{ underWay: new Set<string>(), labelled },
    gate,
    now,
  };

  const claiming = createClaiming(parts);
  return {
    start: createStart(parts),
    preview: createPreview(parts),
    report: createReport(parts, claiming.offer),
    ...claiming,
    ...steering(parts, claiming.offer),
    recovery: createRecovery(parts),
    watch: subscriptions.watch,
    moved(executionId, place) {
      if (dropOutdated(cache, executionId, place.lastEventId)) subscriptions.notify(executionId, place.hasEnded);
    },
    wake: (executionId, mayHaveEnded) => subscriptions.notify(executionId, mayHaveEnded),
    ...{ watched: subscriptions.watched, whenWatched: subscriptions.whenWatched },
    isOpen(executionId) {
      const live = cache.peek(executionId)?.live;
      return live != null && !isTerminal(live.state.status);
    },
    inMemory: () => [...cache.all()].filter(({ live }) => live !== null),
    queueDepth: () => roundLoop.depth(),
    async close() {
      gate.close();
      roundLoop.leaveSteps();
      await finishRounds(roundLoop, cache);
    },
  };
}

/** What rounds apply events with. */
function applyDepsOf(deps: OrchestratorDeps, newId: () => number, turns: Turns): ApplyDeps {
  const { clock, env, results, pace = createIterationPace() } = deps;
  return { now: () => clock.now(), newId, env, turns, pace, save: results.save };
}

/** Folds external events, and goes on with what they have resumed. */
function steering(
  parts: OrchestratorParts,
  offer: Orchestrator["offer"],
): Pick<Orchestrator, "inject" | "override" | "signal" | "signalWaiters" | "decide"> {
  return {
    async inject(executionId, event) {
      const verdict = await inject(withTimeLimits(parts), executionId, event);
      if (verdict === "accepted" && event.type === "execution.resumed") await takeUp(parts, offer, executionId);
      return verdict;
    },
    override: (executionId, event) => overrideStep(withTimeLimits(parts), executionId, event),
    signal: (executionId, signal) => sendSignal(parts, withTimeLimits(parts), executionId, signal),
    signalWaiters: (executionId, signal) => signalWaiters(parts, withTimeLimits(parts), executionId, signal),
    decide: (place, decision) => decideApproval(parts, withTimeLimits(parts), place, decision),
  };
}

/** A store that is away is no fault of this service: what failed is tried again. */
function faultUnlessAway({ unavailable, observer }: OrchestratorDeps): (error: unknown) => void {
  return (error) => {
    if (unavailable(error) === undefined) observer.fault(error, []);
  };
}

/** What the round loop announces: to followers of executions, to logs and metrics, and what it goes on with. */
function announcing(
  observer: OrchestratorDeps["observer"],
  subscriptions: ReturnType<typeof createSubscriptions>,
  now: () => number,
  goOn: { push(job: Job): void; takeUp(executionId: string): void },
): Pick<RoundLoopDeps, "onCommitted" | "onClaimed"> {
  return {
    onCommitted(commit) {
      const ended = new Set(commit.ended.map(({ executionId }) => executionId));
      for (const id of commit.moved.keys()) subscriptions.notify(id, ended.has(id), commit.endings.get(id));
      observer.committed(commit);
      for (const [executionId, held] of commit.held) goOn.push(heldStepsJob(executionId, held));
      for (const executionId of commit.woken) goOn.takeUp(executionId);
    },
    onClaimed({ readyAt, batch }) {
      observer.claimed((now() - readyAt) / 1_000);
      if (batch === undefined || batch.isClaimed) return;
      batch.isClaimed = true;
      observer.firstClaim((now() - batch.arrivedAt) / 1_000);
    },
  };
}

/**
 * Drops a state in memory that lacks this event; false if it has it. If a round works on it, the round's write is refused and
 * the state is loaded again.
 */
function dropOutdated(cache: ExecutionCache, executionId: string, lastEventId: number): boolean {
  const cached = cache.peek(executionId);
  if (cached === undefined || cached.busy) return true;
  if (cached.live !== null && cached.live.lastEventId >= lastEventId) return false;
  cache.drop(cached);
  return true;
}

/** Ends the waiting claims, and writes what is queued. */
async function finishRounds(roundLoop: RoundLoop, cache: ExecutionCache): Promise<void> {
  for (const pendingClaim of [...roundLoop.waiting]) if (pendingClaim.tentative.length === 0) pendingClaim.deliver([]);
  await roundLoop.idle();
  // No later events will carry the last markers.
  for (const cached of cache.all()) {
    if (cached.markers.length > 0) roundLoop.push(markersOf(cached.executionId));
  }
  await roundLoop.idle();
}

/** The call as the beginning of a turn: `defer` calls it when the event loop comes round. */
function beginning(turns: Turns, call: () => void): () => void {
  return () => {
    turns.begin();
    call();
  };
}
