import type { KeyRing } from "../../platform/crypto/key-ring.ts";
import type { KeychainRow, NewKeychainRow } from "../../repositories/keychain/keychain.ts";
import { type KeychainCacheType, type KeychainScope, TOKEN_BYTES_MAX } from "../../schema/api/keychain.ts";
import { type SecretSchema, secretProblems, secretRefused } from "../../schema/rules/secret-schema.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import { type KeychainPlace, type KeychainRequest, keychainBound } from "./placement.ts";

/** What is to be kept. */
export interface KeychainSetting {
  data: JsonObject;
  credentialType: string;
  cacheType?: KeychainCacheType;
  parentExecutionId?: string;
  /** Default: by the scope. */
  ttlSeconds?: number;
  /** Wins over `ttlSeconds`. */
  expiresAt?: Date;
  autoRenew: boolean;
  renewConfig?: JsonObject;
  schema?: SecretSchema;
}

const TTL_SECONDS: Readonly<Record<KeychainScope, number>> = { local: 3_600, global: 86_400, shared: 86_400 };

/** The row of an entry. Throws `FlowError` INVALID_SECRET and TOO_LARGE. */
export function keychainRow(
  keys: KeyRing,
  { scope, catalogId, name }: KeychainRequest,
  setting: KeychainSetting,
  { cacheKey, owner }: KeychainPlace,
): NewKeychainRow {
  const { data, schema, autoRenew, renewConfig, expiresAt, ttlSeconds = TTL_SECONDS[scope] } = setting;
  const problems = schema === undefined ? [] : secretProblems(schema, data);
  if (problems.length > 0) throw secretRefused(problems);
  const kept: KeychainContent = { token_data: data, ...defined({ renew_config: renewConfig }) };
  const plain = Buffer.from(JSON.stringify(kept));
  if (plain.length > TOKEN_BYTES_MAX) {
    const what = `Entry '${name}' was not kept: its data are ${plain.length.toLocaleString("en")} bytes of JSON`;
    throw new FlowError("TOO_LARGE", `${what}, and ${TOKEN_BYTES_MAX.toLocaleString("en")} are the most`);
  }
  return {
    ...{ cacheKey, name, catalogId, scope, autoRenew, ttlSeconds },
    ownerId: owner?.executionId ?? null,
    parentExecutionId: setting.parentExecutionId ?? owner?.parentExecutionId ?? null,
    credentialType: setting.credentialType,
    cacheType: setting.cacheType ?? (autoRenew ? "token" : "secret"),
    dataEncrypted: keys.encrypt(plain, keychainBound(cacheKey)),
    schema: (schema as JsonObject | undefined) ?? null,
    expiresAt: expiresAt ?? null,
  };
}

/** What is encrypted of an entry: the request that renews it holds a client's secret. */
export interface KeychainContent {
  token_data: JsonObject;
  renew_config?: JsonObject;
}

/** Decrypts an entry. Throws `FlowError` ENCRYPTION. */
export function openContent(keys: KeyRing, cacheKey: string, { dataEncrypted }: KeychainRow): KeychainContent {
  return JSON.parse(keys.decrypt(dataEncrypted, keychainBound(cacheKey)).toString("utf8")) as KeychainContent;
}
