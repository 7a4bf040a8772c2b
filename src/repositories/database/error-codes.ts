import postgres from "postgres";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { NOT_SECURED } from "./dial.ts";
import { AWAY } from "./reach.ts";

/** Codes of the driver and of the network: no statement reached the server, or its answer did not reach us. */
const CONNECTION_CODES: ReadonlySet<string> = new Set([
  "CONNECT_TIMEOUT",
  "CONNECTION_CLOSED",
  "CONNECTION_DESTROYED",
  "CONNECTION_ENDED",
  "SASL_SIGNATURE_MISMATCH",
  AWAY,
  NOT_SECURED,
  "EADDRNOTAVAIL",
  "ECONNABORTED",
  "ECONNREFUSED",
  "ECONNRESET",
  "EHOSTDOWN",
  "EHOSTUNREACH",
  "EMFILE",
  "ENETDOWN",
  "ENETRESET",
  "ENETUNREACH",
  "ENFILE",
  "ENOBUFS",
  "ENOENT",
  "ENOTCONN",
  "ENOTFOUND",
  "EPIPE",
  "EPROTO",
  "ETIMEDOUT",
  "ERR_SOCKET_CLOSED",
  "ERR_SOCKET_CLOSED_BEFORE_CONNECTION",
  "ERR_STREAM_DESTROYED",
  "ERR_STREAM_WRITE_AFTER_END",
]);
/** The same of looking up a name, and of OpenSSL, which have many codes each. */
const CONNECTION_PREFIXES = /^(EAI|ERR_SSL|ERR_TLS)_/;

/**
 * SQLSTATE: 08 connection exceptions, 57P01–57P05 the server stops, crashed or starts, the database is dropped, the
 * session was idle for too long, 53300 it has no connection left,
 * 28 authentication, 3D000 there is no such database, 55000 the database takes no connections now (`allow_connections`).
 */
const CONNECTION_STATES = /^(08...|57P0[1-5]|53300|28...|3D000|55000)$/;

/**
 * SQLSTATE: 57014 a statement took longer than it may (they are not cancelled otherwise), 55P03 a lock was not to be had in
 * time, 25P03 and 25P04 a transaction did not, 40P01 deadlock, 40001 serialization, 53... memory, disk or another limit is used up,
 * 58030 the disk does not answer.
 */
const OVERLOAD_STATES = /^(57014|55P03|25P0[34]|40P01|40001|53[0124]00|58030)$/;

/**
 * `FlowError` UNAVAILABLE for an error that means "no database now" or "too busy now" (trying again later may help), else
 * undefined. Its message names no server: it may reach a caller. The cause has the rest.
 */
export function unavailable(error: unknown): FlowError | undefined {
  const cause = rootOf(error);
  const busy = cause instanceof postgres.PostgresError && OVERLOAD_STATES.test(cause.code);
  if (!busy) return unreachable(cause);
  return new FlowError("UNAVAILABLE", "The database did not answer in time. Try again in a few seconds", { cause });
}

/** The same for an error that means "no database now" alone: a statement that took too long is the statement's matter. */
export function unreachable(error: unknown): FlowError | undefined {
  const cause = rootOf(error);
  const code = codeOf(cause);
  if (code === undefined) return undefined;
  const isConnection =
    cause instanceof postgres.PostgresError
      ? CONNECTION_STATES.test(code)
      : CONNECTION_CODES.has(code) || CONNECTION_PREFIXES.test(code);
  if (!isConnection) return undefined;
  const message = "The database cannot be reached at the moment. Try again in a few seconds";
  return new FlowError("UNAVAILABLE", message, { cause });
}

/**
 * True for a database that answers and will never admit this program: SQLSTATE 28 (authentication), 3D000
 * (there is no such database), a connection that is not secured as one of the two wants.
 */
export function isRefused(error: unknown): boolean {
  const code = codeOf(rootOf(error)) ?? "";
  return code === NOT_SECURED || /^(28...|3D000)$/.test(code);
}

/**
 * True for an error after which the same transaction may simply be run again at once: the database rolled it back because of a
 * conflict with another one (40P01 deadlock, 40001 serialization).
 */
export function isRetryable(error: unknown): boolean {
  const code = codeOf(rootOf(error));
  return code === "40P01" || code === "40001";
}

/** Name of the constraint that a row violated, such as a key that was used already (SQLSTATE 23...); else undefined. */
export function violatedConstraint(error: unknown): string | undefined {
  const cause = rootOf(error);
  if (!(cause instanceof postgres.PostgresError) || !cause.code.startsWith("23")) return undefined;
  return cause.constraint_name;
}

/** Why a statement failed, in the database's or the network's words. For operators: it may name servers and tables. */
export function databaseMessage(error: unknown): string {
  const cause = rootOf(error);
  const code = codeOf(cause);
  const message = messageOf(cause);
  return code === undefined || message.includes(code) ? message : `${message} (${code})`;
}

/** Libraries wrap what the driver throws; Node wraps the attempts at each address. */
function rootOf(error: unknown): unknown {
  if (error instanceof AggregateError && error.errors.length > 0) return rootOf(error.errors[0]);
  return error instanceof Error && error.cause instanceof Error ? rootOf(error.cause) : error;
}

function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : undefined;
}
