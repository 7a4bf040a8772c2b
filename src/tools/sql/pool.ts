import { connectionKey, type SqlConnection } from "./connection.ts";
import { openSession, type SqlSession } from "./session.ts";
import type { SqlEgress } from "./socket.ts";

/**
 * Sessions by connection, with a bound for each. A pool without sessions is forgotten, so that credentials of the past
 * take no room.
 */
export class SqlPools {
  readonly #options: SqlPoolOptions;
  readonly #pools = new Map<string, Pool>();
  /** Every open session, lent or idle, and where it belongs. */
  readonly #homes = new Map<SqlSession, Pool>();
  #closed = false;

  constructor(options: SqlPoolOptions) {
    this.#options = options;
  }

  /** Waits for a free session. Throws what the driver throws when the server cannot be reached, or the signal's reason. */
  async acquire(connection: SqlConnection, signal: AbortSignal): Promise<SqlSession> {
    signal.throwIfAborted();
    if (this.#closed) throw closedError();
    const key = connectionKey(connection);
    const pool = this.#pools.get(key) ?? { key, connection, size: 0, idle: [], waiting: [] };
    const free = this.#takeIdle(pool);
    if (free !== undefined) return free;
    // Only now: where the last idle session was lost, dropping it has made the map forget the pool.
    this.#pools.set(key, pool);
    const coming = pool.size < this.#options.sessionsMax ? this.#open(pool) : wait(pool);
    return await unlessAborted(coming, signal, (late) => this.release(late, true));
  }

  /** Gives a session back: reset for the next task, or dropped when it is not `reusable`. */
  release(session: SqlSession, reusable: boolean): void {
    if (reusable) void session.reset().then((clean) => this.#giveBack(session, clean));
    else this.#giveBack(session, false);
  }

  /** Closes every session, lent ones too. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const pool of this.#pools.values()) {
      for (const { timer } of pool.idle) clearTimeout(timer);
      for (const waiter of pool.waiting.splice(0)) waiter.reject(closedError());
    }
    this.#pools.clear();
    await Promise.all([...this.#homes.keys()].map((session) => session.drop()));
  }

  async #open(pool: Pool): Promise<SqlSession> {
    pool.size += 1;
    try {
      const session = await openSession(pool.connection, this.#options.egress, this.#options.connectTimeoutMs);
      this.#homes.set(session, pool);
      return session;
    } catch (error) {
      this.#shrink(pool);
      throw error;
    }
  }

  /** To the first waiter, else to the idle sessions for a while. */
  #giveBack(session: SqlSession, usable: boolean): void {
    const pool = this.#homes.get(session);
    if (pool === undefined) return;
    if (!usable || this.#closed) {
      this.#homes.delete(session);
      void session.drop();
      this.#shrink(pool);
      return;
    }
    const waiter = pool.waiting.shift();
    if (waiter !== undefined) {
      waiter.resolve(session);
      return;
    }
    const timer = setTimeout(() => {
      pool.idle = pool.idle.filter((entry) => entry.session !== session);
      this.#giveBack(session, false);
    }, this.#options.idleMs);
    timer.unref();
    pool.idle.push({ session, timer });
  }

  /** A session is gone: a waiter gets a new one. */
  #shrink(pool: Pool): void {
    pool.size -= 1;
    const waiter = pool.waiting.shift();
    if (waiter !== undefined) this.#open(pool).then(waiter.resolve, waiter.reject);
    else if (pool.size === 0) this.#pools.delete(pool.key);
  }

  /** An idle session that the server has not closed meanwhile. */
  #takeIdle(pool: Pool): SqlSession | undefined {
    for (let entry = pool.idle.pop(); entry !== undefined; entry = pool.idle.pop()) {
      clearTimeout(entry.timer);
      if (!entry.session.lost()) return entry.session;
      this.#giveBack(entry.session, false);
    }
    return undefined;
  }
}

/** What {@link SqlPools} takes. */
export interface SqlPoolOptions {
  /** Which servers may be reached. */
  egress: SqlEgress;
  /** Most sessions for one connection (server, user and database). */
  sessionsMax: number;
  /** A session unused for so many milliseconds is closed. */
  idleMs: number;
  /** Longest wait for the server to accept a session, in milliseconds. */
  connectTimeoutMs: number;
}

/** The sessions of one connection. */
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
