import { setTimeout as sleep } from "node:timers/promises";
import type { BenchPostgres } from "../candidates/postgres.ts";

type Admin = BenchPostgres["admin"];

/** What clients of a database did. */
export interface Traffic {
  /** Transactions that ended, those that only read included. */
  commits: number;
  /** Statements that clients sent, `begin` and `commit` included: as many round trips unless they are pipelined. */
  statements: number;
}

/** What work wrote. */
export interface Writing {
  /** Write-ahead log of the whole server: nothing else runs meanwhile. */
  walBytes: number;
  /** By which the database grew on disk. */
  growthBytes: number;
}

/** A connection publishes its counters at the latest ten seconds after it became idle. */
const COUNTERS_MS = 11_000;

/**
 * Does the work and counts the database's traffic, less what an idle candidate sends in the same time: it polls. Waits three
 * times eleven seconds for the counters.
 */
export async function withTraffic<T>({ admin }: BenchPostgres, database: string, work: () => Promise<T>) {
  await sleep(COUNTERS_MS);
  const rested = await traffic(admin, database);
  await sleep(COUNTERS_MS);
  const before = await traffic(admin, database);
  const value = await work();
  await sleep(COUNTERS_MS);
  const after = await traffic(admin, database);
  const less = (key: keyof Traffic) => after[key] - before[key] - (before[key] - rested[key]);
  const cost: Traffic = { commits: less("commits"), statements: less("statements") };
  return { value, cost };
}

/** Does the work and weighs what it wrote, at once: what the candidate does when idle is not its work's. */
export async function withWriting<T>({ admin }: BenchPostgres, database: string, work: () => Promise<T>) {
  const before = await writing(admin, database);
  const value = await work();
  const after = await writing(admin, database);
  const cost: Writing = {
    walBytes: after.walBytes - before.walBytes,
    growthBytes: after.growthBytes - before.growthBytes,
  };
  return { value, cost };
}

async function traffic(admin: Admin, database: string): Promise<Traffic> {
  const [row] = await admin<{ commits: number; statements: number }[]>`
    select xact_commit::float8 as commits,
           (select coalesce(sum(calls), 0) from pg_stat_statements where dbid = datid)::float8 as statements
      from pg_stat_database where datname = ${database}`;
  if (row === undefined) throw new Error(`There is no database ${database}`);
  return row;
}

async function writing(admin: Admin, database: string): Promise<Writing> {
  const [row] = await admin<[Writing]>`
    select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 as "walBytes",
           pg_database_size(${database}::text)::float8 as "growthBytes"`;
  return row;
}
