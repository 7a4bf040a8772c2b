import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Hono } from "hono";
import { type Database, openDatabase } from "../src/repositories/database/database.ts";
import { migrate } from "../src/repositories/database/migrate.ts";
import type { LogRow } from "../src/repositories/orchestration/log-rows.ts";
import { type LogRows, packSegments, type Segment } from "../src/repositories/orchestration/segments.ts";
import type { Services } from "../src/roles/server/wire-services.ts";
import type { LogOwner, Marker } from "../src/schema/rules/event-record.ts";
import { type Api, buildApi, call } from "./candidates/api-in-process.ts";
import { startBenchPostgres } from "./candidates/postgres.ts";
import { type Measurement, quantile } from "./report/measurement.ts";

/** Executions of the usual size, made by copying an existing one. */
const EXECUTIONS = 60_000;
/** Events of the large execution. */
const LARGE_EVENTS = 300_000;
const LARGE_EVENTS_PER_STATEMENT = 10_000;
/** A report of one step writes five; some of them with a neighbour's. */
const EVENTS_PER_SEGMENT = 5;
const COPIES_PER_STATEMENT = 1_000;
const CALLS = 40;
/** What every page is to be answered within, milliseconds. */
const TARGET_MS = 50;

const PLAYBOOK = `apiVersion: flow/v2
kind: Playbook
metadata: { name: steps, path: bench/steps }
workflow:
  - step: start
    tool: { kind: noop }
    next: { arcs: [{ step: end }] }
  - step: end
    tool: { kind: noop }
`;

/**
 * What reading costs when the log has a million events: executions of the usual size and one with a third of all events.
 * The 95th percentile of calls through the API, each to another execution, so that nothing is in memory.
 */
export async function benchLargeLog(log: (line: string) => void = () => undefined): Promise<Measurement[]> {
  const postgres = await startBenchPostgres();
  const folder = await mkdtemp(join(tmpdir(), "flow-bench-results-"));
  try {
    const database = openDatabase(await postgres.createDatabase("large_log"));
    await migrate(database);
    const first = buildApi(database, folder);
    const source = await runOne(first);
    log("filling the log …");
    const large = await fill(database, first.service, source);
    await first.service.orchestrator.close();
    // Another server: it has seen none of these.
    const { app, service } = buildApi(database, folder);
    const measured = await measure(app, database, large);
    await service.orchestrator.close();
    await database.close();
    return measured;
  } finally {
    await postgres.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

interface Claimed {
  command_id: string;
  attempt: number;
  step: string;
}

/** Runs one execution to its end, and gives its id. */
async function runOne({ app }: Api): Promise<string> {
  await call(app, "/api/catalog/register", { content: PLAYBOOK });
  const { execution_id } = await call(app, "/api/execute", { path: "bench/steps" });
  for (const _ of ["start", "end"]) {
    const { commands } = await call(app, "/api/commands/claim", { worker: "w", limit: 1, wait_ms: 5_000 });
    for (const { command_id, attempt, step } of commands as Claimed[]) {
      const claim = { command_id, attempt };
      const result = { status: "ok", context: { value: { rows: [1, 2, 3], text: "x".repeat(200) } } };
      const done = { ...claim, event_type: "task.done", task: step, result };
      await call(app, "/api/events/batch", {
        worker: "w",
        events: [done, { ...claim, event_type: "command.completed" }],
      });
    }
  }
  await call(app, `/api/executions/${execution_id}/result?wait_ms=5000`);
  return String(execution_id);
}

/** Ids of a copy follow each other like those of the original, a millisecond of the id space further on. */
const ID_STEP = 4_096;

/** The segments of the n-th copy of an execution, cut as they were written. */
async function segmentsOfCopy({ sql }: Database, source: string): Promise<(copy: number) => Segment[]> {
  const rows = await sql<LogRow[]>`select * from flow.event_log where execution_id = ${source} order by event_id`;
  return (copy) =>
    rows.map((row) => {
      const packed = JSON.parse(row.body ?? "[]") as { event_id: number }[];
      const body = packed.map((event) => ({ ...event, event_id: event.event_id + copy * ID_STEP }));
      return {
        eventId: Number(row.event_id) + copy * ID_STEP,
        executionId: String(Number(source) + copy * ID_STEP),
        ...{ catalogId: row.catalog_id, path: row.node_id, events: body.length, body: JSON.stringify(body) },
      };
    });
}

/** Markers of batches from an event's id on, some to a segment, as reports of a few events leave them. */
function markersFrom(firstId: number, owner: LogOwner): Segment[] {
  const log: LogRows = { segments: [], rows: [] };
  const context = { processing_ms: 1.5, lock_acquire_ms: 0.2 };
  const event: Marker = { type: "batch.completed", at: Date.now(), context };
  for (let at = 0; at < LARGE_EVENTS_PER_STATEMENT; at += EVENTS_PER_SEGMENT) {
    const entries = Array.from({ length: EVENTS_PER_SEGMENT }, (_, of) => ({ eventId: firstId + at + of, event }));
    packSegments(owner, entries, log);
  }
  return log.segments;
}

async function insertSegments({ sql }: Database, segments: Segment[]): Promise<void> {
  const of = (field: keyof Segment) => segments.map((segment) => String(segment[field]));
  await sql`
    insert into flow.event_log (event_id, execution_id, catalog_id, node_id, events, body)
    select * from unnest(${of("eventId")}::bigint[], ${of("executionId")}::bigint[], ${of("catalogId")}::bigint[],
      ${of("path")}::text[], ${of("events")}::int[], ${of("body")}::text[])`;
}

/** Copies the execution, and returns the id of the large one. */
async function fill(database: Database, service: Services, source: string): Promise<string> {
  const { sql } = database;
  const segments = await segmentsOfCopy(database, source);
  for (let copy = 1; copy <= EXECUTIONS; copy += COPIES_PER_STATEMENT) {
    const copies = Array.from({ length: COPIES_PER_STATEMENT }, (_, at) => copy + at).filter((at) => at <= EXECUTIONS);
    await insertSegments(database, copies.flatMap(segments));
  }
  await sql`
    insert into flow.execution (execution_id, catalog_id, path, version, status, progress, last_event_id,
      root_execution_id, result, started_at, ended_at)
    select execution_id + copy * ${ID_STEP}::bigint, catalog_id, path, version, status, progress,
      last_event_id + copy * ${ID_STEP}::bigint, root_execution_id + copy * ${ID_STEP}::bigint, result,
      started_at + copy * interval '1 ms', ended_at + copy * interval '1 ms'
    from generate_series(1, ${EXECUTIONS}) as copy cross join flow.execution where execution_id = ${source}`;
  const large = String(Number(source) + EXECUTIONS * ID_STEP);
  const view = await service.reader.read(source, 0);
  if (view === undefined) throw new Error("the execution that was run is gone");
  const [owner] = await sql<LogOwner[]>`
    select ${large} as "executionId", catalog_id as "catalogId", path from flow.execution where execution_id = ${source}`;
  if (owner === undefined) throw new Error("the execution that was run is gone");
  const firstId = Number(large) + ID_STEP + 1;
  const lastId = firstId + LARGE_EVENTS - 1;
  for (let id = firstId; id <= lastId; id += LARGE_EVENTS_PER_STATEMENT) {
    await insertSegments(database, markersFrom(id, owner));
  }
  await sql`update flow.execution set last_event_id = ${lastId} where execution_id = ${large}`;
  await sql`
    insert into flow.execution_snapshot (execution_id, event_id, format, state)
    values (${large}, ${lastId - 2_000}, 1, ${JSON.stringify(view.state)})`;
  await sql`analyze`;
  return large;
}

async function measure(app: Hono, database: Database, large: string): Promise<Measurement[]> {
  const { sql } = database;
  const [size] = await sql<{ events: number }[]>`select count(*)::int as events from flow.event`;
  const rows = await sql<{ id: string; started: Date }[]>`
    select execution_id as id, started_at as started from flow.execution tablesample system (5) limit ${CALLS + 1}`;
  const [middle] = rows.slice(CALLS / 2);
  const since = middle?.started.toISOString() ?? "";
  const cursor = Buffer.from(JSON.stringify(middle?.id)).toString("base64url");
  const half = String(Number(large) + ID_STEP + LARGE_EVENTS / 2);
  const one = (at: number) => rows[at]?.id ?? large;
  const pages: [string, (at: number) => string][] = [
    ["list, newest", () => "/api/executions"],
    ["list, 500 from the middle", () => `/api/executions?limit=500&cursor=${cursor}`],
    ["list, of a path", () => "/api/executions?path=bench/steps&limit=100"],
    ["list, of a status that none has", () => "/api/executions?status=FAILED"],
    [
      "list, of a time",
      () => `/api/executions?since=${since}&until=${new Date(Date.parse(since) + 1_000).toISOString()}`,
    ],
    ["detail", (at) => `/api/executions/${one(at)}`],
    ["detail, of the large one", () => `/api/executions/${large}`],
    ["events", (at) => `/api/executions/${one(at)}/events`],
    ["events, first 500 of the large one", () => `/api/executions/${large}/events?limit=500`],
    ["events, 500 from its middle", () => `/api/executions/${large}/events?limit=500&after=${half}`],
    [
      "events, of a type that it hardly has",
      () => `/api/executions/${large}/events?event_type=task.done&after=${half}`,
    ],
    ["events, the last 500 of the large one", () => `/api/executions/${large}/events?order=desc&limit=500`],
    [
      "events, of a type that it has everywhere",
      () => `/api/executions/${large}/events?event_type=batch.completed&limit=500`,
    ],
    ["marks of the large one", () => `/api/executions/${large}/events/marks?every=500`],
    ["marks of a type that it hardly has", () => `/api/executions/${large}/events/marks?event_type=task.done`],
    [
      "marks of a type that it has everywhere",
      () => `/api/executions/${large}/events/marks?event_type=batch.completed`,
    ],
  ];
  const measured: Measurement[] = [];
  for (const [name, path] of pages) {
    const times: number[] = [];
    for (let at = 0; at <= CALLS; at += 1) {
      const began = performance.now();
      await call(app, path(at));
      // The first call of a kind pays for the preparation of its statements.
      if (at > 0) times.push(performance.now() - began);
    }
    const shown = `${((size?.events ?? 0) / 1e6).toFixed(1)} million events, ${name}, p95`;
    measured.push({ name: shown, value: quantile(times, 0.95), unit: "ms", target: TARGET_MS, better: "less" });
  }
  return measured;
}
