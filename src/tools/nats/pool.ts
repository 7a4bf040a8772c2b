import { ErrorCode, type NatsConnection, NatsError } from "nats";
import type { EgressGuard } from "../../platform/http/egress.ts";
import { connectNats } from "./connect.ts";
import { type NatsTarget, targetKey } from "./target.ts";

/** What {@link createNatsPool} takes. */
export interface NatsPoolOptions {
  egress: EgressGuard;
  /** A connection that no task uses for so many milliseconds is closed. */
  idleMs: number;
  /** Longest wait for a server to accept a connection, in milliseconds. */
  connectTimeoutMs: number;
  /** Most connections of this process, over all credentials. A task beyond them fails: nothing says which one to close. */
  connectionsMax: number;
}

/** Connections by credential: one for each, which carries any number of requests at a time. */
export interface NatsPool {
  /** Runs the work on the target's connection. Rejects with what the server was refused with, or with the work's error. */
  use<T>(target: NatsTarget, work: (connection: NatsConnection) => Promise<T>): Promise<T>;
  /** Connections that are open or being opened. */
  size(): number;
  close(): Promise<void>;
}

interface Entry {
  connection: Promise<NatsConnection>;
  users: number;
  idle: NodeJS.Timeout | undefined;
}

/** Makes a pool. A connection that was lost, or could not be made, is forgotten: the next task dials anew. */
export function createNatsPool(options: NatsPoolOptions): NatsPool {
  const entries = new Map<string, Entry>();
  let closed = false;

  const forget = (key: string, entry: Entry) => {
    clearTimeout(entry.idle);
    if (entries.get(key) === entry) entries.delete(key);
  };
  const closeIdle = (key: string, entry: Entry) => {
    forget(key, entry);
    entry.connection.then((connection) => connection.close()).catch(() => undefined);
  };
  const open = (key: string, target: NatsTarget): Entry => {
    if (!closed && entries.size >= options.connectionsMax) dropOneIdle();
    if (closed) throw refusal("CONNECTION_CLOSED", "this program is shutting down");
    if (entries.size >= options.connectionsMax) {
      throw refusal("TOO_MANY_CONNECTIONS", `${options.connectionsMax} credentials are in use at this moment`);
    }
    const connection = connectNats(target, options.egress, options.connectTimeoutMs);
    const entry: Entry = { connection, users: 0, idle: undefined };
    entries.set(key, entry);
    const gone = () => forget(key, entry);
    connection.then((made) => made.closed().then(gone, gone), gone);
    return entry;
  };
  const dropOneIdle = () => {
    const found = [...entries].find(([, { users }]) => users === 0);
    if (found !== undefined) closeIdle(...found);
  };

  return {
    async use(target, work) {
      const key = targetKey(target);
      const entry = entries.get(key) ?? open(key, target);
      clearTimeout(entry.idle);
      entry.users += 1;
      try {
        return await onOpen(await entry.connection, work);
      } finally {
        entry.users -= 1;
        if (entry.users === 0 && entries.get(key) === entry) {
          entry.idle = setTimeout(() => closeIdle(key, entry), options.idleMs);
          entry.idle.unref();
        }
      }
    },
    size: () => entries.size,
    async close() {
      closed = true;
      const open = [...entries.values()];
      entries.clear();
      for (const { idle } of open) clearTimeout(idle);
      await Promise.allSettled(open.map(async ({ connection }) => (await connection).close()));
    },
  };
}

/** When the driver loses the connection, it reports time-outs to its callers: the lost connection is the better message. */
async function onOpen<T>(connection: NatsConnection, work: (connection: NatsConnection) => Promise<T>): Promise<T> {
  try {
    return await work(connection);
  } catch (error) {
    const isCut = error instanceof NatsError && error.code === ErrorCode.Timeout && connection.isClosed();
    throw isCut ? refusal(ErrorCode.ConnectionClosed, "the connection was lost before the server had answered") : error;
  }
}

function refusal(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}
