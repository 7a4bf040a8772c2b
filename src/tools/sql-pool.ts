import postgres from "postgres";
import { type Json, setOwn } from "../schema/json.ts";
import { parseArray, writeArray } from "./sql-array.ts";
import { connectionKey, type SqlConnection } from "./sql-connection.ts";
import { SQL_TYPES } from "./sql-types.ts";

/** One connection to a server, lent to one task at a time. */
export interface SqlSession {
  sql: postgres.Sql;
  /** The server's process, which a cancellation names. */
  pid: number;
  /** How often the connection was lost: a change while a task runs means that its transaction is gone. */
  losses(): number;
  /** Receives the server's notices (`raise notice`) while the task runs. */
  onNotice: (line: string) => void;
  /** Stops the statement that runs now, on the server. Never throws: a server that is gone has stopped it already. */
  cancel(): Promise<void>;
  /**
   * Gives the session back. A reusable one is reset first (`rollback`, `discard all`), so that no setting, lock, role or
   * temporary table of one task reaches the next.
   */
  release(reusable: boolean): void;
}

/** Sessions by connection, with a bound for each. */
export interface SqlPools {
  /** Waits for a free session. Throws what the driver throws when the server cannot be reached, or the signal's reason. */
  acquire(connection: SqlConnection, signal: AbortSignal): Promise<SqlSession>;
  close(): Promise<void>;
}

/** What {@link createSqlPools} takes. */
export interface SqlPoolOptions {
  /** Most sessions for one connection (server, user and database). */
  sessionsMax: number;
  /** A session unused for so many milliseconds is closed. */
  idleMs: number;
  /** Longest wait for the server to accept a session, in milliseconds. */
  connectTimeoutMs: number;
}

interface Pool {
  connection: SqlConnection;
  size: number;
  idle: { session: SqlSession; timer: NodeJS.Timeout }[];
  waiting: Waiter[];
}

interface Waiter {
  resolve(session: SqlSession): void;
  reject(reason: unknown): void;
}

/**
 * Each session is a driver client of its own with a single connection, because a task may write `begin … commit` and
 * temporary tables over several statements, and because one that does not answer can then be dropped alone.
 */
export function createSqlPools(options: SqlPoolOptions): SqlPools {
  const pools = new Map<string, Pool>();
  const sessions = new Set<postgres.Sql>();
  let closed = false;

  async function open(key: string, pool: Pool): Promise<SqlSession> {
    pool.size += 1;
    try {
      return await openSession(pool.connection, options.connectTimeoutMs, sessions, (session, reusable) =>
        giveBack(key, pool, session, reusable),
      );
    } catch (error) {
      shrink(key, pool);
      throw error;
    }
  }

  function giveBack(key: string, pool: Pool, session: SqlSession, reusable: boolean): void {
    if (!reusable || closed) {
      void drop(session.sql, sessions);
      shrink(key, pool);
      return;
    }
    const waiter = pool.waiting.shift();
    if (waiter !== undefined) {
      waiter.resolve(session);
      return;
    }
    const timer = setTimeout(() => {
      pool.idle = pool.idle.filter((entry) => entry.session !== session);
      giveBack(key, pool, session, false);
    }, options.idleMs);
    timer.unref();
    pool.idle.push({ session, timer });
  }

  /** A session is gone: whoever waits gets a new one, and a pool of none is forgotten. */
  function shrink(key: string, pool: Pool): void {
    pool.size -= 1;
    const waiter = closed ? undefined : pool.waiting.shift();
    if (waiter !== undefined) open(key, pool).then(waiter.resolve, waiter.reject);
    else if (pool.size === 0) pools.delete(key);
  }

  return {
    async acquire(connection, signal) {
      signal.throwIfAborted();
      if (closed) throw closedError();
      const key = connectionKey(connection);
      const pool = pools.get(key) ?? { connection, size: 0, idle: [], waiting: [] };
      pools.set(key, pool);
      const free = pool.idle.pop();
      if (free !== undefined) {
        clearTimeout(free.timer);
        return free.session;
      }
      const coming = pool.size < options.sessionsMax ? open(key, pool) : wait(pool);
      return await unlessAborted(coming, signal);
    },
    async close() {
      closed = true;
      for (const pool of pools.values()) {
        for (const { timer } of pool.idle) clearTimeout(timer);
        for (const waiter of pool.waiting.splice(0)) waiter.reject(closedError());
      }
      pools.clear();
      await Promise.all([...sessions].map((sql) => drop(sql, sessions)));
    },
  };
}

function closedError(): Error {
  return Object.assign(new Error("this program is shutting down"), { code: "CONNECTION_ENDED" });
}

function wait(pool: Pool): Promise<SqlSession> {
  return new Promise((resolve, reject) => pool.waiting.push({ resolve, reject }));
}

/** The session, or the signal's reason; a session that comes too late goes back to the pool. */
async function unlessAborted(coming: Promise<SqlSession>, signal: AbortSignal): Promise<SqlSession> {
  let onAbort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    return await Promise.race([coming, aborted]);
  } catch (error) {
    coming.then(
      (session) => session.release(true),
      () => {},
    );
    throw error;
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

async function openSession(
  connection: SqlConnection,
  connectTimeoutMs: number,
  sessions: Set<postgres.Sql>,
  giveBack: (session: SqlSession, reusable: boolean) => void,
): Promise<SqlSession> {
  let losses = 0;
  const sql: postgres.Sql = postgres({
    ...clientOptions(connection, connectTimeoutMs),
    onclose: () => {
      losses += 1;
    },
    onnotice: (notice) => session.onNotice(`${notice["severity"]}: ${notice["message"]}`),
  });
  sessions.add(sql);
  const session: SqlSession = {
    sql,
    pid: 0,
    losses: () => losses,
    onNotice: () => {},
    cancel: () => cancelBackend(connection, session.pid, connectTimeoutMs),
    release(reusable) {
      session.onNotice = () => {};
      if (!reusable) giveBack(session, false);
      else void reset(session).then((clean) => giveBack(session, clean));
    },
  };
  try {
    session.pid = await greet(sql, connectTimeoutMs);
  } catch (error) {
    void drop(sql, sessions);
    throw error;
  }
  return session;
}

interface ArrayType {
  pid: number;
  /** Of the elements. */
  oid: number;
  /** Of the array. */
  typarray: number;
  typdelim: string;
}

/** Tells this client how arrays of a type are read and written: by its elements. */
function useArrayType(sql: postgres.Sql, { oid, typarray, typdelim }: ArrayType): void {
  const { parsers, serializers } = sql.options;
  const parse = (parsers[oid] ?? String) as (text: string) => Json;
  const serialize = (serializers[oid] ?? String) as (value: unknown) => string;
  parsers[typarray] = (text: string) => parseArray(text, parse, typdelim);
  serializers[typarray] = (value: unknown) =>
    Array.isArray(value) ? writeArray(value, serialize, typdelim) : String(value);
}

/**
 * The first round trip: who serves us, and which array types there are. The driver tries again for ever when something accepts the connection and hangs up without a
 * word, as a server of another protocol does; hence a deadline of our own.
 */
async function greet(sql: postgres.Sql, deadlineMs: number): Promise<number> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<never>((_, reject) => {
    const error = Object.assign(new Error("the server did not accept the connection in time"), {
      code: "CONNECT_TIMEOUT",
    });
    timer = setTimeout(() => reject(error), deadlineMs);
  });
  try {
    const query = sql<ArrayType[]>`
      select pg_backend_pid() as pid, oid, typarray, typdelim from pg_catalog.pg_type where typarray <> 0`;
    const rows = await Promise.race([query, deadline]);
    for (const row of rows) useArrayType(sql, row);
    return rows[0]!.pid;
  } finally {
    clearTimeout(timer);
  }
}

function clientOptions(connection: SqlConnection, connectTimeoutMs: number): ClientOptions {
  const socket = connection.host.startsWith("/");
  return {
    // Lists, because the driver splits text at ":" and would cut an IPv6 address.
    ...(socket
      ? { path: `${connection.host}/.s.PGSQL.${connection.port}` }
      : { host: [connection.host] as unknown as string, port: [connection.port] as unknown as number }),
    user: connection.user,
    // A function, because an empty text would fall back to PGPASSWORD of this process.
    password: () => connection.password,
    database: connection.database,
    ssl: socket ? false : sslOption(connection.sslMode),
    max: 1,
    prepare: false,
    connect_timeout: Math.ceil(connectTimeoutMs / 1000),
    max_lifetime: null,
    connection: { application_name: "flow", DateStyle: "ISO" },
    fetch_types: false,
    types: SQL_TYPES,
  };
}

type ClientOptions = postgres.Options<Record<string, postgres.PostgresType>>;

function sslOption(mode: SqlConnection["sslMode"]): boolean | object | "prefer" | "require" | "verify-full" {
  if (mode === "disable" || mode === "allow") return false;
  if (mode === "verify-ca") return { rejectUnauthorized: true, checkServerIdentity: () => undefined };
  return mode;
}

/** False when the session could not be brought back to its first state, and must be dropped. */
async function reset(session: SqlSession): Promise<boolean> {
  try {
    await Promise.all([session.sql.unsafe("rollback"), session.sql.unsafe("discard all")]);
    return true;
  } catch {
    return false;
  }
}

/**
 * Over a connection of its own, by the server's function. The driver's `cancel()` drops its promise, so that a server
 * which is gone would end this process with an unhandled rejection.
 */
async function cancelBackend(connection: SqlConnection, pid: number, timeoutMs: number): Promise<void> {
  const sql = postgres({ ...clientOptions(connection, timeoutMs), onnotice: () => {} });
  try {
    await Promise.race([
      sql`select pg_cancel_backend(${pid})`,
      new Promise((resolve) => setTimeout(resolve, timeoutMs).unref()),
    ]);
  } catch {
    // The server cannot be reached or refuses: there is nothing more that we can do for this statement.
  } finally {
    void sql.end({ timeout: 0 });
  }
}

/** Closes a client at once, whatever it does. */
function drop(sql: postgres.Sql, sessions: Set<postgres.Sql>): Promise<void> {
  sessions.delete(sql);
  return sql.end({ timeout: 0 });
}

/** A row of the driver's `values()` as an object. A column called `__proto__` stays a column. */
export function rowObject(columns: readonly string[], values: readonly Json[]): Record<string, Json> {
  const row: Record<string, Json> = {};
  for (let index = 0; index < columns.length; index += 1) setOwn(row, columns[index]!, values[index] ?? null);
  return row;
}
