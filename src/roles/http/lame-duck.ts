import { setTimeout as sleep } from "node:timers/promises";
import type { Config } from "../../platform/config/config.ts";
import { isLoopback } from "../../platform/http/loopback.ts";
import type { Lifecycle } from "../../platform/system/lifecycle.ts";

/** On loopback there is no load balancer, and Ctrl-C need not wait. */
const DEFAULT_MS = 2_000;

/** How long calls are still answered by a listener on this address. */
export function lameDuckMs(config: Pick<Config, "lameDuckMs">, host: string): number {
  return config.lameDuckMs ?? (isLoopback(host) ? 0 : DEFAULT_MS);
}

/** What {@link openLameDuck} needs. */
export interface LameDuckDeps {
  /** Aborted when the process is to stop. */
  signal: AbortSignal;
  /** How long calls are still answered after that. */
  lameDuckMs: number;
  lifecycle: Lifecycle;
  /** The part that marks every answer as the last one of its connection. */
  listeners: readonly { leave(): void }[];
}

/**
 * Lets callers go elsewhere before a process stops. From the signal on its health should say `stopping`; every answer ends its
 * connection; the listener stays open for a while, in which load balancers notice and no call meets a closed port. Add it
 * after all that answers.
 */
export function openLameDuck({ signal, lameDuckMs, lifecycle, listeners }: LameDuckDeps): void {
  let leftAt: number | undefined;
  const leave = () => {
    leftAt ??= performance.now();
    for (const listener of listeners) listener.leave();
  };
  if (signal.aborted) leave();
  else signal.addEventListener("abort", leave, { once: true });
  lifecycle.add(
    "the last callers",
    async () => {
      // Stopped for another reason, such as a failed start: there are no calls yet.
      if (leftAt !== undefined) await sleep(Math.max(0, leftAt + lameDuckMs - performance.now()));
    },
    lameDuckMs + 1_000,
  );
}
