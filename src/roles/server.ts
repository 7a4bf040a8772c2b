import { setMaxListeners } from "node:events";
import { join, resolve } from "node:path";
import type { Config } from "../platform/config.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../platform/embedded-postgres.ts";
import { readGuiFiles } from "../platform/gui-files.ts";
import { createIds } from "../platform/ids.ts";
import type { KeyRing } from "../platform/key-ring.ts";
import { openKeyRing } from "../platform/key-ring-source.ts";
import type { Lifecycle } from "../platform/lifecycle.ts";
import type { Logger } from "../platform/logger.ts";
import { isLoopback } from "../platform/loopback.ts";
import { packagePath } from "../platform/package-file.ts";
import { publicAddress, publicPathOf } from "../platform/public-address.ts";
import { type Database, openDatabase } from "../repositories/database.ts";
import { ensureEventPartitions } from "../repositories/event-partitions.ts";
import { unavailable } from "../repositories/failure.ts";
import { migrate } from "../repositories/migrate.ts";
import { countUnknownKeys } from "../repositories/rotation.ts";
import { createApp } from "../routes/app.ts";
import { FlowError } from "../schema/errors.ts";
import { createCatalog } from "../services/catalog.ts";
import { registerGivenCredentials } from "./given-credentials.ts";
import { listen } from "./listen.ts";
import { malformed } from "./malformed.ts";
import { prepareLogins } from "./prepare-logins.ts";
import { startService } from "./start-service.ts";

/** What a server needs to begin. */
export interface ServerDeps {
  config: Config;
  host: string;
  port: number;
  /** Folder against which a relative `FLOW_HOME` is meant. */
  folder: string;
  /** Version of the program. */
  version: string;
  logger: Logger;
  /** Every part that was started is added to it; whoever made it stops it, also when this throws. */
  lifecycle: Lifecycle;
}

/** A server that answers. */
export interface RunningServer {
  url: string;
  /** Where its data is, for people. */
  data: string;
  /** It serves the browser's page; an installation may have been built without. */
  hasPage: boolean;
  /** `FLOW_PUBLIC_URL`. */
  publicUrl: string | undefined;
}

/**
 * The role `server`: database, schema, API, in this order. Throws `FlowError` INVALID_SETTING for settings that do not go
 * together or an address that cannot be had, UNAVAILABLE, and SCHEMA_MISMATCH.
 */
export async function startServer(deps: ServerDeps): Promise<RunningServer> {
  const { config, host, port, logger, lifecycle } = deps;
  const tokens = { server: config.serverToken, worker: config.workerToken };
  checkAccess(config, host);
  if (config.authDisabled) logger.warn({}, `FLOW_AUTH_DISABLED=true: whoever reaches ${host} may do anything`);
  // Before anything is touched: whoever has no key for a database of their own is told so at once.
  const keyFolder = config.databaseUrl === undefined ? resolve(deps.folder, config.home) : undefined;
  const keys = await openKeyRing({ ...config, keyFolder, log: (line) => logger.info({}, line) });
  const { url: databaseUrl, authAccount, data } = await findDatabase(deps);
  const database = openDatabase(databaseUrl);
  lifecycle.add("the connections to the database", () => database.close());
  const { applied, late, version } = await migrate(database);
  if (applied.length > 0) logger.info({ applied, version }, "the database's schema was brought up to date");
  if (late.length > 0) logger.warn({ late }, "migrations were applied after newer ones");
  await ensureEventPartitions(database);
  const { service, metrics, reaper, diagnose, overview } = await startService(deps, {
    database,
    url: databaseUrl,
    keys,
  });
  await registerGivenCredentials(config, service.credentials, logger);
  await warnOfUnknownKeys(database, keys, logger);
  // What the server registers by itself, before it listens, is nobody's news.
  let level: "debug" | "info" = "debug";
  const catalog = createCatalog({
    database,
    onRegistered: ({ catalogId, path, kind, version, unchanged }) => {
      metrics.catalogRegistered(kind, unchanged ? "unchanged" : "created");
      if (!unchanged) logger[level]({ catalog_id: catalogId, path, kind, version }, "a document was registered");
    },
  });
  await prepareLogins({ ...deps, database, databaseUrl, authAccount, catalog, credentials: service.credentials });
  level = "info";
  const stopping = new AbortController();
  // Every long poll listens to it. Node takes eleven for a leak.
  setMaxListeners(0, stopping.signal);
  const loopback = isLoopback(host);
  const newRequestId = createIds(Date.now);
  const own = publicAddress(config.publicUrl);
  const gui = readGuiFiles(packagePath("dist/page"), "/api", own?.path);
  if (gui === undefined) logger.warn({}, "this installation has no page for browsers: it was built without");
  const app = createApp({
    ...service,
    reaper,
    diagnose,
    overview,
    catalog,
    limits: config,
    stopping: stopping.signal,
    logger,
    metrics,
    tokens,
    loopback,
    // Without tokens everybody whom the proxy lets through could do anything.
    publicAddress: config.serverToken === undefined && !config.authDisabled ? undefined : own,
    gui,
    version: deps.version,
    newRequestId,
    unavailable,
  });
  const listener = await listen(
    { fetch: (request, { incoming }) => app.fetch(request, { incoming }), malformed: () => malformed(newRequestId()) },
    { host, port, ...publicPathOf(config, own) },
  );
  lifecycle.add("the HTTP server", () => listener.close());
  // First of all: who waits for something is answered, so that the HTTP server can end.
  lifecycle.add("whoever waits", () => stopping.abort());
  return { url: listener.url, publicUrl: own?.url, data, hasPage: gui !== undefined };
}

/**
 * Whoever can reach the port can run anything that playbooks can. So an open server stays on this machine. Throws `FlowError`
 * INVALID_SETTING.
 */
export function checkAccess(config: Config, host: string): void {
  const refuse = (why: string) => {
    throw new FlowError("INVALID_SETTING", why);
  };
  const { serverToken, workerToken, authDisabled } = config;
  if (serverToken === undefined && workerToken !== undefined)
    refuse("FLOW_WORKER_TOKEN is set without FLOW_SERVER_TOKEN: nobody could operate the server. Set both");
  if (serverToken !== undefined && serverToken.reveal() === workerToken?.reveal())
    refuse("FLOW_SERVER_TOKEN and FLOW_WORKER_TOKEN are the same: workers would be operators. Choose two");
  if (serverToken !== undefined && authDisabled)
    refuse("FLOW_AUTH_DISABLED=true and FLOW_SERVER_TOKEN contradict each other. Take one of them away");
  if (serverToken === undefined && !authDisabled && !isLoopback(host)) {
    const why = `Refused to listen on ${host} without tokens: whoever reaches it could run anything`;
    refuse(`${why}. Set FLOW_SERVER_TOKEN, or FLOW_AUTH_DISABLED=true where nobody else can reach it`);
  }
}

/** A key that was taken away too soon is missed now, not when a playbook needs the secret. */
async function warnOfUnknownKeys(database: Database, keys: KeyRing, logger: Logger): Promise<void> {
  for (const { keyId, count } of await countUnknownKeys(database, keys.ids)) {
    const what = `${count} secrets in the database are encrypted with the key '${keyId}', which this server does not have`;
    logger.error({ key_id: keyId, count }, `${what}: add it to FLOW_ENCRYPTION_KEYS, or store them again`);
  }
}

async function findDatabase(
  deps: ServerDeps,
): Promise<{ url: string; authAccount?: EmbeddedPostgres["authAccount"]; data: string }> {
  const { config, logger, lifecycle } = deps;
  if (config.databaseUrl !== undefined) {
    const url = config.databaseUrl.reveal();
    const { hostname, port, pathname } = new URL(url);
    return { url, data: `PostgreSQL at ${hostname}${port === "" ? "" : `:${port}`}${pathname}` };
  }
  const folder = join(resolve(deps.folder, config.home), "postgres");
  const postgres = await startEmbeddedPostgres({ folder, log: (line) => logger.info({}, line) });
  lifecycle.add("the embedded PostgreSQL", () => postgres.stop());
  return { url: postgres.url, authAccount: postgres.authAccount, data: `embedded PostgreSQL in ${folder}` };
}
