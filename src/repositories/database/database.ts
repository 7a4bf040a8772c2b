import { setTimeout as sleep } from "node:timers/promises";
import postgres, { type Sql, type TransactionSql } from "postgres";
import { describeAddress, parseDatabaseUrl } from "../../platform/config/database-address.ts";
import { APPLICATION_NAME } from "../../platform/postgres/application-name.ts";
import { parseArray, writeArray } from "../../platform/postgres/sql-array.ts";
import { defined } from "../../schema/words/defined.ts";
import { type Builder, createBuilder } from "./builder.ts";
import { createDialler } from "./dial.ts";
import { driverOptions, lookAt } from "./driver.ts";
import { unreachable } from "./error-codes.ts";
import { type Away, createReach } from "./reach.ts";

/**
 * An open pool of connections. Plain reads and writes are built (`db`), statements whose plan or locks matter are tagged (`sql`):
 * ARCHITECTURE.md says which. Both use the same connections, prepared statements, deadlines and errors.
 *
 * Tagged statements read 64-bit integers as text, `timestamptz` as `Date` and JSON as values. JSON goes in as `sql.json(value)` of
 * an object or a list, or as text that already is JSON. Built statements read and write what the table's columns say.
 */
export interface Database {
  readonly sql: Sql;
  readonly db: Builder;
  /** `host:port/database`, for operators. */
  readonly place: string;
  /** Undefined while attempts to reach it succeed. */
  away(): Away | undefined;
  /** Waits for running statements, then closes every connection. May be called more than once. */
  close(): Promise<void>;
}

/** The same within one transaction. Repository functions take either as their first argument. */
export interface Transaction {
  readonly sql: TransactionSql;
  readonly db: Builder;
}

/** How a pool behaves. */
export interface DatabaseOptions {
  /** Most connections. Default 10. */
  connectionsMax?: number;
  /** Seconds to wait for a connection to be made. Default 4: a caller learns within 5 s that the database is away. */
  connectSeconds?: number;
  /** Milliseconds that one statement may take on the server. Default 30,000; 0: any. */
  statementMs?: number;
  /**
   * Every join goes through a key, and every plan is made once per connection, whatever the statistics say. For statements
   * that are known to be best so, the flush above all: a plan that was made while the tables were small reads them whole
   * until the next ANALYZE, and planning anew takes longer than executing. Default false.
   */
  byKey?: boolean;
  /** Name that `pg_stat_activity` shows. Default {@link APPLICATION_NAME}. */
  applicationName?: string;
  /**
   * A pooler stands in front and may give each transaction another session. Nothing of a session is relied on then: no settings
   * are sent with the login (poolers refuse them), `byKey` has no effect, and a statement that takes too long is cancelled from
   * here. Default false.
   */
  pooled?: boolean;
  /** Statements are prepared once per connection. Default: unless `pooled`. */
  prepare?: boolean;
  /** Called when the database becomes unavailable, and (undefined) when it is back. */
  onReach?(away: Away | undefined): void;
}

const CONNECT_SECONDS = 4;
const IDLE_SECONDS = 60;
/**
 * Pause of a connection after it could not be made. Statements wait for it, and so do their callers: the driver's own pause
 * grows to 20 s, so that one second without a database was half a minute without an answer.
 */
const RECONNECT_SECONDS = 0.2;
/** A connection is replaced now and then, so that a server's memory per connection and a changed address do not last. */
const LIFETIME_SECONDS = 1_800;
/** An idle connection is asked for a sign of life, so that a firewall does not forget it. */
const KEEP_ALIVE_SECONDS = 30;

/** Settings of a session; see {@link DatabaseOptions.byKey}. */
const BY_KEY = {
  plan_cache_mode: "force_generic_plan",
  enable_seqscan: "off",
  enable_bitmapscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  enable_memoize: "off",
  jit: "off",
};

/**
 * Makes a pool. It connects with the first statement, so this never fails for a server that is not there. Throws `FlowError`
 * INVALID_SETTING for an invalid address, or for certificates that cannot be read.
 */
export function openDatabase(url: string, options: DatabaseOptions = {}): Database {
  const address = parseDatabaseUrl(url);
  const { statementMs = 30_000, pooled = false } = options;
  const dialler = createDialler(address, 1_000 * (options.connectSeconds ?? CONNECT_SECONDS));
  const reach = createReach({
    dialler,
    look: (pids, limitMs) => lookAt(address, { dialler, pids, limitMs, pooled }),
    picksServer: address.targetSession !== undefined,
    statementMs: pooled ? statementMs : 0,
    ...defined({ onChange: options.onReach }),
  });
  const pool: Sql = postgres({
    ...driverOptions(address, () => reach.socket()),
    max: options.connectionsMax ?? 10,
    connect_timeout: options.connectSeconds ?? CONNECT_SECONDS,
    // While the database is known to be away, statements fail at once.
    backoff: () => (reach.away()?.isClosed === true ? 0 : RECONNECT_SECONDS * (0.5 + Math.random())),
    idle_timeout: IDLE_SECONDS,
    max_lifetime: LIFETIME_SECONDS,
    keep_alive: KEEP_ALIVE_SECONDS,
    prepare: options.prepare ?? !pooled,
    types: TYPES,
    connection: {
      ...address.parameters,
      application_name: options.applicationName ?? address.parameters["application_name"] ?? APPLICATION_NAME,
      ...(!pooled && { statement_timeout: statementMs }),
      ...(!pooled && options.byKey === true && BY_KEY),
    },
  });
  const sql = pooled ? oneAtATime(pool) : pool;
  let closing: Promise<void> | undefined;
  const close = async () => {
    await sql.end({ timeout: 5 });
    reach.close();
  };
  const db = createBuilder(sql);
  return { sql, db, place: describeAddress(address), away: reach.away, close: () => (closing ??= close()) };
}

/**
 * The same pool, which sends no statement before the answer to the one before it. PgBouncer (1.18) takes a session back at an
 * answer, whatever has been sent since; the driver asks for a statement's types before it binds its values. Behind another
 * statement, that question's answer would go to the session's next client, who waits for one of its own. (`max_pipeline: 0` of the
 * driver, 3.4.9, would do as much and break `begin`.)
 */
function oneAtATime(pool: Sql): Sql {
  const alone = <Query>(query: Query): Query => {
    // Known to the driver, and not to its types: whether the connection may take a further statement meanwhile.
    if (query instanceof Promise) (query as { options?: { onexecute?(): boolean } }).options!.onexecute = () => false;
    return query;
  };
  return new Proxy(pool, {
    apply: (target, self, parts) => alone(Reflect.apply(target, self, parts) as unknown),
    get: (target, key, receiver) => {
      const value: unknown = Reflect.get(target, key, receiver);
      return key === "unsafe" ? (...parts: Parameters<Sql["unsafe"]>) => alone(target.unsafe(...parts)) : value;
    },
  });
}

/**
 * Runs `work` in a transaction: committed when it returns, rolled back when it throws. Do not publish what was written before
 * this returns. `mode` is what follows BEGIN: `isolation level repeatable read read only`.
 */
export async function transaction<T>(
  database: Pick<Database, "sql">,
  work: (tx: Transaction) => Promise<T>,
  mode = "",
): Promise<T> {
  let isOver = false;
  const running = database.sql.begin(mode, async (sql) => {
    try {
      const result = await work(inTransaction(sql, () => !isOver));
      if (!isOver) return result;
    } catch (error) {
      // The driver learns of the end of a session shortly after its statements.
      if (!isOver && unreachable(error) !== undefined)
        await Promise.race([ended, sleep(CLOSE_MS, undefined, { ref: false })]);
      if (!isOver) throw error;
    }
    // The caller has the error. A rollback or commit would go to a session that is gone, or to a different one.
    return await new Promise<T>(() => undefined);
  });
  const end = () => {
    isOver = true;
  };
  const ended = running.then(end, end);
  // The driver's type resolves arrays of promises, which our work never returns.
  return (await running) as T;
}

function inTransaction(session: TransactionSql, isOpen: () => boolean): Transaction {
  const sql = whileOpen(session, isOpen);
  return { sql, db: createBuilder(sql) };
}

/** How long the driver may take to notice the end of a session after a statement has failed with it. */
const CLOSE_MS = 10_000;

/**
 * The same transaction, which sends nothing once its session is gone: the driver (3.4.9) would write to the closed connection, which
 * ends this process, or to the next session of that connection, which belongs to another caller.
 */
function whileOpen(sql: TransactionSql, isOpen: () => boolean): TransactionSql {
  const check = () => {
    if (isOpen()) return;
    throw Object.assign(new Error("The session of this transaction has ended"), { code: "CONNECTION_CLOSED" });
  };
  return new Proxy(sql, {
    apply(target, self, parts) {
      check();
      return Reflect.apply(target, self, parts);
    },
    get(target, key, receiver) {
      if (key === "unsafe" || key === "savepoint") check();
      return Reflect.get(target, key, receiver);
    },
  });
}

/** The oid of `bigint[]`, of `text[]` and of `integer[]`. Ids stay text. */
const ARRAYS = { ids: [1016, String], texts: [1009, String], numbers: [1007, Number] } as const;

/** How values are written and read, beside the driver's own types. */
const TYPES = {
  json: {
    to: 114,
    from: [114, 3802],
    /** A text is JSON already. */
    serialize: (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value)),
    parse: (text: string): unknown => JSON.parse(text),
  },
  timestamptz: {
    to: 1184,
    from: [1184],
    serialize: (value: Date | string) => (value instanceof Date ? value.toISOString() : value),
    parse: (text: string) => new Date(text),
  },
  ...Object.fromEntries(Object.entries(ARRAYS).map(([name, [oid, element]]) => [name, arrayType(oid, element)])),
};

/** The driver would have to ask the server for the types of arrays; see `fetch_types` in `driver.ts`. */
function arrayType(oid: number, element: (text: string) => string | number) {
  return {
    to: oid,
    from: [oid],
    serialize: (value: unknown) => (Array.isArray(value) ? writeArray(value, String, ",") : value),
    parse: (text: string) => parseArray(text, element, ","),
  };
}
