import type { ResourceKind } from "../../schema/api/catalog.ts";
import type { Database } from "../database/database.ts";

/*
 * Drafts: texts that are run without being registered. An execution of one has version 0, which no registered document has, and finds the text
 * by its catalog id as it would find a version.
 */

/** A text to run. The id comes from `reserveIds`. */
export interface NewDraft {
  catalogId: string;
  path: string;
  kind: ResourceKind;
  content: string;
}

/** Keeps a text that is to be run. */
export async function insertDraft({ sql }: Database, { catalogId, path, kind, content }: NewDraft): Promise<void> {
  await sql`insert into flow.draft (catalog_id, path, kind, content) values (${catalogId}, ${path}, ${kind}, ${content})`;
}

/** The draft with this id, or undefined. */
export async function findDraft({ sql }: Database, catalogId: string): Promise<NewDraft | undefined> {
  const [row] = await sql<NewDraft[]>`
    select catalog_id as "catalogId", path, kind, content from flow.draft where catalog_id = ${catalogId}`;
  return row;
}

/** Forgets a draft of which there is no execution: its start was refused. */
export async function deleteUnusedDraft({ sql }: Database, catalogId: string): Promise<void> {
  await sql`
    delete from flow.draft as d where d.catalog_id = ${catalogId} and not exists (
      select from flow.execution as e where e.catalog_id = d.catalog_id and e.version = 0)`;
}

/**
 * Looks at `limit` drafts after an id that were written before a moment, and deletes those of which there is no execution any more. Returns
 * where the next page begins, undefined after the last one.
 */
export async function deleteDraftsLeft(
  { sql }: Database,
  writtenBefore: Date,
  after: string,
  limit: number,
): Promise<{ deleted: number; next: string | undefined }> {
  const [row] = await sql<[{ seen: number; last: string | null; deleted: number }]>`
    with page as materialized (
      select catalog_id, created_at from flow.draft where catalog_id > ${after} order by catalog_id limit ${limit}
    ), deleted as (
      delete from flow.draft as d using page
      where d.catalog_id = page.catalog_id and page.created_at < ${writtenBefore} and not exists (
        select from flow.execution as e where e.catalog_id = page.catalog_id and e.version = 0)
      returning d.catalog_id
    )
    select (select count(*)::int from page) as seen, (select max(catalog_id) from page) as last,
      (select count(*)::int from deleted) as deleted`;
  return { deleted: row.deleted, next: row.seen < limit ? undefined : (row.last ?? undefined) };
}
