import { createPostgresExecutionStore } from "../../../src/adapters/postgres-execution-store.ts";
import type { Database } from "../../../src/repositories/database/database.ts";
import { createKeychainUpkeep, type KeychainUpkeep } from "../../../src/services/keychain/cleanup.ts";
import type { KeychainSetting } from "../../../src/services/keychain/content.ts";
import { createKeychain, type Keychain } from "../../../src/services/keychain/keychain.ts";
import type { KeychainRequest } from "../../../src/services/keychain/placement.ts";
import { keyRing } from "../engine/key-ring.ts";
import { storeRows } from "./store-rows.ts";
import { POLICY } from "./store-setup.ts";

/** A keychain over a database, and the executions that own its entries. */
export interface KeychainBench {
  database: Database;
  keychain: Keychain;
  upkeep: KeychainUpkeep;
  /** What did not match its schema. */
  violations: [string, readonly string[]][];
  /** An execution that runs; gives its id. */
  execution(parent?: { parentExecutionId: string; rootExecutionId: string }): Promise<string>;
  /** Ends an execution, as another server does. */
  end(executionId: string, status?: "COMPLETED" | "FAILED" | "CANCELLED"): Promise<void>;
  /** Moves the time at which an entry expires, and its last use, into the past. */
  age(name: string, seconds: number): Promise<void>;
  keys(): Promise<string[]>;
}

/** Who reads and writes in these tests. */
export const WORKER = { actorKind: "worker", rule: "access:worker" } as const;

/** A playbook that is there. */
export const CATALOG_ID = "1";

/** An entry of the playbook {@link CATALOG_ID}. */
export function entry(name: string, scope: KeychainRequest["scope"] = "global", executionId?: string): KeychainRequest {
  return { catalogId: CATALOG_ID, name, scope, ...(executionId !== undefined && { executionId }) };
}

/** What a test keeps. */
export function token(text = "t0p", more: Partial<KeychainSetting> = {}): KeychainSetting {
  return { data: { access_token: text }, credentialType: "oauth2", autoRenew: false, ...more };
}

/** Over an open database with the service's schema. */
export async function keychainBench(database: Database): Promise<KeychainBench> {
  const { sql } = database;
  await sql`
    insert into flow.catalog (catalog_id, path, version, kind, content, payload, metadata)
    values (${CATALOG_ID}, 'jobs/nightly', 1, 'playbook', '', '{}', '{}'), (2, 'jobs/other', 1, 'playbook', '', '{}', '{}')
    on conflict do nothing`;
  const store = createPostgresExecutionStore({ database, policy: POLICY, processor: "server" });
  const rows = storeRows();
  const violations: [string, readonly string[]][] = [];
  const upkeep = createKeychainUpkeep({ database });
  const keychain = createKeychain({
    database,
    keys: keyRing(),
    onViolation: (cacheKey, problems) => void violations.push([cacheKey, problems]),
    onOwned: (executionId) => upkeep.owned(executionId),
  });
  return {
    ...{ database, keychain, upkeep, violations },
    async execution(parent) {
      const change = rows.begin(parent);
      await store.flush({ executions: [change], batches: [] });
      return change.executionId;
    },
    async end(executionId, status = "COMPLETED") {
      await sql`
        update flow.execution set status = ${status}, ended_at = now(),
          error = ${status === "FAILED" ? "{}" : null}::json
        where execution_id = ${executionId}`;
    },
    async age(name, seconds) {
      await sql`
        update flow.keychain set expires_at = now() - ${seconds}::float8 * interval '1 second',
          accessed_at = now() - ${seconds}::float8 * interval '1 second'
        where keychain_name = ${name}`;
    },
    async keys() {
      const found = await sql<
        { key: string }[]
      >`select cache_key as key from flow.keychain order by cache_key collate "C"`;
      return found.map(({ key }) => key);
    },
  };
}
