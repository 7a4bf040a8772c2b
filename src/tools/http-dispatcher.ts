import { Agent, buildConnector } from "undici";
import type { EgressGuard } from "../platform/egress.ts";

/**
 * An undici agent whose every connection passes the guard, whoever follows the redirects: literal addresses before the
 * socket is made, names through the guard's own lookup. Header and body time-outs are off, because a task's signal
 * decides how long it may take; only the connect time-out (milliseconds) is its own. Of connections to one origin there
 * are as many as it takes, or `connectionsMax`; an idle one is closed after four seconds.
 */
export function createGuardedAgent(
  guard: EgressGuard,
  options: { verifySsl: boolean; connectTimeoutMs: number; connectionsMax?: number },
): Agent {
  const connect = buildConnector({
    timeout: options.connectTimeoutMs,
    lookup: guard.lookup,
    rejectUnauthorized: options.verifySsl,
  });
  return new Agent({
    headersTimeout: 0,
    bodyTimeout: 0,
    ...(options.connectionsMax !== undefined && { connections: options.connectionsMax }),
    connect(target, callback) {
      try {
        guard.assertHost(target.hostname);
      } catch (error) {
        callback(error as Error, null);
        return;
      }
      connect(target, callback);
    },
  });
}
