import { createHash } from "node:crypto";
import { and, asc, sql as built, desc, eq, gt, gte, lt, type SQL } from "drizzle-orm";
import type { ResourceKind } from "../../schema/api/catalog.ts";
import { columnsOf, type RowOf } from "../database/columns-of.ts";
import type { Database, Transaction } from "../database/database.ts";
import { type Page, type PageRequest, page, pathFilter, type Visible } from "../database/page.ts";
import { catalog, resource } from "../tables/catalog.ts";

/** One version of one path: the text as it was registered, and the document that it says. */
export type CatalogEntry = typeof catalog.$inferSelect;

/** One version of one path, without its text and payload. */
export type CatalogSummary = Omit<CatalogEntry, "content" | "payload">;

/** Since when nothing of a path is started, by whom and why; all null while it is started. */
export type CatalogPause = Pick<typeof resource.$inferSelect, "pausedAt" | "pausedBy" | "pauseReason">;

/** A version to register. The id comes from `reserveIds`. */
export interface NewCatalogEntry extends Omit<CatalogEntry, "version" | "createdAt" | "payload"> {
  /** The document as JSON. */
  payload: string;
  /** Write nothing when the newest version is of the same kind and has the same text. Default false. */
  ifChanged?: boolean;
}

const REGISTERED = columnsOf(catalog, ["catalogId", "version", "createdAt"]);

/** The registered version: the existing one if `unchanged`. */
export type Registered = RowOf<typeof REGISTERED> & { unchanged: boolean };

/**
 * Writes the next version of a path. The head's row is locked by this statement: of two registrations at the same time the
 * second gets the version after the first, and compares with it where `ifChanged`.
 */
export async function insertCatalogEntry(at: Database | Transaction, entry: NewCatalogEntry): Promise<Registered> {
  const { sql } = at;
  const sha256 = createHash("sha256").update(entry.content).digest("hex");
  const written = await sql<RowOf<typeof REGISTERED>[]>`
    with head as (
      insert into flow.resource (path, kind, version, catalog_id, content_sha256)
      values (${entry.path}, ${entry.kind}, 1, ${entry.catalogId}, ${sha256})
      on conflict (path) do update set
        version = resource.version + 1,
        kind = excluded.kind,
        catalog_id = excluded.catalog_id,
        content_sha256 = excluded.content_sha256,
        updated_at = now()
      where not ${entry.ifChanged ?? false}
        or resource.content_sha256 <> excluded.content_sha256
        or resource.kind <> excluded.kind
      returning version
    )
    insert into flow.catalog (catalog_id, path, version, kind, content, payload, metadata)
    select ${entry.catalogId}, ${entry.path}, version, ${entry.kind}, ${entry.content},
           ${entry.payload}::text::jsonb, ${sql.json(entry.metadata)}
    from head
    returning ${REGISTERED(sql)}`;
  const row = written[0];
  if (row !== undefined) return { ...row, unchanged: false };
  // Only a head with the same text and kind leaves nothing written: it is there, and nothing deletes heads.
  const newest = await findNewest(at, entry.path);
  if (newest === undefined) throw new Error(`catalog path ${entry.path} has a head and no newest version`);
  return { catalogId: newest.catalogId, version: newest.version, createdAt: newest.createdAt, unchanged: true };
}

/** The current version of a path, or undefined for a path that was never registered. */
export async function findNewest(
  { db }: Database | Transaction,
  path: string,
): Promise<(CatalogEntry & CatalogPause) | undefined> {
  const rows = await db
    .select({ ...ENTRY, ...PAUSE })
    .from(resource)
    .innerJoin(catalog, eq(catalog.catalogId, resource.catalogId))
    .where(eq(resource.path, path));
  return rows[0];
}

/** One version of a path, or undefined. */
export async function findVersion(
  { db }: Database | Transaction,
  path: string,
  version: number,
): Promise<CatalogEntry | undefined> {
  const rows = await db
    .select(ENTRY)
    .from(catalog)
    .where(and(eq(catalog.path, path), eq(catalog.version, version)));
  return rows[0];
}

/**
 * Pauses a path, or resumes it (`undefined`). Returns what it is now, and whether this has changed it: a path that is paused already keeps
 * its reason. Undefined for a path that was never registered. Locks the head's row, as a registration does.
 */
export async function writePause(
  { sql }: Database,
  path: string,
  pause: { by: string; reason: string | undefined } | undefined,
): Promise<(CatalogPause & { isChanged: boolean }) | undefined> {
  const { by = null, reason = null } = pause ?? {};
  const [row] = await sql<(CatalogPause & { isChanged: boolean })[]>`
    with before as (
      select path, paused_at from flow.resource where path = ${path} for update
    )
    update flow.resource as r set
      paused_at = case when ${by}::text is null then null else coalesce(r.paused_at, now()) end,
      paused_by = case when r.paused_at is null then ${by} when ${by}::text is null then null else r.paused_by end,
      pause_reason = case when r.paused_at is null then ${reason} when ${by}::text is null then null else r.pause_reason end
    from before where r.path = before.path
    returning r.paused_at as "pausedAt", r.paused_by as "pausedBy", r.pause_reason as "pauseReason",
      (before.paused_at is null) <> (r.paused_at is null) as "isChanged"`;
  return row;
}

/** The entry with this id, or undefined. */
export async function findById({ db }: Database | Transaction, catalogId: string): Promise<CatalogEntry | undefined> {
  const rows = await db.select(ENTRY).from(catalog).where(eq(catalog.catalogId, catalogId));
  return rows[0];
}

/** The text of the entry or draft (version 0) with this id, or undefined. Without the document: its JSON may be a megabyte to parse. */
export async function findText(
  { sql }: Database,
  catalogId: string,
): Promise<Pick<CatalogEntry, "path" | "version" | "content"> | undefined> {
  const [row] = await sql<Pick<CatalogEntry, "path" | "version" | "content">[]>`
    select path, version, content from flow.catalog where catalog_id = ${catalogId}
    union all
    select path, 0, content from flow.draft where catalog_id = ${catalogId}`;
  return row;
}

/** Newest version of each path, in the order of paths. The cursor is a path. */
export async function listResources(
  { db }: Database | Transaction,
  request: PageRequest<string> & Visible & { resourceType?: ResourceKind; prefix?: string; calls?: string },
): Promise<Page<CatalogSummary & CatalogPause, string>> {
  const rows = await db
    .select({ ...SUMMARY, ...PAUSE })
    .from(resource)
    .innerJoin(catalog, eq(catalog.catalogId, resource.catalogId))
    .where(
      and(
        ofKind(request.resourceType),
        startsWith(request.prefix),
        after(request.cursor),
        seen(request),
        calling(request.calls),
      ),
    )
    .orderBy(asc(resource.path))
    .limit(request.limit + 1);
  return page(rows, request.limit, (last) => last.path);
}

/**
 * Newest version of each agent with its document, in the order of paths; unless `hidden`, without those whose document says
 * `metadata.terminal.visible: false`. The cursor is a path.
 */
export async function listAgents(
  { db }: Database | Transaction,
  request: PageRequest<string> & Visible & { hidden?: boolean },
): Promise<Page<CatalogEntry, string>> {
  const rows = await db
    .select(ENTRY)
    .from(resource)
    .innerJoin(catalog, eq(catalog.catalogId, resource.catalogId))
    .where(and(ofKind("agent"), after(request.cursor), seen(request), request.hidden === true ? undefined : isShown()))
    .orderBy(asc(resource.path))
    .limit(request.limit + 1);
  return page(rows, request.limit, (last) => last.path);
}

/** Versions of one path, newest first; none for a path that was never registered. The cursor is a version. */
export async function listVersions(
  { db }: Database | Transaction,
  path: string,
  request: PageRequest<number>,
): Promise<Page<CatalogSummary, number>> {
  const older = request.cursor === undefined ? undefined : lt(catalog.version, request.cursor);
  const rows = await db
    .select(SUMMARY)
    .from(catalog)
    .where(and(eq(catalog.path, path), older))
    .orderBy(desc(catalog.version))
    .limit(request.limit + 1);
  return page(rows, request.limit, (last) => last.version);
}

const SUMMARY = {
  catalogId: catalog.catalogId,
  path: catalog.path,
  version: catalog.version,
  kind: catalog.kind,
  metadata: catalog.metadata,
  createdAt: catalog.createdAt,
};
const PAUSE = { pausedAt: resource.pausedAt, pausedBy: resource.pausedBy, pauseReason: resource.pauseReason };
const ENTRY = { ...SUMMARY, content: catalog.content, payload: catalog.payload };

function ofKind(kind: ResourceKind | undefined): SQL | undefined {
  return kind === undefined ? undefined : eq(resource.kind, kind);
}

/**
 * Documents of which a task calls a path. Those that do not have the text are passed over before they are taken apart: 2,000 of 9 KB are
 * looked through in 0.4 s.
 */
function calling(path: string | undefined): SQL | undefined {
  if (path === undefined) return undefined;
  const text = JSON.stringify(path).slice(1, -1);
  return built`strpos(${catalog.payload}::text, ${text}) > 0 and jsonb_path_exists(${catalog.payload}::jsonb,
    '$.** ? (@.kind == "playbook" && @.path == $path)', ${JSON.stringify({ path })}::jsonb)`;
}

/** Heads are thousands at most: a filter over them needs no index. */
function seen({ visible }: Visible): SQL | undefined {
  return visible === undefined ? undefined : pathFilter(built, built`${resource.path}`, visible);
}

function isShown(): SQL {
  return built`coalesce(${catalog.metadata} #>> '{terminal,visible}', 'true') <> 'false'`;
}

function after(path: string | undefined): SQL | undefined {
  return path === undefined ? undefined : gt(resource.path, path);
}

/** The largest code point: what begins with a prefix lies between the prefix and the prefix with this behind it. */
const LAST_CHARACTER = "\u{10ffff}";

/** A range, not LIKE: a prepared plan uses the index for it whatever the prefix is, and nothing needs escaping. */
function startsWith(prefix: string | undefined): SQL | undefined {
  if (prefix === undefined || prefix === "") return undefined;
  return and(gte(resource.path, prefix), lt(resource.path, prefix + LAST_CHARACTER));
}
