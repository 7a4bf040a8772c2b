import { FlowError } from "../../schema/words/errors.ts";
import { createClaiming } from "./claim-commands.ts";
import { inject } from "./jobs.ts";
import { createDeadlines } from "./memory/deadlines.ts";
import { createLanes } from "./memory/execution-cache.ts";
import { createIdBlocks } from "./memory/id-allocator.ts";
import { loadExecution } from "./memory/load-execution.ts";
import { createWatchers } from "./memory/subscriptions.ts";
import type { Advance, AdvanceDeps } from "./orchestrator.ts";
import type { AdvanceParts } from "./parts.ts";
import { createUpkeep } from "./recover.ts";
import { createReport, markersOf } from "./report.ts";
import { createPump } from "./round-loop.ts";
import type { FollowDeps } from "./rounds/apply-event.ts";
import { createReadyCommands } from "./rounds/ready-queue.ts";
import { createRefill } from "./rounds/refill-ready-queue.ts";
import { createStart } from "./start.ts";

/** Builds the service. It works until {@link Advance.close}. */
export function createAdvance(deps: AdvanceDeps): Advance {
  const { store, clock, limits, observer } = deps;
  const now = () => clock.now();
  const ids = createIdBlocks((count) => store.reserveIds(count), now);
  const ready = createReadyCommands({ ...limits.ready, onShort: () => refill.short() });
  const lanes = createLanes((id) => loadExecution(deps, id), now);
  const deadlines = createDeadlines(clock);
  const watchers = createWatchers();
  const follow: FollowDeps = { now, newId: () => ids.next(), env: deps.env, save: deps.results.save };
  const pump = createPump({
    ...deps,
    lanes,
    ids,
    ready,
    follow,
    now,
    leaseMs: limits.leaseMs,
    roundsMax: 1 + limits.processors,
    onFault: observer.fault,
    onCommitted(commit) {
      const ended = new Set(commit.ended.map(({ executionId }) => executionId));
      for (const id of commit.moved.keys()) watchers.tell(id, ended.has(id));
      observer.committed(commit);
    },
    onClaimed({ readyAt, batch }) {
      observer.claimed((now() - readyAt) / 1_000);
      if (batch === undefined || batch.isClaimed) return;
      batch.isClaimed = true;
      observer.firstClaim((now() - batch.arrivedAt) / 1_000);
    },
  });
  const refill = createRefill({
    store,
    ready,
    now,
    onFound: pump.wake,
    onFailed: (error) => {
      if (deps.unavailable(error) === undefined) observer.fault(error, []);
    },
  });
  let closed = false;
  const checkOpen = (code: "worker_unavailable" | "UNAVAILABLE") => {
    if (closed)
      throw new FlowError(code, "This server is stopping. Send the same again to another one, or in a few seconds");
    if (pump.depth() >= limits.queueMax) {
      throw new FlowError(
        "queue_unavailable",
        `${pump.depth()} requests wait to be written already. Try again in a second`,
      );
    }
  };
  const parts: AdvanceParts = {
    ...deps,
    ids,
    ready,
    refill,
    lanes,
    pump,
    deadlines,
    follow,
    checkOpen,
    isClosed: () => closed,
    now,
  };

  const claiming = createClaiming(parts);
  return {
    start: createStart(parts),
    report: createReport(parts, claiming.offer),
    ...claiming,
    inject: (executionId, event) => inject(pump, executionId, event),
    async view(executionId, atLeast = 0) {
      const lane = lanes.of(executionId);
      await lanes.whenFree(lane);
      if (lane.live !== null && lane.live.lastEventId < atLeast) lanes.drop(lane);
      await lanes.load(lane);
      const { live } = lane;
      if (live === null) return undefined;
      return { state: live.state, source: live.source, lastEventId: live.lastEventId };
    },
    upkeep: createUpkeep(parts),
    watch: watchers.watch,
    moved(executionId, { lastEventId, hasEnded }) {
      const lane = lanes.known(executionId);
      if (lane !== undefined && !lane.busy) {
        if (lane.live !== null && lane.live.lastEventId >= lastEventId) return;
        // What is kept of it is out of date. Where a round works on it, its write is refused and it is loaded anew.
        lanes.drop(lane);
      }
      watchers.tell(executionId, hasEnded);
    },
    watched: watchers.watched,
    queueDepth: () => pump.depth(),
    async close() {
      closed = true;
      for (const demand of [...pump.waiting]) if (demand.held.length === 0) demand.deliver([]);
      await pump.idle();
      // The last markers have nobody left to travel with.
      for (const lane of lanes.all()) {
        if (lane.markers.length > 0) pump.push(markersOf(lane.executionId));
      }
      await pump.idle();
    },
  };
}
