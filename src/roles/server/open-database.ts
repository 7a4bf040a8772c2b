import { join, resolve } from "node:path";
import type { Config } from "../../platform/config/config.ts";
import { withAuthorities } from "../../platform/config/database.ts";
import { describeAddress, parseDatabaseUrl } from "../../platform/config/database-address.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../platform/postgres/embedded.ts";
import type { Lifecycle } from "../../platform/system/lifecycle.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";
import { type Database, type DatabaseOptions, openDatabase } from "../../repositories/database/database.ts";
import { type DatabaseWay, findWay } from "../../repositories/database/pooler.ts";
import { awaitDatabase } from "./await-database.ts";

/** What {@link findDatabase} needs. */
export interface FindDatabaseDeps {
  config: Config;
  /** Folder against which a relative `FLOW_HOME` is meant. */
  folder: string;
  logger: Logger;
  lifecycle: Lifecycle;
  /** Aborted when the process is to stop. */
  signal: AbortSignal;
}

/** The database of a server, and how it is reached. */
export interface FoundDatabase {
  url: string;
  /** Past a pooler: for work that needs a session. Undefined: there is no such way. */
  sessionUrl: string | undefined;
  /** Of pools on `url`. */
  options: Pick<DatabaseOptions, "pooled" | "prepare">;
  authAccount: EmbeddedPostgres["authAccount"];
  /** Where the data is, for people. */
  data: string;
  /** The same, short. */
  place: string;
}

/** Starts the embedded PostgreSQL, or waits for the configured one, and finds out how it is reached. */
export async function findDatabase(deps: FindDatabaseDeps): Promise<FoundDatabase> {
  const { config, logger } = deps;
  const { databaseUrl, databaseDirectUrl } = config;
  if (databaseUrl === undefined) return await startOwn(deps);
  const url = withAuthorities(databaseUrl, config.databaseCa);
  const place = describeAddress(parseDatabaseUrl(url));
  const way = await awaitDatabase(() => findWay(url), { ...deps, place });
  const sessionUrl = await sessionUrlOf(deps, url, way);
  const prepare = config.databasePrepare === "auto" ? !way.pooled : config.databasePrepare === "on";
  logger.info(
    { version: way.version, pooled: way.pooled, prepare, direct: databaseDirectUrl !== undefined },
    wayText(way),
  );
  if (sessionUrl === undefined) {
    const what = "notices of changed sessions do not pass a pooler: gateways ask for each session";
    logger.info({}, `${what}. FLOW_DATABASE_DIRECT_URL names the way past it`);
  }
  const options = { pooled: way.pooled, prepare };
  return { url, sessionUrl, options, authAccount: undefined, data: `PostgreSQL at ${place}`, place };
}

/** Runs a piece of work as the account that owns the tables: what changes the schema, migrations and partitions. */
export type AsOwner = <T>(work: (database: Database) => Promise<T>) => Promise<T>;

/**
 * Over `FLOW_DATABASE_DIRECT_URL`, which may have another account than the servers, for as long as the work takes; without it over
 * `database`.
 */
export function asOwner(database: Database, { url, sessionUrl }: FoundDatabase): AsOwner {
  return async (work) => {
    if (sessionUrl === undefined || sessionUrl === url) return await work(database);
    const direct = openDatabase(sessionUrl, { connectionsMax: 1 });
    try {
      return await work(direct);
    } finally {
      await direct.close();
    }
  };
}

function wayText({ pooled, version }: DatabaseWay): string {
  if (!pooled) return `PostgreSQL ${version} is reached directly`;
  const how = "nothing of a session is relied on, and statements that take too long are cancelled from here";
  return `PostgreSQL ${version} is reached through a pooler: ${how}`;
}

async function sessionUrlOf(deps: FindDatabaseDeps, url: string, way: DatabaseWay): Promise<string | undefined> {
  const { databaseDirectUrl, databaseCa } = deps.config;
  if (databaseDirectUrl === undefined) return way.pooled ? undefined : url;
  const direct = withAuthorities(databaseDirectUrl, databaseCa);
  const place = describeAddress(parseDatabaseUrl(direct));
  const { pooled } = await awaitDatabase(() => findWay(direct), { ...deps, place });
  if (!pooled) return direct;
  deps.logger.warn({}, `FLOW_DATABASE_DIRECT_URL leads to a pooler too (${place}): it is not used`);
  return undefined;
}

async function startOwn({ config, folder, logger, lifecycle }: FindDatabaseDeps): Promise<FoundDatabase> {
  const place = join(resolve(folder, config.home), "postgres");
  const postgres = await startEmbeddedPostgres({
    folder: place,
    log: (line) => logger.info({}, line),
    keepRunning: true,
  });
  lifecycle.add("the embedded PostgreSQL", () => postgres.stop());
  const { socketUrl: url, authAccount } = postgres;
  const data = `embedded PostgreSQL in ${place}`;
  return { url, sessionUrl: url, options: {}, authAccount, data, place: `127.0.0.1:${postgres.port}` };
}
