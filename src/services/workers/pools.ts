import { newToken, tokenSha256 } from "../../platform/crypto/token.ts";
import type { Database } from "../../repositories/database/database.ts";
import { labelSystemCommands } from "../../repositories/orchestration/claimable-commands.ts";
import {
  findPool,
  insertPool,
  listPools,
  POOLS_MAX,
  replacePoolToken,
  revokePool,
  type WorkerPoolRow,
} from "../../repositories/workers/pools.ts";
import { isSystemPath, SYSTEM_FOLDERS } from "../../schema/rules/access-rules.ts";
import { POOL_LABEL, SERVER_POOL, servesPath } from "../../schema/rules/pool-label.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { audited, type Caller } from "../access/audit.ts";

/** A pool as a call of one of its workers is judged by it. */
export type WorkerPool = Pick<WorkerPoolRow, "name" | "paths" | "labels">;

/** A pool with the token that it has from now on, which is shown this once. */
export interface PoolWithToken {
  pool: WorkerPoolRow;
  token: string;
}

/**
 * In whose name this server calls itself, to run the system playbooks that no operator's pool covers. It has no token: a call is of
 * this pool where the process says so, and none that came over a port is.
 */
export const OWN_POOL: WorkerPool = {
  name: SERVER_POOL,
  paths: SYSTEM_FOLDERS.map((folder) => `${folder}**`),
  labels: {},
};

/**
 * Pools of workers: each has a token, and runs the playbooks of its paths. What no pool covers is run by the workers of the shared
 * token, and system playbooks by the servers.
 */
export interface Pools {
  /** Throws `FlowError` CONFLICT for a name that is taken, INVALID_INPUT beyond {@link POOLS_MAX}. */
  create(
    pool: { name: string; paths: readonly string[]; labels: Record<string, string> },
    caller: Caller,
  ): Promise<PoolWithToken>;
  /** Also revoked ones. */
  list(): Promise<WorkerPoolRow[]>;
  /** Gives a new token; the old one is refused from then on. Throws `FlowError` NOT_FOUND. */
  rotate(name: string, caller: Caller): Promise<PoolWithToken>;
  /** Its token is refused from then on, and its paths are the shared token's again. Throws `FlowError` NOT_FOUND. */
  revoke(name: string, caller: Caller): Promise<WorkerPoolRow>;
  /** The pool of a token; undefined for any other text. Texts that are no such token are not looked up. */
  ofToken(token: string): Promise<WorkerPool | undefined>;
  /**
   * The pool that runs a playbook: that of the longest pattern which matches; {@link SERVER_POOL} for other system playbooks. Known
   * as of the last {@link refresh}.
   */
  poolOf(path: string): string | undefined;
  /** Whether there is a pool of this name, as of the last {@link refresh}. */
  has(name: string): boolean;
  /** Whether servers run system playbooks themselves. */
  hasOwn: boolean;
  /**
   * Reads them, and makes open commands of system playbooks the servers' own unless a pool has them: those of a server of an older
   * version, and of a pool that was revoked. To be called before commands are read or issued.
   */
  prepare(): Promise<void>;
  /** Reads them again: other servers change them too. */
  refresh(): Promise<void>;
}

/** How a token of a pool begins: no other unknown token makes the server ask its database. */
const TOKEN_PREFIX = "flowpool_";

/** What {@link createPools} needs. */
export interface PoolsDeps {
  database: Database;
  /**
   * Whether servers run system playbooks themselves: where callers have to say who they are. Where everyone may do everything, the
   * workers run them like all others.
   */
  hasOwn: boolean;
}

/** The pools of a database. None is known before the first {@link Pools.refresh}. */
export function createPools({ database, hasOwn }: PoolsDeps): Pools {
  let known: readonly WorkerPool[] = [];
  const has = (name: string) => known.some((pool) => pool.name === name);
  const refresh = async () => {
    known = (await listPools(database)).filter(({ revokedAt }) => revokedAt === null);
  };
  return {
    async create(pool, caller) {
      if (known.length >= POOLS_MAX)
        throw new FlowError("INVALID_INPUT", `There are already ${POOLS_MAX} pools, which is the maximum`);
      const token = TOKEN_PREFIX + newToken();
      const createdBy = caller.actor ?? caller.actorKind;
      const entry = audited(caller, "pool.create", `pool/${pool.name}`, { detail: { paths: [...pool.paths] } });
      const row = await insertPool(database, { ...pool, tokenSha256: tokenSha256(token), createdBy }, entry);
      if (row === undefined) {
        throw new FlowError("CONFLICT", `A pool '${pool.name}' already exists. Revoke it first, or rotate its token`);
      }
      await refresh();
      return { pool: row, token };
    },
    list: () => listPools(database),
    async rotate(name, caller) {
      const token = TOKEN_PREFIX + newToken();
      const entry = audited(caller, "pool.rotate", `pool/${name}`);
      const row = await replacePoolToken(database, name, tokenSha256(token), entry);
      if (row === undefined) throw unknownPool(name);
      return { pool: row, token };
    },
    async revoke(name, caller) {
      const row = await revokePool(database, name, audited(caller, "pool.revoke", `pool/${name}`));
      if (row === undefined) throw unknownPool(name);
      await refresh();
      return row;
    },
    ofToken: async (token) =>
      token.startsWith(TOKEN_PREFIX) ? await findPool(database, tokenSha256(token)) : undefined,
    poolOf(path) {
      let best: { name: string; length: number } | undefined;
      for (const { name, paths } of known) {
        for (const pattern of paths) {
          const isLonger = pattern.length > (best?.length ?? -1);
          if (isLonger && servesPath([pattern], path)) best = { name, length: pattern.length };
        }
      }
      return best?.name ?? (hasOwn && isSystemPath(path) ? SERVER_POOL : undefined);
    },
    has,
    hasOwn,
    async prepare() {
      await refresh();
      if (!hasOwn) return;
      const others = known.filter(({ paths }) => paths.some(isSystemPath)).map(({ name }) => name);
      await labelSystemCommands(database, { label: POOL_LABEL, pool: SERVER_POOL, others });
    },
    refresh,
  };
}

function unknownPool(name: string): FlowError {
  return new FlowError("NOT_FOUND", `There is no pool '${name}', or it was revoked`);
}
