import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inheritedEnvironment } from "../src/platform/config/config.ts";
import { type Database, openDatabase } from "../src/repositories/database/database.ts";
import { migrate } from "../src/repositories/database/migrate.ts";
import { type Api, buildApi, call } from "./candidates/api-in-process.ts";
import { startChild } from "./candidates/child.ts";
import { PROGRAM, readyAt } from "./candidates/flow.ts";
import { openClient } from "./candidates/http-client.ts";
import { type BenchPostgres, startBenchPostgres } from "./candidates/postgres.ts";
import { type ProcessTime, parentOf, timeOfTree } from "./candidates/process-time.ts";
import { type Measurement, quantile } from "./report/measurement.ts";

/** What a rerun from the last step is to take, with its plan and its end, milliseconds. */
const TARGET_MS = 1_000;
const CALLS = 5;
const STEPS = 1_000;
/** The longest wait of one request for a result, milliseconds. */
const WAIT_MS = 30_000;

/** Runs whose log is long, each followed by a step `last`. Their steps are pure: no worker is needed, and the log is the same. */
interface Shape {
  name: string;
  path: string;
  workflow: string;
  input: { n: number };
}

const LAST = `
  - step: last
    tool: {kind: noop, result: {done: true}}`;

const loop = (n: number): Shape => ({
  name: `a loop of ${n.toLocaleString("en-US")} iterations`,
  path: "bench/long-loop",
  workflow: `
  - step: start
    loop: {in: "{{ workload.n }}", iterator: i, spec: {mode: parallel, max_in_flight: 1000}}
    tool: {kind: noop, result: {number: "{{ i }}"}}
    next: {arcs: [{step: last}]}${LAST}`,
  input: { n },
});

/** The last of its steps leads back to the first, `n` times. Each sets a variable, so that the state is as large as such a state gets. */
const cycle = (n: number): Shape => ({
  name: `a circle of ${STEPS.toLocaleString("en-US")} steps, ${n} times`,
  path: "bench/long-cycle",
  workflow:
    Array.from({ length: STEPS }, (_, index) => {
      const isEnd = index === STEPS - 1;
      const set = isEnd ? `turns: "{{ (turns | default(0)) + 1 }}"` : `v${index}: ${index}`;
      const next = isEnd ? `{step: s0, when: "{{ turns < workload.n }}"}, {step: last}` : `{step: s${index + 1}}`;
      return `
  - step: s${index}
    tool: {kind: noop, result: {number: ${index}}}
    set: {${set}}
    next: {arcs: [${next}]}`;
    }).join("") + LAST,
  input: { n },
});

/**
 * What it costs to repeat the last step of an execution of a million events, to plan that, and to look at an earlier moment of it. Each
 * call is of a server that has nothing of it in memory; it has run the playbook before, but for one figure.
 */
export async function benchLongRun(isQuick: boolean, log: (line: string) => void): Promise<Measurement[]> {
  const postgres = await startBenchPostgres();
  const folder = await mkdtemp(join(tmpdir(), "flow-bench-results-"));
  try {
    const measured: Measurement[] = [];
    for (const shape of isQuick ? [loop(40_000), cycle(20)] : [loop(460_000), cycle(200)]) {
      const databaseUrl = await postgres.createDatabase(shape.path.replace(/\W/g, "_"));
      const database = openDatabase(databaseUrl);
      await migrate(database);
      measured.push(...(await benchShape(shape, { database, databaseUrl, folder, postgres, log })));
      await database.close();
    }
    return measured;
  } finally {
    await postgres.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

interface Bench {
  database: Database;
  databaseUrl: string;
  folder: string;
  postgres: BenchPostgres;
  log(line: string): void;
}

async function benchShape(shape: Shape, bench: Bench): Promise<Measurement[]> {
  const { database, folder, postgres, log } = bench;
  const anew = async <T>(work: (api: Api) => Promise<T>, isWarm = true): Promise<T> => {
    const api = buildApi(database, folder);
    try {
      if (isWarm) await runOnce(api, { ...shape, input: { n: 1 } });
      return await work(api);
    } finally {
      await api.service.orchestrator.close();
    }
  };
  log(`${shape.name} …`);
  await anew(({ app }) => register(app, shape), false);
  const id = await anew((api) => runOnce(api, shape));
  const { sql } = database;
  await sql`analyze`;
  const [size] = await sql<{ events: number; segments: number }[]>`
    select sum(events)::int as events, count(*)::int as segments from flow.event_log where execution_id = ${id}`;
  const { events, segments } = size ?? { events: 0, segments: 1 };
  const eventAt = async (share: number) => {
    const [row] = await sql<{ id: string }[]>`
      select event_id as id from flow.event_log where execution_id = ${id}
      order by event_id offset ${Math.floor((segments - 1) * share)} limit 1`;
    return row?.id ?? id;
  };
  const [first, middle, last] = [await eventAt(0.01), await eventAt(0.5), await eventAt(1)];
  const rerun = async ({ app }: Api, body: object) => {
    const { execution_id } = await call(app, `/api/executions/${id}/rerun`, { from: ["last"], ...body });
    if (execution_id === undefined) return;
    const { status } = await call(app, `/api/executions/${execution_id}/result?wait_ms=${WAIT_MS}`);
    if (status !== "COMPLETED") throw new Error(`The rerun is ${status}`);
  };
  const [backend] = await postgres.admin<{ pid: number }[]>`select pg_backend_pid() as pid`;
  const timeOfPostgres = timeOfTree(await parentOf(backend?.pid ?? 0));
  const name = `${(events / 1e6).toFixed(2)} million events, ${shape.name}:`;
  const figures = async (what: string, work: (api: Api) => Promise<unknown>, target?: number) => {
    const times: Spent[] = [];
    for (let at = 0; at < CALLS; at += 1) times.push(await anew((api) => spent(timeOfPostgres, () => work(api))));
    const goal = target === undefined ? {} : { target, better: "less" as const };
    const of = (pick: (time: Spent) => number, share: number) => quantile(times.map(pick), share);
    return [
      { name: `${name} ${what}, slowest of ${CALLS}`, value: of(({ wallMs }) => wallMs, 1), unit: "ms", ...goal },
      { name: `${name} ${what}, processor time of the server`, value: of(({ cpuMs }) => cpuMs, 0.5), unit: "ms" },
      { name: `${name} ${what}, of PostgreSQL`, value: of(({ postgresMs }) => postgresMs, 0.5), unit: "ms" },
    ];
  };
  const cold = await anew((api) => spent(timeOfPostgres, () => rerun(api, {})), false);
  const state = (at: string) => async (api: Api) => await call(api.app, `/api/executions/${id}/state?at=${at}`);
  return [
    ...(await figures("plan of a rerun from the last step", (api) => rerun(api, { dry_run: true }), TARGET_MS)),
    ...(await figures("rerun from the last step, to its end", (api) => rerun(api, {}), TARGET_MS)),
    { name: `${name} the same, first call to a server that has just started`, value: cold.wallMs, unit: "ms" },
    ...(await overHttp(id, name, bench)),
    ...(await figures("state near its beginning", state(first))),
    ...(await figures("state in its middle", state(middle))),
    ...(await figures("state at its end", state(last))),
  ];
}

/** The same with a server in a process of its own, by calls over a port: what people wait for. */
async function overHttp(
  executionId: string,
  name: string,
  { databaseUrl, folder: cwd, log }: Bench,
): Promise<Measurement[]> {
  const env = {
    ...inheritedEnvironment(),
    ...{ FLOW_LOG_LEVEL: "warn", FLOW_HOME: cwd, FLOW_DATABASE_URL: databaseUrl, FLOW_PURE_STEPS: "server" },
    FLOW_ENCRYPTION_KEYS: `bench:${randomBytes(32).toString("base64")}`,
  };
  const server = startChild(process.execPath, [PROGRAM, "serve", "--role", "server", "--port", "0"], { cwd, env });
  try {
    const client = openClient(await server.before("is not ready", readyAt(server)));
    const rerun = async () => {
      const began = performance.now();
      const path = `/api/executions/${executionId}/rerun`;
      // The answers of the API.
      const { execution_id: id } = (await client.post(path, { from: ["last"] })) as { execution_id: string };
      const answered = performance.now() - began;
      const result = await client.get(`/api/executions/${id}/result?wait_ms=${WAIT_MS}`);
      const { status } = result as { status: string };
      if (status !== "COMPLETED") throw new Error(`The rerun is ${status}`);
      return { answered, ended: performance.now() - began };
    };
    const times = [];
    for (let at = 0; at <= CALLS; at += 1) times.push(await rerun());
    log(
      `  over HTTP: ${times.map(({ answered, ended }) => `${answered.toFixed(0)}/${ended.toFixed(0)}`).join(", ")} ms`,
    );
    await client.close();
    const [first, ...next] = times;
    const what = `${name} rerun from the last step over HTTP, a server of its own process`;
    const goal = { unit: "ms", target: TARGET_MS, better: "less" } as const;
    return [
      // It reads and compiles the playbook first.
      { name: `${what}, its first call, to the end`, value: first?.ended ?? Number.NaN, unit: "ms" },
      { name: `${what}, to the answer, slowest of ${CALLS}`, value: slowest(next.map((one) => one.answered)), ...goal },
      { name: `${what}, to the end, slowest of ${CALLS}`, value: slowest(next.map((one) => one.ended)), ...goal },
    ];
  } finally {
    await server.stop();
  }
}

function slowest(times: readonly number[]): number {
  return quantile(times, 1);
}

async function register(app: Api["app"], { path, workflow }: Shape): Promise<void> {
  const name = path.replace("/", "-");
  const content = `apiVersion: flow/v2\nkind: Playbook\nmetadata: {name: ${name}, path: ${path}}\nworkflow:${workflow}\n`;
  await call(app, "/api/catalog/register", { content });
}

async function runOnce({ app }: Api, { path, input }: Shape): Promise<string> {
  const { execution_id } = await call(app, "/api/execute", { path, workload: input });
  for (;;) {
    const { status, error } = await call(app, `/api/executions/${execution_id}/result?wait_ms=${WAIT_MS}`);
    if (status === "COMPLETED") return String(execution_id);
    if (status !== "RUNNING") throw new Error(`The long run is ${status}: ${JSON.stringify(error)}`);
  }
}

interface Spent {
  wallMs: number;
  cpuMs: number;
  postgresMs: number;
}

async function spent(timeOfPostgres: ProcessTime, work: () => Promise<unknown>): Promise<Spent> {
  const [began, cpu, postgres] = [performance.now(), process.cpuUsage(), await timeOfPostgres()];
  await work();
  const { user, system } = process.cpuUsage(cpu);
  const wallMs = performance.now() - began;
  return { wallMs, cpuMs: (user + system) / 1_000, postgresMs: ((await timeOfPostgres()) - postgres) / 1_000 };
}
