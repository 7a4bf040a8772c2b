import type { Deadlines } from "./memory/deadlines.ts";
import type { Lanes } from "./memory/execution-cache.ts";
import type { IdBlocks } from "./memory/id-allocator.ts";
import type { AdvanceDeps } from "./orchestrator.ts";
import type { Pump } from "./round-loop.ts";
import type { FollowDeps } from "./rounds/apply-event.ts";
import type { ReadyCommands } from "./rounds/ready-queue.ts";
import type { Refill } from "./rounds/refill-ready-queue.ts";

/** What the parts of `Advance` share. */
export interface AdvanceParts extends AdvanceDeps {
  ids: IdBlocks;
  ready: ReadyCommands;
  refill: Refill;
  lanes: Lanes;
  pump: Pump;
  deadlines: Deadlines;
  follow: FollowDeps;
  now(): number;
  isClosed(): boolean;
  /** Throws `FlowError` when the server stops or its queue is full. */
  checkOpen(code: "worker_unavailable" | "UNAVAILABLE"): void;
}
