import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import postgres from "postgres";
import { inheritedEnvironment } from "../../src/platform/config/config.ts";
import { startChild } from "../candidates/child.ts";
import type { FlowCandidate } from "../candidates/flow.ts";
import { executor, PROGRAM, readyAt, registered } from "../candidates/flow.ts";
import { type HttpClient, openClient } from "../candidates/http-client.ts";
import { startBenchNats } from "../candidates/nats.ts";
import { startBenchPostgres } from "../candidates/postgres.ts";
import { type ProcessTime, parentOf, timeOf, timeOfTree } from "../candidates/process-time.ts";

/** A service of several servers and workers, with a PostgreSQL and a broker of its own. */
export interface Fleet {
  name: string;
  /** One for each server. */
  clients: readonly HttpClient[];
  /** Runs a playbook from its start to its known result, the next one at the next server. */
  execute: FlowCandidate["execute"];
  /** The service's database, as its superuser. */
  sql: postgres.Sql;
  /** What each kind of process has used so far. */
  times: Readonly<Record<ProcessKind, ProcessTime>>;
  /** Resident memory, MB: of each server, and of all workers. */
  memoryMb(): Promise<{ servers: number[]; workers: number }>;
  stop(): Promise<void>;
}

/** The processes of a service. */
export const PROCESS_KINDS = ["servers", "workers", "PostgreSQL", "NATS"] as const;
export type ProcessKind = (typeof PROCESS_KINDS)[number];

/** How many processes a service has. */
export interface FleetSize {
  servers: number;
  workers: number;
}

/**
 * Starts it as an installation would: every server and every worker is a process, workers are spread over the servers, and servers
 * find each other over NATS. Workers run all steps, so that they count as having effects.
 */
export async function startFleet(name: string, { servers, workers }: FleetSize): Promise<Fleet> {
  const stops: (() => Promise<void>)[] = [];
  const stop = async () => {
    for (const end of stops.splice(0)) await end();
  };
  try {
    const folder = await mkdtemp(join(tmpdir(), "flow-bench-fleet-"));
    stops.unshift(() => rm(folder, { recursive: true, force: true }));
    const database = await startBenchPostgres();
    stops.unshift(() => database.stop());
    const nats = await startBenchNats();
    stops.unshift(() => nats.stop());
    const databaseUrl = await database.createDatabase("bench_scale");
    const sql = postgres(databaseUrl, { max: 2, onnotice: () => undefined });
    stops.unshift(() => sql.end({ timeout: 1 }));
    await sql`create extension pg_stat_statements`;
    const environment = { ...inheritedEnvironment(), FLOW_LOG_LEVEL: "warn", FLOW_HOME: folder };
    const start = (role: string, args: readonly string[], added: NodeJS.ProcessEnv) => {
      const options = { cwd: folder, env: { ...environment, ...added } };
      const child = startChild(process.execPath, [PROGRAM, "serve", "--role", role, ...args], options);
      stops.unshift(() => child.stop());
      return child;
    };
    const settings = {
      FLOW_DATABASE_URL: databaseUrl,
      FLOW_ENCRYPTION_KEYS: `bench:${randomBytes(32).toString("base64")}`,
      FLOW_PURE_STEPS: "workers",
      BROKER_URL: nats.url,
    };
    const apis = Array.from({ length: servers }, () => start("server", ["--port", "0"], settings));
    const urls = await Promise.all(apis.map((api) => api.before("is not ready", readyAt(api))));
    const crew = Array.from({ length: workers }, (_, index) => {
      const FLOW_SERVER_URL = urls[index % urls.length];
      return start("worker", [], { FLOW_SERVER_URL, FLOW_WORKER_TOOLS: "all", FLOW_WORKER_NAME: `worker-${index}` });
    });
    const clients = urls.map((url) => openClient(url));
    stops.unshift(async () => void (await Promise.all(clients.map((client) => client.close()))));
    const [first] = clients;
    const [last] = crew.slice(-1);
    if (first !== undefined && last !== undefined) {
      await last.before("workers are not known to the server", registered(first, workers));
    }
    const [backend] = await sql<[{ pid: number }]>`select pg_backend_pid() as pid`;
    const executors = clients.map(executor);
    let turn = 0;
    const pids = (children: typeof apis) => children.map((child) => child.process.pid ?? 0);
    return {
      name,
      clients,
      execute(work) {
        turn += 1;
        const execute = executors[turn % executors.length];
        if (execute === undefined) throw new Error("A service without servers");
        return execute(work);
      },
      sql,
      times: {
        servers: timeOf(pids(apis)),
        workers: timeOf(pids(crew)),
        PostgreSQL: timeOfTree(await parentOf(backend.pid)),
        NATS: timeOf([nats.pid]),
      },
      async memoryMb() {
        const used = (children: typeof apis) => Promise.all(children.map((child) => child.memoryMb()));
        const ofWorkers = await used(crew);
        return { servers: await used(apis), workers: ofWorkers.reduce((total, mb) => total + mb, 0) };
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
