import { and, asc, sql as built, count, eq, gt, type SQL } from "drizzle-orm";
import type { Database } from "../database/database.ts";
import { type Page, type PageRequest, page, pathFilter, type Visible } from "../database/page.ts";
import { catalog, resource } from "../tables/catalog.ts";

/** The newest version of a path whose document has a text in it. */
export interface MentioningEntry
  extends Pick<typeof catalog.$inferSelect, "catalogId" | "path" | "version" | "kind" | "payload"> {
  /** Whether the reader may see it. */
  isVisible: boolean;
}

/**
 * Newest versions whose documents have the text anywhere, in the order of paths; the cursor is a path. It reads the documents
 * one after another until the page is full: 2,000 of 9 KB took 0.4 s on a busy machine.
 */
export async function listMentioning(
  { db }: Database,
  text: string,
  { limit, cursor, visible }: PageRequest<string> & Visible,
): Promise<Page<MentioningEntry, string>> {
  const seen = visible === undefined ? built`true` : pathFilter(built, built`${resource.path}`, visible);
  const rows = await db
    .select({
      catalogId: catalog.catalogId,
      path: resource.path,
      version: catalog.version,
      kind: catalog.kind,
      payload: catalog.payload,
      isVisible: seen as SQL<boolean>,
    })
    .from(resource)
    .innerJoin(catalog, eq(catalog.catalogId, resource.catalogId))
    .where(
      and(
        cursor === undefined ? undefined : gt(resource.path, cursor),
        built`strpos(${catalog.payload}::text, ${inJson(text)}) > 0`,
      ),
    )
    .orderBy(asc(resource.path))
    .limit(limit + 1);
  return page(rows, limit, (last) => last.path);
}

/** The text as it is written within a JSON document: PostgreSQL escapes the characters that JavaScript does. */
function inJson(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** A version token for the set of all agents: it changes when an agent is registered or replaced. */
export async function agentsMark({ db }: Database): Promise<string> {
  const [row] = await db
    .select({ mark: built<string>`${count()} || ':' || coalesce(sum(${resource.catalogId}), 0)` })
    .from(resource)
    .where(eq(resource.kind, "agent"));
  return row?.mark ?? "";
}
