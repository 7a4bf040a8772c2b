import { isUtf8 } from "node:buffer";
import type { ISql } from "postgres";
import type { JsonObject } from "../../schema/words/json.ts";
import { columnsOf, jsonFields, type RowOf } from "../database/columns-of.ts";
import type { Database, Transaction } from "../database/database.ts";
import { result } from "../tables/result.ts";

/** The description of a payload. `bytes` and `sha256` are those before compression. */
export interface ResultRow
  extends Pick<
    typeof result.$inferSelect,
    "executionId" | "ref" | "store" | "scope" | "contentType" | "bytes" | "sha256" | "isSealed"
  > {
  /** Milliseconds until it is gone. */
  ttlMs: number;
  compression: "gzip" | null;
}

/** The claim under which a worker stores. */
export interface ClaimKey {
  worker: string;
  commandId: string;
  attempt: number;
}

const REMOVAL = ["executionId", "ref", "writing", "store", "location"] as const;

/** Columns of a {@link Removal}. */
export const removalColumns = columnsOf(result, REMOVAL);

const REMOVAL_FIELDS = jsonFields(result, REMOVAL);

/** A payload outside of its row that is to be removed, by the key of its row. */
export interface Removal extends RowOf<typeof removalColumns> {
  location: JsonObject;
}

/** The same columns as one JSON object, of a row whose columns need no alias. */
export function removalJson(sql: ISql) {
  return sql`json_build_object(${sql.unsafe(REMOVAL_FIELDS)})`;
}

/** A stored payload: until when it is kept, its root execution, and the payload elsewhere that it replaced. */
export interface SavedRow {
  expiresAt: Date;
  rootExecutionId: string;
  replaced: Removal | null;
}

const FOUND = columnsOf(result, [
  "store",
  "scope",
  "bytes",
  "sha256",
  "compression",
  "contentType",
  "isSealed",
  "payload",
  "location",
]);

/** A payload as it was found. */
export interface FoundResult extends RowOf<typeof FOUND> {
  isExpired: boolean;
  /** Its scope has ended, and it is not part of the execution's result. */
  hasEnded: boolean;
}

/**
 * Keeps a result in its row, or replaces the one under its reference, if the claim is the command's present one and the
 * command is one of the execution's: undefined when it is not, or when another payload came in between. Without a claim it is
 * the engine's own. The command's row is locked until the transaction ends, so that the claim cannot be lost in between; a
 * claim that is being taken at this moment is waited for, and then compared.
 *
 * A payload elsewhere that it replaces stays on record, to be removed.
 */
export async function saveInRow(
  { sql }: Database | Transaction,
  row: ResultRow,
  payload: Uint8Array,
  claim: ClaimKey | undefined,
): Promise<SavedRow | undefined> {
  const { executionId, ref } = row;
  const [saved] = await sql<SavedRow[]>`
    with claim as materialized (${claimed(sql, executionId, claim)}),
    replaced as (
      insert into flow.result (${columns(sql)}, writing, state, location)
      select execution_id, ref, root_execution_id, store, scope, expires_at, content_type, bytes, sha256, compression,
        is_sealed, gen_random_uuid()::text, 'deleting', location
      from flow.result
      where execution_id = ${executionId} and ref = ${ref} and writing = '' and location is not null
        and exists (select from claim)
      returning execution_id, ref, writing, store, location
    )
    insert into flow.result as present (${columns(sql)}, state, payload)
    select ${values(sql, row)}, 'stored', ${bytesOf(sql, payload)} from claim
    on conflict (execution_id, ref, writing) do update set
      store = excluded.store, scope = excluded.scope, expires_at = excluded.expires_at,
      content_type = excluded.content_type, bytes = excluded.bytes, sha256 = excluded.sha256,
      compression = excluded.compression, is_sealed = excluded.is_sealed, location = null, payload = excluded.payload,
      created_at = now()
    where present.location is not distinct from (select location from replaced)
    returning expires_at as "expiresAt", root_execution_id as "rootExecutionId", (
      select ${removalJson(sql)} from replaced
    ) as replaced`;
  return saved;
}

/**
 * Bytes for a statement. The driver sends them as two hexadecimal digits each. Most payloads are text that PostgreSQL holds as it is:
 * sent as such they are half as long, and neither side converts them, which saves 1.1 of 9 ms of CPU for a step with 160 KB.
 */
function bytesOf(sql: ISql, bytes: Uint8Array) {
  // A text has no U+0000, and no other bytes than UTF-8: those of gzip stay digits.
  const isText = isUtf8(bytes) && !bytes.includes(0);
  const { buffer, byteOffset, byteLength } = bytes;
  if (!isText) return sql`${bytes}::bytea`;
  return sql`convert_to(${Buffer.from(buffer, byteOffset, byteLength).toString()}::text, 'UTF8')`;
}

/** True when the claim is the present one of a command of the execution. */
export async function isClaimed({ sql }: Database, executionId: string, claim: ClaimKey): Promise<boolean> {
  return (await sql`${claimed(sql, executionId, claim)}`).length > 0;
}

/** The payload behind a reference, or undefined. */
export async function findResult(
  { sql }: Database,
  executionId: string,
  ref: string,
): Promise<FoundResult | undefined> {
  const [row] = await sql<FoundResult[]>`
    select ${FOUND(sql, "r")}, coalesce(r.expires_at <= now(), false) as "isExpired",
      r.scope <> 'permanent' and (owner.execution_id is null or ${isOver(sql)}) as "hasEnded"
    from flow.result r left join flow.execution owner on ${isOwner(sql)}
    where r.execution_id = ${executionId} and r.ref = ${ref} and r.writing = ''`;
  return row;
}

/** The claim's command, locked; one row of the execution's id where no claim is needed. */
export function claimed(sql: ISql, executionId: string, claim: ClaimKey | undefined) {
  if (claim === undefined) return sql`select ${executionId}::bigint as execution_id`;
  return sql`
    select execution_id from flow.command
    where command_id = ${claim.commandId} and attempt = ${claim.attempt} and worker = ${claim.worker}
      and status in ('CLAIMED', 'RUNNING') and execution_id = ${executionId}
    for share`;
}

/** Columns of {@link values}. */
export function columns(sql: ISql) {
  return sql`execution_id, ref, root_execution_id, store, scope, expires_at, content_type, bytes, sha256, compression,
    is_sealed`;
}

/** A row in the order of {@link columns}. */
export function values(sql: ISql, row: ResultRow) {
  return sql`${row.executionId}::bigint, ${row.ref},
    coalesce((select root_execution_id from flow.execution where execution_id = ${row.executionId}), ${row.executionId}),
    ${row.store}, ${row.scope}, now() + ${row.ttlMs}::float8 * interval '1 millisecond', ${row.contentType},
    ${row.bytes}::bigint, ${row.sha256}, ${row.compression}, ${row.isSealed}::boolean`;
}

/** The execution `owner` whose end the scope of the result `r` waits for. */
export function isOwner(sql: ISql) {
  return sql`r.scope <> 'permanent'
    and owner.execution_id = case r.scope when 'workflow' then r.root_execution_id else r.execution_id end`;
}

/** `owner` has ended, and `r` is no part of its result. */
export function isOver(sql: ISql) {
  return sql`(owner.ended_at is not null and not ${isFinalResult(sql)})`;
}

/**
 * `r` is of the step that gave the execution `owner` its result, which is to be read after the end. What is shown of the
 * result names the step in its references: its own, those of its tasks, or those of the parts of a loop.
 */
export function isFinalResult(sql: ISql) {
  return sql`(r.scope <> 'step' and r.execution_id = owner.execution_id
    and coalesce(strpos(owner.result::text, '"' || substring(r.ref from '^noetl://execution/[0-9]+/step/[^/]+/')) > 0, false))`;
}

const ARTIFACT = columnsOf(result, ["ref", "contentType", "bytes", "sha256", "createdAt"]);

/** A file that a task has stored. */
export type ArtifactRow = RowOf<typeof ARTIFACT>;

/** How many files an execution has stored besides this one, and how many bytes they have, of `limit` of them at most. */
export async function totalOfOtherArtifacts(
  { sql }: Database,
  executionId: string,
  ref: string,
  limit: number,
): Promise<{ count: number; bytes: number }> {
  const [row] = await sql<{ count: number; bytes: number }[]>`
    select count(*)::int as count, coalesce(sum(bytes), 0)::float8 as bytes from (
      select bytes from flow.result
      where execution_id = ${executionId} and writing = '' and ref like 'noetl://execution/%/run/%/artifact/%' and ref <> ${ref}
      limit ${limit}
    ) as other`;
  return row ?? { count: 0, bytes: 0 };
}

/**
 * The files of an execution, oldest first, at most `limit`: those that its log names. What a lost claim stored before it was lost, and no task
 * has reported, is no file of it. The log is looked through only where something is stored, and of that the segments that name a file.
 */
export async function listArtifacts({ sql }: Database, executionId: string, limit: number): Promise<ArtifactRow[]> {
  const pattern = 'noetl://execution/[0-9]+/step/[^"/]+/task/[^"/]+/run/[^"/]+/artifact/[^"/]+';
  return await sql<ArtifactRow[]>`
    with stored as materialized (
      select * from flow.result
      where execution_id = ${executionId} and writing = '' and ref like 'noetl://execution/%/run/%/artifact/%'
        and (expires_at is null or expires_at > now())
      order by created_at, ref limit ${limit}
    ), named as materialized (
      select distinct found.part[1] as ref
      from flow.event_log as l, regexp_matches(coalesce(l.body, l.result::text), ${`(${pattern})`}, 'g') as found (part)
      where l.execution_id = ${executionId} and l.event_id > ${executionId}::bigint
        and exists (select from stored) and strpos(coalesce(l.body, l.result::text), '/artifact/') > 0
    )
    select ${ARTIFACT(sql)} from stored where ref in (select ref from named) order by created_at, ref`;
}
