import { sql } from "drizzle-orm";
import { boolean, check, index, integer, text } from "drizzle-orm/pg-core";
import { createdAt, flow, id, instant, object, updatedAt } from "./columns.ts";

/*
 * Tables with values that are encrypted at rest. Columns are those of the interface specification; `data_encrypted` is an envelope that names its
 * key and is bound to table, name and id.
 */

/** Named, typed credentials. Few rows: type, tags and text are searched without an index. */
export const credential = flow.table(
  "credential",
  {
    id: id("id").primaryKey(),
    name: text("name").notNull().unique("credential_name"),
    type: text("type").notNull(),
    dataEncrypted: text("data_encrypted").notNull(),
    schema: object("schema"),
    meta: object("meta"),
    tags: text("tags").array(),
    description: text("description"),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
  },
  () => [check("credential_name_given", sql`name <> '' AND type <> ''`)],
);

/** Who may use a credential without a list of playbooks: one row, written with the table. */
export const credentialPolicy = flow.table(
  "credential_policy",
  {
    singleton: boolean("singleton").primaryKey().default(true),
    byDefault: text("by_default").$type<"open" | "restricted">().notNull(),
  },
  () => [
    check("credential_policy_singleton", sql`singleton`),
    check("credential_policy_by_default", sql`by_default IN ('open', 'restricted')`),
  ],
);

/** Cached tokens and secrets that expire. */
export const keychain = flow.table(
  "keychain",
  {
    /** Name, catalog id and scope in one; see the specification's "Scopes and cache keys". */
    cacheKey: text("cache_key").primaryKey(),
    keychainName: text("keychain_name").notNull(),
    catalogId: id("catalog_id").notNull(),
    credentialType: text("credential_type").notNull(),
    cacheType: text("cache_type").$type<"secret" | "token">().notNull(),
    scopeType: text("scope_type").$type<"local" | "global" | "shared">().notNull(),
    /** Owner of a local or shared entry: with its end the entry goes. Null for global ones. */
    executionId: id("execution_id"),
    parentExecutionId: id("parent_execution_id"),
    /** `{token_data, renew_config?}`. */
    dataEncrypted: text("data_encrypted").notNull(),
    schema: object("schema"),
    expiresAt: instant("expires_at").notNull(),
    createdAt: createdAt(),
    accessedAt: instant("accessed_at").notNull().defaultNow(),
    accessCount: integer("access_count").notNull().default(0),
    autoRenew: boolean("auto_renew").notNull().default(false),
    /** Always null: the request that renews a token holds a client's secret, so it stands in `data_encrypted`. */
    renewConfig: object("renew_config"),
  },
  (table) => [
    // Specified; asks by name.
    index("keychain_for_catalog").on(table.keychainName, table.catalogId),
    // Entries of an execution are deleted when it ends.
    index("keychain_for_execution").on(table.executionId),
    index("keychain_for_renewal").on(table.expiresAt).where(sql`auto_renew`),
    // Expired rows are deleted.
    index("keychain_for_expiry").on(table.expiresAt).where(sql`NOT auto_renew`),
    // The list of a catalog entry, in pages.
    index("keychain_for_list").on(table.catalogId, table.cacheKey),
    check("keychain_cache_type", sql`cache_type IN ('secret', 'token')`),
    check("keychain_scope_type", sql`scope_type IN ('local', 'global', 'shared')`),
    check("keychain_owner", sql`scope_type = 'global' OR execution_id IS NOT NULL`),
    check("keychain_access_count", sql`access_count >= 0`),
  ],
);

/**
 * The right to resolve or renew an entry, one holder at a time, also for an entry that does not exist yet. A row goes when the entry
 * is set; other rows are deleted after their time.
 */
export const keychainLease = flow.table("keychain_lease", {
  cacheKey: text("cache_key").primaryKey(),
  holder: text("holder").notNull(),
  /** End of the lease or, with a message, until when the failure is reported. */
  expiresAt: instant("expires_at").notNull(),
  /** Why the holder could not do it. */
  message: text("message"),
});
