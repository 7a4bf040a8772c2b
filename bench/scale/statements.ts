import type { Sql } from "postgres";

/** What a service asks its database again and again, by a part of the text that no other statement has. */
const SWEEPS: Readonly<Record<string, readonly string[]>> = {
  "poll: groups that wait": ["with recursive requirement as"],
  "poll: waiting commands": ["jsonb_to_recordset", "flow.command"],
  "poll: given back": ["with recursive holder as", "r.status is null or r.status"],
  "reaper: lost commands": ["suspect as materialized", ") as first"],
  "reaper: others": ["suspect as materialized", ") as stranded"],
  "await: watched executions": ["last_event_id::float8", "any("],
  heartbeat: ["with touched as"],
  "batches left": ["with open as materialized", "flow.batch"],
  "executions overdue": ["deadline_at <= now()"],
  flush: ["written as materialized"],
};

/** One kind of statement over a while. */
export interface StatementTime {
  calls: number;
  /** Of one call. */
  meanMs: number;
  totalMs: number;
}

/** Forgets what statements have taken so far. */
export async function resetStatements(sql: Sql): Promise<void> {
  await sql`select pg_stat_statements_reset()`;
}

/** What each kind of statement has taken since {@link resetStatements}; kinds that were not called are left out. */
export async function statementTimes(sql: Sql): Promise<ReadonlyMap<string, StatementTime>> {
  const rows = await statements(sql);
  const kinds = Object.entries(SWEEPS).map(([name, parts]): [string, StatementTime] => {
    const own = rows.filter(({ query }) => parts.every((part) => query.includes(part)));
    const calls = own.reduce((total, row) => total + row.calls, 0);
    const totalMs = own.reduce((total, row) => total + row.totalMs, 0);
    return [name, { calls, totalMs, meanMs: totalMs / calls }];
  });
  return new Map(kinds.filter(([, { calls }]) => calls > 0));
}

/** The statements that took most since {@link resetStatements}, as lines of text. */
export async function dearestStatements(sql: Sql, count: number): Promise<string[]> {
  const rows = await statements(sql);
  return rows.slice(0, count).map(({ query, calls, totalMs }) => {
    const text = query.replace(/\s+/g, " ").slice(0, 110);
    return `${totalMs.toFixed(0).padStart(8)} ms  ${calls} × ${(totalMs / calls).toFixed(2)} ms  ${text}`;
  });
}

async function statements(sql: Sql): Promise<{ query: string; calls: number; totalMs: number }[]> {
  return await sql<{ query: string; calls: number; totalMs: number }[]>`
    select query, calls::float8 as calls, total_exec_time as "totalMs" from pg_stat_statements
    where dbid = (select oid from pg_database where datname = current_database()) order by total_exec_time desc`;
}
