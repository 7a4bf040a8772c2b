import { deleteDraftsLeft } from "../../repositories/catalog/drafts.ts";
import type { Database } from "../../repositories/database/database.ts";
import { acquireLease, releaseLease, renewLease } from "../../repositories/database/leases.ts";
import { announceDeletion, findResultOwners, forgetDeleted } from "../../repositories/executions/deleted-executions.ts";
import { findDroppablePartitions } from "../../repositories/executions/old-partitions.ts";
import {
  daysAgo,
  deleteBatches,
  deleteCommandsLeft,
  deleteExecutionRows,
  findOutdatedExecutions,
} from "../../repositories/executions/retention.ts";
import { deleteSilentRuntimes } from "../../repositories/workers/workers.ts";
import type { Results } from "../results/results.ts";

/** What a run has deleted: numbers of rows, and the names of partitions of the log. */
export interface Removed {
  executions: number;
  commands: number;
  /** Of deleted executions, and those past their own time. */
  results: number;
  batches: number;
  /** Processes without a sign of life for a day. */
  runtimes: number;
  /** Texts that were run without being registered, of which no execution is left. */
  drafts: number;
  partitions: string[];
}

/** What retention needs. */
export interface RetentionDeps {
  database: Database;
  /** Drops a partition of the event log, as the account that owns it; false: another time. */
  dropPartition(name: string): Promise<boolean>;
  results: Pick<Results, "removeOf" | "removeExpired">;
  /** Name of this process, and not of the one after its restart. */
  holder: string;
  /** Days that executions which have ended are kept (FLOW_RETENTION_DAYS). */
  days: number;
  /** Lease of this work, renewed with each part: no other process does it meanwhile. */
  leaseMs: number;
  /** Milliseconds after which every kind is looked at again, also while some are behind: the time between runs that are not. */
  intervalMs: number;
  now(): number;
  /** Called with what was deleted: after a run, or at the latest at the end of an interval while deletion is behind. */
  onRemoved(removed: Removed): void;
  /** Called when one kind could not be deleted; the next interval tries it again. */
  onFailed(error: unknown): void;
  /** Rows that one statement looks at. Default 500: a few milliseconds, so that other statements wait only shortly. */
  rowsMax?: number;
  /** Batches that one statement deletes: nothing refers to them. Default 2,000: some 20 ms. */
  batchesMax?: number;
  /** Statements of one kind in one run. Default 20: a second or less for all kinds, then others get their turn. */
  roundsMax?: number;
}

/** Deletes what was kept for long enough. */
export interface Retention {
  /** One run, to be called every few minutes, and soon while {@link isBehind}; undefined when another server does it. */
  runOnce(): Promise<Removed | undefined>;
  /** The last run left rows that may go: the next one is due, and goes on with these kinds. */
  isBehind(): boolean;
  /** Nothing more is deleted after the statement under way; then another server may have the work at once. */
  end(): Promise<void>;
}

const LEASE = "retention";
/** Batches are kept for replays of their idempotency keys (Event batches: at least a day), processes to be looked at. */
const DAYS_OF_BATCHES = 1;
const SILENT_MS = 86_400_000;
/** A draft is written before its execution is: one that is younger may be about to have one. */
const DAYS_OF_DRAFTS = 1;

/**
 * Retention (FLOW_RETENTION_DAYS, FLOW_RESULT_TTL_DEFAULT): deletes executions that ended that long ago, with their results,
 * snapshots and commands; months of the log that no remaining execution needs; and rows with their own expiry. One server at a
 * time, by a lease. Every step leaves consistent data even if the next one never runs, and picks up what an earlier run did not
 * reach, so a run may stop anywhere.
 */
export function createRetention(deps: RetentionDeps): Retention {
  const { database, holder, leaseMs, intervalMs, now } = deps;
  const steps = createSteps(deps);
  let token: number | undefined;
  let isEnding = false;
  let running: Promise<unknown> = Promise.resolve();
  /** Kinds of which the last run left something. */
  let behind: readonly Step[] = [];
  /** When all kinds were looked at, in milliseconds since 1970. */
  let wholeAt = Number.NEGATIVE_INFINITY;
  let unreported = nothing();
  const goesOn = async () => !isEnding && token !== undefined && (await renewLease(database, LEASE, token, leaseMs));
  const tell = () => {
    if (Object.values(unreported).some((what) => (typeof what === "number" ? what : what.length) > 0)) {
      deps.onRemoved(unreported);
    }
    unreported = nothing();
  };
  const run = async () => {
    if (isEnding) return undefined;
    // A kind that failed waits for the next interval, so that an unavailable database is not queried ten times a second.
    const before = behind;
    behind = [];
    token = await acquireLease(database, LEASE, holder, leaseMs);
    if (token === undefined) return undefined;
    // A month is looked for and dropped once in an interval, however far batches are behind, and none of the others waits for them.
    const isWhole = before.length === 0 || now() >= wholeAt + intervalMs;
    if (isWhole) {
      tell();
      wholeAt = now();
    }
    const removed = nothing();
    const left: Step[] = [];
    for (const step of isWhole ? steps : before) {
      // A failed one, such as one with an unwritable folder, does not stop the others.
      try {
        if (await step(removed, goesOn)) left.push(step);
      } catch (error) {
        deps.onFailed(error);
      }
    }
    behind = left;
    unreported = sum(unreported, removed);
    if (left.length === 0 || isEnding) tell();
    return removed;
  };
  return {
    runOnce() {
      const result = run();
      running = result.catch(() => undefined);
      return result;
    },
    isBehind: () => behind.length > 0 && !isEnding,
    async end() {
      isEnding = true;
      await running;
      tell();
      if (token !== undefined) await releaseLease(database, LEASE, token);
      token = undefined;
    },
  };
}

function nothing(): Removed {
  return { executions: 0, commands: 0, results: 0, batches: 0, runtimes: 0, drafts: 0, partitions: [] };
}

function sum(one: Removed, other: Removed): Removed {
  return {
    executions: one.executions + other.executions,
    commands: one.commands + other.commands,
    results: one.results + other.results,
    batches: one.batches + other.batches,
    runtimes: one.runtimes + other.runtimes,
    drafts: one.drafts + other.drafts,
    partitions: [...one.partitions, ...other.partitions],
  };
}

/** Deletes one kind of expired rows in rounds; checks the lease before each round. Resolves to true when rows are left. */
type Step = (removed: Removed, goesOn: () => Promise<boolean>) => Promise<boolean>;

function createSteps(deps: RetentionDeps): Step[] {
  const { database, dropPartition, results, days, rowsMax = 500, batchesMax = 2_000, roundsMax = 20 } = deps;
  const outdated = () => daysAgo(database, days);
  /** Rounds until one says that it was the last; true when none did. */
  const rounds = async (goesOn: () => Promise<boolean>, round: () => Promise<boolean>) => {
    for (let count = 0; count < roundsMax; count += 1) {
      if (!(await goesOn()) || !(await round())) return false;
    }
    return true;
  };
  /** Where walks go on in the next run. */
  const places = { executions: "0", commands: "0", batches: "0" };

  const executions: Step = async (removed, goesOn) => {
    const endedBefore = await outdated();
    return await rounds(goesOn, async () => {
      const { executionIds, next } = await findOutdatedExecutions(database, endedBefore, places.executions, rowsMax);
      await announceDeletion(database, executionIds);
      const owners = executionIds.length === 0 ? [] : await findResultOwners(database, executionIds);
      for (let more = owners.length > 0; more; ) {
        const deleted = await results.removeOf(owners, rowsMax);
        removed.results += deleted;
        more = deleted === rowsMax;
        // Only without results: what is left of an execution is found by its row.
        if (more && !(await goesOn())) return false;
      }
      removed.executions += await deleteExecutionRows(database, executionIds);
      await forgetDeleted(database, executionIds);
      places.executions = next ?? "0";
      return next !== undefined;
    });
  };
  const commands: Step = async (removed, goesOn) => {
    const issuedBefore = await outdated();
    return await rounds(goesOn, async () => {
      const { deleted, next } = await deleteCommandsLeft(database, issuedBefore, places.commands, rowsMax);
      removed.commands += deleted;
      places.commands = next ?? "0";
      return next !== undefined;
    });
  };
  const batches: Step = async (removed, goesOn) => {
    const endedBefore = await daysAgo(database, DAYS_OF_BATCHES);
    return await rounds(goesOn, async () => {
      const { deleted, next } = await deleteBatches(database, endedBefore, places.batches, batchesMax);
      removed.batches += deleted;
      places.batches = next ?? "0";
      return next !== undefined;
    });
  };
  const expired: Step = async (removed, goesOn) => {
    return await rounds(goesOn, async () => {
      const deleted = await results.removeExpired(rowsMax);
      removed.results += deleted;
      return deleted === rowsMax;
    });
  };
  const runtimes: Step = async (removed, goesOn) => {
    if (await goesOn()) removed.runtimes += await deleteSilentRuntimes(database, SILENT_MS);
    return false;
  };
  const partitions: Step = async (removed, goesOn) => {
    for (const name of await findDroppablePartitions(database, await outdated())) {
      if (!(await goesOn())) return false;
      if (await dropPartition(name)) removed.partitions.push(name);
    }
    return false;
  };
  return [executions, commands, batches, expired, runtimes, draftStep(deps, rounds), partitions];
}

type Rounds = (goesOn: () => Promise<boolean>, round: () => Promise<boolean>) => Promise<boolean>;

/** Texts that were run without being registered, and of which there is no execution any more. */
function draftStep({ database, rowsMax = 500 }: RetentionDeps, rounds: Rounds): Step {
  let place = "0";
  return async (removed, goesOn) => {
    const writtenBefore = await daysAgo(database, DAYS_OF_DRAFTS);
    return await rounds(goesOn, async () => {
      const { deleted, next } = await deleteDraftsLeft(database, writtenBefore, place, rowsMax);
      removed.drafts += deleted;
      place = next ?? "0";
      return next !== undefined;
    });
  };
}
