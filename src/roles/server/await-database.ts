import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "../../platform/telemetry/logger.ts";
import { databaseMessage, isRefused, unavailable } from "../../repositories/database/error-codes.ts";
import { FlowError } from "../../schema/words/errors.ts";

/** What {@link awaitDatabase} needs. */
export interface AwaitDatabaseDeps {
  /** `host:port/database`, for people. */
  place: string;
  logger: Logger;
  /** Aborted when the process is to stop. */
  signal: AbortSignal;
}

const AGAIN_MS = 500;
/** A line each 10 s says what is waited for. */
const LOG_MS = 10_000;

/**
 * Does a part of a server's start that needs the database, again and again while that is away, starts up, recovers or is too busy, with
 * a line each 10 s. `part` must bear being done twice.
 *
 * Throws `FlowError` UNAVAILABLE where waiting does not help (password, name of the database, certificate), CANCELLED when the
 * process is to stop, and what else the part throws.
 */
export async function awaitDatabase<T>(
  part: () => Promise<T>,
  { place, logger, signal }: AwaitDatabaseDeps,
): Promise<T> {
  const began = Date.now();
  let loggedAt = 0;
  for (;;) {
    try {
      const done = await part();
      if (loggedAt > 0) logger.info({ waited_ms: Date.now() - began }, `the database at ${place} answers`);
      return done;
    } catch (error) {
      const away = unavailable(error);
      // A part's own error message, such as that of a failed migration, stays as it is.
      if (away === undefined || (error instanceof FlowError && error.code !== "UNAVAILABLE")) throw error;
      if (isRefused(error)) throw refused(place, error);
      if (Date.now() - loggedAt >= LOG_MS) {
        loggedAt = Date.now();
        const reason = databaseMessage(error);
        logger.warn({ reason, waited_ms: loggedAt - began }, `waiting for the database at ${place}: ${reason}`);
      }
    }
    await sleep(AGAIN_MS, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) throw new FlowError("CANCELLED", `Stopped while waiting for the database at ${place}`);
  }
}

function refused(place: string, error: unknown): FlowError {
  const reason = databaseMessage(error);
  const hint = /no encryption|SSL off/.test(reason)
    ? "It asks for encryption: add sslmode=require, or verify-full, to FLOW_DATABASE_URL"
    : "Compare FLOW_DATABASE_URL with what the database expects";
  return new FlowError("UNAVAILABLE", `The database at ${place} cannot be used: ${reason}. ${hint}`, { cause: error });
}
