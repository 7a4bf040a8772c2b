import type { ISql } from "postgres";
import type { AuditEntry } from "../../schema/words/audit-entry.ts";
import type { Database, Transaction } from "../database/database.ts";

/** Longest texts of a row: what a caller sends must not become a megabyte that is kept for a year. */
const TEXT_MAX = 512;

/** Writes rows with one statement: some hundreds at most. */
export async function insertAudit(at: Database | Transaction, entries: readonly AuditEntry[]): Promise<void> {
  if (entries.length > 0) await at.sql`${auditInsert(at.sql, entries)}`;
}

/**
 * The statement that inserts audit rows, for use in a CTE: `with audited as (${auditInsert(sql, [entry])}) select …` records a
 * read in the same round trip and commit as the read itself. `only` is a condition under which the rows are inserted.
 */
export function auditInsert(sql: ISql, entries: readonly AuditEntry[], only?: ReturnType<ISql>) {
  const rows = JSON.stringify(entries.map(auditRow));
  return sql`
    insert into auth.audit_log (${sql.unsafe(AUDIT_COLUMNS)})
    select ${sql.unsafe(AUDIT_COLUMNS)} from jsonb_to_recordset(${rows}::text::jsonb) as ${sql.unsafe(AUDIT_RECORD)}
    ${only === undefined ? sql`` : sql`where ${only}`}`;
}

/** The columns that an entry fills, for other statements that write some. */
export const AUDIT_COLUMNS =
  "actor_kind, actor, user_id, issuer, subject, action, resource, rule, result, address, request_id, execution_id, command_id, attempt, detail";

/** The same as what PostgreSQL reads an {@link auditRow} as. */
export const AUDIT_RECORD = `entry (actor_kind text, actor text, user_id bigint, issuer text, subject text, action text, resource text,
  rule text, result text, address text, request_id bigint, execution_id bigint, command_id bigint, attempt int, detail jsonb)`;

/** Deletes rows that are older than `days`, at most `limit`, from the beginning of each chain; gives how many. */
export async function deleteOldAudit({ sql }: Database, days: number, limit: number): Promise<number> {
  const [row] = await sql<{ deleted: number }[]>`select auth.audit_delete_old(${days}::int, ${limit}::int) as deleted`;
  return row?.deleted ?? 0;
}

/** An entry as its columns: within the limits of a row, and of what `jsonb` takes. */
export function auditRow(entry: AuditEntry) {
  return {
    actor_kind: entry.actorKind,
    actor: bounded(entry.actor),
    user_id: entry.userId,
    issuer: bounded(entry.issuer),
    subject: bounded(entry.subject),
    action: entry.action,
    resource: bounded(entry.resource),
    rule: bounded(entry.rule),
    result: entry.result,
    address: bounded(entry.address),
    request_id: entry.requestId,
    execution_id: storedId(entry.executionId),
    command_id: storedId(entry.commandId),
    attempt: entry.attempt,
    detail: entry.detail,
  };
}

/** `jsonb` takes neither U+0000 nor half of a surrogate pair. */
function bounded(text: string | undefined): string | undefined {
  return text?.slice(0, TEXT_MAX).replace(/\u0000|\p{Surrogate}/gu, "\ufffd");
}

/** What a caller sends as an id may be anything: it is in the resource then, or in the request's error. */
function storedId(text: string | undefined): string | undefined {
  return text !== undefined && /^[0-9]{1,18}$/.test(text) ? text : undefined;
}
