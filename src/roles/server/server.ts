import { setMaxListeners } from "node:events";
import { resolve } from "node:path";
import type { Config } from "../../platform/config/config.ts";
import { publicAddress, publicPathOf } from "../../platform/config/public-address.ts";
import type { KeyRing } from "../../platform/crypto/key-ring.ts";
import { openKeyRing } from "../../platform/crypto/key-ring-source.ts";
import { isLoopback } from "../../platform/http/loopback.ts";
import { readGuiFiles } from "../../platform/http/page-files.ts";
import { createIds } from "../../platform/system/ids.ts";
import type { Lifecycle } from "../../platform/system/lifecycle.ts";
import { packagePath } from "../../platform/system/package-file.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";
import type { Metrics } from "../../platform/telemetry/metrics.ts";
import { countUnknownKeys } from "../../repositories/credentials/rotation.ts";
import { type Database, type DatabaseOptions, openDatabase } from "../../repositories/database/database.ts";
import { unavailable } from "../../repositories/database/error-codes.ts";
import { migrate } from "../../repositories/database/migrate.ts";
import { ensureEventPartitions } from "../../repositories/executions/event-partitions.ts";
import { createApp } from "../../routes/app.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { createCatalog } from "../../services/catalog/catalog.ts";
import { createDocuments } from "../../services/catalog/documents.ts";
import type { Upgrades } from "../http/answers.ts";
import { lameDuckMs, openLameDuck } from "../http/lame-duck.ts";
import { type Listener, listen } from "../http/listen.ts";
import { malformed } from "../http/malformed.ts";
import { shortTokens } from "../http/short-tokens.ts";
import { workerUpgrades } from "../http/worker-connections.ts";
import { outageLog } from "../telemetry/outage-log.ts";
import { awaitDatabase } from "./await-database.ts";
import { registerGivenCredentials } from "./given-credentials.ts";
import { asOwner, findDatabase } from "./open-database.ts";
import { prepareLogins } from "./prepare-logins.ts";
import { startServices } from "./start-services.ts";
import { startSystemWorker } from "./system-worker.ts";
import { mcpOf } from "./wire-services.ts";

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
  /** Aborted when the process is to stop. */
  signal: AbortSignal;
  /** Every started part is added to it; its owner stops it, also when this throws. */
  lifecycle: Lifecycle;
  /** A unix socket for workers of this machine where `FLOW_SERVER_SOCKET` names none: its path, by the port. */
  socket?(port: number): string;
}

/** A server that answers. */
export interface RunningServer {
  url: string;
  /** The unix socket that it listens on too. */
  socket: string | undefined;
  /** Where its data is, for people. */
  data: string;
  /** It serves the browser's page; an installation may have been built without. */
  hasPage: boolean;
  /** `FLOW_PUBLIC_URL`. */
  publicUrl: string | undefined;
  /** Signs a worker off whose process is known to be gone. */
  signOffWorker(name: string): Promise<void>;
}

/**
 * The role `server`: database, schema, API, in this order. Throws `FlowError` INVALID_SETTING for settings that do not go
 * together or an address that cannot be had, UNAVAILABLE, SCHEMA_MISMATCH, and CANCELLED when it is stopped while it waits for
 * the database.
 */
export async function startServer(given: ServerDeps): Promise<RunningServer> {
  const deps = { ...given, logger: outageLog(given.logger, Date.now) };
  const { config, host, logger, lifecycle, signal } = deps;
  const tokens = { server: config.serverToken, worker: config.workerToken };
  checkAccess(config, host);
  if (config.authDisabled) logger.warn({}, `FLOW_AUTH_DISABLED=true: everyone who can reach ${host} may do anything`);
  const short = shortTokensOf(config);
  if (short !== undefined) logger.warn({}, `${short}. Beyond this machine it would be refused`);
  // Before anything else: a missing key for an external database is reported at once.
  const keyFolder = config.databaseUrl === undefined ? resolve(deps.folder, config.home) : undefined;
  const keys = await openKeyRing({ ...config, keyFolder, log: (line) => logger.info({}, line) });
  const found = await findDatabase(deps);
  const { url: databaseUrl, authAccount, data } = found;
  const database = openDatabase(databaseUrl, { ...found.options, onReach: logReach(found.place, logger) });
  lifecycle.add("the connections to the database", () => database.close());
  const awaiting = <T>(part: () => Promise<T>) => awaitDatabase(part, { ...deps, place: found.place });
  await awaiting(() => asOwner(database, found)((owner) => prepareSchema(owner, logger)));
  const documents = createDocuments();
  lifecycle.add("the reading of documents", () => documents.close());
  const own = publicAddress(config.publicUrl);
  const loopback = isLoopback(host);
  const { publicUrl, listensAt } = addressForPeople(config.gatewayPublicUrl ?? own?.url, loopback);
  const { service, metrics, reaper, diagnose, overview, processor } = await startServices(
    { ...deps, awaiting, publicUrl },
    { database, found, keys, documents },
  );
  await awaiting(() => registerGivenCredentials(config, service.credentials, logger));
  await awaiting(() => warnOfUnknownKeys(database, keys, logger));
  const { catalog, announce } = openCatalog({ database, documents, metrics, logger });
  const logins = { ...deps, database, databaseUrl, authAccount, catalog, credentials: service.credentials };
  await awaiting(() => prepareLogins(logins));
  announce();
  const stopping = new AbortController();
  // Every long poll listens to it. Node takes eleven for a leak.
  setMaxListeners(0, stopping.signal);
  const newRequestId = createIds(Date.now);
  const gui = readGuiFiles(packagePath("dist/page"), "/api", own?.path);
  if (gui === undefined) logger.warn({}, "this installation has no page for browsers: it was built without");
  const app = createApp({
    ...service,
    ...mcpOf({ catalog, executions: service.executions, drafts: service.drafts }),
    reaper,
    diagnose,
    overview,
    health: () => (signal.aborted ? STOPPING : database.away() === undefined ? { status: "ok" } : DEGRADED),
    catalog,
    limits: config,
    stopping: stopping.signal,
    logger,
    metrics,
    tokens,
    loopback,
    // Without tokens everyone whom the proxy lets through could do anything.
    publicAddress: config.serverToken === undefined && !config.authDisabled ? undefined : own,
    gui,
    version: deps.version,
    newRequestId,
    unavailable,
  });
  const upgrades = workerUpgrades(app, { config, metrics, logger });
  const listener = await listenWith(deps, app, { newRequestId, own, upgrades });
  // Waiting requests are answered, so that the HTTP server can end.
  lifecycle.add("waiting requests", () => stopping.abort());
  startSystemWorker({ ...deps, server: processor, service, documents, app });
  openLameDuck({ signal, lameDuckMs: lameDuckMs(config, host), lifecycle, listeners: [listener] });
  const signOffWorker = (name: string) => service.workers.deregister(name);
  const { url, socket } = listener;
  listensAt(url);
  return { url, socket, publicUrl: own?.url, data, hasPage: gui !== undefined, signOffWorker };
}

/** The address by which people reach this installation. One of this machine is of use on it alone. */
function addressForPeople(set: string | undefined, loopback: boolean) {
  let own: string | undefined;
  return {
    publicUrl: () => set ?? (loopback ? own : undefined),
    listensAt(url: string) {
      own = url;
    },
  };
}

/** The listener of the server, beside which workers of this machine have a socket. */
async function listenWith(
  deps: ServerDeps,
  app: ReturnType<typeof createApp>,
  {
    newRequestId,
    own,
    upgrades,
  }: { newRequestId(): string; own: ReturnType<typeof publicAddress>; upgrades: Upgrades },
): Promise<Listener> {
  const { config, host, port, lifecycle } = deps;
  const answers = { fetch: app.fetch, malformed: () => malformed(newRequestId()), upgrades };
  const listener = await listen(answers, {
    host,
    port,
    ...publicPathOf(config, own),
    ...defined({ socket: socketOf(deps) }),
  });
  lifecycle.add("the HTTP server", () => listener.close());
  reportSocket(deps, listener);
  return listener;
}

function socketOf({ config: { serverSocket }, socket }: ServerDeps): ServerDeps["socket"] {
  return serverSocket === undefined ? socket : () => serverSocket;
}

/** Workers go by TCP then. Throws `FlowError` INVALID_SETTING for a socket that a setting names. */
function reportSocket({ config, logger }: ServerDeps, { socketTrouble }: Listener): void {
  if (socketTrouble === undefined) return;
  if (config.serverSocket === undefined) {
    logger.info({ reason: socketTrouble }, "this server has no unix socket: its worker calls it by TCP");
    return;
  }
  const message = `FLOW_SERVER_SOCKET: cannot listen on ${config.serverSocket}: ${socketTrouble}. Choose another path`;
  throw new FlowError("INVALID_SETTING", message);
}

/**
 * Everyone who can reach the port can run anything that playbooks can. So a server without tokens, or with one that is short, listens
 * on loopback only. Throws `FlowError` INVALID_SETTING.
 */
export function checkAccess(config: Config, host: string): void {
  const refuse = (why: string) => {
    throw new FlowError("INVALID_SETTING", why);
  };
  const { serverToken, workerToken, authDisabled } = config;
  if (serverToken === undefined && workerToken !== undefined)
    refuse("FLOW_WORKER_TOKEN is set without FLOW_SERVER_TOKEN: the server would have no operator. Set both");
  if (serverToken !== undefined && serverToken.reveal() === workerToken?.reveal())
    refuse("FLOW_SERVER_TOKEN and FLOW_WORKER_TOKEN are the same: workers would be operators. Choose two");
  if (serverToken !== undefined && authDisabled)
    refuse("FLOW_AUTH_DISABLED=true and FLOW_SERVER_TOKEN contradict each other. Take one of them away");
  if (serverToken === undefined && !authDisabled && !isLoopback(host)) {
    const why = `Refused to listen on ${host} without tokens: everyone who can reach it could run anything`;
    refuse(`${why}. Set FLOW_SERVER_TOKEN, or FLOW_AUTH_DISABLED=true if no one else can reach it`);
  }
  const short = shortTokensOf(config);
  if (short !== undefined && !isLoopback(host)) refuse(`Refused to listen on ${host}: ${short}`);
}

function shortTokensOf({ serverToken, workerToken }: Config): string | undefined {
  return shortTokens({ FLOW_SERVER_TOKEN: serverToken, FLOW_WORKER_TOKEN: workerToken });
}

/** The catalog. What the server registers itself, before `announce` is called, is only logged for debugging. */
function openCatalog({
  database,
  documents,
  metrics,
  logger,
}: Pick<Parameters<typeof createCatalog>[0], "database" | "documents"> & { metrics: Metrics; logger: Logger }) {
  let level: "debug" | "info" = "debug";
  const catalog = createCatalog({
    database,
    documents,
    onRegistered: ({ catalogId, path, kind, version, unchanged }) => {
      metrics.catalogRegistered(kind, unchanged ? "unchanged" : "created");
      if (!unchanged) logger[level]({ catalog_id: catalogId, path, kind, version }, "a document was registered");
    },
  });
  return {
    catalog,
    announce() {
      level = "info";
    },
  };
}

/** A key that was removed too soon is reported now, not when a playbook needs the secret. */
async function warnOfUnknownKeys(database: Database, keys: KeyRing, logger: Logger): Promise<void> {
  for (const { keyId, count } of await countUnknownKeys(database, keys.ids)) {
    const what = `${count} secrets in the database are encrypted with the key '${keyId}', which this server does not have`;
    logger.error({ key_id: keyId, count }, `${what}: add it to FLOW_ENCRYPTION_KEYS, or store them again`);
  }
}

/** For callers: the database's address is only in the log. */
const DEGRADED = {
  status: "degraded",
  why: "The database cannot be reached; calls are answered 503 until it is back",
} as const;
const STOPPING = { status: "stopping", why: "This server is stopping; call another one" } as const;

/** As the owner, and past a pooler: a migration may take long, and holds a lock. */
async function prepareSchema(owner: Database, logger: Logger): Promise<void> {
  const { applied, late, version } = await migrate(owner);
  if (applied.length > 0) logger.info({ applied, version }, "the database's schema was brought up to date");
  if (late.length > 0) logger.warn({ late }, "migrations were applied after newer ones");
  await ensureEventPartitions(owner);
}

/** One line when the database goes, and one when it is back. */
function logReach(place: string, logger: Logger): NonNullable<DatabaseOptions["onReach"]> {
  let since = 0;
  return (away) => {
    if (away === undefined) {
      logger.info({ away_ms: Date.now() - since }, `the database at ${place} answers again`);
      return;
    }
    since = away.since;
    logger.error({ reason: away.reason }, `the database at ${place} does not answer: calls are refused until it does`);
  };
}
