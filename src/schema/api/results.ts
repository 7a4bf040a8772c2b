import * as v from "valibot";
import { defined } from "../words/defined.ts";
import type { JsonObject } from "../words/json.ts";
import { IdInput, IdText, JsonObjectValue, Timestamp } from "../words/wire.ts";
import { WorkerName } from "./commands.ts";

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

/** Where payloads are kept (interface specification, ResultRef). */
export const RESULT_STORES = ["kv", "s3", "cloud_bucket", "sqldb", "disk"] as const;
export type ResultStoreName = (typeof RESULT_STORES)[number];

/** Spellings of the object tier that was removed (interface specification, Versioning): what names it means `disk`. */
const REMOVED_TIER: ReadonlySet<string> = new Set(["object", "object_store", "nats_object"]);

/** The store that a `store.kind` means: one of them, or `auto`, by size; undefined for another text. */
export function storeNamed(text: string): ResultStoreName | "auto" | undefined {
  if (REMOVED_TIER.has(text)) return "disk";
  return text === "auto" ? text : RESULT_STORES.find((name) => name === text);
}

/** How payloads may be kept: squeezed, as they are, or as the server finds it worth. */
export const RESULT_COMPRESSIONS = ["gzip", "none"] as const;
export type ResultCompression = (typeof RESULT_COMPRESSIONS)[number];

/** Default type of a payload. */
export const JSON_TYPE = "application/json";

/** A media type, perhaps with parameters, that is valid in a header. */
const ContentType = v.pipe(
  v.string(),
  v.maxLength(200),
  v.regex(
    /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(; ?[\w!#$&^.+-]+=("[\w !#$&^.+:/-]*"|[\w!#$&^.+-]+))*$/,
    "must be a media type",
  ),
);

/**
 * The reference that a text stands for: itself, or the `ref` of a whole ResultRef in JSON. One of the kind `temp_ref` is read
 * as a `result_ref` (interface specification, Versioning).
 */
export function refIn(text: string): string {
  if (!text.startsWith("{")) return text;
  try {
    const value = JSON.parse(text) as { kind?: unknown; ref?: unknown } | null;
    const isReference = value?.kind === "result_ref" || value?.kind === "temp_ref";
    return isReference && typeof value.ref === "string" ? value.ref : text;
  } catch {
    return text;
  }
}

/** Query of `PUT /api/results`. */
export const SaveResultQuery = v.object({
  ref: RefText,
  worker: v.pipe(WorkerName, v.description("Whose claim it is, as it named itself there.")),
  command_id: IdInput,
  attempt: v.pipe(
    v.string(),
    v.check((text) => /^[1-9]\d{0,9}$/.test(text) && Number(text) <= 2_147_483_647, "must be a whole number from 1"),
  ),
  scope: v.exactOptional(v.picklist(RESULT_SCOPES)),
  ttl: v.exactOptional(v.pipe(v.string(), v.description("How long it is kept: 90s, 15m, 1h, 30d."))),
  store: v.exactOptional(v.pipe(v.string(), v.description(`auto (by size), ${RESULT_STORES.join(", ")}.`))),
  compression: v.exactOptional(
    v.pipe(v.picklist(RESULT_COMPRESSIONS), v.description("Absent: as the server finds it worth.")),
  ),
  content_type: v.exactOptional(v.pipe(ContentType, v.description("Of the body; default application/json."))),
});

/** Answer of `PUT /api/results`. */
export const SaveResultAnswer = v.object({
  status: v.literal("ok"),
  ref: v.string(),
  store: v.picklist(RESULT_STORES),
  /** Of the payload before compression, as its SHA-256 is. */
  bytes: v.number(),
  sha256: v.string(),
  content_type: v.string(),
  compression: v.nullable(v.literal("gzip")),
  expires_at: Timestamp,
  /** The location in the store (interface specification, Task result configuration): bucket and key, table and range. */
  meta: JsonObjectValue,
});
export type SaveResultAnswer = v.InferOutput<typeof SaveResultAnswer>;

/** A worker wants values as they are stored: it opens what is sealed in them itself. */
export const SealedFlag = v.pipe(
  v.picklist(["true", "false"]),
  v.description("true: as stored, secrets sealed, for workers. Otherwise they are replaced by [secret]."),
);

/** A whole ResultRef has its extracted fields and its preview beside the reference. */
const QUERY_REF_MAX = 12_000;

/** Query of `GET /api/results/resolve`. */
export const ResolveQuery = v.object({
  ref: v.pipe(
    v.string(),
    v.minLength(1),
    v.maxLength(QUERY_REF_MAX),
    v.description("`ref` of a ResultRef, or the whole ResultRef in JSON."),
    v.transform(refIn),
  ),
  sealed: v.exactOptional(SealedFlag),
  frame: v.exactOptional(
    v.pipe(
      v.literal("true"),
      v.description(
        "A file of HTML is to be shown in a frame of the page, under a policy without scripts, forms and ways out.",
      ),
    ),
  ),
  execution_id: v.exactOptional(
    v.pipe(IdText, v.description("For workers: the execution that reads, in the name of the user who started it.")),
  ),
});

/**
 * A ResultRef as it is written today: one of the earlier kind `temp_ref` is a `result_ref`, and what was in the removed object
 * tier is on disk (interface specification, Versioning).
 */
export function currentRef(reference: JsonObject): JsonObject {
  const { kind, store } = reference;
  const today = typeof store === "string" ? (storeNamed(store) ?? store) : store;
  if (kind !== "temp_ref" && today === store) return reference;
  return { ...reference, kind: "result_ref", ...defined({ store: today }) };
}

/** A file that a task has stored (`artifact` with `action: put`). */
export const ArtifactItem = v.object({
  name: v.string(),
  step: v.string(),
  task: v.string(),
  ref: v.pipe(
    v.string(),
    v.description("Its content is at `GET /api/results/resolve?ref=…`, parts of it with `Range`."),
  ),
  content_type: v.pipe(v.string(), v.description("As its author says.")),
  bytes: v.number(),
  sha256: v.string(),
  created_at: Timestamp,
  reused_from: v.exactOptional(
    v.pipe(
      IdText,
      v.description("The execution that has stored it: this one has taken over the step with its result."),
    ),
  ),
});
export type ArtifactItem = v.InferOutput<typeof ArtifactItem>;

/** Most files of an execution: more are not stored. */
export const ARTIFACTS_MAX = 1_000;

/** Answer of `GET /api/executions/{execution_id}/artifacts`: in the order in which they were stored. */
export const ArtifactsAnswer = v.object({
  artifacts: v.array(ArtifactItem),
  truncated: v.pipe(
    v.boolean(),
    v.description(`There are more than the ${ARTIFACTS_MAX} that are listed: of an execution of an earlier version.`),
  ),
});
