import type { KeyValueStore } from "../ports/key-value.ts";
import {
  deleteTransient,
  findTransient,
  insertTransient,
  putTransient,
  updateTransient,
} from "../repositories/credentials/key-values.ts";
import type { Database } from "../repositories/database/database.ts";
import { unavailable } from "../repositories/database/error-codes.ts";
import { checkEntry } from "./key-value-input.ts";

/**
 * Values in the table `flow.transient`, where no broker keeps them. Times are the database's. Expired rows are never read; the
 * caller deletes them now and then (`deleteExpiredTransients`).
 */
export function createPostgresKeyValue(database: Database): KeyValueStore {
  return {
    async get(bucket, key) {
      checkEntry(bucket, key);
      return withStoreErrors(findTransient(database, bucket, key));
    },
    async put(bucket, key, value, ttl = {}) {
      checkEntry(bucket, key, value, ttl);
      return withStoreErrors(putTransient(database, { bucket, key, value, ttlMs: ttl.ttlMs ?? null }));
    },
    async update(bucket, key, value, { revision, ...ttl }) {
      checkEntry(bucket, key, value, ttl);
      const entry = { bucket, key, value, ttlMs: ttl.ttlMs ?? null };
      return withStoreErrors(
        revision === 0 ? insertTransient(database, entry) : updateTransient(database, entry, revision),
      );
    },
    async delete(bucket, key) {
      checkEntry(bucket, key);
      await withStoreErrors(deleteTransient(database, bucket, key));
    },
  };
}

async function withStoreErrors<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw unavailable(error) ?? error;
  }
}
