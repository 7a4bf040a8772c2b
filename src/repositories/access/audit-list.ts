import type { AuditEntry } from "../../schema/words/audit-entry.ts";
import { columnsOf, type RowOf } from "../database/columns-of.ts";
import type { Database } from "../database/database.ts";
import { type Page, type PageRequest, page } from "../database/page.ts";
import { auditLog } from "../tables/audit.ts";

const COLUMNS = columnsOf(auditLog, [
  "at",
  "actorKind",
  "actor",
  "issuer",
  "subject",
  "action",
  "resource",
  "rule",
  "result",
  "address",
  "requestId",
  "executionId",
  "commandId",
  "attempt",
  "detail",
]);

/** A row of the audit log. */
export interface AuditRow extends RowOf<typeof COLUMNS> {
  auditId: string;
  userId: number | null;
}

/** Which rows of a list. */
export interface AuditFilter {
  actor?: string;
  userId?: string;
  action?: string;
  resource?: string;
  result?: AuditEntry["result"];
  /** About this execution, or asked by it. */
  executionId?: string;
  /** Written at this moment or later. */
  since?: Date;
  /** Written before this moment. */
  until?: Date;
}

/**
 * Indexes cover only resources, executions and times, so one page scans at most this many rows: it may be short, or empty, without being
 * the last.
 */
export const LOOKED_AT_MAX = 10_000;

/** Rows of the audit log, newest first. The cursor is a row's id. */
export async function listAudit(
  { sql }: Database,
  { actor, userId, action, resource, result, executionId, since, until }: AuditFilter,
  { limit, cursor }: PageRequest<string>,
): Promise<Page<AuditRow, string>> {
  const [found] = await sql<{ ids: string[]; last: string | null; looked: number }[]>`
    with looked as materialized (
      select audit_id, actor, user_id, action, result, at from auth.audit_log
      where true
        ${cursor === undefined ? sql`` : sql`and audit_id < ${cursor}`}
        ${resource === undefined ? sql`` : sql`and resource = ${resource}`}
        ${executionId === undefined ? sql`` : sql`and execution_id = ${executionId}`}
        ${since === undefined ? sql`` : sql`and at >= ${since} and audit_id >= ${firstSince(sql, since)}`}
        ${until === undefined ? sql`` : sql`and at < ${until} and audit_id <= ${lastUntil(sql, until)}`}
      order by audit_id desc
      limit ${LOOKED_AT_MAX}
    )
    select
      array(
        select audit_id::text from looked where true
          ${actor === undefined ? sql`` : sql`and lower(actor) = lower(${actor})`}
          ${userId === undefined ? sql`` : sql`and user_id = ${userId}`}
          ${action === undefined ? sql`` : sql`and action = ${action}`}
          ${result === undefined ? sql`` : sql`and result = ${result}`}
        order by audit_id desc limit ${limit + 1}
      ) as ids,
      (select min(audit_id) from looked) as last,
      (select count(*)::int from looked) as looked`;
  if (found === undefined || found.last === null) return { items: [] };
  const { items: ids, next } = page(found.ids, limit, (id) => id);
  const items = await sql<AuditRow[]>`
    select audit_id as "auditId", user_id::float8 as "userId", ${COLUMNS(sql)}
    from auth.audit_log where audit_id = any(${ids}::bigint[])
    order by audit_id desc`;
  if (next !== undefined) return { items, next };
  return found.looked === LOOKED_AT_MAX ? { items, next: found.last } : { items };
}

/** Rows that are written at the same time may have ids in another order than their times: so many of them at most. */
const SKEW = 10_000;

/** By the index of times, so that a page of long ago does not begin its way at the newest row. */
function lastUntil(sql: Database["sql"], until: Date) {
  return sql`(select audit_id + ${SKEW} from auth.audit_log where at < ${until} order by at desc limit 1)`;
}

function firstSince(sql: Database["sql"], since: Date) {
  return sql`(select audit_id - ${SKEW} from auth.audit_log where at >= ${since} order by at limit 1)`;
}
