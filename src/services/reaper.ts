import type { Broker } from "../ports/broker.ts";
import type { Database } from "../repositories/database.ts";
import { acquireLease, releaseLease } from "../repositories/leases.ts";
import { findStranded, type ReaperPolicy, type StrandedCommand } from "../repositories/reaper.ts";
import { NOTICE_COMMANDS_MAX } from "../schema/notice.ts";

/** What a sweep found, by reason; undefined when another server holds the lease, and this one did not look. */
export type Swept = Readonly<Record<StrandedCommand["reason"], number>> | undefined;

/** What the reaper needs. */
export interface ReaperDeps {
  database: Database;
  broker: Pick<Broker, "publish">;
  /** Name of this process, and not of the one after its restart. */
  holder: string;
  policy: ReaperPolicy;
  /** Most commands of one sweep. */
  maxPerRun: number;
  /** Time between sweeps; the lease lasts for three of them. */
  intervalMs: number;
  onSwept(swept: Swept): void;
}

/** Finds commands that nobody works on, and has their notification published again. */
export interface Reaper {
  /** One sweep. */
  sweep(): Promise<Swept>;
  /** Lets another server have the lease at once. */
  release(): Promise<void>;
}

const LEASE = "command_reaper";

/**
 * The command reaper (interface specification, "Command reaper"): it publishes the notification of stranded commands again
 * and changes no status: whoever claims then goes through the claim policy. One server at a time sweeps, by a lease.
 */
export function createReaper(deps: ReaperDeps): Reaper {
  const { database, broker, holder, policy, maxPerRun, intervalMs } = deps;
  let after = "0";
  let token: number | undefined;
  return {
    async sweep() {
      token = await acquireLease(database, LEASE, holder, 3 * intervalMs);
      if (token === undefined) {
        deps.onSwept(undefined);
        return undefined;
      }
      const stranded = await findStranded(database, policy, after, maxPerRun);
      after = stranded.length < maxPerRun ? "0" : (stranded.at(-1)?.commandId ?? "0");
      for (let from = 0; from < stranded.length; from += NOTICE_COMMANDS_MAX) {
        const part = stranded.slice(from, from + NOTICE_COMMANDS_MAX);
        broker.publish({ kind: "commands", commandIds: part.map(({ commandId }) => commandId) });
      }
      const swept = { pending: 0, worker: 0, timeout: 0 };
      for (const { reason } of stranded) swept[reason] += 1;
      deps.onSwept(swept);
      return swept;
    },
    async release() {
      if (token !== undefined) await releaseLease(database, LEASE, token);
      token = undefined;
    },
  };
}
