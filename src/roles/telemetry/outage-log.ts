import type { LogFields, Logger } from "../../platform/telemetry/logger.ts";
import { databaseMessage, unreachable } from "../../repositories/database/error-codes.ts";

/** Time between two lines about the same kind of work. */
const AGAIN_MS = 60_000;

/**
 * The same log, in which one line a minute speaks of each kind of work that fails because the database is away: the reason without a
 * stack, and how often it has failed since the line before. Everything waits for one and the same thing then, and a server does a
 * dozen kinds of work a second.
 */
export function outageLog(logger: Logger, now: () => number): Logger {
  const kinds = new Map<string, { loggedAt: number; suppressed: number }>();
  const quiet = (level: "warn" | "error") => (fields: LogFields, message: string) => {
    const { err, ...others } = fields;
    if (err === undefined || unreachable(err) === undefined) {
      logger[level](fields, message);
      return;
    }
    const kind = [message, others["work"], others["store"], others["code"]].join("\n");
    const known = kinds.get(kind);
    if (known !== undefined && now() - known.loggedAt < AGAIN_MS) {
      known.suppressed += 1;
      return;
    }
    const again = known === undefined || known.suppressed === 0 ? {} : { suppressed: known.suppressed };
    kinds.set(kind, { loggedAt: now(), suppressed: 0 });
    logger.warn({ ...others, ...again, reason: databaseMessage(err) }, `${message}: the database cannot be reached`);
  };
  return {
    debug: logger.debug.bind(logger),
    info: logger.info.bind(logger),
    warn: quiet("warn"),
    error: quiet("error"),
  };
}
