import { sql } from "drizzle-orm";
import { check, index, integer, text, unique } from "drizzle-orm/pg-core";
import type { ResourceKind } from "../../schema/api/catalog.ts";
import { createdAt, flow, id, instant, name, object, updatedAt } from "./columns.ts";

/**
 * One row per path: the head of its versions. Registering locks this row, so that two registrations of one path get two
 * versions; lists read it, so that they never search for the newest of many.
 */
export const resource = flow.table(
  "resource",
  {
    path: name("path").primaryKey(),
    kind: text("kind").$type<ResourceKind>().notNull(),
    /** The newest version. It goes on counting when versions are deleted. */
    version: integer("version").notNull(),
    catalogId: id("catalog_id").notNull(),
    /** SHA-256 of the newest version's text, in hex: what "only if changed" compares. */
    contentSha256: text("content_sha256").notNull(),
    /** Since when nothing of it is started, by whom and why; all three null while it is started. */
    pausedAt: instant("paused_at"),
    pausedBy: text("paused_by"),
    pauseReason: text("pause_reason"),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
  },
  (table) => [
    // Pages of one kind, in the order of paths: lists with a resource type, agents. Pages of all kinds use the key.
    index("resource_for_list_by_kind").on(table.kind, table.path),
    check("resource_kind", sql`kind IN ('playbook', 'agent', 'mcp', 'trigger')`),
    check("resource_version", sql`version >= 1`),
    check("resource_path", sql`path <> ''`),
  ],
);

/** Every registered version, never changed. */
export const catalog = flow.table(
  "catalog",
  {
    catalogId: id("catalog_id").primaryKey(),
    path: name("path").notNull(),
    version: integer("version").notNull(),
    kind: text("kind").$type<ResourceKind>().notNull(),
    /** The text as it was given. */
    content: text("content").notNull(),
    /** The document that the text says. */
    payload: object("payload").notNull(),
    /** The document's `metadata`, apart from it: lists show it and need not load payloads of megabytes. */
    metadata: object("metadata").notNull(),
    createdAt: createdAt(),
  },
  (table) => [
    // Also finds one version of a path, and pages the versions of a path from the newest.
    unique("catalog_path_version").on(table.path, table.version),
    check("catalog_kind", sql`kind IN ('playbook', 'agent', 'mcp', 'trigger')`),
    check("catalog_version", sql`version >= 1`),
  ],
);

/**
 * Texts that were run without being registered: what executions of version 0 run. No list of the catalog reads them. Each is kept as long as
 * an execution of it.
 */
export const draft = flow.table(
  "draft",
  {
    /** Of the same source as those of versions. */
    catalogId: id("catalog_id").primaryKey(),
    path: name("path").notNull(),
    kind: text("kind").$type<ResourceKind>().notNull(),
    content: text("content").notNull(),
    createdAt: createdAt(),
  },
  () => [check("draft_kind", sql`kind IN ('playbook', 'agent')`)],
);
