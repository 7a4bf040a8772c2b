import postgres from "postgres";
import type { BenchPostgres } from "../candidates/postgres.ts";
import type { Measurement } from "../report/measurement.ts";
import { closedLoop } from "./load.ts";

/** About what an event is: ids, a type, a name and a small document. */
const TABLE = `create table step_row (
  event_id bigint generated always as identity primary key, execution_id bigint not null, event_type text not null,
  node_id text not null, created_at timestamptz not null default now(), result jsonb)`;
const RESULT = '{"status": "ok", "context": {"task": "start", "value": {"ok": true}}}';
const ROWS = 50;

/**
 * What the database itself allows: a step's row written and committed by itself over one connection; the same over ten at
 * once, which share their flushes; and fifty rows per statement over four.
 */
export async function benchDatabaseLimit(server: BenchPostgres, statements: number): Promise<Measurement[]> {
  const sql = postgres(await server.createDatabase("bench_limit"), { max: 10 });
  try {
    await sql.unsafe(TABLE);
    const one = () => sql`
      insert into step_row (execution_id, event_type, node_id, result) values (1, 'task.done', 'start', ${RESULT}::jsonb)`;
    const ids = Array.from({ length: ROWS }, (_, index) => index + 1);
    const many = () => sql`
      insert into step_row (execution_id, event_type, node_id, result)
      select id, 'task.done', 'start', ${RESULT}::jsonb from unnest(${ids}::bigint[]) id`;
    await closedLoop(200, 10, one);
    const alone = await closedLoop(statements, 1, one);
    const shared = await closedLoop(statements * 4, 10, one);
    const batched = await closedLoop(statements / 2, 4, many);
    const rate = (rows: number, ms: number) => Math.round((rows * 1_000) / ms);
    return [
      { name: "PostgreSQL: a commit per step, one connection", value: rate(statements, alone.ms), unit: "steps/s" },
      {
        name: "PostgreSQL: a commit per step, ten connections",
        value: rate(statements * 4, shared.ms),
        unit: "steps/s",
      },
      {
        name: `PostgreSQL: ${ROWS} steps per statement, four connections`,
        value: rate((statements / 2) * ROWS, batched.ms),
        unit: "steps/s",
      },
    ];
  } finally {
    await sql.end({ timeout: 1 });
  }
}
