import type { Reading } from "./read-snapshot.ts";

/** A playbook of some folders that has tasks of some kinds. */
export interface PlaybookWithKinds {
  path: string;
  /** Those of the kinds, as the document spells them. */
  kinds: string[];
}

/** The paths of pools that are not revoked. */
export async function listPoolPaths({ sql }: Reading, limit: number): Promise<string[][]> {
  const rows = await sql<{ paths: string[] }[]>`
    select paths from flow.worker_pool where revoked_at is null order by name limit ${limit}`;
  return rows.map(({ paths }) => paths);
}

/**
 * The playbooks below these folders whose newest version has tasks of these kinds, at most `limit`, in the order of their paths.
 * Reads the documents of such playbooks alone. A text `kind` elsewhere in a task's settings counts too.
 */
export async function listPlaybooksWithKinds(
  { sql }: Reading,
  { folders, kinds, limit }: { folders: readonly string[]; kinds: readonly string[]; limit: number },
): Promise<PlaybookWithKinds[]> {
  const rows = await sql<PlaybookWithKinds[]>`
    select path, kinds from (
      select r.path, array(
        select distinct found #>> '{}' from jsonb_path_query(c.payload, '$.**.kind') as found
        where found #>> '{}' = any(${[...kinds]}::text[]) order by 1
      ) as kinds
      from flow.resource r join flow.catalog c on c.catalog_id = r.catalog_id
      where r.kind = 'playbook' and r.path ^@ any(${[...folders]}::text[])
    ) playbook
    where cardinality(kinds) > 0
    order by path limit ${limit}`;
  return [...rows];
}
