import type { Duplex } from "node:stream";
import postgres from "postgres";
import type { DatabaseAddress } from "../../platform/config/database-address.ts";
import { APPLICATION_NAME } from "../../platform/postgres/application-name.ts";
import { defined } from "../../schema/words/defined.ts";
import { type Wire, watchWire } from "./connection-watch.ts";
import { type Dialler, failedSocket } from "./dial.ts";
import type { Looked } from "./reach.ts";

/** Options of the driver for an address, over connections that are made here. */
export function driverOptions(address: DatabaseAddress, socket: () => Promise<Duplex>) {
  const [place] = address.places;
  const given = { user: address.user, password: address.password, database: address.database };
  const options = {
    // One name, for messages: with several the driver takes a failed connection for the first of many attempts.
    ...(place !== undefined && "host" in place ? place : { host: "localhost" }),
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
    ...defined({ target_session_attrs: address.targetSession }),
    ssl: false,
    onnotice: () => undefined,
    // Otherwise the driver asks on each new connection, by a query whose failure is unhandled: a session that is terminated at that
    // moment would end this process. The types are given instead. (Without it `reserve` waits for ever on a pool that has not connected.)
    fetch_types: false,
    // Known to the driver, and not to its types.
    socket,
  };
  return options as typeof options & { target_session_attrs?: "read-write" };
}

/** Connections of a dialler for the driver. `made` is called with each. */
export function socketOf(dialler: Dialler, made?: (wire: Wire) => void): () => Promise<Duplex> {
  return async () => {
    try {
      const socket = await dialler.dial();
      const wire = watchWire(socket, () => performance.now(), {
        requestSent: () => undefined,
        answered: () => undefined,
      });
      made?.(wire);
      return socket;
    } catch (error) {
      return failedSocket(error instanceof Error ? error : new Error(String(error)));
    }
  };
}

/** Dependencies of {@link lookAt}. */
export interface LookDeps {
  dialler: Dialler;
  pids: readonly number[];
  limitMs: number;
  /** The ids are a pooler's: the database knows none of them. */
  pooled: boolean;
}

/**
 * Which of these sessions the server is working for, asked on a separate connection. Throws the network's error, or
 * `CONNECT_TIMEOUT` if no answer comes in time.
 */
export async function lookAt(address: DatabaseAddress, { dialler, pids, limitMs, pooled }: LookDeps): Promise<Looked> {
  let wire: Wire | undefined;
  const sql = postgres({
    ...driverOptions(
      address,
      socketOf(dialler, (made) => (wire = made)),
    ),
    max: 1,
    connect_timeout: limitMs / 1_000,
    connection: { application_name: `${APPLICATION_NAME} look` },
  });
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const message = `The database does not answer: nothing was heard for ${limitMs / 1_000} s`;
    timer = setTimeout(() => reject(Object.assign(new Error(message), { code: "CONNECT_TIMEOUT" })), limitMs);
  });
  try {
    const rows = await Promise.race([sql.unsafe<{ pid: number }[]>(pooled ? "select 1" : workingOf(pids)), late]);
    return pooled ? "unknown" : new Set(rows.map(({ pid }) => pid));
  } catch (error) {
    // It starts or stops.
    if (error instanceof postgres.PostgresError) {
      if (error.code.startsWith("57P")) throw error;
      return "full";
    }
    // A pooler lets in and queues what follows.
    if (pooled && wire?.isReady() === true) return "unknown";
    throw error;
  } finally {
    clearTimeout(timer);
    void sql.end({ timeout: 0 }).catch(() => undefined);
    setImmediate(() => wire?.destroy(new Error("The look is over")));
  }
}

/**
 * A session that waits for its client while it owes an answer has lost the client, in one direction or the other. A state that
 * PostgreSQL does not report counts as work.
 */
function workingOf(pids: readonly number[]): string {
  return `select pid from pg_stat_activity where pid = any('{${pids.join(",")}}')
    and (state is null or state = 'disabled' or (state = 'active' and wait_event_type is distinct from 'Client')
      or state = 'fastpath function call')`;
}
