import type { Deadlines } from "./memory/deadlines.ts";
import type { ExecutionCache } from "./memory/execution-cache.ts";
import type { IdAllocator } from "./memory/id-allocator.ts";
import type { OrchestratorDeps } from "./orchestrator.ts";
import type { Gate, RoundLoop } from "./round-loop.ts";
import type { ApplyDeps } from "./rounds/apply-event.ts";
import type { ReadyQueue } from "./rounds/ready-queue.ts";
import type { Refill } from "./rounds/refill-ready-queue.ts";

/** What the parts of the orchestrator share. */
export interface OrchestratorParts extends OrchestratorDeps {
  ids: IdAllocator;
  ready: ReadyQueue;
  refill: Refill;
  cache: ExecutionCache;
  roundLoop: RoundLoop;
  deadlines: Deadlines;
  applyDeps: ApplyDeps;
  /**
   * Batches that this process has begun to process. If one of them is found idle, its server did not die: this process was slow,
   * or could not write.
   */
  underWay: Set<string>;
  /** Called when a command with labels has become ready, and with each poll that leaves commands waiting: pools may have changed. */
  labelled: Set<() => void>;
  now(): number;
  gate: Gate;
}
