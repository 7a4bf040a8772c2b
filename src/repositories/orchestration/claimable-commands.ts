import type { PendingQuery, Row } from "postgres";
import type { Abandoning } from "../../ports/execution-store.ts";
import { SYSTEM_FOLDERS } from "../../schema/rules/access-rules.ts";
import type { Command } from "../../schema/words/command.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import type { Database } from "../database/database.ts";
import type { COMMAND_STATUSES } from "../tables/execution.ts";

/** A command that may be claimed. */
export interface ClaimableCommand {
  commandId: string;
  executionId: string;
  kinds: string[];
  labels: JsonObject | null;
  /** Claims so far. */
  attempt: number;
  /** The worker that lost the last claim; null if it gave the command back, or there was no claim. */
  lostBy?: string | null;
}

/** When a held command may be taken from its worker (see {@link findClaimable}). */
export interface ClaimPolicy {
  /** A worker without a heartbeat for this long is stale. */
  staleMs: number;
  /** A claim older than this may be taken even from a healthy worker, once its lease has expired. */
  hardTimeoutMs: number;
}

/** What a worker needs to run a command. */
export type Requirement = Pick<ClaimableCommand, "kinds" | "labels">;

/**
 * The distinct requirements of PENDING commands, in order, after a given one. The query jumps from one requirement to the next
 * in the index, so that a hundred thousand commands with one requirement cost the same as one command.
 */
export async function findPendingRequirements(
  { sql }: Database,
  after: Requirement | undefined,
  limit: number,
): Promise<Requirement[]> {
  const { kinds = [], labels = null } = after ?? {};
  const beyond = sql`and (kinds, ${hash(sql, sql`labels`)}) > (${kinds}::text[], ${hash(sql, jsonb(sql, labels))})`;
  return sql<Requirement[]>`
    with recursive requirement as (
      (select kinds, labels, ${hash(sql, sql`labels`)} as hash from flow.command
       where status = 'PENDING' ${after === undefined ? sql`` : beyond}
       order by kinds, ${hash(sql, sql`labels`)}
       limit 1)
      union all
      select next.* from requirement cross join lateral (
        select kinds, labels, ${hash(sql, sql`labels`)} as hash from flow.command
        where status = 'PENDING' and (kinds, ${hash(sql, sql`labels`)}) > (requirement.kinds, requirement.hash)
        order by kinds, ${hash(sql, sql`labels`)}
        limit 1
      ) as next
    )
    select kinds, labels from requirement limit ${limit}`;
}

/**
 * The oldest PENDING commands of each of these requirements after an id (default: from the oldest on), in order: commands whose
 * notice was lost, or that no worker has claimed. A command that two of them have is there once.
 */
export async function findPending(
  { sql }: Database,
  wanted: readonly { requirement: Requirement; after?: string; limit: number }[],
): Promise<ClaimableCommand[]> {
  const groups = wanted.map(({ requirement: { kinds, labels }, after = "0", limit }) => ({
    kinds,
    labels,
    after,
    limit,
  }));
  return sql<ClaimableCommand[]>`
    select distinct on (c.command_id) c.command_id as "commandId", c.execution_id as "executionId", c.kinds, c.labels, c.attempt
    from jsonb_to_recordset(${JSON.stringify(groups)}::text::jsonb)
      as wanted(kinds jsonb, labels jsonb, after bigint, "limit" int)
    cross join lateral (
      select command_id, execution_id, kinds, labels, attempt from flow.command
      where status = 'PENDING' and kinds = array(select jsonb_array_elements_text(wanted.kinds))
        and ${hash(sql, sql`labels`)} = ${hash(sql, sql`nullif(wanted.labels, 'null')`)}
        and command_id > wanted.after
      order by command_id
      limit wanted."limit"
    ) as c
    order by c.command_id`;
}

/** As in the index `command_for_group`. Labels without an entry have the hash 0, which differs from no labels. */
function hash(sql: Database["sql"], labels: Fragment) {
  return sql`coalesce(jsonb_hash_extended(${labels}, 0), 1)`;
}

function jsonb(sql: Database["sql"], value: JsonObject | null): Fragment {
  return sql`${value === null ? null : JSON.stringify(value)}::text::jsonb`;
}

type Fragment = PendingQuery<Row[]>;

/**
 * Those of these commands that may be claimed now, oldest first: PENDING commands; commands whose lease has expired and whose
 * worker is missing, not ready or stale, or has held them for longer than the hard timeout; and commands held by
 * `abandoned.worker`, whatever their lease. A worker that has signed off gave its commands back; any other worker lost them. It
 * locks nothing: claims are written by the flush, which compares again.
 */
export async function findClaimable(
  { sql }: Database,
  commandIds: readonly string[],
  policy: ClaimPolicy,
  abandoned: Abandoning | undefined,
): Promise<ClaimableCommand[]> {
  const { worker = null, isGone = false } = abandoned ?? {};
  return sql<ClaimableCommand[]>`
    select c.command_id as "commandId", c.execution_id as "executionId", c.kinds, c.labels, c.attempt,
      case when c.worker = ${worker} then case when ${isGone} then c.worker end
        when r.status is distinct from 'offline' then c.worker end as "lostBy"
    from flow.command c left join flow.runtime r on r.kind = 'worker' and r.name = c.worker
    where c.command_id = any(${[...commandIds]}::bigint[])
      and (c.status = 'PENDING' or c.worker = ${worker} or ${givenUp(sql, policy)})
    order by c.command_id`;
}

/** Why a worker may or may not claim a command. */
export interface ClaimJudgement {
  executionId: string;
  status: (typeof COMMAND_STATUSES)[number];
  /** Its holder and the end of its lease, while it is held. */
  worker: string | null;
  leaseExpiresAt: Date | null;
  /** Milliseconds to the end of the lease, 0 if it has expired or there is no lease. */
  leaseRestMs: number;
  attempt: number;
  claimable: boolean;
}

/**
 * Whether a command may be claimed under the policy of {@link findClaimable}, and if not, why; undefined if it has no row: it has
 * ended ({@link mayHaveBeen}), or does not exist.
 */
export async function judgeClaim(
  { sql }: Database,
  commandId: string,
  policy: ClaimPolicy,
): Promise<ClaimJudgement | undefined> {
  const [row] = await sql<ClaimJudgement[]>`
    select c.execution_id as "executionId", c.status, c.worker, c.lease_expires_at as "leaseExpiresAt", c.attempt,
      coalesce(greatest(ceil(extract(epoch from c.lease_expires_at - now()) * 1000), 0), 0)::float8 as "leaseRestMs",
      c.status = 'PENDING' or coalesce(${givenUp(sql, policy)}, false) as claimable
    from flow.command c left join flow.runtime r on r.kind = 'worker' and r.name = c.worker
    where c.command_id = ${commandId}`;
  return row;
}

/** True of an id that a command may have had: one that was given since the oldest execution that is kept. Two look-ups by key. */
export async function mayHaveBeen({ sql }: Database, commandId: string): Promise<boolean> {
  const [row] = await sql<{ isGiven: boolean }[]>`
    select exists (select from flow.execution where execution_id < ${commandId})
      and exists (select from flow.id_source where last_id >= ${commandId}) as "isGiven"`;
  return row?.isGiven === true;
}

/** The policy for a held command `c` and the row `r` of its worker. Worker names have no index, as there are only a few. */
function givenUp(sql: Database["sql"], { staleMs, hardTimeoutMs }: ClaimPolicy) {
  return sql`(
    c.status in ('CLAIMED', 'RUNNING') and c.lease_expires_at <= now() and (
      r.status is distinct from 'ready'
      or r.heartbeat_at <= now() - ${staleMs}::float8 * interval '1 millisecond'
      or c.claimed_at <= now() - ${hardTimeoutMs}::float8 * interval '1 millisecond'
    )
  )`;
}

/**
 * Labels the open commands of system playbooks as those of the pool that servers have, unless they are of one of `others`: a server of
 * an older version issued them, or their pool was revoked. Returns their number. Locks: these commands, in the order of their ids.
 */
export async function labelSystemCommands(
  { sql }: Database,
  { label, pool, others }: { label: string; pool: string; others: readonly string[] },
): Promise<number> {
  const { count } = await sql`
    with stray as materialized (
      select c.command_id
      from flow.command c join flow.execution e on e.execution_id = c.execution_id and e.ended_at is null
      where c.status in ('PENDING', 'PAUSED', 'PARKED', 'CLAIMED', 'RUNNING')
        and e.path ^@ any(${[...SYSTEM_FOLDERS]}::text[])
        and coalesce(c.labels->>${label}, '') <> all(${[pool, ...others]}::text[])
      order by c.command_id
      for no key update of c
    )
    update flow.command as c set labels = coalesce(c.labels, '{}') || jsonb_build_object(${label}::text, ${pool}::text)
    from stray where c.command_id = stray.command_id`;
  return count;
}

/** Commands as they were issued, by id. Unknown ids are left out. */
export async function loadCommandBodies({ sql }: Database, commandIds: readonly string[]): Promise<Command[]> {
  const rows = await sql<{ body: Command }[]>`
    select body from flow.command where command_id = any(${[...commandIds]}::bigint[]) order by command_id`;
  return rows.map(({ body }) => body);
}
