import type { JsonObject } from "../../schema/words/json.ts";
import type { Database } from "../database/database.ts";

/** A message about an approval that is to be sent: the playbook that tells people, and where it comes from. */
export interface TakenMessage {
  approvalId: string;
  number: number;
  playbook: string;
  /** With `messageLink` in the place of the link. */
  input: JsonObject;
  /** The execution that waits, and its playbook. */
  executionId: string;
  path: string;
  /** The user in whose name it runs; null: an operator, or a trigger that one has registered. */
  userId: number | null;
  /** Paths of the executions that led to it by such messages, its own included; at most {@link CHAIN_MAX}. */
  origins: string[];
}

/** Longest row of executions that were started by messages of one another. */
export const CHAIN_MAX = 16;

/**
 * Takes messages that are to be sent, the oldest first, for this long; those that another server is taking are passed over. One whose
 * execution was deleted since is gone with it.
 */
export async function takeMessages({ sql }: Database, leaseMs: number, limit: number): Promise<TakenMessage[]> {
  return await sql<TakenMessage[]>`
    with ready as (
      select approval_id, number from flow.approval_message
      where sent_at is null and (taken_until is null or taken_until <= now())
      order by created_at limit ${limit}
      for update skip locked
    ), taken as (
      update flow.approval_message as m set taken_until = now() + ${leaseMs}::float8 * interval '1 millisecond'
      from ready where m.approval_id = ready.approval_id and m.number = ready.number
      returning m.*
    )
    select m.approval_id as "approvalId", m.number, m.playbook, m.input, a.execution_id as "executionId", a.path,
      root.started_by::int as "userId",
      array(
        with recursive up as (
          select e.path, r.path as root_path, r.started_kind, r.started_id, 1 as depth
          from flow.execution as e join flow.execution as r on r.execution_id = e.root_execution_id
          where e.execution_id = a.execution_id
          union all
          select e.path, r.path, r.started_kind, r.started_id, up.depth + 1
          from up join flow.execution as e on e.execution_id = up.started_id
            join flow.execution as r on r.execution_id = e.root_execution_id
          where up.started_kind = 'execution' and up.depth < ${CHAIN_MAX}
        )
        select up.path from up union select up.root_path from up
      ) as origins
    from taken as m join flow.approval as a on a.approval_id = m.approval_id
    join flow.execution as e on e.execution_id = a.execution_id
    join flow.execution as root on root.execution_id = e.root_execution_id
    order by m.created_at, m.approval_id, m.number`;
}

/** Notes what has become of a message, once. */
export async function endMessage(
  { sql }: Database,
  { approvalId, number }: { approvalId: string; number: number },
  { executionId, error }: { executionId?: string; error?: string },
): Promise<void> {
  await sql`
    update flow.approval_message set sent_at = now(), taken_until = null,
      sent_execution_id = ${executionId ?? null}, error = ${error ?? null}
    where approval_id = ${approvalId} and number = ${number} and sent_at is null`;
}

/** A message as people may see it. */
export interface MessageRow {
  number: number;
  /** Who alone has its link. */
  to: string | null;
  playbook: string;
  createdAt: Date;
  sentAt: Date | null;
  executionId: string | null;
  error: string | null;
}

/** Messages about an approval, the newest first, at most `limit`. */
export async function listMessages({ sql }: Database, approvalId: string, limit: number): Promise<MessageRow[]> {
  return await sql<MessageRow[]>`
    select number, addressee as "to", playbook, created_at as "createdAt", sent_at as "sentAt", sent_execution_id as "executionId", error
    from flow.approval_message where approval_id = ${approvalId} order by number desc limit ${limit}`;
}

/** When a message was made, and for whom alone; undefined if it is gone. */
export async function findMessage(
  { sql }: Database,
  { approvalId, number }: { approvalId: string; number: number },
): Promise<{ madeAt: Date; to: string | null } | undefined> {
  const [row] = await sql<{ madeAt: Date; to: string | null }[]>`
    select created_at as "madeAt", addressee as "to" from flow.approval_message where approval_id = ${approvalId} and number = ${number}`;
  return row;
}
