import { isUtf8 } from "node:buffer";
import type { AttachedPayload } from "../../ports/execution-store.ts";

/*
 * Large results that a flush writes with their events (`flush`). `rows` is SQL for them, with the columns that `flush-columns` names.
 */

/** A payload as it is sent: as text where it is one, else as hexadecimal digits. */
export interface SentPayload extends AttachedPayload {
  executionId: string;
  text: string;
  isText: boolean;
}

/** Controls that stand in no JSON text as they are: PostgreSQL has no U+0000, and U+001E ends a document of the statement. */
const NULL_BYTE = 0x00;
const DOCUMENT_END_BYTE = 0x1e;

/** The payload as it is sent. */
export function sentPayload(row: AttachedPayload): Omit<SentPayload, "executionId"> {
  const { payload } = row;
  const isText = isUtf8(payload) && !payload.includes(NULL_BYTE) && !payload.includes(DOCUMENT_END_BYTE);
  const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
  return { ...row, isText, text: bytes.toString(isText ? "utf8" : "hex") };
}

const SHARED = ["execution_id", "ref", "bytes", "sha256", "compression", "is_sealed"];
const OTHERS = ["store", "scope", "expires_at", "content_type", "root_execution_id"];

/** What an earlier attempt has stored elsewhere under the same reference stays on record, to be removed. */
export function replacedPayloads(rows: string, written: string): string {
  const copied = [...SHARED, ...OTHERS];
  return `
  insert into flow.result (${copied.join(", ")}, writing, state, location)
  select ${copied.map((name) => `r.${name}`).join(", ")}, gen_random_uuid()::text, 'deleting', r.location
  from ${rows} as t
  join flow.result as r on r.execution_id = t.execution_id and r.ref = t.ref and r.writing = '' and r.location is not null
  where ${written}`;
}

/** Writes the payloads of executions that are written, in place of what is under their references. */
export function attachPayloads(rows: string, written: string): string {
  return `
  insert into flow.result (${[...SHARED, ...OTHERS].join(", ")}, state, payload)
  select execution_id, ref, bytes, sha256, compression, is_sealed = 1, 'kv', 'permanent', to_timestamp(expires_ms / 1000),
    'application/json',
    coalesce((select e.root_execution_id from flow.execution as e where e.execution_id = t.execution_id), t.execution_id),
    'stored', case when is_text = 1 then convert_to(payload, 'UTF8') else decode(payload, 'hex') end
  from ${rows} as t
  where ${written}
  on conflict (execution_id, ref, writing) do update set
    store = excluded.store, scope = excluded.scope, expires_at = excluded.expires_at, content_type = excluded.content_type,
    bytes = excluded.bytes, sha256 = excluded.sha256, compression = excluded.compression, is_sealed = excluded.is_sealed,
    location = null, payload = excluded.payload, created_at = now()`;
}
