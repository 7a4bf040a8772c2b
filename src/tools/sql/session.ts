import type { Socket } from "node:net";
import postgres from "postgres";
import { parseArray, writeArray } from "../../platform/postgres/sql-array.ts";
import type { Json } from "../../schema/words/json.ts";
import type { SqlConnection } from "./connection.ts";
import { openSocket, type SqlEgress } from "./socket.ts";
import { SQL_TYPES } from "./types.ts";

/** One connection to a server, lent to one task at a time. */
export interface SqlSession {
  sql: postgres.Sql;
  /** The server's process, which a cancellation names. */
  pid: number;
  /**
   * The connection was lost since it was made. The driver would silently make another one, for which neither `pid` nor an open
   * transaction holds any more.
   */
  lost(): boolean;
  /** Receives the server's notices (`raise notice`) while the task runs. */
  onNotice: (line: string) => void;
  /** Stops the statement that runs now, on the server. Never throws: a server that is gone has stopped it already. */
  cancel(): Promise<void>;
  /**
   * Brings the session back to its first state (`discard all`), so that no setting, lock, role or temporary
   * table of one task reaches the next. False when that failed and the session must be dropped.
   */
  reset(): Promise<boolean>;
  /** Closes the connection at once, whatever it does. */
  drop(): Promise<void>;
}

/**
 * Opens a session: a driver client with a single connection, because a task may write `begin … commit` and temporary tables
 * over several statements, and because a connection that does not answer can then be dropped alone. Throws the driver's error
 * if the server cannot be reached within `connectTimeoutMs`.
 */
export async function openSession(
  connection: SqlConnection,
  egress: SqlEgress,
  connectTimeoutMs: number,
): Promise<SqlSession> {
  let losses = 0;
  const sql: postgres.Sql = postgres({
    ...clientOptions(connection, egress, connectTimeoutMs),
    onclose: () => {
      losses += 1;
    },
    onnotice: (notice) => session.onNotice(`${notice["severity"]}: ${notice["message"]}`),
  });
  const session: SqlSession = {
    sql,
    pid: 0,
    lost: () => losses > 0,
    onNotice: () => {},
    cancel: () => cancelBackend(connection, egress, session.pid, connectTimeoutMs),
    async reset() {
      session.onNotice = () => {};
      if (losses > 0) return false;
      return (await discardState(sql)) && losses === 0;
    },
    drop: () => sql.end({ timeout: 0 }),
  };
  try {
    session.pid = await greet(sql, connectTimeoutMs);
    return session;
  } catch (error) {
    void session.drop();
    throw error;
  }
}

interface ArrayType {
  pid: number;
  /** Of the elements. */
  oid: number;
  /** Of the array. */
  typarray: number;
  typdelim: string;
}

/** Teaches this client to read and write arrays of a type, by their elements. */
function useArrayType(sql: postgres.Sql, { oid, typarray, typdelim }: ArrayType): void {
  const { parsers, serializers } = sql.options;
  const parse = (parsers[oid] ?? String) as (text: string) => Json;
  const serialize = (serializers[oid] ?? String) as (value: unknown) => string;
  parsers[typarray] = (text: string) => parseArray(text, parse, typdelim);
  serializers[typarray] = (value: unknown) =>
    Array.isArray(value) ? writeArray(value, serialize, typdelim) : String(value);
}

/**
 * The first round trip: reads the server's process id and the array types. The driver retries for ever when a server accepts
 * the connection and hangs up silently, as one of another protocol does; hence our own deadline.
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

function clientOptions(connection: SqlConnection, egress: SqlEgress, connectTimeoutMs: number): ClientOptions {
  const isSocket = connection.host.startsWith("/");
  return {
    // For the driver's messages. Lists, because it splits text at ":" and would cut an IPv6 address.
    host: [connection.host] as unknown as string,
    port: [connection.port] as unknown as number,
    socket: () => openSocket(connection, egress, connectTimeoutMs),
    user: connection.user,
    // A function, because an empty text would fall back to PGPASSWORD of this process.
    password: () => connection.password,
    database: connection.database,
    ssl: isSocket ? false : sslOption(connection.sslMode),
    max: 1,
    prepare: false,
    connect_timeout: Math.ceil(connectTimeoutMs / 1000),
    max_lifetime: null,
    connection: { application_name: "flow", DateStyle: "ISO" },
    fetch_types: false,
    types: SQL_TYPES,
  };
}

/**
 * `discard all` is refused inside a transaction, which is then ended first. An idle `rollback` would warn in the server's
 * log.
 */
async function discardState(sql: postgres.Sql): Promise<boolean> {
  try {
    await sql.unsafe("discard all");
    return true;
  } catch (error) {
    if (!(error instanceof postgres.PostgresError) || !IN_TRANSACTION.has(error.code)) return false;
  }
  try {
    await sql.unsafe("rollback");
    await sql.unsafe("discard all");
    return true;
  } catch {
    return false;
  }
}

/** 25001: a transaction is open; 25P02: it has failed and waits for its rollback. */
const IN_TRANSACTION = new Set(["25001", "25P02"]);

type ClientOptions = postgres.Options<Record<string, postgres.PostgresType>> & {
  /** Makes each connection; the driver's types leave it out. */
  socket(): Promise<Socket>;
};

function sslOption(mode: SqlConnection["sslMode"]): boolean | object | "prefer" | "require" | "verify-full" {
  if (mode === "disable" || mode === "allow") return false;
  if (mode === "verify-ca") return { rejectUnauthorized: true, checkServerIdentity: () => undefined };
  return mode;
}

/**
 * On a separate connection, by the server's function. The driver's `cancel()` drops its promise, so that an unavailable server
 * would end this process with an unhandled rejection.
 */
async function cancelBackend(
  connection: SqlConnection,
  egress: SqlEgress,
  pid: number,
  timeoutMs: number,
): Promise<void> {
  const sql = postgres({ ...clientOptions(connection, egress, timeoutMs), onnotice: () => {} });
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
