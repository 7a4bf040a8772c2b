import type { Database } from "../database/database.ts";

/** How far an execution is. */
export interface ExecutionMove {
  executionId: string;
  lastEventId: number;
  hasEnded: boolean;
}

/** The last event ids of these executions; unknown executions are left out. */
export async function findMoves({ sql }: Database, executionIds: readonly string[]): Promise<ExecutionMove[]> {
  return await sql<ExecutionMove[]>`
    select execution_id as "executionId", last_event_id::float8 as "lastEventId", ended_at is not null as "hasEnded"
    from flow.execution where execution_id = any(${[...executionIds]}::bigint[])`;
}

/** Whether another server than this one has said within `silentMs` that it lives. */
export async function hasOtherServer({ sql }: Database, name: string, silentMs: number): Promise<boolean> {
  const [row] = await sql<{ found: boolean }[]>`
    select exists (
      select from flow.runtime
      where kind = 'server' and name <> ${name} and status <> 'offline'
        and heartbeat_at > now() - ${silentMs}::float8 * interval '1 millisecond'
    ) as found`;
  return row?.found === true;
}
