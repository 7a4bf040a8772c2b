import { credentialUses } from "../../language/load/credential-uses.ts";
import { listMentioning } from "../../repositories/catalog/catalog-search.ts";
import type { Database } from "../../repositories/database/database.ts";
import type { Visible } from "../../repositories/database/page.ts";
import type { ResourceKind } from "../../schema/api/catalog.ts";
import type { Listed, PageQuery } from "../catalog/catalog.ts";
import { encodeCursor, textCursor } from "../pagination-cursor.ts";

/** The newest version of a path, with the places that name a credential. */
export interface CredentialUser {
  catalogId: string;
  path: string;
  version: number;
  kind: ResourceKind;
  places: { place: string; byDefault: boolean }[];
}

/** A page of the documents that use a credential. It may be short or empty without being the last. */
export interface CredentialUsers extends Listed<CredentialUser> {
  /** How many of this page's entries the reader may not see. */
  hidden: number;
}

/**
 * The documents that use a credential: newest versions of playbooks, agents and MCP resources that name it, ordered by path. It
 * does not check that the credential exists: references to a deleted one are worth showing too.
 */
export function listCredentialUsers(
  database: Database,
): (name: string, page: PageQuery & Visible) => Promise<CredentialUsers> {
  return async (name, { limit, cursor, visible }) => {
    // PostgreSQL refuses to look for a text with U+0000. No document has one.
    if (name.includes("\u0000")) return { items: [], nextCursor: null, hidden: 0 };
    const key = cursor === undefined ? {} : { cursor: textCursor(cursor) };
    const page = await listMentioning(database, name, { limit, visible, ...key });
    const used = page.items.flatMap(({ payload, isVisible, ...entry }) => {
      const places = credentialUses(payload)
        .filter(({ credential }) => credential === name)
        .map(({ place, byDefault }) => ({ place, byDefault }));
      return places.length === 0 ? [] : [{ isVisible, entry: { ...entry, places } }];
    });
    return {
      items: used.filter(({ isVisible }) => isVisible).map(({ entry }) => entry),
      nextCursor: page.next === undefined ? null : encodeCursor(page.next),
      hidden: used.filter(({ isVisible }) => !isVisible).length,
    };
  };
}
