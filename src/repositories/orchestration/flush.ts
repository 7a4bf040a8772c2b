import type { Flush } from "../../ports/execution-store.ts";
import { AUDIT_COLUMNS, AUDIT_RECORD } from "../access/audit.ts";
import type { SentAs } from "../database/bulk-columns.ts";
import type { Database } from "../database/database.ts";
import { attachPayloads, replacedPayloads } from "./attached-payloads.ts";
import { type FlushTable, flushColumns, isRead, TABLES } from "./flush-columns.ts";
import { keepSnapshots, numberedSnapshots, thinSnapshots } from "./past-snapshots.ts";
import { changeApprovals, endFires, insertFires, keepDecisions, keepMessages, openApprovals } from "./rare-rows.ts";

/** The outcome of a flush: the executions it wrote, and the database's clock, milliseconds since 1970. */
export interface Flushed {
  moved: string[];
  at: number;
}

/**
 * Writes changes of any number of executions in one statement: one round trip, one commit. Each execution is written only if
 * its row is still at the event on which the change was decided; a new execution is written only if no such row exists, and
 * with `mustBeNewest` only if its catalog entry is the newest of its path, and that not paused, for the statement's snapshot. The
 * events, commands and snapshots of an execution are written only with it, a batch only with all executions that it needs. An
 * execution may occur once in a flush.
 *
 * Of the commands the table holds those that are open: one that begins and ends in one flush has no row, and the row of one that ends
 * later is deleted (which rows stay: `services/orchestration/rounds/change-set`).
 *
 * Locks: the rows of existing executions, until the end of the statement. A flush that waits for a row compares again after the
 * other one has committed (READ COMMITTED), so of two flushes that were decided on the same event only one writes. Commands and
 * batches are protected by the lock on their execution. Rows are locked in the order of the input if the plan goes by key
 * (`DatabaseOptions.byKey`), that is, in the order of their ids. Otherwise two flushes that share executions may deadlock, and
 * PostgreSQL refuses one of them as a whole (40P01, `isRetryable`).
 *
 * Every parameter is a column of all rows, so that the text is the same for any number of rows and stays prepared; only a flush with
 * one row for each table has a text of its own. Tables
 * without rows are left out of the text: some forty texts in practice, each prepared once per connection. With all tables, the
 * statement would take 0.27 ms before it has written a row.
 *
 * Rejects, and writes nothing, with 23505 (`execution_for_idempotency`, `batch_for_idempotency`, `trigger_fire_key`) for a key that
 * was already used.
 */
export async function flushChanges({ sql }: Database, flush: Flush): Promise<Flushed> {
  const { tables, parameters, isSingle } = flushColumns(flush);
  const [row] = await sql.unsafe<{ moved: string[]; at: string }[]>(statementFor(tables, isSingle), parameters, {
    prepare: true,
  });
  if (row === undefined) throw new Error("a flush returned no row");
  return { moved: row.moved, at: Number(row.at) };
}

/**
 * `is true` keeps the planner from turning `in` into a join: as written, the executions are hashed once and looked up per row.
 * `now()` is the start of the statement: one moment for all times that it writes and for the one it returns.
 */
const WRITTEN = "(t.execution_id in (select execution_id from written)) is true";
const COMPLETE = "(t.request_id in (select request_id from incomplete)) is not true";
/** Of a flush with one row for each table, which are all of one execution. Evaluated once. */
const ONE_WRITTEN = "(select true from written)";
const isFinal = (status: string) => `${status} in ('COMPLETED', 'FAILED', 'CANCELLED')`;
const LEASE_END = "now() + t.lease_ms * interval '1 millisecond'";

const STATEMENTS = new Map<string, string>();

function statementFor(tables: ReadonlySet<FlushTable>, isSingle: boolean): string {
  const key = `${isSingle} ${[...tables].join()}`;
  const text = STATEMENTS.get(key) ?? flushText(tables, isSingle);
  STATEMENTS.set(key, text);
  return text;
}

/** Where the rows of a flush are, and the conditions under which they are written. */
interface Places extends FlushPlaces {
  /** The row's execution is written. */
  written: string;
  /** All executions that the row's batch needs are written. */
  complete: string;
}

/**
 * An unloaded server writes one step of one execution at a time: for that the statement is made without sets of rows, which take
 * PostgreSQL a third of its time.
 */
function flushText(tables: ReadonlySet<FlushTable>, isSingle: boolean): string {
  const places: Places = {
    ...flushPlaces(tables, isSingle),
    written: isSingle ? ONE_WRITTEN : WRITTEN,
    complete: isSingle ? (tables.has("needs") ? ONE_WRITTEN : "true") : COMPLETE,
  };
  const part = (table: FlushTable, name: string, text: (places: Places) => string) =>
    tables.has(table) ? [`${name} as (${text(places)})`] : [];
  const written = [
    ...(tables.has("executions") ? ["select execution_id from moved"] : []),
    ...(tables.has("starts") ? ["select execution_id from started"] : []),
  ];
  const parts = [
    ...part("executions", "moved", moved),
    ...part("starts", "started", started),
    `written as materialized (${written.join(" union all ") || "select null::bigint as execution_id where false"})`,
    ...(isSingle ? [] : [`incomplete as materialized (${tables.has("needs") ? incomplete(places) : NONE_INCOMPLETE})`]),
    ...part("labelled", "labelled", labelled),
    ...part("watched", "watched", watched),
    ...part("fired", "ended_fires", endFires),
    ...part("newFires", "started_fires", insertFires),
    ...part("segments", "logged", logged("segments")),
    ...part("events", "logged_events", logged("events")),
    ...part("issued", "issued", issued(tables.has("stopped"))),
    ...part("commands", "changed", changed(tables.has("stopped"))),
    ...part("ended", "ended", ended),
    ...part("parked", "parked", parked),
    ...part("unparked", "unparked", unparked),
    ...part("approvals", "opened_approvals", openApprovals),
    ...part("approvalChanges", "changed_approvals", changeApprovals),
    ...part("approvalDecisions", "approval_decisions", keepDecisions),
    ...part("approvalMessages", "approval_messages", keepMessages),
    ...part("audited", "audited", audited),
    ...part("snapshots", "remembered", remembered),
    ...part("snapshots", "numbered", numbered),
    ...part("snapshots", "kept", kept),
    ...part("snapshots", "thinned", thinned),
    ...part("uncounted", "uncounted", uncounted),
    ...part("payloads", "replaced", replaced),
    ...part("payloads", "attached", attached),
    ...part("accepted", "accepted", accepted),
    ...part("batches", "finished", finished),
  ];
  return `with ${parts.join(",\n")}
    select array(select execution_id from written) as moved,
      round(extract(epoch from now()::timestamptz(3)) * 1000) as at`;
}

const NONE_INCOMPLETE = "select null::bigint as request_id where false";

const incomplete = ({ rowsOf }: Places) => `
  select request_id from ${rowsOf("needs")} as t where (t.execution_id in (select execution_id from written)) is not true`;

// An execution that has ended keeps its status: late events only move its position in the log.
const moved = ({ rowsOf }: Places) => `
  update flow.execution as e set
    last_event_id = t.last_event_id,
    status = case when e.ended_at is null then t.status else e.status end,
    progress = case when e.ended_at is null then t.progress else e.progress end,
    result = case when e.ended_at is null then t.result else e.result end,
    error = case when e.ended_at is null then t.error else e.error end,
    ended_at = case when e.ended_at is null and ${isFinal("t.status")} then now() else e.ended_at end,
    updated_at = now()
  from ${rowsOf("executions")} as t
  where e.execution_id = t.execution_id and e.last_event_id = t.expected_event_id
  returning e.execution_id`;

/**
 * Steps begin by the server's clock. If that clock is behind the database's, or the statement was slow, the execution begins
 * with its first event: no later than its first step.
 */
const STARTED_AT = "least(now(), coalesce(to_timestamp(started_ms / 1000), now()))";

const REFERS_TO = `case when json_array_length(coalesce(line -> 'refers_to', '[]')) > 0
      then array(select json_array_elements_text(line -> 'refers_to')::bigint) end`;

/** One that is being deleted at this moment is noticed after the commit (`executions/deleted-executions`). */
const ORIGINAL_STAYS = `exists (
      select from flow.execution as original where original.execution_id = (line ->> 'rerun_of')::bigint)`;

const started = ({ rowsOf }: Places) => `
  insert into flow.execution (execution_id, catalog_id, path, version, status, progress, last_event_id,
    parent_execution_id, parent_step, root_execution_id, started_by, started_kind, started_id, started_name, started_issuer, started_subject,
    result, error,
    started_at, ended_at, deadline_at, caller, idempotency_key, body_sha256,
    rerun_of, rerun_request, sealed_under, refers_to)
  select execution_id, catalog_id, path, version, status, progress, last_event_id,
    parent_execution_id, parent_step, root_execution_id, started_by, started_kind, started_id, started_name,
    (select issuer from auth.users where user_id = started_by), (select subject from auth.users where user_id = started_by),
    result, error, ${STARTED_AT},
    case when ${isFinal("status")} then now() end, to_timestamp(deadline_ms / 1000), caller, idempotency_key, body_sha256,
    (line ->> 'rerun_of')::bigint, line -> 'request', (line ->> 'sealed_under')::bigint, ${REFERS_TO}
  from ${rowsOf("starts")} as t
  where (must_be_newest = 0 or exists (
    select from flow.resource as r where r.path = t.path and r.catalog_id = t.catalog_id and r.paused_at is null))
    and (line ->> 'rerun_of' is null or ${ORIGINAL_STAYS})
  on conflict (execution_id) do nothing
  returning execution_id`;

const labelled = ({ rowsOf, written }: Places) => `
  insert into flow.execution_label (execution_id, name, value)
  select execution_id, name, value
  from ${rowsOf("labelled")} as t
  where ${written}`;

// The end of one that has ended comes again with a late event; a trigger fires for it once all the same.
const watched = ({ rowsOf, written }: Places) => `
  insert into flow.watched_end (execution_id)
  select execution_id from ${rowsOf("watched")} as t
  where ${written}
  on conflict (execution_id) do nothing`;

const logged =
  (table: "segments" | "events") =>
  ({ rowsOf, namesOf, written }: Places) =>
    `
  insert into flow.event_log (${namesOf(table).join(", ")})
  select ${namesOf(table).join(", ")}
  from ${rowsOf(table)} as t
  where ${written}`;

/** Of the row `t` of a command; null: none. */
const stoppedNow = (rowsOf: Places["rowsOf"]) =>
  `(select array_agg(s.iteration) from ${rowsOf("stopped")} as s where s.command_id = t.command_id)`;

const issued =
  (isStopped: boolean) =>
  ({ rowsOf, written }: Places) =>
    `
  insert into flow.command (command_id, execution_id, catalog_id, step, status, attempt, kinds, labels, body, worker,
    claimed_at, lease_expires_at, ended_at${isStopped ? ", stopped_iterations" : ""})
  select command_id, execution_id, catalog_id, step, status, attempt, kinds, labels, body, worker,
    case when worker is not null then now() end, ${LEASE_END}, case when ${isFinal("status")} then now() end
    ${isStopped ? `, ${stoppedNow(rowsOf)}` : ""}
  from ${rowsOf("issued")} as t
  where ${written}`;

// A change that does not concern the claim keeps its time and its lease.
const changed =
  (isStopped: boolean) =>
  ({ rowsOf, written }: Places) =>
    `
  update flow.command as c set
    ${isStopped ? `stopped_iterations = c.stopped_iterations || ${stoppedNow(rowsOf)},` : ""}
    status = t.status,
    -- It only grows: a cancellation does not say it.
    attempt = greatest(c.attempt, t.attempt),
    worker = t.worker,
    claimed_at = case when t.worker is null then null when t.lease_ms is null then c.claimed_at else now() end,
    lease_expires_at = case when t.worker is null then null when t.lease_ms is null then c.lease_expires_at
      else ${LEASE_END} end,
    ended_at = case when ${isFinal("t.status")} then now() end
  from ${rowsOf("commands")} as t
  where c.command_id = t.command_id and c.execution_id = t.execution_id and c.ended_at is null and ${written}`;

/*
 * Protected by the lock on the execution, as every change of its commands is. A worker's heartbeat skips a row that this locks; one that
 * stores a result under its claim (`saveInRow`) holds the row, and this waits for it. Rows that an older version left as ended stay
 * until their execution is deleted.
 */
const ended = ({ rowsOf, written }: Places) => `
  delete from flow.command as c
  using ${rowsOf("ended")} as t
  where c.command_id = t.command_id and c.execution_id = t.execution_id and c.ended_at is null and ${written}`;

// Protected by the lock on the execution. One that is parked anew, as its retry waits again, is free to be taken.
const parked = ({ rowsOf, written }: Places) => `
  insert into flow.wait as w (command_id, execution_id, kind, due_at, name, key, is_looked)
  select command_id, execution_id, kind, to_timestamp(due_ms / 1000), name, key, name is null
  from ${rowsOf("parked")} as t
  where ${written}
  on conflict (command_id) do update set kind = excluded.kind, due_at = excluded.due_at, taken_until = null,
    name = excluded.name, key = excluded.key, is_looked = excluded.is_looked`;

const unparked = ({ rowsOf, written }: Places) => `
  delete from flow.wait as w
  using ${rowsOf("unparked")} as t
  where w.command_id = t.command_id and w.execution_id = t.execution_id and ${written}`;

// Triggers link the rows into a chain that no other transaction holds, so no flush waits for another one's commit.
const audited = ({ rowsOf, written }: Places) => `
  insert into auth.audit_log (${AUDIT_COLUMNS})
  select ${AUDIT_COLUMNS.split(", ")
    .map((name) => `entry.${name}`)
    .join(", ")}
  from ${rowsOf("audited")} as t, jsonb_to_record(t.entry::jsonb) as ${AUDIT_RECORD}
  where ${written}`;

// Counted soon by whichever server comes first (`services/statistics/count-executions`).
const uncounted = ({ rowsOf, written }: Places) => `
  insert into flow.uncounted_execution (execution_id, path, status, ended_at, tally)
  select execution_id, path, status, now(), tally
  from ${rowsOf("uncounted")} as t
  where ${written}`;

const remembered = ({ rowsOf, written }: Places) => `
  insert into flow.execution_snapshot as s (execution_id, event_id, format, state)
  select execution_id, event_id, format, state
  from ${rowsOf("snapshots")} as t
  where ${written}
  on conflict (execution_id) do update set
    event_id = excluded.event_id, format = excluded.format, state = excluded.state, created_at = now()
  where s.event_id < excluded.event_id`;

const numbered = ({ rowsOf, written }: Places) => numberedSnapshots(rowsOf("snapshots"), written);
const kept = () => keepSnapshots("numbered");
const thinned = () => thinSnapshots("numbered");

const replaced = ({ rowsOf, written }: Places) =>
  replacedPayloads(rowsOf("payloads", ["execution_id", "ref"]), written);
const attached = ({ rowsOf, written }: Places) => attachPayloads(rowsOf("payloads"), written);

const accepted = ({ rowsOf, complete }: Places) => `
  insert into flow.batch (request_id, caller, idempotency_key, body_sha256, state, code, message, execution_ids,
    event_ids, commands_generated)
  select request_id, caller, idempotency_key, body_sha256, state, code, message, execution_ids,
    event_ids, commands_generated
  from ${rowsOf("accepted")} as t
  where ${complete}`;

const finished = ({ rowsOf, complete }: Places) => `
  update flow.batch as b set
    state = t.state, code = t.code, message = t.message, commands_generated = t.commands_generated,
    processor = null, lease_expires_at = null, updated_at = now()
  from ${rowsOf("batches")} as t
  where b.request_id = t.request_id and b.state in ('accepted', 'processing') and ${complete}`;

/** The places of a flush's parameters in the statement, and the SQL that reads them. */
interface FlushPlaces {
  /** SQL for the rows of a table: a subquery that unpacks its parameters, or those of these columns. */
  rowsOf(table: FlushTable, names?: readonly string[]): string;
  /** Names of the columns of a table, in the order of {@link rowsOf}. */
  namesOf(table: FlushTable): string[];
}

/** Places for a flush that has rows for these tables; with `isSingle` one row for each. */
function flushPlaces(tables: ReadonlySet<FlushTable>, isSingle: boolean): FlushPlaces {
  let count = 0;
  const places = TABLES.filter(([table]) => tables.has(table) && isRead(table, isSingle)).flatMap(
    ([table, { columns: known }]) =>
      known.map(({ name, type }) => {
        count += 1;
        return { table, name, type, parameter: `$${count}` };
      }),
  );
  const of = (wanted: FlushTable) => places.filter(({ table }) => table === wanted);
  return {
    namesOf: (table) => of(table).map(({ name }) => name),
    rowsOf: (table, names) =>
      `(select ${of(table)
        .filter(({ name }) => names?.includes(name) !== false)
        .map(({ name, type, parameter }) => `${isSingle ? first(type, parameter) : unnest(type, parameter)} as ${name}`)
        .join(", ")})`,
  };
}

const documentsOf = (parameter: string) => `string_to_array(${parameter}::text, E'\\x1e', '')`;

/**
 * Set-returning functions side by side in a select list run in step, and the shorter ones are padded with NULL. The same with
 * `from unnest(a, b, …)` would first materialize every column: a tenth slower for the whole flush.
 */
function unnest(type: SentAs, parameter: string): string {
  const parts = `unnest(${documentsOf(parameter)})`;
  if (type === "document") return parts;
  if (type === "json" || type === "jsonb") return `${parts}::${type}`;
  return type.endsWith("[]") ? `unnest(${parameter}::text[])::${type}` : `unnest(${parameter}::${type}[])`;
}

/** The same of a column with one row, which the planner puts where it is used: no row is made of it. */
function first(type: SentAs, parameter: string): string {
  const part = `(${documentsOf(parameter)})[1]`;
  if (type === "document") return part;
  if (type === "json" || type === "jsonb") return `${part}::${type}`;
  return type.endsWith("[]") ? `(${parameter}::text[])[1]::${type}` : `(${parameter}::${type}[])[1]`;
}
