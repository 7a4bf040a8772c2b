import { type JsonObject, own } from "../words/json.ts";
import { isSystemPath, matchesPattern } from "./access-rules.ts";

/**
 * The label of commands that a pool alone runs. As a label it makes groups of their own: a pool's commands do not wait
 * behind others', nor these behind them.
 */
export const POOL_LABEL = "flow.pool";

/** The pool of a command with these labels. */
export function poolOf(labels: JsonObject | null): string | undefined {
  const pool = labels === null ? undefined : own(labels, POOL_LABEL);
  return typeof pool === "string" ? pool : undefined;
}

/** A step's labels with those of the pool that runs its playbook; an author's own word on the pool does not count. */
export function labelsOf(labels: JsonObject | undefined, pool: string | undefined): JsonObject | null {
  if (pool !== undefined) return { ...labels, [POOL_LABEL]: pool };
  if (labels === undefined || own(labels, POOL_LABEL) === undefined) return labels ?? null;
  const { [POOL_LABEL]: _, ...rest } = labels;
  return rest;
}

/** The pool of the system playbooks that no operator's pool covers. Servers run it themselves. It is no name that an operator can give. */
export const SERVER_POOL = "@server";

/**
 * Kinds of tasks that run inside servers: calls of other services, and no code. `transfer`, `duckdb` and their like would keep the
 * server's processor busy, or read its files.
 */
export const SERVER_KINDS: readonly string[] = [
  "http",
  "sqldb",
  "nats",
  "artifact",
  "noop",
  "wait",
  "playbook",
  "workbook",
];

/** How the names of the workers inside servers begin. No other worker may have such a name. */
export const SERVER_WORKER_PREFIX = "@server:";

/**
 * Whether a pool with these patterns runs the playbook of this path. A system playbook is of a pool that names its folder: `**` does
 * not mean it, because it would run beside the code of authors.
 */
export function servesPath(patterns: readonly string[], path: string): boolean {
  const isSystem = isSystemPath(path);
  return patterns.some((pattern) => matchesPattern(pattern, path) && (!isSystem || isSystemPath(pattern)));
}

/** Which commands a worker takes, by the pool that they are of and the path of their playbook. */
export interface PoolWork {
  isOfPool(pool: string | undefined): boolean;
  runsPath(path: string): boolean;
}

/**
 * What workers of a pool take; undefined: those with the shared token. What waits of a pool that was revoked is theirs, or the
 * servers'. `hasOwn`: servers run system playbooks themselves.
 */
export function poolWork(
  pool: { name: string; paths: readonly string[] } | undefined,
  { has, hasOwn }: { has(name: string): boolean; hasOwn: boolean },
): PoolWork {
  if (pool === undefined) {
    return {
      isOfPool: (name) => name === undefined || !(has(name) || (hasOwn && name === SERVER_POOL)),
      runsPath: (path) => !(hasOwn && isSystemPath(path)),
    };
  }
  const { name: own, paths } = pool;
  return {
    isOfPool: (name) => name === own || (own === SERVER_POOL && name !== undefined && !has(name)),
    runsPath: (path) => servesPath(paths, path),
  };
}

/** Whether a worker with these labels is one inside a server: it is there for system playbooks alone. */
export function isInServer(worker: JsonObject): boolean {
  return poolOf(worker) === SERVER_POOL;
}

/** Whether a worker with these labels is of a pool that a command with those is not of: then it never takes it. */
export function isOfOtherPool(worker: JsonObject, command: JsonObject | null): boolean {
  const pool = poolOf(worker);
  return pool !== undefined && pool !== poolOf(command);
}
