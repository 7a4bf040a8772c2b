import { randomBytes } from "node:crypto";
import { createClaimParts } from "../../adapters/server/claim-parts.ts";
import { createServerCredentials } from "../../adapters/server/credentials.ts";
import { type Answering, connectInProcess } from "../../adapters/server/in-process.ts";
import { createServerMcpServers } from "../../adapters/server/mcp-servers.ts";
import { createEntryReader } from "../../adapters/server/programs.ts";
import { createServerWork } from "../../adapters/server/work.ts";
import { moment, systemClock } from "../../adapters/system-clock.ts";
import { newAbort } from "../../platform/concurrency/new-abort.ts";
import { type Config, isGiven, templateEnvironment } from "../../platform/config/config.ts";
import { PRIVATE_RANGES } from "../../platform/http/egress.ts";
import { proxyRules } from "../../platform/http/proxy.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";
import type { WorkServer } from "../../ports/work-server.ts";
import { SERVER_KINDS, SERVER_WORKER_PREFIX } from "../../schema/rules/pool-label.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { Documents } from "../../services/catalog/documents.ts";
import { createProgramCache } from "../../services/orchestration/memory/program-cache.ts";
import type { Ability } from "../../services/orchestration/rounds/ready-queue.ts";
import { createToolRegistry } from "../../tools/registry.ts";
import { createLease } from "../../worker/lease.ts";
import { createWorker } from "../../worker/loop/worker.ts";
import { createWorkerLog } from "../telemetry/worker-log.ts";
import { openSecretSource } from "./secret-source.ts";
import { keepRegistered } from "./system-heartbeat.ts";
import type { Services } from "./wire-services.ts";

/** What {@link runSystemWorker} needs. */
export interface SystemWorkerParts {
  config: Config;
  /** Version of the program. */
  version: string;
  /** Name of the server. */
  server: string;
  service: Pick<Services, "orchestrator" | "workers" | "claimSecrets" | "pools">;
  documents: Documents;
  /** Answers the calls of this worker, in the name of the servers' own pool. */
  answer: Answering;
  logger: Logger;
  /** Which commands it takes. */
  ability: Ability;
  /** What running commands get to end when it is stopped. */
  drainMs: number;
}

/** The worker, at work. */
export interface RunningSystemWorker {
  /** Takes nothing more; what does not end in time is left to other servers. */
  stop(): Promise<void>;
}

/** Kinds that a worker itself carries out. */
const UNDRIVEN = ["playbook", "workbook"];
/** Kinds that have a tool. */
const KINDS = SERVER_KINDS.filter((kind) => !UNDRIVEN.includes(kind));
/** Commands at a time; logins are three short ones each. */
const CAPACITY = 64;
/** The longest answers that a task takes: what is larger would be parsed for longer than other callers should wait. */
const ANSWER_BYTES_MAX = 4 * 1024 ** 2;
const ROWS_MAX = 50_000;
/** How long a claim waits for a command that is ready: until the round that issued it is written. */
const CLAIM_MS = 1_000;

/** Starts it: registers, claims, runs, reports as every worker does, by calls that do not leave this process. */
export function runSystemWorker(parts: SystemWorkerParts): RunningSystemWorker {
  const { config, service, logger, server } = parts;
  const name = `${SERVER_WORKER_PREFIX}${server}`;
  const instance = randomBytes(12).toString("base64url");
  const secret = service.claimSecrets.ofWorker(name, instance);
  const calls = connectInProcess(parts.answer, () => secret);
  const log = createWorkerLog(logger);
  const [draining, ending] = [newAbort(), newAbort()];
  const lease = createLease(moment, () => logger.warn({}, "system playbooks wait: the database does not answer"));
  const running = createRunning();
  const tools = openTools(config);
  const own = { connection: calls, clock: systemClock, random: Math.random };
  const asked = createClaimParts({
    ...{ ...own, calls, waits: calls, waitConnections: CAPACITY, name, ending: ending.signal },
  });
  let count = 0;
  const work = createWorker({
    server: patient(createServerWork(calls, { name, kinds: undefined, labels: {} }), parts, draining.signal),
    programs: createProgramCache(createEntryReader(calls), parts.documents),
    deps: {
      worker: name,
      tools: tools.registry,
      credentials: createServerCredentials(own, ending.signal),
      secretSource: tools.secretSource,
      mcp: { servers: createServerMcpServers(own), tokenHosts: [] },
      sealers: undefined,
      clock: systemClock,
      random: Math.random,
      lease,
      env: templateEnvironment(config),
      log: ({ executionId, step, text }) => logger.info({ execution_id: executionId, step }, text),
    },
    childrenOf: asked.childrenOf,
    resultsOf: asked.resultsOf,
    secretsOf: asked.secretsOf,
    capacity: CAPACITY,
    newAbort,
    newKey: () => `${instance}-${++count}`,
    runningTable: running,
    beat: () => heartbeat.beat(),
    register: () => heartbeat.register(),
    emit: (event) => log.record(event),
  });
  const heartbeat = keepRegistered({
    ...{ name, instance, capacity: CAPACITY, capabilities: [...SERVER_KINDS], version: parts.version },
    ...{ workers: service.workers, intervalMs: config.workerHeartbeatMs, work, lease, logger, running: running.all },
  });
  return {
    async stop() {
      draining.abort(new FlowError("CANCELLED", "The server stops"));
      const left = await work.drain(AbortSignal.timeout(parts.drainMs));
      await heartbeat.leave();
      ending.abort(new FlowError("CANCELLED", "The server stops"));
      await Promise.all([tools.registry.close(), tools.secretSource.close()]);
      logger.info({ ...log.totals(), left }, "the worker for system playbooks has stopped");
    },
  };
}

/** Asks only when there is something for this worker: a claim that waits would be looked at with each command of others. */
function patient(server: WorkServer, { service, ability }: SystemWorkerParts, draining: AbortSignal): WorkServer {
  return {
    ...server,
    async claim(request, signal) {
      await service.orchestrator.untilReady(ability, draining);
      if (draining.aborted) return { status: "ok", commands: [] };
      return await server.claim({ ...request, waitMs: CLAIM_MS }, signal);
    },
  };
}

function openTools(config: Config) {
  // Gateways and the identity provider's database are mostly beside the server. Who writes and starts what runs here is an administrator.
  const allowPrivate = isGiven(config, "httpAllowPrivate") ? config.httpAllowPrivate : PRIVATE_RANGES;
  const registry = createToolRegistry({
    allowPrivate,
    proxyOf: proxyRules(config),
    // The server gives results to a claim: each call of `artifact` brings where to read.
    store: { load: (ref) => Promise.reject(new FlowError("INTERNAL", `${ref} was asked for without a claim`)) },
    kinds: KINDS,
    whyNot: (kind) =>
      `Tasks of kind "${kind}" do not run inside the server, which runs system playbooks (api_integration/, system/) itself. ` +
      "Make a pool of workers for this playbook: flow pools create",
    http: { responseBytesMax: ANSWER_BYTES_MAX },
    sqldb: { rowsMax: ROWS_MAX, resultBytesMax: ANSWER_BYTES_MAX },
    python: { scriptFiles: "none" },
  });
  return { registry, secretSource: openSecretSource(config, allowPrivate) };
}

/** The commands that run, for the heartbeat. */
function createRunning() {
  const rows = new Map<number, { commandId: string; attempt: number }>();
  let next = 0;
  return {
    add({ command, attempt }: { command: { command_id: string }; attempt: number }): number {
      rows.set(next, { commandId: command.command_id, attempt });
      return next++;
    },
    remove: (row: number) => void rows.delete(row),
    all: () => [...rows.values()],
  };
}
