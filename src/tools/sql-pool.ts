import { connectionKey, type SqlConnection } from "./sql-connection.ts";
import { openSession, type SqlSession } from "./sql-session.ts";

/** Sessions by connection, with a bound for each. */
export interface SqlPools {
  /** Waits for a free session. Throws what the driver throws when the server cannot be reached, or the signal's reason. */
  acquire(connection: SqlConnection, signal: AbortSignal): Promise<SqlSession>;
  /** Gives a session back: reset for the next task, or dropped when it is not `reusable`. */
  release(session: SqlSession, reusable: boolean): void;
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
  key: string;
  connection: SqlConnection;
  /** Sessions that are open or being opened. */
  size: number;
  idle: { session: SqlSession; timer: NodeJS.Timeout }[];
  waiting: Waiter[];
}

interface Waiter {
  resolve(session: SqlSession): void;
  reject(reason: unknown): void;
}

/** Builds the pools; a pool without sessions is forgotten, so that they take no room for credentials of the past. */
export function createSqlPools(options: SqlPoolOptions): SqlPools {
  const pools = new Map<string, Pool>();
  const homes = new Map<SqlSession, Pool>();
  let closed = false;

  async function open(pool: Pool): Promise<SqlSession> {
    pool.size += 1;
    try {
      const session = await openSession(pool.connection, options.connectTimeoutMs);
      homes.set(session, pool);
      return session;
    } catch (error) {
      shrink(pool);
      throw error;
    }
  }

  /** A session is gone: whoever waits gets a new one. */
  function shrink(pool: Pool): void {
    pool.size -= 1;
    const waiter = pool.waiting.shift();
    if (waiter !== undefined) open(pool).then(waiter.resolve, waiter.reject);
    else if (pool.size === 0) pools.delete(pool.key);
  }

  function giveBack(pool: Pool, session: SqlSession, usable: boolean): void {
    if (!usable || closed) {
      homes.delete(session);
      void session.drop();
      shrink(pool);
      return;
    }
    const waiter = pool.waiting.shift();
    if (waiter !== undefined) {
      waiter.resolve(session);
      return;
    }
    const timer = setTimeout(() => {
      pool.idle = pool.idle.filter((entry) => entry.session !== session);
      giveBack(pool, session, false);
    }, options.idleMs);
    timer.unref();
    pool.idle.push({ session, timer });
  }

  /** An idle session that the server has not closed meanwhile. */
  function takeIdle(pool: Pool): SqlSession | undefined {
    for (let entry = pool.idle.pop(); entry !== undefined; entry = pool.idle.pop()) {
      clearTimeout(entry.timer);
      if (!entry.session.lost()) return entry.session;
      giveBack(pool, entry.session, false);
    }
    return undefined;
  }

  function release(session: SqlSession, reusable: boolean): void {
    const pool = homes.get(session);
    if (pool === undefined) return;
    if (!reusable) giveBack(pool, session, false);
    else void session.reset().then((clean) => giveBack(pool, session, clean));
  }

  return {
    release,
    async acquire(connection, signal) {
      signal.throwIfAborted();
      if (closed) throw closedError();
      const key = connectionKey(connection);
      const pool = pools.get(key) ?? { key, connection, size: 0, idle: [], waiting: [] };
      const free = takeIdle(pool);
      if (free !== undefined) return free;
      // Only now: where the last idle session was lost, dropping it has made the map forget the pool.
      pools.set(key, pool);
      const coming = pool.size < options.sessionsMax ? open(pool) : wait(pool);
      return await unlessAborted(coming, signal, (late) => release(late, true));
    },
    async close() {
      closed = true;
      for (const pool of pools.values()) {
        for (const { timer } of pool.idle) clearTimeout(timer);
        for (const waiter of pool.waiting.splice(0)) waiter.reject(closedError());
      }
      pools.clear();
      await Promise.all([...homes.keys()].map((session) => session.drop()));
    },
  };
}

function closedError(): Error {
  return Object.assign(new Error("this program is shutting down"), { code: "CONNECTION_ENDED" });
}

function wait(pool: Pool): Promise<SqlSession> {
  return new Promise((resolve, reject) => pool.waiting.push({ resolve, reject }));
}

/** The session, or the signal's reason; a session that comes after that goes to `onLate`. */
async function unlessAborted(
  coming: Promise<SqlSession>,
  signal: AbortSignal,
  onLate: (session: SqlSession) => void,
): Promise<SqlSession> {
  let onAbort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => {
      reject(signal.reason);
      coming.then(onLate, () => {});
    };
    signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    return await Promise.race([coming, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
