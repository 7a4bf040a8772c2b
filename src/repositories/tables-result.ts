import { sql } from "drizzle-orm";
import { bigint, check, index, primaryKey, text } from "drizzle-orm/pg-core";
import { bytes, createdAt, flow, id, instant, name, object } from "./columns.ts";

/**
 * Results that are not inline: what a reference says, and the payload itself where the database is the store. The row is
 * written as `pending` before the payload goes elsewhere, so that no payload is ever without a row.
 */
export const result = flow.table(
  "result",
  {
    executionId: id("execution_id").notNull(),
    /** `noetl://execution/{execution_id}/step/…`: names the execution, so the key finds it and all of an execution. */
    ref: name("ref").notNull(),
    rootExecutionId: id("root_execution_id").notNull(),
    state: text("state").$type<"pending" | "stored" | "deleting">().notNull(),
    store: text("store").$type<"kv" | "s3" | "cloud_bucket" | "sqldb" | "disk">().notNull(),
    scope: text("scope").$type<"step" | "execution" | "workflow" | "permanent">().notNull(),
    expiresAt: instant("expires_at"),
    contentType: text("content_type").notNull(),
    /** Size and SHA-256 (hex) of the payload before compression. */
    bytes: bigint("bytes", { mode: "number" }).notNull(),
    sha256: text("sha256").notNull(),
    compression: text("compression"),
    /** Where the store has it: bucket and key, file, table. */
    location: object("location"),
    extracted: object("extracted").notNull().default({}),
    preview: object("preview"),
    /** Bytes as stored, where the store is this database. Who stored them chose to compress them or not: the migration sets EXTERNAL. */
    payload: bytes("payload"),
    createdAt: createdAt(),
  },
  (table) => [
    primaryKey({ name: "result_pkey", columns: [table.executionId, table.ref] }),
    index("result_for_expiry").on(table.expiresAt).where(sql`expires_at IS NOT NULL`),
    // What ends with the root execution.
    index("result_for_root").on(table.rootExecutionId).where(sql`scope = 'workflow'`),
    // Payloads that a process left half written or half deleted.
    index("result_for_cleanup").on(table.createdAt).where(sql`state <> 'stored'`),
    check("result_state", sql`state IN ('pending', 'stored', 'deleting')`),
    check("result_store", sql`store IN ('kv', 's3', 'cloud_bucket', 'sqldb', 'disk')`),
    check("result_scope", sql`scope IN ('step', 'execution', 'workflow', 'permanent')`),
    check("result_payload", sql`payload IS NULL OR store IN ('kv', 'sqldb')`),
    check("result_bytes", sql`bytes >= 0`),
    check("result_sha256", sql`sha256 ~ '^[0-9a-f]{64}$'`),
  ],
);
