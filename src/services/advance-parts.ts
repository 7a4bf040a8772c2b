import type { AdvanceDeps } from "./advance.ts";
import type { Deadlines } from "./deadlines.ts";
import type { FollowDeps } from "./follow.ts";
import type { IdBlocks } from "./id-blocks.ts";
import type { Lanes } from "./lanes.ts";
import type { Pump } from "./pump.ts";
import type { ReadyCommands } from "./ready-commands.ts";
import type { Refill } from "./ready-refill.ts";

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
