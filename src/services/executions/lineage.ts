import type { Database } from "../../repositories/database/database.ts";
import { findRelatives, listAncestors, listDescents, type Relative } from "../../repositories/executions/lineage.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { unknownExecution } from "../errors.ts";
import { encodeCursor, idCursor } from "../pagination-cursor.ts";

/** Ancestors that are shown, the nearest ones. */
export const ANCESTORS_MAX = 1_000;

/** Where an execution comes from, and what came from it. */
export interface Lineage {
  /** What the execution itself changed of what it repeats. */
  changed: Relative["changed"];
  /** The nearest first. */
  ancestors: Relative[];
  /** As a tree is read: each one before what came from it, siblings by age. */
  descendants: Relative[];
  nextCursor: string | null;
}

/** Which part of the descendants, and what the caller may see. */
export interface LineageRequest {
  limit: number;
  cursor?: string;
  maySee(path: string): boolean;
}

/**
 * The lineage of an execution (control, rule 17). Relatives that the caller may not see are left out, so that a page may be short, or
 * empty, without being the last; what came from them is shown. Rejects with `FlowError` NOT_FOUND, INVALID_INPUT for a cursor of
 * another list.
 */
export async function lineageOf(
  database: Database,
  executionId: string,
  { limit, cursor, maySee }: LineageRequest,
): Promise<Lineage> {
  const [own] = await findRelatives(database, [executionId]);
  if (own === undefined || own.deletedAt !== null) throw unknownExecution(executionId);
  const above = cursor === undefined ? await listAncestors(database, executionId, ANCESTORS_MAX) : [];
  const below = await descendantsAfter(
    database,
    executionId,
    cursor === undefined ? undefined : idCursor(cursor),
    limit,
  );
  const found = new Map<string, Relative>();
  for (const one of await findRelatives(database, [...above, ...below])) found.set(one.executionId, one);
  const shown = (ids: readonly string[]) =>
    ids.flatMap((id) => {
      const one = found.get(id);
      return one !== undefined && maySee(one.path) ? [one] : [];
    });
  // How each came to be stands with the one that came from it.
  const line = [own, ...above.map((id) => found.get(id))];
  const ancestors = shown(above).map((one) => {
    const next = line.find((other) => other?.of === one.executionId);
    return { ...one, link: next?.link ?? null, trigger: next?.trigger ?? null };
  });
  const last = below.at(-1);
  const nextCursor = below.length === limit && last !== undefined ? encodeCursor(last) : null;
  return { changed: own.changed, ancestors, descendants: shown(below), nextCursor };
}

/** The ids of descendants, after one of them, at most `limit`. */
async function descendantsAfter(
  database: Database,
  executionId: string,
  last: string | undefined,
  limit: number,
): Promise<string[]> {
  if (last === undefined) return await treeBelow(database, executionId, "0", limit);
  const line = await listAncestors(database, last, ANCESTORS_MAX);
  const top = line.indexOf(executionId);
  if (top === -1) {
    const message = "'cursor' is not one that this lineage gave out, or what it names is deleted";
    throw new FlowError("INVALID_INPUT", `${message}. Begin again without it`);
  }
  // What came from the last one, then its younger siblings, then those of its origin, up to the top.
  const ids = await treeBelow(database, last, "0", limit);
  let before = last;
  for (const origin of line.slice(0, top + 1)) {
    if (ids.length >= limit) break;
    ids.push(...(await treeBelow(database, origin, before, limit - ids.length)));
    before = origin;
  }
  return ids;
}

/**
 * The first `limit` ids of the tree below an execution, its direct descendants being younger than `after`. It is read by levels: each
 * level adds its executions behind their origins, and what no longer is among the first `limit` is dropped, because what further levels add can only push it back.
 */
async function treeBelow(database: Database, executionId: string, after: string, limit: number): Promise<string[]> {
  let tree = (await listDescents(database, [executionId], after, limit)).map((one) => one.executionId);
  let level = tree;
  while (level.length > 0) {
    const descents = await listDescents(database, level, "0", limit);
    const below = new Map<string, string[]>();
    for (const { executionId: id, of } of descents) below.set(of, [...(below.get(of) ?? []), id]);
    tree = tree.flatMap((id) => [id, ...(below.get(id) ?? [])]).slice(0, limit);
    const kept = new Set(tree);
    level = descents.map((one) => one.executionId).filter((id) => kept.has(id));
  }
  return tree;
}
