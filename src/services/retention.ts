import type { Database } from "../repositories/database.ts";
import { acquireLease, releaseLease, renewLease } from "../repositories/leases.ts";
import { dropPartition, findDroppablePartitions } from "../repositories/old-partitions.ts";
import {
  daysAgo,
  deleteBatches,
  deleteCommandsLeft,
  deleteExecutionRows,
  findOutdatedExecutions,
} from "../repositories/retention.ts";
import { deleteSilentRuntimes } from "../repositories/runtime.ts";
import type { Results } from "./results.ts";

/** What a run has deleted: numbers of rows, and the names of partitions of the log. */
export interface Removed {
  executions: number;
  commands: number;
  /** Of deleted executions, and those past their own time. */
  results: number;
  batches: number;
  /** Processes that were not heard of for a day. */
  runtimes: number;
  partitions: string[];
}

/** What retention needs. */
export interface RetentionDeps {
  database: Database;
  results: Pick<Results, "removeOf" | "removeExpired">;
  /** Name of this process, and not of the one after its restart. */
  holder: string;
  /** Days that executions which have ended are kept (FLOW_RETENTION_DAYS). */
  days: number;
  /** How long nobody else may do this work after this process has begun a part of it. */
  leaseMs: number;
  /** Told after a run that deleted something. */
  onRemoved(removed: Removed): void;
  /** Rows that one statement looks at. Default 500: a few milliseconds, so that nobody waits for long. */
  rowsMax?: number;
  /** Statements of one kind in one run; the next run goes on. Default 200. */
  roundsMax?: number;
}

/** Deletes what was kept for long enough. */
export interface Retention {
  /** One run, to be called every few minutes; undefined when another server does it. */
  runOnce(): Promise<Removed | undefined>;
  /** Nothing more is deleted after the statement under way; then another server may have the work at once. */
  end(): Promise<void>;
}

const LEASE = "retention";
/** Batches are kept for replays of their idempotency keys (Event batches: at least a day), processes to be looked at. */
const DAYS_OF_BATCHES = 1;
const SILENT_MS = 86_400_000;

/**
 * Retention (FLOW_RETENTION_DAYS, FLOW_RESULT_TTL_DEFAULT): executions that ended so long ago, with their results, snapshots
 * and commands; months of the log that none of the others needs; and what is kept for a time of its own. One server at a time,
 * by a lease.
 *
 * Every step leaves what is consistent without the next one, and finds what an earlier run did not come to: a run may break
 * off anywhere.
 */
export function createRetention(deps: RetentionDeps): Retention {
  const { database, holder, leaseMs } = deps;
  const steps = createSteps(deps);
  let token: number | undefined;
  let isEnding = false;
  let running: Promise<unknown> = Promise.resolve();
  const goesOn = async () => !isEnding && token !== undefined && (await renewLease(database, LEASE, token, leaseMs));
  const run = async () => {
    if (isEnding) return undefined;
    token = await acquireLease(database, LEASE, holder, leaseMs);
    if (token === undefined) return undefined;
    const removed: Removed = { executions: 0, commands: 0, results: 0, batches: 0, runtimes: 0, partitions: [] };
    const errors: unknown[] = [];
    // One that fails, as where a folder cannot be written to, holds up none of the others.
    for (const step of steps) await step(removed, goesOn).catch((error: unknown) => errors.push(error));
    if (Object.values(removed).some((what) => (typeof what === "number" ? what : what.length) > 0)) {
      deps.onRemoved(removed);
    }
    if (errors.length > 0) throw errors[0];
    return removed;
  };
  return {
    runOnce() {
      const result = run();
      running = result.catch(() => undefined);
      return result;
    },
    async end() {
      isEnding = true;
      await running;
      if (token !== undefined) await releaseLease(database, LEASE, token);
      token = undefined;
    },
  };
}

/** One kind of what goes; it asks before each round whether it may go on. */
type Step = (removed: Removed, goesOn: () => Promise<boolean>) => Promise<void>;

function createSteps(deps: RetentionDeps): Step[] {
  const { database, results, days, rowsMax = 500, roundsMax = 200 } = deps;
  const outdated = () => daysAgo(database, days);
  /** Rounds until one says that it was the last. */
  const rounds = async (goesOn: () => Promise<boolean>, round: () => Promise<boolean>) => {
    for (let count = 0; count < roundsMax && (await goesOn()); count += 1) if (!(await round())) return;
  };
  /** Where walks go on in the next run. */
  const places = { executions: "0", commands: "0" };

  const executions: Step = async (removed, goesOn) => {
    const endedBefore = await outdated();
    await rounds(goesOn, async () => {
      const { executionIds, next } = await findOutdatedExecutions(database, endedBefore, places.executions, rowsMax);
      for (let more = executionIds.length > 0; more; ) {
        const deleted = await results.removeOf(executionIds, rowsMax);
        removed.results += deleted;
        more = deleted === rowsMax;
        // Only without results: what is left of an execution is found by its row.
        if (more && !(await goesOn())) return false;
      }
      removed.executions += await deleteExecutionRows(database, executionIds);
      places.executions = next ?? "0";
      return next !== undefined;
    });
  };
  const commands: Step = async (removed, goesOn) => {
    const issuedBefore = await outdated();
    await rounds(goesOn, async () => {
      const { deleted, next } = await deleteCommandsLeft(database, issuedBefore, places.commands, rowsMax);
      removed.commands += deleted;
      places.commands = next ?? "0";
      return next !== undefined;
    });
  };
  const batches: Step = async (removed, goesOn) => {
    const endedBefore = await daysAgo(database, DAYS_OF_BATCHES);
    await rounds(goesOn, async () => {
      const deleted = await deleteBatches(database, endedBefore, rowsMax);
      removed.batches += deleted;
      return deleted === rowsMax;
    });
  };
  const expired: Step = async (removed, goesOn) => {
    await rounds(goesOn, async () => {
      const deleted = await results.removeExpired(rowsMax);
      removed.results += deleted;
      return deleted === rowsMax;
    });
  };
  const runtimes: Step = async (removed, goesOn) => {
    if (await goesOn()) removed.runtimes += await deleteSilentRuntimes(database, SILENT_MS);
  };
  const partitions: Step = async (removed, goesOn) => {
    for (const name of await findDroppablePartitions(database, await outdated())) {
      if (!(await goesOn())) return;
      if (await dropPartition(database, name)) removed.partitions.push(name);
    }
  };
  return [executions, commands, batches, expired, runtimes, partitions];
}
