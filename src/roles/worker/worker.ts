import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { CREDENTIAL_PREFIX } from "../../adapters/file-credentials.ts";
import { createClaimParts } from "../../adapters/server/claim-parts.ts";
import { connectServer } from "../../adapters/server/connection.ts";
import { createServerCredentials } from "../../adapters/server/credentials.ts";
import { createHeartbeat, type Heartbeat } from "../../adapters/server/heartbeat.ts";
import { createServerMcpServers } from "../../adapters/server/mcp-servers.ts";
import { createEntryReader } from "../../adapters/server/programs.ts";
import { createAttaching } from "../../adapters/server/results.ts";
import { createRunningTable, type RunningTable } from "../../adapters/server/running-table.ts";
import { createServerWork } from "../../adapters/server/work.ts";
import { type ConnectionChange, connectWorker } from "../../adapters/server/worker-connection.ts";
import { moment, systemClock } from "../../adapters/system-clock.ts";
import { newAbort } from "../../platform/concurrency/new-abort.ts";
import { type Config, templateEnvironment } from "../../platform/config/config.ts";
import type { Secret } from "../../platform/crypto/secret.ts";
import type { Lifecycle } from "../../platform/system/lifecycle.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";
import type { Tracing } from "../../platform/telemetry/tracing.ts";
import { defined } from "../../schema/words/defined.ts";
import { createDocuments } from "../../services/catalog/documents.ts";
import { createProgramCache } from "../../services/orchestration/memory/program-cache.ts";
import type { TaskLine } from "../../worker/deps.ts";
import { createLease, type Lease } from "../../worker/lease.ts";
import { createWorker, type Worker } from "../../worker/loop/worker.ts";
import { createClaimTraces } from "../telemetry/claim-traces.ts";
import { openProcessTracing } from "../telemetry/open-tracing.ts";
import { createWorkerLog, type WorkerLog } from "../telemetry/worker-log.ts";
import { createWorkerTools, type WorkerTools } from "./worker-tools.ts";

/** What a worker needs to begin. */
export interface WorkerRoleDeps {
  config: Config;
  /** Version of the program. */
  version: string;
  logger: Logger;
  /** Every started part is added to it; its owner stops it. */
  lifecycle: Lifecycle;
}

/** A worker that has begun. */
export interface RunningWorker {
  name: string;
  /** Where its server is. */
  serverUrl: string;
  /** Resolves when the server knows it for the first time. Rejects with `FlowError` INVALID_SETTING if it cannot work as set. */
  registered: Promise<void>;
}

const SERVER_URL = "http://127.0.0.1:8082";
/** Connections for claims, reports, results and documents; and those on which children are waited for. */
const CALL_CONNECTIONS = 16;
const WAIT_CONNECTIONS = 256;
/** How much longer than draining the stopping may take: leaving the pool, and stopping the tools. */
const STOP_EXTRA_MS = 10_000;
/** Said at the start of a worker that has no sandbox for the code of its tasks. */
const UNISOLATED =
  "python and shell tasks run without a sandbox: their code can read what this worker can. Install bubblewrap, or let its user make user namespaces";
/** Time between two lines of counters, at level debug. */
const SUMMARY_MS = 60_000;

/**
 * The role `worker`: claims commands of a server over HTTP, runs them, reports. It has no database and no port. A server that
 * is not there is waited for, at the start as later.
 */
export function startWorker(deps: WorkerRoleDeps): RunningWorker {
  const { config, logger, lifecycle } = deps;
  const name = config.workerName ?? `${hostname()}-${process.pid}-${randomBytes(3).toString("hex")}`;
  const url = config.serverUrl ?? SERVER_URL;
  const log = createWorkerLog(logger);
  const token = config.workerToken ?? config.serverToken;
  const about = { role: "worker" as const, version: deps.version, instance: name };
  const tracing = openProcessTracing(config, about, logger, lifecycle);
  if (givesCredentials(config)) {
    logger.warn({}, "FLOW_CREDENTIALS_FILE and FLOW_CREDENTIAL_<NAME> are the server's: this worker takes all from it");
  }
  const lease = createLease(moment, () =>
    logger.warn(
      { server: url },
      "no heartbeat was answered for as long as a lease lasts: nothing new is begun until one is",
    ),
  );
  const basis: WorkerBasis = { ...deps, name, url, token, log, tracing, runningTable: createRunningTable(), lease };
  const build = buildWork(basis, {
    beat: () => heartbeat.beat(),
    register: () => heartbeat.register(),
    secret: () => heartbeat.secret(),
  });
  const { work } = build;
  const { sandbox } = build.tools;
  let begin = () => {};
  const registered = new Promise<void>((resolve, reject) => {
    sandbox.catch(reject);
    begin = () => {
      begin = () => {};
      work.start();
      resolve();
    };
  });
  const heartbeat = buildHeartbeat(basis, build, () => begin());
  const summary = setInterval(() => logger.debug({ ...log.totals(), slots: work.taken() }, "so far"), SUMMARY_MS);
  lifecycle.add("the sandbox", async () => (await sandbox.catch(() => undefined))?.close());
  lifecycle.add("the tools", () => build.tools.tools.close());
  lifecycle.add("the requests for secrets", () => build.tools.secretSource.close());
  lifecycle.add("the connections to the server", () => build.close());
  const stop = async () => {
    clearInterval(summary);
    heartbeat.drain();
    const left = await work.drain(AbortSignal.timeout(config.workerDrainMs));
    await heartbeat.leave();
    logger.info(
      { ...log.totals(), left },
      left === 0 ? "the worker has drained" : "the worker left commands to others",
    );
  };
  lifecycle.add("the worker", stop, config.workerDrainMs + STOP_EXTRA_MS);
  void sandbox.then(
    ({ kind, summary: isolation }) => {
      if (kind === "none" && config.taskIsolation !== "none") logger.warn({ isolation }, UNISOLATED);
      else logger.info({ isolation }, "how the code of tasks is isolated");
      heartbeat.start(isolation);
    },
    () => undefined,
  );
  return { name, serverUrl: url, registered };
}

/** What the parts of one worker share. */
interface WorkerBasis extends WorkerRoleDeps {
  name: string;
  url: string;
  token: Secret | undefined;
  log: WorkerLog;
  tracing: Tracing | undefined;
  runningTable: RunningTable;
  lease: Lease;
}

interface WorkBuild {
  work: Worker;
  tools: WorkerTools;
  /** Ends the connections. */
  close(): Promise<void>;
}

/** The worker itself. */
function buildWork(basis: WorkerBasis, heartbeat: Pick<Heartbeat, "beat" | "register" | "secret">): WorkBuild {
  const { config, logger, name, log, tracing, runningTable, lease } = basis;
  const workerSecret = () => heartbeat.secret();
  const socket = config.serverSocket;
  const calls = connectWorker({
    ...{ ...basis, socket, connections: CALL_CONNECTIONS, workerSecret },
    onChange: (change) => logConnection(logger, basis.url, change),
  });
  const waits = connectServer({ ...basis, socket, connections: WAIT_CONNECTIONS, workerSecret });
  const tools = createWorkerTools(config);
  const documents = createDocuments();
  const ending = newAbort();
  const server = { connection: calls, clock: systemClock, random: Math.random };
  const asked = { ...server, calls, waits, waitConnections: WAIT_CONNECTIONS, name, ending: ending.signal };
  const attaching = createAttaching(systemClock);
  const parts = createClaimParts({ ...asked, attaching });
  const work = createWorker({
    server: createServerWork(calls, { name, kinds: tools.claims, labels: config.workerLabels }, attaching),
    programs: createProgramCache(createEntryReader(calls), documents),
    deps: {
      worker: name,
      tools: tools.tools,
      credentials: createServerCredentials(server, ending.signal),
      secretSource: tools.secretSource,
      mcp: { servers: createServerMcpServers(server), tokenHosts: config.mcpTokenHosts },
      sealers: undefined,
      clock: systemClock,
      random: Math.random,
      lease,
      env: templateEnvironment(config),
      log: (line) => logLine(logger, line),
    },
    childrenOf: parts.childrenOf,
    resultsOf: parts.resultsOf,
    secretsOf: parts.secretsOf,
    ...(tracing !== undefined && { traceOf: createClaimTraces(tracing, name, systemClock.now) }),
    capacity: config.workerCapacity,
    newAbort,
    newKey: createKeys(),
    runningTable,
    beat: () => heartbeat.beat(),
    register: () => heartbeat.register(),
    emit: (event) => log.record(event),
  });
  const close = async () => {
    ending.abort(new Error("The worker stops"));
    await Promise.all([calls.close(), waits.close(), documents.close()]);
  };
  return { work, tools, close };
}

/** The worker's place in the pool; `onRegistered` is called each time that the server has taken it in. */
function buildHeartbeat(basis: WorkerBasis, { work, tools }: WorkBuild, onRegistered: () => void): Heartbeat {
  const { config, logger, name, url, lease } = basis;
  return createHeartbeat({
    ...basis,
    registration: {
      name,
      capacity: config.workerCapacity,
      labels: config.workerLabels,
      capabilities: tools.capabilities,
      runtime: {
        pid: process.pid,
        hostname: hostname(),
        version: basis.version,
        instance: randomBytes(12).toString("base64url"),
      },
    },
    intervalMs: config.workerHeartbeatMs,
    runningTable: basis.runningTable.memory,
    onRegistered() {
      logger.info({ worker: name, capacity: config.workerCapacity, server: url }, "the worker is registered");
      onRegistered();
    },
    onAnswer({ cancel, stopped, lost }) {
      for (const id of cancel) work.cancelled(id);
      for (const { command_id, iterations } of stopped) work.iterationsCancelled(command_id, iterations);
      for (const { command_id, attempt } of lost) work.lost(command_id, attempt);
    },
    onRenewed: lease.renewed,
    onReplaced(message) {
      logger.error({ server: url }, `${message}. This worker takes nothing more`);
      work.replaced();
    },
    onFailed: ({ doing, tries, message }) => {
      const line = `${doing} failed: ${message}`;
      if (tries === 1) logger.warn({ server: url }, line);
      else logger.debug({ tries }, line);
    },
  });
}

/** A worker connection saves time and nothing else: being without one is no fault. */
function logConnection(logger: Logger, server: string, change: ConnectionChange): void {
  if (change.type === "opened") {
    logger.info({ server }, "claims and reports go over one connection");
    return;
  }
  const { type, message: reason, retryMs: next_try_ms } = change;
  const what = type === "ended" ? "the worker connection ended" : "there is no worker connection";
  logger.info({ server, reason, next_try_ms }, `${what}: claims and reports go by HTTP`);
}

function givesCredentials({ credentialsFile, environment }: Config): boolean {
  return credentialsFile !== undefined || Object.keys(environment).some((name) => name.startsWith(CREDENTIAL_PREFIX));
}

/** Keys that no other process makes: a random start and a counter, which costs less than a random number for each. */
function createKeys(): () => string {
  const start = randomBytes(12).toString("base64url");
  let count = 0;
  return () => {
    count += 1;
    return `${start}-${count}`;
  };
}

/** What a tool wrote: its author looks for it here. */
function logLine(logger: Logger, { executionId, commandId, step, task, iteration, text }: TaskLine): void {
  const ids = { execution_id: executionId, command_id: commandId, step, task };
  const where = { ...ids, ...defined({ iteration }) };
  logger.info(where, text);
}
