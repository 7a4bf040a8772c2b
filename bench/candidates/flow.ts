import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import postgres from "postgres";
import { inheritedEnvironment } from "../../src/platform/config/config.ts";
import { type Candidate, RUN_MAX_MS, type Work } from "./candidate.ts";
import { type Child, startChild } from "./child.ts";
import { type HttpClient, openClient } from "./http-client.ts";
import { playbookOf } from "./playbooks.ts";
import type { BenchPostgres } from "./postgres.ts";
import { type ProcessTime, timeOf } from "./process-time.ts";
import { profiling } from "./profile.ts";

/** This service: a server and a worker, and what only it is asked for. */
export interface FlowCandidate extends Candidate {
  /** Runs a playbook to its end and gives the execution's id. */
  execute(work: Work): Promise<string>;
  /** An execution's events in their order, those of one type where one is named. */
  events(executionId: string, type?: string): Promise<{ type: string; atMs: number }[]>;
  /** What its processes have used so far; of PostgreSQL the backends that serve it. */
  times: Readonly<Record<"server" | "worker" | "PostgreSQL", ProcessTime>>;
  /** Resident memory of the two processes, MB. */
  memoryMb(): Promise<{ server: number; worker: number }>;
}

/** The program, as an installation starts it. */
export const PROGRAM = join(import.meta.dirname, "../../../bin/flow.js");

/** How {@link startFlow} starts the service. */
export interface FlowOptions {
  /**
   * Steps without effects are run by the server. Default: workers run them, so that they count as having effects, as the peers'
   * steps do.
   */
  isPure?: boolean;
  /** Each process leaves a profile in this folder when it is stopped, and is slower by about a tenth. */
  profiles?: string;
}

/** Starts both processes as an installation would, and waits until the worker is known to the server. */
export async function startFlow(
  server: BenchPostgres,
  { isPure = false, profiles }: FlowOptions = {},
): Promise<FlowCandidate> {
  const folder = await mkdtemp(join(tmpdir(), "flow-bench-"));
  const database = isPure ? "bench_flow_pure" : "bench_flow";
  const databaseUrl = await server.createDatabase(database);
  const environment = { ...inheritedEnvironment(), FLOW_LOG_LEVEL: "warn", FLOW_HOME: folder };
  const start = (role: "server" | "worker", args: readonly string[], added: NodeJS.ProcessEnv) => {
    const node = profiles === undefined ? [] : profiling(profiles, role);
    const all = [...node, PROGRAM, "serve", "--role", role, ...args];
    return startChild(process.execPath, all, { cwd: folder, env: { ...environment, ...added } });
  };
  const FLOW_ENCRYPTION_KEYS = `bench:${randomBytes(32).toString("base64")}`;
  const FLOW_PURE_STEPS = isPure ? "server" : "workers";
  const settings = { FLOW_DATABASE_URL: databaseUrl, FLOW_ENCRYPTION_KEYS, FLOW_PURE_STEPS };
  const api = start("server", ["--port", "0"], settings);
  const url = await api.before("is not ready", readyAt(api));
  const worker = start("worker", [], { FLOW_SERVER_URL: url, FLOW_WORKER_TOOLS: "all" });
  const client = openClient(url);
  await worker.before("is not known to the server", registered(client, 1));
  const sql = postgres(databaseUrl, { max: 1 });
  const execute = executor(client);
  return {
    name: isPure ? "flow, pure" : "flow",
    database,
    run: async (work) => void (await execute(work)),
    execute,
    events: (executionId, type) => sql<{ type: string; atMs: number }[]>`
      select event_type as type, (extract(epoch from created_at) * 1000)::float8 as "atMs" from flow.event
       where execution_id = ${executionId} ${type === undefined ? sql`` : sql`and event_type = ${type}`}
       order by event_id`,
    times: {
      server: timeOf([api.process.pid ?? 0]),
      worker: timeOf([worker.process.pid ?? 0]),
      async PostgreSQL() {
        const backends = await sql<{ pid: number }[]>`
          select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`;
        return await timeOf(backends.map(({ pid }) => pid))();
      },
    },
    memoryMb: async () => ({ server: await api.memoryMb(), worker: await worker.memoryMb() }),
    stop: async () => {
      await Promise.all([client.close(), sql.end({ timeout: 1 })]);
      await worker.stop();
      await api.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** The address that `flow serve` says it is ready at. */
export function readyAt({ process }: Child): Promise<string> {
  let output = "";
  return new Promise((resolve) => {
    process.stdout?.on("data", (chunk: Buffer) => {
      output += chunk.toString();
      const url = /ready at (http:\/\/[^\s,]+)/.exec(output)?.[1];
      if (url !== undefined) resolve(url);
    });
  });
}

const POLL_MS = 50;

/** Resolves when so many workers are known to the server. */
export async function registered(client: HttpClient, workers: number): Promise<void> {
  for (;;) {
    const { items } = (await client.get("/api/worker/pools")) as { items: unknown[] };
    if (items.length >= workers) return;
    await sleep(POLL_MS);
  }
}

interface Answer {
  execution_id: string;
  status: string;
  error?: unknown;
}

/** One request a playbook: it starts it and waits for its result. */
export function executor(client: HttpClient): FlowCandidate["execute"] {
  const registrations = new Map<string, Promise<unknown>>();
  return async (work) => {
    const { path, text, workload } = playbookOf(work);
    const registration = registrations.get(path) ?? client.post("/api/catalog/register", { content: text });
    registrations.set(path, registration);
    await registration;
    const begun = Date.now();
    let answer = (await client.post("/api/execute", { path, workload, wait_ms: 30_000 })) as Answer;
    const { execution_id: id } = answer;
    for (;;) {
      const { status, error } = answer;
      if (status === "COMPLETED") return id;
      const late = Date.now() - begun > RUN_MAX_MS;
      if (late || status === "FAILED" || status === "CANCELLED") {
        throw new Error(`${path}, execution ${id}: ${status} ${JSON.stringify(error ?? {})}`);
      }
      answer = (await client.get(`/api/executions/${id}/result?wait_ms=30000`)) as Answer;
    }
  };
}
