import { sql } from "drizzle-orm";
import { bigint, boolean, check, index, integer, jsonb, primaryKey, text } from "drizzle-orm/pg-core";
import { bytes, createdAt, flow, id, instant, name, object } from "./columns.ts";

/**
 * Results that are not inline: the reference's fields, and the payload itself if the row is the store. A payload in another
 * store has its row before it is written (`pending`) and until it is removed (`deleting`), so that every payload has a row.
 * Those rows stand beside the one that readers find, under a separate name (`writing`): the current payload stays until the new
 * one is complete.
 */
export const result = flow.table(
  "result",
  {
    executionId: id("execution_id").notNull(),
    /** `noetl://execution/{execution_id}/step/…`: names the execution, so the key finds it and all of an execution. */
    ref: name("ref").notNull(),
    /** Empty for the payload that readers find; unique for one that is being written or removed. */
    writing: name("writing").notNull().default(""),
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
    /** The text holds sealed tokens, which are opened for workers and masked for people. */
    isSealed: boolean("is_sealed").notNull().default(false),
    /** The location in the store: bucket and key, file, table. */
    location: object("location"),
    extracted: object("extracted").notNull().default({}),
    preview: object("preview"),
    /** Bytes as stored, where the store is this database. The sender chose whether to compress them: the migration sets EXTERNAL. */
    payload: bytes("payload"),
    createdAt: createdAt(),
  },
  (table) => [
    primaryKey({ name: "result_pkey", columns: [table.executionId, table.ref, table.writing] }),
    index("result_for_expiry").on(table.expiresAt).where(sql`expires_at IS NOT NULL`),
    // Results that end with their step or execution; those that are kept then become permanent. The sum keeps the primary key from passing
    // for another way to walk over executions in order: it would lead over every permanent result.
    index("result_for_scope").on(table.scope, sql`(execution_id + 0)`).where(sql`scope IN ('step', 'execution')`),
    // Results that end with the root execution.
    index("result_for_root").on(table.rootExecutionId).where(sql`scope = 'workflow'`),
    // Payloads that a process left half written or half deleted.
    index("result_for_cleanup").on(table.createdAt).where(sql`state <> 'stored'`),
    check("result_state", sql`state IN ('pending', 'stored', 'deleting')`),
    check("result_writing", sql`(state = 'stored') = (writing = '')`),
    check("result_store", sql`store IN ('kv', 's3', 'cloud_bucket', 'sqldb', 'disk')`),
    check("result_scope", sql`scope IN ('step', 'execution', 'workflow', 'permanent')`),
    check("result_payload", sql`payload IS NULL OR store IN ('kv', 'sqldb')`),
    check("result_bytes", sql`bytes >= 0`),
    check("result_sha256", sql`sha256 ~ '^[0-9a-f]{64}$'`),
  ],
);

/**
 * Results in the store `sqldb`, to be looked into: a row per item of a list, one for anything else. A row of `flow.result` with
 * this payload in its `location` says whose they are.
 */
export const resultRow = flow.table(
  "result_row",
  {
    payload: name("payload").notNull(),
    /** Place in the list, from 0. */
    item: integer("item").notNull(),
    value: jsonb("value").notNull(),
  },
  (table) => [primaryKey({ name: "result_row_pkey", columns: [table.payload, table.item] })],
);

/** The same results byte for byte, in parts: `jsonb` sorts keys and drops spaces, and readers get what was stored. */
export const resultPart = flow.table(
  "result_part",
  {
    payload: name("payload").notNull(),
    /** Where the part begins in the payload, in bytes. */
    place: bigint("place", { mode: "number" }).notNull(),
    part: bytes("part").notNull(),
  },
  (table) => [primaryKey({ name: "result_part_pkey", columns: [table.payload, table.place] })],
);
