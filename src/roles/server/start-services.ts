import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { join, resolve } from "node:path";
import { createDatabaseClock, type DatabaseClock } from "../../adapters/database-clock.ts";
import type { Config } from "../../platform/config/config.ts";
import type { KeyRing } from "../../platform/crypto/key-ring.ts";
import type { Lifecycle } from "../../platform/system/lifecycle.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";
import { createMetrics, type Metrics } from "../../platform/telemetry/metrics.ts";
import type { Broker } from "../../ports/broker.ts";
import { listenForSessionChanges } from "../../repositories/access/session-changes.ts";
import { type Database, openDatabase } from "../../repositories/database/database.ts";
import { readOnly } from "../../repositories/doctor/read-snapshot.ts";
import { dropPartition } from "../../repositories/executions/old-partitions.ts";
import { databaseNow } from "../../repositories/triggers/triggers.ts";
import { defined } from "../../schema/words/defined.ts";
import { messageOf } from "../../schema/words/errors.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import type { SessionChanges } from "../../services/access/session-changes.ts";
import type { Documents } from "../../services/catalog/documents.ts";
import { createDiagnosis } from "../../services/diagnosis/diagnose.ts";
import { DOCTOR_LIMITS } from "../../services/diagnosis/limits.ts";
import { checkSystemPlaybooks } from "../../services/diagnosis/system-playbooks.ts";
import { createElsewhere } from "../../services/executions/follow-other-servers.ts";
import { createRetention } from "../../services/maintenance/retention.ts";
import type { Orchestrator } from "../../services/orchestration/orchestrator.ts";
import { createOpenCounts, createOverview } from "../../services/overview/overview.ts";
import type { FiredNotice } from "../../services/triggers/start-fires.ts";
import { createOwnNotices, type OwnNotices } from "../../services/workers/own-notices.ts";
import { createReaper, type Reaper } from "../../services/workers/reaper.ts";
import { diskRoom } from "../telemetry/disk-room.ts";
import { createExecutionTraces } from "../telemetry/execution-traces.ts";
import { createObserver } from "../telemetry/observer.ts";
import { openProcessTracing } from "../telemetry/open-tracing.ts";
import { createResultsObserver } from "../telemetry/results-observer.ts";
import { RETENTION_INTERVAL_MS, startUpkeep, type UpkeepDeps } from "./background-jobs.ts";
import { type BrokerLink, openBroker } from "./open-broker.ts";
import { asOwner, type FoundDatabase } from "./open-database.ts";
import { openPresence } from "./presence.ts";
import { openResultStores } from "./result-stores.ts";
import { triggerLog } from "./wire-incoming.ts";
import { type Services, wireServices } from "./wire-services.ts";

/** What {@link startServices} takes from the role. */
export interface StartServiceDeps {
  config: Config;
  folder: string;
  /** Of the program. */
  version: string;
  logger: Logger;
  lifecycle: Lifecycle;
  /** Does what needs the database again until that is there. */
  awaiting<T>(part: () => Promise<T>): Promise<T>;
  /** The address by which people reach this installation; undefined where no setting says it. */
  publicUrl(): string | undefined;
}

/** What a server has of it. */
export interface StartedServices {
  service: Services;
  metrics: Metrics;
  reaper: Reaper;
  diagnose: ReturnType<typeof createDiagnosis>;
  overview: ReturnType<typeof createOverview>;
  /** Name of this server among those of its database. */
  processor: string;
}

/**
 * Starts what executions need: the broker, the service over its database, and the upkeep. What a server that died has left
 * is worked out before anything new is taken.
 */
export async function startServices(
  { config, folder, version, logger, lifecycle, awaiting, publicUrl }: StartServiceDeps,
  {
    database,
    found,
    keys,
    documents,
  }: { database: Database; found: FoundDatabase; keys: KeyRing; documents: Documents },
): Promise<StartedServices> {
  const { broker, resultValues, link } = await openBroker(config, logger, lifecycle);
  const stores = await openResultStores({ config, folder, keyValue: resultValues, logger, lifecycle });
  const flushDatabase = openWriting(found, config, lifecycle);
  const ownNotices = createOwnNotices();
  const { metrics, observe, onFired } = openMetrics(database);
  const processor = `${hostname()}-${process.pid}-${randomBytes(4).toString("hex")}`;
  const traces = openTraces({ config, version, logger, lifecycle }, processor);
  const clock = await awaiting(() => openClock(database));
  const service = wireServices({
    ...{ database, clock, flushDatabase, documents, keys, config },
    resultsFolder: join(resolve(folder, config.home), "results"),
    stores,
    resultsObserver: createResultsObserver(metrics, logger),
    processor,
    env: templateEnvironment(config),
    ...{ observer: createObserver({ metrics, logger, broker, ownNotices, server: processor, traces }), onFired },
    onKeychainViolation: (cacheKey, problems) =>
      logger.warn({ cache_key: cacheKey, problems }, "what the keychain keeps does not match its schema"),
    ...{ publicUrl, onTrigger: triggerLog(logger), ...(traces !== undefined && { traceOf: traces.traceOf }) },
  });
  const { orchestrator } = service;
  observe(orchestrator);
  lifecycle.add("the audit log", () => service.audit.close());
  lifecycle.add("what is noted of deliveries", () => service.deliveries.close());
  lifecycle.add("the results that go", () => service.results.close());
  lifecycle.add("the executions", () => orchestrator.close());
  await awaiting(() => service.pools.prepare());
  await awaiting(() => orchestrator.recovery.recover(0));
  await awaiting(() => orchestrator.recovery.poll());
  listenToOthers({ found, broker, service, ownNotices, processor, logger, lifecycle });
  const reaper = openReaper(config, { database, broker, metrics, logger, processor });
  const elsewhere = createElsewhere({
    database,
    orchestrator,
    server: processor,
    isTold: () => link?.isUp() === true,
    now: Date.now,
  });
  startUpkeep({
    ...service,
    recovery: orchestrator.recovery,
    elsewhere,
    database,
    clock,
    presence: openPresence(database, { name: processor, version }),
    reaper: config.reaperEnabled ? { reaper, intervalMs: config.reaperIntervalMs } : undefined,
    ...withOwner(config, { database, found, service, processor, logger }),
    logger,
    lifecycle,
  });
  const diagnose = createDiagnosis({
    ...{ database, keyIds: keys.ids, credentialsDefault: config.credentialsDefault, hasOwn: service.pools.hasOwn },
    disk: async () => (config.databaseUrl === undefined ? await diskRoom(resolve(folder, config.home)) : undefined),
    ...(link !== undefined && { brokerIsUp: link.isUp }),
    limits: { staleMs: config.reaperWorkerStaleMs, hardTimeoutMs: config.reaperHardTimeoutMs },
  });
  warnOfSystemPlaybooks(database, service.pools, logger);
  const overview = openOverview(config, { database, broker: link, reaper, processor });
  return { service, metrics, reaper, diagnose, overview, processor };
}

/** A clock that has heard the database before anything goes by it. */
async function openClock(database: Database): Promise<DatabaseClock> {
  const clock = createDatabaseClock();
  const askedAt = performance.now();
  clock.heard(await databaseNow(database), askedAt, performance.now());
  return clock;
}

/** Playbooks that will stop are better known now than when someone needs them. The start does not wait for it. */
function warnOfSystemPlaybooks(
  database: Database,
  { hasOwn }: Pick<Services["pools"], "hasOwn">,
  logger: Logger,
): void {
  readOnly(database, DOCTOR_LIMITS.statementMs, (reading) => checkSystemPlaybooks(reading, hasOwn)).then(
    (result) => {
      for (const { what, what_to_do, command } of result?.findings ?? []) logger.warn({ what_to_do, command }, what);
    },
    (error) => logger.debug({ reason: messageOf(error) }, "system playbooks were not looked at"),
  );
}

/** Needs a session of the database for itself. */
function listenForSessions(url: string, { began, changed, lost }: SessionChanges, logger: Logger): () => Promise<void> {
  return listenForSessionChanges(url, {
    began,
    changed,
    lost(error) {
      const what = "this server does not hear of changed sessions; gateways ask for each one meanwhile";
      logger.warn({ reason: messageOf(error) }, what);
      lost(error);
    },
  });
}

/** Notices of other servers are checked in the database: a notice is a hint, and may be forged. */
function hear(
  broker: Broker,
  { orchestrator, cancelNotices }: Pick<Services, "orchestrator" | "cancelNotices">,
  ownNotices: OwnNotices,
  server: string,
): () => void {
  return broker.subscribe((notice) => {
    if (notice.kind === "cancel") void cancelNotices.tell(notice.stopped ?? []);
    if (notice.kind === "execution" && notice.server !== server) {
      const { executionId, lastEventId, ended = false } = notice;
      orchestrator.moved(executionId, { lastEventId: Number(lastEventId), hasEnded: ended });
    }
    if (notice.kind !== "commands") return;
    const commandIds = ownNotices.fromOthers(notice.commandIds);
    if (commandIds.length > 0) void orchestrator.offer(commandIds);
  });
}

/** Metrics, some of them of an orchestrator that is made later. */
function openMetrics(database: Database) {
  let advancing: Pick<Orchestrator, "queueDepth" | "inMemory"> | undefined;
  const metrics = createMetrics({
    queueDepth: () => advancing?.queueDepth() ?? 0,
    executionsInMemory: () => advancing?.inMemory().length ?? 0,
    openExecutions: createOpenCounts({ database, now: Date.now }),
  });
  const observe = (orchestrator: Orchestrator) => {
    advancing = orchestrator;
  };
  return { metrics, observe, onFired: (fire: FiredNotice) => metrics.triggerFired(fire) };
}

/** Undefined unless traces are exported. */
function openTraces(
  { config, version, logger, lifecycle }: Pick<StartServiceDeps, "config" | "version" | "logger" | "lifecycle">,
  instance: string,
) {
  const tracing = openProcessTracing(config, { role: "server", version, instance }, logger, lifecycle);
  return tracing && createExecutionTraces({ tracing, ratio: config.traceRatio, random: Math.random });
}

/** Learns of changed sessions from the database, and of what other servers did from the broker. */
function listenToOthers({
  found,
  broker,
  service,
  ownNotices,
  processor,
  logger,
  lifecycle,
}: Pick<StartServiceDeps, "logger" | "lifecycle"> & {
  found: FoundDatabase;
  broker: Broker;
  service: Services;
  ownNotices: OwnNotices;
  processor: string;
}): void {
  if (found.sessionUrl !== undefined) {
    const stop = listenForSessions(found.sessionUrl, service.sessionChanges, logger);
    lifecycle.add("hearing of changed sessions", stop);
  }
  lifecycle.add("hearing of other servers", hear(broker, service, ownNotices, processor));
}

/** The connections that write rounds. */
function openWriting(found: FoundDatabase, config: Config, lifecycle: Lifecycle): Database {
  const database = openDatabase(found.url, {
    ...found.options,
    // One for each round that is under way; shared with nothing that could hold them up.
    connectionsMax: 1 + config.batchProcessors,
    byKey: true,
    statementMs: config.batchProcessingTimeoutMs,
  });
  lifecycle.add("the connections that write", () => database.close());
  return database;
}

/** The upkeep that changes tables. */
function withOwner(
  config: Config,
  deps: { database: Database; found: FoundDatabase; service: Services; processor: string; logger: Logger },
): Pick<UpkeepDeps, "asOwner" | "retention" | "retentionDays"> {
  const { database, found, service, processor, logger } = deps;
  const owner = asOwner(database, found);
  const retention = createRetention({
    database,
    dropPartition: (name) => owner((own) => dropPartition(own, name)),
    results: service.results,
    holder: processor,
    days: config.retentionDays,
    leaseMs: 3 * RETENTION_INTERVAL_MS,
    intervalMs: RETENTION_INTERVAL_MS,
    now: Date.now,
    onRemoved: (removed) => logger.info({ ...removed }, "RETENTION deleted what was kept for long enough"),
    onFailed: (error) => logger.warn({ err: error }, "RETENTION could not delete what was kept for long enough"),
  });
  return { asOwner: owner, retention, retentionDays: config.retentionDays };
}

function openOverview(
  config: Config,
  deps: { database: Database; broker: BrokerLink | undefined; reaper: Reaper; processor: string },
): ReturnType<typeof createOverview> {
  return createOverview({
    database: deps.database,
    embedded: config.databaseUrl === undefined,
    ...defined({ broker: deps.broker }),
    reaper: { ...deps.reaper, enabled: config.reaperEnabled, intervalMs: config.reaperIntervalMs },
    server: deps.processor,
    staleMs: config.reaperWorkerStaleMs,
    now: Date.now,
  });
}

/** The reaper; if it is switched off, one that sweeps on request only. */
function openReaper(
  config: Config,
  deps: { database: Database; broker: Broker; metrics: Metrics; logger: Logger; processor: string },
): Reaper {
  const { reaperIntervalMs, reaperWorkerStaleMs, reaperHardTimeoutMs, reaperPendingRetryMs, reaperMaxPerRun } = config;
  const reaper = createReaper({
    database: deps.database,
    broker: deps.broker,
    holder: deps.processor,
    policy: {
      staleMs: reaperWorkerStaleMs,
      hardTimeoutMs: reaperHardTimeoutMs,
      pendingMs: reaperPendingRetryMs,
    },
    maxPerRun: reaperMaxPerRun,
    intervalMs: reaperIntervalMs,
    now: Date.now,
    onSwept(swept) {
      deps.metrics.reaperSwept(swept);
      if (swept !== undefined && swept.pending + swept.worker + swept.timeout > 0) {
        deps.logger.info({ ...swept }, "COMMAND-REAPER published stranded commands again");
      }
    },
  });
  if (!config.reaperEnabled) {
    deps.logger.warn(
      {},
      "COMMAND-REAPER is switched off: stranded commands wait for a claim that happens to find them",
    );
    return reaper;
  }
  const fields = {
    interval_seconds: reaperIntervalMs / 1_000,
    worker_stale_seconds: reaperWorkerStaleMs / 1_000,
    hard_timeout_seconds: reaperHardTimeoutMs / 1_000,
  };
  const described = Object.entries(fields).map(([name, value]) => `${name}=${value}`);
  deps.logger.info(fields, `COMMAND-REAPER started: ${described.join(" ")}`);
  return reaper;
}

/** The environment variables that templates may read. */
function templateEnvironment({ templateEnv, environment }: Config): JsonObject {
  const given = templateEnv.flatMap((name) => {
    const value = environment[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(given);
}
