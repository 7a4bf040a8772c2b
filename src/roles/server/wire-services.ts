import { setMaxListeners } from "node:events";
import { createDiskPayloads } from "../../adapters/payloads/disk.ts";
import { createSqlPayloads } from "../../adapters/payloads/sql.ts";
import { createPostgresExecutionStore } from "../../adapters/postgres-execution-store.ts";
import { systemClock } from "../../adapters/system-clock.ts";
import { resultOf } from "../../engine/state/results.ts";
import { boundedResult } from "../../language/views/bounded-result.ts";
import type { Config } from "../../platform/config/config.ts";
import { idpIssuers } from "../../platform/config/identity-providers.ts";
import { createApprovalLinks } from "../../platform/crypto/approval-links.ts";
import { type ClaimSecrets, createClaimSecrets } from "../../platform/crypto/claim-secrets.ts";
import type { KeyRing } from "../../platform/crypto/key-ring.ts";
import type { Clock } from "../../ports/clock.ts";
import type { PayloadStore } from "../../ports/payload-store.ts";
import { findText } from "../../repositories/catalog/catalog.ts";
import type { Database } from "../../repositories/database/database.ts";
import { isRetryable, unavailable, violatedConstraint } from "../../repositories/database/error-codes.ts";
import { stoppedAmong } from "../../repositories/workers/workers.ts";
import { defined } from "../../schema/words/defined.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import { type Access, createAccess } from "../../services/access/access.ts";
import { type Audit, createAudit } from "../../services/access/audit.ts";
import { createLoginSessions, type LoginSessions } from "../../services/access/login-sessions.ts";
import { createRoles, type Roles } from "../../services/access/roles.ts";
import { createSessionChanges, type SessionChanges } from "../../services/access/session-changes.ts";
import { createUsers, type Users } from "../../services/access/users.ts";
import { type Approvals, createApprovals } from "../../services/approvals/approvals.ts";
import { type MessagesDeps, sendMessages } from "../../services/approvals/send-messages.ts";
import { type BulkOperations, createBulkOperations } from "../../services/bulk/bulk.ts";
import type { Catalog } from "../../services/catalog/catalog.ts";
import type { Documents } from "../../services/catalog/documents.ts";
import { type Credentials, createCredentials } from "../../services/credentials/credentials.ts";
import { createTransientValues, type TransientValues } from "../../services/credentials/key-values.ts";
import { rotateSecrets } from "../../services/credentials/rotate-secrets.ts";
import { runSql } from "../../services/credentials/run-sql.ts";
import { createSealing, type Sealing } from "../../services/credentials/sealing.ts";
import { createDrafts, type Drafts, type DraftsDeps } from "../../services/drafts/drafts.ts";
import { checkReading } from "../../services/executions/check-read-access.ts";
import { createExecutionReader, type ExecutionReader } from "../../services/executions/execution-reader.ts";
import { createExecutions, type Executions } from "../../services/executions/executions.ts";
import { isStepOver } from "../../services/executions/is-step-ended.ts";
import { createKeychainUpkeep, type KeychainUpkeep } from "../../services/keychain/cleanup.ts";
import { createKeychain, type Keychain } from "../../services/keychain/keychain.ts";
import { inspectMcpResource } from "../../services/mcp/inspect.ts";
import { runLifecycleAction } from "../../services/mcp/lifecycle.ts";
import { createAgentCalls } from "../../services/mcp/tool-calls.ts";
import { createAgentTools } from "../../services/mcp/tool-list.ts";
import { type AgentChanges, createAgentChanges } from "../../services/mcp/tool-list-changes.ts";
import { type Batches, createBatches } from "../../services/orchestration/batch-status.ts";
import { createOrchestrator } from "../../services/orchestration/create-orchestrator.ts";
import { createProgramCache } from "../../services/orchestration/memory/program-cache.ts";
import type {
  Orchestrator,
  OrchestratorDeps,
  OrchestratorObserver,
} from "../../services/orchestration/orchestrator.ts";
import type { ResultsObserver } from "../../services/results/observer.ts";
import { createResults, type Results } from "../../services/results/results.ts";
import { createKeyedSignals, type KeyedSignals } from "../../services/signals/keyed-signals.ts";
import { createStatistics, type Statistics } from "../../services/statistics/statistics.ts";
import { fireForSignal } from "../../services/triggers/fire-for-signal.ts";
import type { FiredNotice } from "../../services/triggers/start-fires.ts";
import { createTriggers, type Triggers } from "../../services/triggers/triggers.ts";
import { type CancelNotices, createCancelNotices } from "../../services/workers/cancel-notices.ts";
import { createPools, type Pools } from "../../services/workers/pools.ts";
import { createPresentClaims, type PresentClaims } from "../../services/workers/present-claims.ts";
import { createWorkers, type Workers } from "../../services/workers/workers.ts";
import { createPureSteps } from "../../worker/command/pure-steps.ts";
import { createSqlRunner } from "./sql-runner.ts";
import { type Incoming, type IncomingDeps, wireIncoming } from "./wire-incoming.ts";

/** Settings that the service's parts read. */
export type ServiceConfig = Pick<
  Config,
  | "auditDays"
  | "batchEnqueueTimeoutMs"
  | "batchQueueBytes"
  | "batchQueueMax"
  | "batchProcessingTimeoutMs"
  | "batchProcessors"
  | "batchStatusPollMs"
  | "claimHardTimeoutMs"
  | "claimLeaseMs"
  | "commandLostLimit"
  | "credentialsDefault"
  | "filesBytesMax"
  | "idpDomains"
  | "idpProviders"
  | "pureSteps"
  | "reaperHardTimeoutMs"
  | "reaperWorkerStaleMs"
  | "resultBytesMax"
  | "resultKvBytesMax"
  | "resultS3BytesMax"
  | "resultTtlMs"
  | "sqlExecuteMs"
  | "sqlExecuteOwn"
  | "sqlExecuteRowsMax"
> &
  Partial<Pick<Config, "serverToken">>;

/** What is done with executions, one by one and many at once. */
function executionsOf(
  deps: Omit<Parameters<typeof createExecutions>[0], "now"> &
    Pick<Parameters<typeof createBulkOperations>[0], "onFault" | "sealerOf"> &
    Pick<DraftsDeps, "documents">,
  { processor, env, onFired, clock: { now } = systemClock }: ServicesDeps,
): Pick<Services, "executions" | "drafts" | "bulk" | "triggers" | "signals"> {
  const busy = () => performance.now();
  const executions = createExecutions({ ...deps, now });
  let calls = 0;
  const triggers = createTriggers({
    ...{ database: deps.database, executions, env, now, busy, onFault: deps.onFault },
    newName: () => `${processor}/${++calls}`,
    onFired: (notice) => onFired?.(notice),
  });
  const bulk = createBulkOperations({ ...deps, executions, triggers, holder: processor, busy });
  const signals = createKeyedSignals({
    ...{ ...deps, busy, unavailable },
    triggers: (signal) => fireForSignal(deps, triggers.fireMany, signal),
  });
  return { executions, drafts: createDrafts({ ...deps, executions }), bulk, triggers, signals };
}

/** What the service is made of. */
export interface ServicesDeps {
  database: Database;
  /** Default: the machine's. */
  clock?: Clock;
  /** A separate pool for writing; default: `database`. */
  flushDatabase?: Database;
  /** Reads large playbooks. */
  documents: Documents;
  /** What is encrypted at rest is encrypted with these. */
  keys: KeyRing;
  config: ServiceConfig;
  /** Folder of results that are too large for the database. */
  resultsFolder: string;
  /** Stores of results besides the disk and the database; default: none. */
  stores?: readonly PayloadStore[];
  resultsObserver?: ResultsObserver;
  /** Name of this server, unique among those of one database. */
  processor: string;
  /** The allow-listed environment, readable as `env` in templates. */
  env: JsonObject;
  observer: OrchestratorObserver;
  /** What the keychain has of an entry does not match its schema: its key, and what is wrong. */
  onKeychainViolation?(cacheKey: string, problems: readonly string[]): void;
  /** A trigger has fired, or did not. */
  onFired?(notice: FiredNotice): void;
  onTrigger?(...about: Parameters<NonNullable<IncomingDeps["onTrigger"]>>): void;
  /** The address by which people reach this installation; default: unknown. */
  publicUrl?(): string | undefined;
  /** The place of a new execution in a trace; default: directly under its caller. */
  traceOf?: OrchestratorDeps["traceOf"];
}

/** The use cases of a server, over one database. */
export interface Services extends Incoming {
  orchestrator: Orchestrator;
  reader: ExecutionReader;
  executions: Executions;
  drafts: Drafts;
  bulk: BulkOperations;
  signals: KeyedSignals;
  /** Calls the listener when a command was parked: when something may first be done for it, milliseconds since 1970. */
  onParked(listener: (at: number) => void): void;
  triggers: Triggers;
  /** Whether some trigger watches ends of executions; set by the background work that looks. */
  watching: { ends: boolean };
  statistics: Statistics;
  approvals: Approvals;
  /** Sends messages about approvals; gives how many it took. For the background. */
  tellPeople(): Promise<number>;
  workers: Workers;
  claimSecrets: ClaimSecrets;
  presentClaims: PresentClaims;
  pools: Pools;
  cancelNotices: CancelNotices;
  batches: Batches;
  agentChanges: AgentChanges;
  results: Results;
  checkReading: ReturnType<typeof checkReading>;
  keychain: Keychain;
  keychainUpkeep: KeychainUpkeep;
  transient: TransientValues;
  audit: Audit;
  access: Access;
  sessionChanges: SessionChanges;
  users: Users;
  loginSessions: LoginSessions;
  roles: Roles;
  credentials: Credentials;
  sealing: Sealing;
  rotate: ReturnType<typeof rotateSecrets>;
  runSql: ReturnType<typeof runSql>;
}

/** Compiled playbooks kept for looking at executions, beside those that run. */
const PROGRAMS_READ_MAX = 50;

/** Builds them. They work until `orchestrator.close()`. */
export function wireServices(deps: ServicesDeps): Services {
  const { database, config, clock = systemClock } = deps;
  const pools = createPools({ database, hasOwn: config.serverToken !== undefined });
  const { keychain, keychainUpkeep, observer: observerWithKeychain } = keychainOf(deps);
  const hardTimeoutMs = config.claimHardTimeoutMs ?? config.reaperHardTimeoutMs;
  const policy = { staleMs: config.reaperWorkerStaleMs, hardTimeoutMs };
  const { observer, onParked } = observing(observerWithKeychain, () => results);
  const results: Results = resultsOf(deps, (id, step) => isStepOver({ database, reader }, id, step));
  const readText = (catalogId: string) => findText(database, catalogId);
  const programs = createProgramCache(readText, deps.documents);
  const watching = { ends: false };
  const store = createPostgresExecutionStore({ ...deps, policy, watchesEnds: () => watching.ends });
  const orchestrator = orchestratorOf(deps, {
    store,
    programs,
    results,
    ...{ checkReading: (...about) => mayRead(...about), sealerOf: (id) => sealing.sealerOf(id) },
    ...{ poolOf: (path) => pools.poolOf(path), observer },
  });
  const programsRead = createProgramCache(readText, deps.documents, PROGRAMS_READ_MAX);
  const readProgram = (catalogId: string) => programs.peek(catalogId) ?? programsRead(catalogId);
  const reader = createExecutionReader({ store, programs: readProgram, now: clock.now });
  const fault = (error: unknown) => observer.fault(error, []);
  const audit = createAudit({
    database,
    days: config.auditDays,
    onLost: (error, rows) => fault(new Error(`${rows} rows of the audit log were lost`, { cause: error })),
  });
  const claimSecrets = createClaimSecrets(deps.keys);
  const access = createAccess({ database, onFault: fault });
  const cancelNotices = createCancelNotices({ stopped: (ids) => stoppedAmong(database, ids), onFault: fault });
  const sealing = createSealing({ database, keys: deps.keys, audit });
  const mayRead = checkReading({ database, access, audit });
  const secrets = secretsOf(deps, audit);
  const parts = { database, store, programs, orchestrator, reader, results, access, audit, onFault: fault };
  const started = executionsOf({ ...parts, documents: deps.documents, sealerOf: sealing.sealerOf }, deps);
  return {
    ...{ orchestrator, watching, onParked },
    ...{ reader, results, checkReading: mayRead, sealing, keychain, keychainUpkeep },
    transient: createTransientValues({ database }),
    audit,
    access,
    sessionChanges: createSessionChanges(),
    users: createUsers({ database, issuers: idpIssuers(deps.config) }),
    loginSessions: createLoginSessions({ database, audit }),
    roles: createRoles({ database }),
    ...secrets,
    ...started,
    ...wireIncoming({ ...deps, ...started, ...secrets, audit, now: clock.now, onFault: fault }),
    statistics: createStatistics({ database, now: clock.now }),
    ...approvalsOf(deps, { ...parts, ...started }),
    cancelNotices,
    claimSecrets,
    ...{ pools, presentClaims: createPresentClaims({ database, claimSecrets }) },
    workers: createWorkers({
      ...{ database, orchestrator, cancelNotices, policy, leaseMs: config.claimLeaseMs },
      ...{ onReturned: observer.returned, onFault: fault, now: clock.now },
    }),
    agentChanges: createAgentChanges({ database }),
    batches: createBatches({ database, orchestrator, pollMs: config.batchStatusPollMs }),
  };
}

/** Approvals, their links and their messages. */
function approvalsOf(
  { database, keys, publicUrl, clock: { now } = systemClock }: ServicesDeps,
  parts: Pick<MessagesDeps, "executions" | "access" | "onFault"> & { orchestrator: Orchestrator },
): Pick<Services, "approvals" | "tellPeople"> {
  const links = createApprovalLinks(keys);
  return {
    approvals: createApprovals({ database, orchestrator: parts.orchestrator, links, now }),
    tellPeople: () => sendMessages({ ...parts, database, links, publicUrl: () => publicUrl?.() }),
  };
}

/** The observer that also tells the results which executions have ended, and a listener when something may be done for what is parked. */
function observing(
  observerWithKeychain: OrchestratorObserver,
  results: () => Results,
): Pick<Services, "onParked"> & { observer: OrchestratorObserver } {
  let parked: (at: number) => void = () => undefined;
  const observer: OrchestratorObserver = {
    ...observerWithKeychain,
    committed(commit) {
      if (commit.soonest !== undefined) parked(commit.soonest);
      const { at, steps } = commit;
      results().tell({ at, steps, executionIds: commit.ended.map(({ executionId }) => executionId) });
      observerWithKeychain.committed(commit);
    },
  };
  return {
    observer,
    onParked(listener) {
      parked = listener;
    },
  };
}

/** What advances executions, with the settings of this server. */
function orchestratorOf(
  { config, env, traceOf, processor, clock = systemClock }: ServicesDeps,
  parts: Pick<OrchestratorDeps, "store" | "programs" | "results" | "checkReading" | "sealerOf" | "poolOf" | "observer">,
): Orchestrator {
  return createOrchestrator({
    ...parts,
    clock,
    defer: setImmediate,
    env,
    ...defined({ traceOf }),
    ...(config.pureSteps === "server" && {
      pureSteps: createPureSteps({ worker: processor, clock, random: Math.random, signal: neverAborted() }),
    }),
    limits: {
      leaseMs: config.claimLeaseMs,
      lostClaims: config.commandLostLimit,
      ackMs: config.batchEnqueueTimeoutMs,
      queueMax: config.batchQueueMax,
      queueBytesMax: config.batchQueueBytes,
      processingMs: config.batchProcessingTimeoutMs,
      processors: config.batchProcessors,
    },
    resultOf: (state) => {
      const result = resultOf(state);
      return result === null ? null : boundedResult(result);
    },
    isRetryable,
    isDuplicateKey: (error) => /_for_idempotency$|^trigger_fire_key$/.test(violatedConstraint(error) ?? ""),
    unavailable,
  });
}

/** A signal that any number of runs may listen to at a time. */
function neverAborted(): AbortSignal {
  const { signal } = new AbortController();
  setMaxListeners(0, signal);
  return signal;
}

/** What MCP clients do with the catalog's agents, and what is done with its MCP servers. */
export function mcpOf(deps: { catalog: Catalog; executions: Executions; drafts: Drafts }) {
  const agentTools = createAgentTools(deps.catalog);
  const agentCalls = createAgentCalls({ tools: agentTools, executions: deps.executions });
  return { agentTools, agentCalls, runLifecycle: runLifecycleAction(deps), inspectMcp: inspectMcpResource(deps) };
}

/** The results, in all stores. */
function resultsOf(deps: ServicesDeps, isOver: (executionId: string, step: string) => Promise<boolean>): Results {
  const { database, config, resultsFolder, stores = [], resultsObserver, clock = systemClock } = deps;
  return createResults({
    database,
    stores: [createDiskPayloads(resultsFolder), createSqlPayloads(database), ...stores],
    ...{ folder: resultsFolder, bytesMax: config.resultBytesMax, filesBytesMax: config.filesBytesMax },
    limits: { kvBytesMax: config.resultKvBytesMax, s3BytesMax: config.resultS3BytesMax },
    ttlMs: config.resultTtlMs,
    now: clock.now,
    isStepOver: isOver,
    ...defined({ observer: resultsObserver }),
  });
}

/** What is done with credentials, and with all secrets at once. */
function secretsOf(
  { database, keys, config }: ServicesDeps,
  audit: Audit,
): Pick<Services, "credentials" | "rotate" | "runSql"> {
  const credentials = createCredentials({ database, keys, audit, byDefault: config.credentialsDefault });
  return {
    credentials,
    rotate: rotateSecrets({ database, keys, audit }),
    runSql: runSql({
      credentials,
      audit,
      runner: createSqlRunner(database),
      timeoutMs: config.sqlExecuteMs,
      rowsMax: config.sqlExecuteRowsMax,
      ownAllowed: config.sqlExecuteOwn,
    }),
  };
}

/** The keychain, and an observer that notifies it of ended executions. */
function keychainOf({ database, keys, observer, onKeychainViolation }: ServicesDeps) {
  const keychainUpkeep = createKeychainUpkeep({ database });
  const keychain = createKeychain({
    database,
    keys,
    onViolation: (cacheKey, problems) => onKeychainViolation?.(cacheKey, problems),
    onOwned: (executionId) => keychainUpkeep.owned(executionId),
  });
  const observerWithKeychain: OrchestratorObserver = {
    ...observer,
    committed(commit) {
      keychainUpkeep.ended(commit.ended.map(({ executionId }) => executionId));
      observer.committed(commit);
    },
  };
  return { keychain, keychainUpkeep, observer: observerWithKeychain };
}
