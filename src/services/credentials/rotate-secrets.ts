import type { KeyRing } from "../../platform/crypto/key-ring.ts";
import {
  countOtherwiseEncrypted,
  ENCRYPTED_TABLES,
  type EncryptedRow,
  type EncryptedTable,
  findOtherwiseEncrypted,
  replaceEnvelopes,
} from "../../repositories/credentials/rotation.ts";
import type { Database } from "../../repositories/database/database.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { type Audit, audited, type Caller } from "../access/audit.ts";
import { keychainBound } from "../keychain/placement.ts";
import { encodeCursor, textCursor } from "../pagination-cursor.ts";
import { credentialBound } from "./credentials.ts";

/** What one round did. */
export interface Rotated {
  /** The key that encrypts. */
  keyId: string;
  /** Values that were encrypted with another key and now use this one. */
  rotated: number;
  /** Values that stay as they are, and why. */
  failed: { resource: string; message: string }[];
  /** Values that had another key before this round; on the first one only. */
  total: number | undefined;
  /** Where the next round begins; null after the last one. */
  nextCursor: string | null;
}

/** What {@link rotateSecrets} needs. */
export interface RotateDeps {
  database: Database;
  keys: KeyRing;
  audit: Pick<Audit, "record">;
}

/**
 * Encrypts with the current key what another key has encrypted, `limit` values a round, while all of it is read and written:
 * a value that was replaced meanwhile stays, and two processes may do it at once. What cannot be decrypted is reported and passed
 * over. Throws `FlowError` INVALID_INPUT for an invalid cursor.
 */
export function rotateSecrets(deps: RotateDeps) {
  const { database, keys, audit } = deps;
  return async (page: { limit: number; cursor?: string }, caller: Caller): Promise<Rotated> => {
    const { table, after } = placeOf(page.cursor);
    const keyId = keys.current;
    const total = page.cursor === undefined ? await countOtherwiseEncrypted(database, keyId) : undefined;
    const rows = await findOtherwiseEncrypted(database, table, { keyId, after, limit: page.limit });
    const failed: Rotated["failed"] = [];
    const changes = rows.flatMap((row) => {
      try {
        const bound = boundOf(table, row);
        const to = keys.encrypt(keys.decrypt(row.envelope, bound), bound);
        return [{ key: row.key, from: row.envelope, to }];
      } catch (error) {
        failed.push({ resource: `${table}/${row.name}`, message: messageOf(error) });
        return [];
      }
    });
    const rotated = await replaceEnvelopes(database, table, changes);
    if (rows.length > 0 || page.cursor === undefined) {
      const detail = { table, rotated, failed: failed.length };
      await audit.record(audited(caller, "secrets.rotate", `key/${keyId}`, { detail }));
    }
    return { keyId, rotated, failed, total, nextCursor: nextCursor(table, rows, page.limit) };
  };
}

function boundOf(table: EncryptedTable, { key, name }: EncryptedRow): string {
  return table === "credential" ? credentialBound(name, key) : keychainBound(key);
}

/** `<table> <key of the last row>`, or a table alone where it begins. */
function placeOf(cursor: string | undefined): { table: EncryptedTable; after: string | undefined } {
  if (cursor === undefined) return { table: ENCRYPTED_TABLES[0], after: undefined };
  const [, word, after] = /^(\w+)(?: (.+))?$/s.exec(textCursor(cursor)) ?? [];
  const table = ENCRYPTED_TABLES.find((one) => one === word);
  const isKey = after === undefined || table !== "credential" || /^\d{1,16}$/.test(after);
  if (table !== undefined && isKey) return { table, after };
  throw new FlowError("INVALID_INPUT", "'cursor' is not one that a rotation gave out. Begin without one");
}

function nextCursor(table: EncryptedTable, rows: readonly EncryptedRow[], limit: number): string | null {
  const last = rows.at(-1);
  if (last !== undefined && rows.length === limit) return encodeCursor(`${table} ${last.key}`);
  const next = ENCRYPTED_TABLES[ENCRYPTED_TABLES.indexOf(table) + 1];
  return next === undefined ? null : encodeCursor(next);
}
