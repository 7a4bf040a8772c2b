import * as v from "valibot";
import { IdInput, Timestamp } from "./wire.ts";

/* Queries and answers of stored results (interface specification, Results and lifecycle). */

/** Longest reference, in characters; names in it are percent-encoded. It is a key, which PostgreSQL bounds to 2,704 bytes. */
export const REF_MAX = 2_500;

const REF = /^noetl:\/\/execution\/([1-9]\d{0,15})\/[\x21-\x7e]+$/;

/** `noetl://execution/{execution_id}/…`; ASCII alone, everything else is percent-encoded. */
export const RefText = v.pipe(
  v.string(),
  v.maxLength(REF_MAX),
  v.regex(REF, "must be a reference, noetl://execution/…"),
);

/** The id of the execution that a reference belongs to; undefined for a text that is no reference. */
export function executionOfRef(ref: string): string | undefined {
  if (ref.length > REF_MAX) return undefined;
  const id = REF.exec(ref)?.[1];
  return id !== undefined && Number(id) <= Number.MAX_SAFE_INTEGER ? id : undefined;
}

/** Where payloads end: with their step, execution or root execution, or with nothing but their time. */
export const RESULT_SCOPES = ["step", "execution", "workflow", "permanent"] as const;
export type ResultScope = (typeof RESULT_SCOPES)[number];

/** Query of `PUT /api/results`. */
export const SaveResultQuery = v.object({
  ref: RefText,
  command_id: IdInput,
  attempt: v.pipe(
    v.string(),
    v.check((text) => /^[1-9]\d{0,9}$/.test(text) && Number(text) <= 2_147_483_647, "must be a whole number from 1"),
  ),
  scope: v.exactOptional(v.picklist(RESULT_SCOPES)),
  ttl: v.exactOptional(v.pipe(v.string(), v.description("How long it is kept: 90s, 15m, 1h, 30d."))),
});

/** Answer of `PUT /api/results`. */
export const SaveResultAnswer = v.object({
  status: v.literal("ok"),
  ref: v.string(),
  store: v.picklist(["kv", "disk"]),
  bytes: v.number(),
  sha256: v.string(),
  expires_at: Timestamp,
});
export type SaveResultAnswer = v.InferOutput<typeof SaveResultAnswer>;

/** Query of `GET /api/results/resolve`. */
export const ResolveQuery = v.object({
  ref: v.pipe(v.string(), v.minLength(1), v.maxLength(REF_MAX), v.description("`ref` of a ResultRef.")),
});
