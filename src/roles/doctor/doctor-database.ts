import { describeAddress, parseDatabaseUrl } from "../../platform/config/database-address.ts";
import { type Database, openDatabase } from "../../repositories/database/database.ts";
import { unreachable } from "../../repositories/database/error-codes.ts";
import { type DatabaseWay, findWay } from "../../repositories/database/pooler.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { createDiagnosis, type DiagnoseDeps } from "../../services/diagnosis/diagnose.ts";
import type { DoctorDatabase } from "../../services/diagnosis/doctor.ts";

/** Seconds to wait for a connection: a doctor that waits says nothing. */
const CONNECT_SECONDS = 5;
/** Longest wait for an answer to a statement that does nothing. */
const PING_MS = 10_000;
/** Longest statement; each check has a shorter limit. */
const STATEMENT_MS = 10_000;

/** The database of this DSN, opened at its first use. Throws `FlowError` INVALID_INPUT for an invalid DSN. */
export function openDoctorDatabase(dsn: string, deps: Omit<DiagnoseDeps, "database">): DoctorDatabase {
  const address = addressOf(dsn);
  const database = openDatabase(dsn, {
    // It must work through a pooler too, and runs rarely.
    pooled: true,
    connectionsMax: 1,
    connectSeconds: CONNECT_SECONDS,
    statementMs: STATEMENT_MS,
    applicationName: "flow-doctor",
  });
  return {
    address,
    ping: () =>
      withAddress(
        address,
        ping(database, address).then(async () => wayText(await findWay(dsn))),
      ),
    diagnose: (limits) =>
      withAddress(
        address,
        ping(database, address).then(() => createDiagnosis({ ...deps, database })(limits)),
      ),
    close: () => database.close(),
  };
}

function wayText({ pooled, version }: DatabaseWay): string {
  return `PostgreSQL ${version}, ${pooled ? "through a pooler" : "directly"}`;
}

/** A pool retries for ever; this check must end. */
async function ping({ sql }: Database, address: string): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const error = new FlowError("UNAVAILABLE", `The database at ${address} did not answer within ${PING_MS / 1_000} s`);
    timer = setTimeout(() => reject(error), PING_MS);
  });
  try {
    await Promise.race([sql`select 1`, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** What went wrong, in words that name the place and never the password. */
async function withAddress<T>(address: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    const away = unreachable(error);
    if (away === undefined) throw error;
    const why = messageOf(away.cause);
    throw new FlowError("UNAVAILABLE", `The database at ${address} cannot be reached: ${why}`, { cause: error });
  }
}

function addressOf(dsn: string): string {
  try {
    return describeAddress(parseDatabaseUrl(dsn, "The DSN"));
  } catch (error) {
    throw new FlowError("INVALID_INPUT", messageOf(error), { cause: error });
  }
}
