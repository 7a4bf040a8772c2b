import type { Broker } from "../../ports/broker.ts";
import type { Database } from "../../repositories/database/database.ts";
import { acquireLease, releaseLease } from "../../repositories/database/leases.ts";
import {
  FIRST_HELD,
  findLost,
  findStranded,
  type HeldPlace,
  type ReaperPolicy,
  type StrandedCommand,
} from "../../repositories/orchestration/stranded-commands.ts";
import { NOTICE_COMMANDS_MAX } from "../../schema/words/notice.ts";

/** What a sweep found, by reason; undefined if another server holds the lease and this one did not sweep. */
export type Swept = Readonly<Record<StrandedCommand["reason"], number>> | undefined;

/** What the reaper needs. */
export interface ReaperDeps {
  database: Database;
  broker: Pick<Broker, "publish">;
  /** Name of this process; it changes with a restart. */
  holder: string;
  policy: ReaperPolicy;
  /** Most commands of one sweep. */
  maxPerRun: number;
  /** Time between sweeps; the lease lasts for three of them. */
  intervalMs: number;
  onSwept(swept: Swept): void;
  now(): number;
}

/** The result of a sweep on request. */
export interface SweptNow {
  republished: NonNullable<Swept>;
  /** There may be more: the next sweep on request continues after the last command. */
  more: boolean;
}

/** A past sweep. */
export interface SweepMade {
  /** Milliseconds since 1970. */
  at: number;
  /** Made on request; otherwise by the timer. */
  asked: boolean;
  found: NonNullable<Swept>;
}

/** Finds commands that no worker runs, and has their notifications published again. */
export interface Reaper {
  /** One sweep. */
  sweep(): Promise<Swept>;
  /** The last sweep was full of commands lost by workers: there may be more, so the next sweep is due now. */
  isBehind(): boolean;
  /**
   * One sweep on request, whichever server has the lease: the server that has it may be the one that hangs. A notification
   * published twice does no harm; the lease only keeps servers from sweeping at the same intervals.
   */
  sweepNow(): Promise<SweptNow>;
  /** This server's past sweeps: the last one, and the newest {@link KEPT_MAX} that found something, newest first. */
  made(): { last: SweepMade | undefined; found: readonly SweepMade[] };
  /** Releases the lease, so that another server can take it at once. */
  release(): Promise<void>;
}

/** The lease for timed sweeps. */
export const REAPER_LEASE = "command_reaper";

/** Where a sweep begins. */
interface Place {
  held: HeldPlace;
  /** The id of a PENDING command, or of a command that is still held by its worker. */
  other: string;
}

const FIRST: Place = { held: FIRST_HELD, other: "0" };

/** Sweeps that are kept in memory. */
const KEPT_MAX = 10;

/**
 * The command reaper (interface specification, "Command reaper"): it publishes the notifications of stranded commands again and
 * changes no status; a claim still follows the claim policy. One server at a time sweeps, by a lease.
 */
export function createReaper(deps: ReaperDeps): Reaper {
  const { database, broker, holder, policy, maxPerRun, intervalMs, now } = deps;
  let place = FIRST;
  let placeNow = FIRST;
  let token: number | undefined;
  let last: SweepMade | undefined;
  let found: readonly SweepMade[] = [];
  // Waiting commands get their share even if lost commands would fill every sweep: possibly no remaining worker can run the
  // lost ones.
  const lostMax = maxPerRun - Math.floor(maxPerRun / 10);
  const sweepFrom = async (from: Place, asked: boolean) => {
    const lost = await findLost(database, policy, from.held, lostMax);
    const left = maxPerRun - lost.length;
    const others = await findStranded(database, policy, from.other, left);
    const stranded: StrandedCommand[] = [...lost, ...others];
    for (let start = 0; start < stranded.length; start += NOTICE_COMMANDS_MAX) {
      const part = stranded.slice(start, start + NOTICE_COMMANDS_MAX);
      broker.publish({ kind: "commands", commandIds: part.map(({ commandId }) => commandId) });
    }
    const swept = { pending: 0, worker: 0, timeout: 0 };
    for (const { reason } of stranded) swept[reason] += 1;
    deps.onSwept(swept);
    last = { at: now(), asked, found: swept };
    if (stranded.length > 0) found = [last, ...found].slice(0, KEPT_MAX);
    const lastLost = lost.length < lostMax ? undefined : lost.at(-1);
    const lastOther = others.length < left ? undefined : others.at(-1);
    return { swept, next: { held: lastLost ?? FIRST.held, other: lastOther?.commandId ?? FIRST.other } };
  };
  return {
    async sweep() {
      token = await acquireLease(database, REAPER_LEASE, holder, 3 * intervalMs);
      if (token === undefined) {
        deps.onSwept(undefined);
        return undefined;
      }
      const { swept, next } = await sweepFrom(place, false);
      place = next;
      return swept;
    },
    async sweepNow() {
      const { swept, next } = await sweepFrom(placeNow, true);
      placeNow = next;
      return { republished: swept, more: next.held !== FIRST.held || next.other !== FIRST.other };
    },
    isBehind: () => token !== undefined && place.held !== FIRST.held,
    made: () => ({ last, found }),
    async release() {
      if (token !== undefined) await releaseLease(database, REAPER_LEASE, token);
      token = undefined;
    },
  };
}
