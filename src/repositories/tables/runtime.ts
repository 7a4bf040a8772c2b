import { sql } from "drizzle-orm";
import { bigint, boolean, check, index, primaryKey, text, unique } from "drizzle-orm/pg-core";
import { bytes, count, createdAt, flow, id, instant, name, object, updatedAt } from "./columns.ts";

/** Processes that take part: workers and servers. A heartbeat changes no indexed column. */
export const runtime = flow.table(
  "runtime",
  {
    runtimeId: id("runtime_id").primaryKey(),
    kind: text("kind").$type<"worker" | "server">().notNull(),
    name: text("name").notNull(),
    status: text("status").$type<"ready" | "draining" | "offline">().notNull(),
    /** Commands that it works on at a time; 0 for a server. */
    capacity: count("capacity"),
    running: count("running"),
    labels: object("labels").notNull().default({}),
    /** Kinds of task that it runs. */
    capabilities: text("capabilities").array().notNull().default([]),
    /** Process id, host name, version. */
    about: object("about").notNull().default({}),
    /** By the database's clock. */
    heartbeatAt: instant("heartbeat_at").notNull().defaultNow(),
    createdAt: createdAt(),
  },
  (table) => [
    // Registering again under a name gives the same row.
    unique("runtime_kind_name").on(table.kind, table.name),
    check("runtime_kind", sql`kind IN ('worker', 'server')`),
    check("runtime_status", sql`status IN ('ready', 'draining', 'offline')`),
    check("runtime_capacity", sql`capacity >= 0 AND running >= 0`),
  ],
);

/** Pools of workers, each with a token of its own: they run the playbooks of their paths, and no others. */
export const workerPool = flow.table(
  "worker_pool",
  {
    name: name("name").primaryKey(),
    /** Patterns of catalog paths. */
    paths: text("paths").array().notNull(),
    /** What its workers have besides their own labels. */
    labels: object("labels").notNull().default({}),
    /** In hex. */
    tokenSha256: text("token_sha256").notNull().unique("worker_pool_token"),
    createdBy: text("created_by").notNull(),
    createdAt: createdAt(),
    /** When its token was replaced last. */
    rotatedAt: instant("rotated_at"),
    revokedAt: instant("revoked_at"),
  },
  () => [
    check("worker_pool_paths", sql`cardinality(paths) > 0`),
    check("worker_pool_token_sha256", sql`token_sha256 ~ '^[0-9a-f]{64}$'`),
  ],
);

/** Work that one process at a time may do, such as the reaper's sweep. */
export const lease = flow.table(
  "lease",
  {
    name: text("name").primaryKey(),
    holder: text("holder").notNull(),
    /** Grows with each new holder: a process that finds another number has lost the lease. */
    token: bigint("token", { mode: "number" }).notNull(),
    acquiredAt: instant("acquired_at").notNull().defaultNow(),
    expiresAt: instant("expires_at").notNull(),
  },
  () => [check("lease_token", sql`token > 0`), check("lease_expires", sql`expires_at > acquired_at`)],
);

/** The last id that was given to a server: one row, see `ids.ts`. */
export const idSource = flow.table(
  "id_source",
  {
    singleton: boolean("singleton").primaryKey().default(true),
    lastId: id("last_id").notNull(),
  },
  () => [
    check("id_source_singleton", sql`singleton`),
    check("id_source_range", sql`last_id BETWEEN 0 AND 9007199254740991`),
  ],
);

/** Values by key that may expire: sessions, small results, where no broker keeps them. */
export const transient = flow.table(
  "transient",
  {
    bucket: name("bucket").notNull(),
    key: name("key").notNull(),
    value: bytes("value").notNull(),
    /** Grows with each write: compare and set. */
    revision: bigint("revision", { mode: "number" }).notNull().default(1),
    expiresAt: instant("expires_at"),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
  },
  (table) => [
    primaryKey({ name: "transient_pkey", columns: [table.bucket, table.key] }),
    index("transient_for_expiry").on(table.expiresAt).where(sql`expires_at IS NOT NULL`),
    check("transient_revision", sql`revision > 0`),
  ],
);
