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
  now(): number;
}

/** What a sweep that was asked for found. */
export interface SweptNow {
  republished: NonNullable<Swept>;
  /** There may be further ones: the next such sweep goes on after the last. */
  more: boolean;
}

/** A sweep that was made. */
export interface SweepMade {
  /** Milliseconds since 1970. */
  at: number;
  /** Somebody asked for it; else it was made by the clock. */
  asked: boolean;
  found: NonNullable<Swept>;
}

/** Finds commands that nobody works on, and has their notification published again. */
export interface Reaper {
  /** One sweep. */
  sweep(): Promise<Swept>;
  /**
   * One sweep because somebody asks for it, whoever has the lease: the server that has it may be the one that hangs. A
   * notification that is published twice does no harm; the lease keeps servers from doing it by the clock.
   */
  sweepNow(): Promise<SweptNow>;
  /** What this server's sweeps came to: the last, and those that found something, the newest first, {@link KEPT_MAX} of them. */
  made(): { last: SweepMade | undefined; found: readonly SweepMade[] };
  /** Lets another server have the lease at once. */
  release(): Promise<void>;
}

/** The lease of who sweeps by the clock. */
export const REAPER_LEASE = "command_reaper";

/** Sweeps that are kept in memory. */
const KEPT_MAX = 10;

/**
 * The command reaper (interface specification, "Command reaper"): it publishes the notification of stranded commands again
 * and changes no status: whoever claims then goes through the claim policy. One server at a time sweeps, by a lease.
 */
export function createReaper(deps: ReaperDeps): Reaper {
  const { database, broker, holder, policy, maxPerRun, intervalMs, now } = deps;
  let after = "0";
  let afterNow = "0";
  let token: number | undefined;
  let last: SweepMade | undefined;
  let found: readonly SweepMade[] = [];
  const sweepFrom = async (from: string, asked: boolean) => {
    const stranded = await findStranded(database, policy, from, maxPerRun);
    for (let start = 0; start < stranded.length; start += NOTICE_COMMANDS_MAX) {
      const part = stranded.slice(start, start + NOTICE_COMMANDS_MAX);
      broker.publish({ kind: "commands", commandIds: part.map(({ commandId }) => commandId) });
    }
    const swept = { pending: 0, worker: 0, timeout: 0 };
    for (const { reason } of stranded) swept[reason] += 1;
    deps.onSwept(swept);
    last = { at: now(), asked, found: swept };
    if (stranded.length > 0) found = [last, ...found].slice(0, KEPT_MAX);
    return { swept, next: stranded.length < maxPerRun ? "0" : (stranded.at(-1)?.commandId ?? "0") };
  };
  return {
    async sweep() {
      token = await acquireLease(database, REAPER_LEASE, holder, 3 * intervalMs);
      if (token === undefined) {
        deps.onSwept(undefined);
        return undefined;
      }
      const { swept, next } = await sweepFrom(after, false);
      after = next;
      return swept;
    },
    async sweepNow() {
      const { swept, next } = await sweepFrom(afterNow, true);
      afterNow = next;
      return { republished: swept, more: next !== "0" };
    },
    made: () => ({ last, found }),
    async release() {
      if (token !== undefined) await releaseLease(database, REAPER_LEASE, token);
      token = undefined;
    },
  };
}
