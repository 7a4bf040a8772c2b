import { randomBytes } from "node:crypto";
import { setMaxListeners } from "node:events";
import { hostname } from "node:os";
import { createFileCredentials } from "../adapters/file-credentials.ts";
import { createHeartbeat, type Heartbeat } from "../adapters/heartbeat.ts";
import { createLedger } from "../adapters/ledger.ts";
import { createServerChildren } from "../adapters/server-children.ts";
import { connectServer, type ServerAddress, type ServerConnection } from "../adapters/server-connection.ts";
import { createEntryReader } from "../adapters/server-programs.ts";
import { createServerResults } from "../adapters/server-results.ts";
import { createServerWork } from "../adapters/server-work.ts";
import { systemClock } from "../adapters/system-clock.ts";
import { type Config, isGiven, templateEnvironment } from "../platform/config.ts";
import type { Lifecycle } from "../platform/lifecycle.ts";
import type { Logger } from "../platform/logger.ts";
import type { ResultStore } from "../ports/result-store.ts";
import { PARSED_ONLY_KINDS, RUNNABLE_KINDS } from "../schema/playbook.ts";
import { createPrograms } from "../services/programs.ts";
import { createToolRegistry, type ToolRegistry } from "../tools/registry.ts";
import type { TaskLine } from "../worker/deps.ts";
import { createWork, type Work } from "../worker/work.ts";
import { createWorkerLog, type WorkerLog } from "./worker-log.ts";

/** What a worker needs to begin. */
export interface WorkerRoleDeps {
  config: Config;
  /** Version of the program. */
  version: string;
  logger: Logger;
  /** Every part that was started is added to it; whoever made it stops it. */
  lifecycle: Lifecycle;
}

/** A worker that has begun. */
export interface RunningWorker {
  name: string;
  /** Where its server is. */
  serverUrl: string;
  /** Resolves when the server knows it for the first time. */
  registered: Promise<void>;
}

const SERVER_URL = "http://127.0.0.1:8082";
/** Connections for claims, reports, results and documents; and those on which children are waited for. */
const CALL_CONNECTIONS = 16;
const WAIT_CONNECTIONS = 256;
/** How much longer than draining the stopping may take: leaving the pool, and tools that are told to stop. */
const STOP_EXTRA_MS = 10_000;
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
  const parts = createParts(deps, name, url, log);
  const { work, heartbeat } = parts;
  lifecycle.add("the tools", () => parts.tools.close());
  lifecycle.add("the connections to the server", () => parts.close());
  const summary = setInterval(() => logger.debug({ ...log.totals(), slots: work.taken() }, "so far"), SUMMARY_MS);
  const stop = async () => {
    clearInterval(summary);
    heartbeat.drain();
    // Also what is claimed by an answer under way is run: it is this worker's.
    const left = await work.drain(AbortSignal.timeout(config.workerDrainMs));
    await heartbeat.leave();
    logger.info(
      { ...log.totals(), left },
      left === 0 ? "the worker has drained" : "the worker left commands to others",
    );
  };
  lifecycle.add("the worker", stop, config.workerDrainMs + STOP_EXTRA_MS);
  heartbeat.start();
  return { name, serverUrl: url, registered: parts.registered };
}

interface WorkerBuild {
  work: Work;
  heartbeat: Heartbeat;
  tools: ToolRegistry;
  registered: Promise<void>;
  close(): Promise<void>;
}

function createParts(
  { config, version, logger }: WorkerRoleDeps,
  name: string,
  url: string,
  log: WorkerLog,
): WorkerBuild {
  const address = { url, token: config.workerToken ?? config.serverToken } satisfies Partial<ServerAddress>;
  const calls = connectServer({ ...address, connections: CALL_CONNECTIONS });
  const waits = connectServer({ ...address, connections: WAIT_CONNECTIONS });
  const retry = { clock: systemClock, random: Math.random };
  const kinds = toolKinds(config);
  const tools = createTools(config, kinds, { ...retry, connection: calls });
  const ledger = createLedger();
  const children = createServerChildren({ ...retry, connection: waits, connections: WAIT_CONNECTIONS });
  const work = createWork({
    server: createServerWork(calls, {
      name,
      kinds: kinds === "all" ? undefined : [...kinds, ...UNDRIVEN, ...PARSED_ONLY_KINDS],
      labels: config.workerLabels,
    }),
    programs: createPrograms(createEntryReader(calls)),
    deps: {
      worker: name,
      tools,
      credentials: createFileCredentials(config.credentialsFile, config.environment),
      clock: systemClock,
      random: Math.random,
      env: templateEnvironment(config),
      log: (line) => logLine(logger, line),
    },
    childrenOf: (claim) => children.of(claim),
    resultsOf: (claim) => createServerResults({ ...retry, connection: calls }, claim),
    capacity: config.workerCapacity,
    newAbort: () => {
      const controller = new AbortController();
      // Every iteration of a loop listens to its command's signal. Node takes eleven for a leak.
      setMaxListeners(0, controller.signal);
      return controller;
    },
    newKey: createKeys(),
    ledger,
    beat: () => heartbeat.beat(),
    register: () => heartbeat.register(),
    tell: (happening) => log.tell(happening),
  });
  let isKnown = () => {};
  const registered = new Promise<void>((resolve) => {
    isKnown = resolve;
  });
  let isClaiming = false;
  const heartbeat = createHeartbeat({
    ...address,
    registration: {
      name,
      capacity: config.workerCapacity,
      labels: config.workerLabels,
      capabilities: kinds === "all" ? RUNNABLE_KINDS : [...kinds, ...UNDRIVEN],
      runtime: { pid: process.pid, hostname: hostname(), version },
    },
    intervalMs: config.workerHeartbeatMs,
    ledger: ledger.memory,
    onRegistered() {
      logger.info({ worker: name, capacity: config.workerCapacity, server: url }, "the worker is registered");
      if (!isClaiming) work.start();
      isClaiming = true;
      isKnown();
    },
    onAnswer({ cancel, lost }) {
      for (const id of cancel) work.cancelled(id);
      for (const { command_id, attempt } of lost) work.lost(command_id, attempt);
    },
    onFailed: ({ doing, tries, message }) => {
      const line = `${doing} failed: ${message}`;
      if (tries === 1) logger.warn({ server: url }, line);
      else logger.debug({ tries }, line);
    },
  });
  return {
    work,
    heartbeat,
    tools,
    registered,
    close: async () => void (await Promise.all([calls.close(), waits.close()])),
  };
}

/** Kinds that the worker itself carries out. */
const UNDRIVEN = ["playbook", "workbook"] as const;

/** Kinds of task that may run: unless it is said, `shell` is not among them (interface specification, tools on shared workers). */
function toolKinds(config: Config): "all" | readonly string[] {
  if (isGiven(config, "workerTools")) return config.workerTools;
  return RUNNABLE_KINDS.filter((kind) => kind !== "shell" && !(UNDRIVEN as readonly string[]).includes(kind));
}

function createTools(
  config: Config,
  kinds: "all" | readonly string[],
  parts: { connection: ServerConnection } & Pick<Parameters<typeof createServerResults>[0], "clock" | "random">,
): ToolRegistry {
  // `artifact` reads what is stored under any reference, whichever claim it runs for; it never stores.
  const unclaimed = { work: { command: { command_id: "" }, attempt: 0 }, giveUp: () => undefined };
  const store: ResultStore = {
    load: (ref) => createServerResults(parts, { ...unclaimed, signal: AbortSignal.timeout(ARTIFACT_MS) }).load(ref),
  };
  return createToolRegistry({
    allowPrivate: isGiven(config, "httpAllowPrivate") ? config.httpAllowPrivate : [],
    store,
    ...(kinds !== "all" && { kinds }),
    ...(config.python !== undefined && { python: { pythonPath: config.python } }),
  });
}

/** How long `artifact` tries to read a result. */
const ARTIFACT_MS = 120_000;

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
function logLine(logger: Logger, { executionId, step, task, iteration, text }: TaskLine): void {
  const where = { execution_id: executionId, step, task, ...(iteration !== undefined && { iteration }) };
  logger.info(where, text);
}
