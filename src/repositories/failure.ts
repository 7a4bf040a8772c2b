import postgres from "postgres";
import { FlowError, messageOf } from "../schema/errors.ts";

/** Codes of the driver and of the network: no statement reached the server, or its answer did not reach us. */
const CONNECTION_CODES: ReadonlySet<string> = new Set([
  "CONNECT_TIMEOUT",
  "CONNECTION_CLOSED",
  "CONNECTION_DESTROYED",
  "CONNECTION_ENDED",
  "ECONNREFUSED",
  "ECONNRESET",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOENT",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EPIPE",
  "ETIMEDOUT",
]);

/**
 * SQLSTATE: 08 connection exceptions, 57P01–57P03 the server stops, crashed or starts, 53300 it has no connection left,
 * 28 authentication, 3D000 there is no such database.
 */
const CONNECTION_STATES = /^(08...|57P0[123]|53300|28...|3D000)$/;

/**
 * `FlowError` UNAVAILABLE for an error that means "no database now" (trying again later may help), else undefined.
 * Its message names no server: it may reach a caller. The cause has the rest.
 */
export function unavailable(error: unknown): FlowError | undefined {
  const cause = rootOf(error);
  const code = codeOf(cause);
  if (code === undefined) return undefined;
  const isConnection =
    cause instanceof postgres.PostgresError ? CONNECTION_STATES.test(code) : CONNECTION_CODES.has(code);
  if (!isConnection) return undefined;
  const message = "The database cannot be reached at the moment. Try again in a few seconds";
  return new FlowError("UNAVAILABLE", message, { cause });
}

/** Why a statement failed, in the database's or the network's words. For operators: it may name servers and tables. */
export function databaseMessage(error: unknown): string {
  const cause = rootOf(error);
  const code = codeOf(cause);
  const message = messageOf(cause);
  return code === undefined || message.includes(code) ? message : `${message} (${code})`;
}

/** Drizzle wraps what the driver throws, with the statement and its parameters in the message; Node wraps attempts per address. */
function rootOf(error: unknown): unknown {
  if (error instanceof AggregateError && error.errors.length > 0) return rootOf(error.errors[0]);
  return error instanceof Error && error.cause instanceof Error ? rootOf(error.cause) : error;
}

function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : undefined;
}
