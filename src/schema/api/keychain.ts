import * as v from "valibot";
import { SecretSchema } from "../rules/secret-schema.ts";
import type { JsonObject } from "../words/json.ts";
import { IdInput, JsonObjectValue, JsonValue, NextCursor, PageQuery, storableText, Timestamp } from "../words/wire.ts";

/* Queries, bodies and answers of the keychain (interface specification, Keychain). `catalog_id` is a number here. */

/** Who shares an entry (interface specification, Scopes and cache keys). */
export const KEYCHAIN_SCOPES = ["local", "global", "shared"] as const;
export type KeychainScope = (typeof KEYCHAIN_SCOPES)[number];

/** `secret` does not change by itself, `token` is renewed. */
export const KEYCHAIN_CACHE_TYPES = ["secret", "token"] as const;
export type KeychainCacheType = (typeof KEYCHAIN_CACHE_TYPES)[number];

/** Longest data of an entry with its renewal's description, as JSON text, in bytes. Certificates and keys are some thousands. */
export const TOKEN_BYTES_MAX = 262_144;
/** Longest life of an entry: ten years. */
export const TTL_SECONDS_MAX = 315_360_000;
/** Longest time that a right to renew lasts without an end, milliseconds. */
export const LEASE_MS_MAX = 300_000;
/** Longest wait for another holder of that right within one request, milliseconds. */
export const LEASE_WAIT_MS_MAX = 30_000;
/** Longest error of a renewal, in characters. */
export const LEASE_MESSAGE_MAX = 4_096;

const count = v.pipe(v.number(), v.integer(), v.minValue(0));

/** Name of an entry, as in the playbook. */
export const KeychainName = v.pipe(storableText(255), v.minLength(1));

/** Milliseconds of an RFC 3339 time; without a zone it is UTC, as specified. Undefined for an invalid time. */
export function keychainTime(text: string): number | undefined {
  const [, zone] = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)?$/i.exec(text) ?? [
    undefined,
    "",
  ];
  if (zone === "") return undefined;
  const ms = Date.parse(`${text.toUpperCase().replace(" ", "T")}${zone === undefined ? "Z" : ""}`);
  // PostgreSQL has no year 0, and years before the epoch make no sense here.
  return ms >= 0 && ms <= Date.parse("9999-12-31T23:59:59.999Z") ? ms : undefined;
}

const scope = v.exactOptional(
  v.pipe(v.picklist(KEYCHAIN_SCOPES), v.description("global by default; local and shared need `execution_id`.")),
);

/** Query of `GET` and `DELETE /api/keychain/{catalog_id}/{keychain_name}`. */
export const KeychainQuery = v.object({
  execution_id: v.exactOptional(
    v.pipe(IdInput, v.description("The execution that asks. Of a shared entry: any of its tree.")),
  ),
  scope_type: scope,
});

/** A key of {@link RenewConfig} that is null counts as left out. */
const optional = <S extends v.GenericSchema>(schema: S) => v.exactOptional(v.nullable(schema));

const headers = v.check(
  (headers: JsonObject) => Object.values(headers).every((value) => value === null || typeof value !== "object"),
  "must be an object of texts",
);

/** The request that renews an entry (interface specification, Renewal configuration). Other keys are kept and not used. */
export const RenewConfig = v.looseObject({
  endpoint: v.pipe(
    v.string(),
    v.check((text) => text.trim() !== "", "must not be empty"),
    v.description("Where it is sent."),
  ),
  method: optional(v.pipe(v.string(), v.description("POST by default."))),
  headers: optional(v.pipe(JsonObjectValue, headers)),
  data: optional(
    v.pipe(
      JsonValue,
      v.check((value) => typeof value === "object" || typeof value === "string", "must be an object, a list or a text"),
      v.description("Form fields, unless the header Content-Type says JSON."),
    ),
  ),
  token_field: optional(v.pipe(v.string(), v.description("access_token by default."))),
  ttl_field: optional(v.pipe(v.string(), v.description("expires_in by default."))),
});

/** Body of `POST /api/keychain/{catalog_id}/{keychain_name}`. */
export const KeychainSetBody = v.object({
  token_data: v.pipe(JsonObjectValue, v.description("What is kept, encrypted.")),
  credential_type: v.pipe(
    storableText(64),
    v.minLength(1),
    v.description("oauth2, secret_manager, bearer, …: how it was come by."),
  ),
  cache_type: v.exactOptional(
    v.pipe(v.picklist(KEYCHAIN_CACHE_TYPES), v.description("token where auto_renew is true, else secret, by default.")),
  ),
  scope_type: scope,
  execution_id: v.exactOptional(v.nullable(v.pipe(IdInput, v.description("As in the query of GET.")))),
  parent_execution_id: v.exactOptional(v.nullable(IdInput)),
  ttl_seconds: v.exactOptional(
    v.nullable(
      v.pipe(
        v.number(),
        v.integer(),
        v.minValue(1),
        v.maxValue(TTL_SECONDS_MAX),
        v.description("3600 for local, 86400 for global and shared by default."),
      ),
    ),
  ),
  expires_at: v.exactOptional(
    v.nullable(
      v.pipe(
        v.string(),
        v.check((text) => keychainTime(text) !== undefined, "must be an RFC 3339 time"),
        v.description("RFC 3339, instead of ttl_seconds: it wins where both are given."),
      ),
    ),
  ),
  auto_renew: v.exactOptional(v.pipe(v.boolean(), v.description("false by default."))),
  renew_config: v.exactOptional(
    v.nullable(
      v.pipe(
        RenewConfig,
        v.transform((config) => config as JsonObject),
        v.description("The request that renews it; kept encrypted too."),
      ),
    ),
  ),
  schema: v.exactOptional(v.nullable(SecretSchema)),
});
export type KeychainSetBody = v.InferOutput<typeof KeychainSetBody>;

/** The schema in a row; undefined if it is missing or unknown to this version. */
export function keptSchema(value: unknown): SecretSchema | undefined {
  const parsed = v.safeParse(SecretSchema, value);
  return parsed.success ? parsed.output : undefined;
}

const named = { keychain_name: v.string(), catalog_id: v.pipe(count, v.description("A number here.")) };
const keyed = { ...named, cache_key: v.string() };

/** Answer of `GET /api/keychain/{catalog_id}/{keychain_name}`: always 200, `status` says how it was found. */
export const KeychainGetAnswer = v.variant("status", [
  v.object({
    status: v.literal("success"),
    ...keyed,
    token_data: JsonObjectValue,
    credential_type: v.string(),
    cache_type: v.picklist(KEYCHAIN_CACHE_TYPES),
    scope_type: v.picklist(KEYCHAIN_SCOPES),
    expires_at: Timestamp,
    ttl_seconds: v.pipe(count, v.description("What is left of it.")),
    accessed_at: Timestamp,
    access_count: count,
    auto_renew: v.boolean(),
    expired: v.literal(false),
  }),
  v.object({
    status: v.literal("expired"),
    ...keyed,
    auto_renew: v.boolean(),
    expired: v.literal(true),
    expires_at: v.pipe(Timestamp, v.description("When it did.")),
    renew_config: v.exactOptional(v.pipe(JsonObjectValue, v.description("Only with auto_renew."))),
    credential_type: v.exactOptional(v.pipe(v.string(), v.description("Only with auto_renew: a renewal keeps it."))),
    cache_type: v.exactOptional(v.pipe(v.picklist(KEYCHAIN_CACHE_TYPES), v.description("As credential_type."))),
    schema: v.exactOptional(v.pipe(JsonObjectValue, v.description("As credential_type, where there is one."))),
  }),
  v.object({ status: v.literal("not_found"), ...keyed }),
]);
export type KeychainGetAnswer = v.InferOutput<typeof KeychainGetAnswer>;

/** Answer of `POST /api/keychain/{catalog_id}/{keychain_name}`. */
export const KeychainSetAnswer = v.object({
  status: v.literal("success"),
  message: v.string(),
  ...keyed,
  expires_at: Timestamp,
  ttl_seconds: count,
  auto_renew: v.boolean(),
});
export type KeychainSetAnswer = v.InferOutput<typeof KeychainSetAnswer>;

/** Answer of `DELETE /api/keychain/{catalog_id}/{keychain_name}`, also where there was no such entry. */
export const KeychainDeleteAnswer = v.object({ status: v.literal("success"), message: v.string(), ...named });
export type KeychainDeleteAnswer = v.InferOutput<typeof KeychainDeleteAnswer>;

/** Query of `GET /api/keychain/catalog/{catalog_id}`. */
export const KeychainListQuery = PageQuery;

/** One entry of a list: never its data. */
export const KeychainItem = v.object({
  keychain_name: v.string(),
  cache_key: v.string(),
  scope_type: v.picklist(KEYCHAIN_SCOPES),
  credential_type: v.string(),
  expires_at: Timestamp,
  auto_renew: v.boolean(),
  access_count: count,
});
export type KeychainItem = v.InferOutput<typeof KeychainItem>;

/** Answer of `GET /api/keychain/catalog/{catalog_id}`. */
export const KeychainListAnswer = v.object({
  status: v.literal("success"),
  catalog_id: named.catalog_id,
  entries: v.pipe(v.array(KeychainItem), v.description("By name; expired ones too, until they are deleted.")),
  count: v.pipe(count, v.description("Of these entries.")),
  next_cursor: NextCursor,
});
export type KeychainListAnswer = v.InferOutput<typeof KeychainListAnswer>;

/** Body of `POST /api/keychain/{catalog_id}/{keychain_name}/lease`. */
export const KeychainLeaseBody = v.pipe(
  v.object({
    scope_type: scope,
    execution_id: v.exactOptional(v.nullable(IdInput)),
    holder: v.pipe(
      storableText(255),
      v.minLength(1),
      v.description("Who asks, unique among those who may ask at once; it may ask again."),
    ),
    lease_ms: v.exactOptional(
      v.pipe(
        v.number(),
        v.integer(),
        v.minValue(100),
        v.maxValue(LEASE_MS_MAX),
        v.description("The lease ends after this time. Required unless `failed` is given."),
      ),
    ),
    wait_ms: v.exactOptional(
      v.pipe(
        v.number(),
        v.integer(),
        v.minValue(0),
        v.maxValue(LEASE_WAIT_MS_MAX),
        v.description("Longest wait for another holder's end; 0 by default."),
      ),
    ),
    failed: v.exactOptional(
      v.pipe(
        storableText(LEASE_MESSAGE_MAX),
        v.description("The holder failed: the reason for those who wait, and for requests in the next 5 s."),
      ),
    ),
  }),
  v.check(({ lease_ms, failed }) => (lease_ms === undefined) !== (failed === undefined), "give lease_ms or failed"),
);
export type KeychainLeaseBody = v.InferOutput<typeof KeychainLeaseBody>;

/** Answer of `POST /api/keychain/{catalog_id}/{keychain_name}/lease`. */
export const KeychainLeaseAnswer = v.object({
  status: v.pipe(
    v.picklist(["granted", "set", "failed", "held"]),
    v.description(
      "granted: resolve or renew it, then set it; set: it is live, read it; failed: its holder could not, see message; held: ask again.",
    ),
  ),
  message: v.exactOptional(v.string()),
});
export type KeychainLeaseAnswer = v.InferOutput<typeof KeychainLeaseAnswer>;
