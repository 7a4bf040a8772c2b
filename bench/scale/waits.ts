import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { type Database, openDatabase } from "../../src/repositories/database/database.ts";
import { migrate } from "../../src/repositories/database/migrate.ts";
import { findLeftWork } from "../../src/repositories/orchestration/left-work.ts";
import { takeDueWaits } from "../../src/repositories/orchestration/waits.ts";
import { DUE_MAX } from "../../src/services/orchestration/wake.ts";
import { type Api, buildApi, call } from "../candidates/api-in-process.ts";
import { startBenchPostgres } from "../candidates/postgres.ts";
import { type Measurement, quantile } from "../report/measurement.ts";

/** How much {@link benchWaits} does. */
interface WaitAmounts {
  /** Timers that are due within one minute. */
  timers: number;
  /** Executions that wait for a month, meanwhile and alone. */
  parked: number;
}

const FULL: WaitAmounts = { timers: 100_000, parked: 1_000_000 };
const QUICK: WaitAmounts = { timers: 10_000, parked: 100_000 };

const MINUTE_MS = 60_000;
const MONTH_MS = 30 * 86_400_000;
/** What a timer may be late by, and a look for what is due may take, milliseconds. */
const LATE_MAX_MS = 5_000;
const SWEEP_MAX_MS = 50;
const SWEEPS = 50;
const COPIES_PER_STATEMENT = 1_000;
/** Ids of a copy are so far before those of the one before: what the server writes later has greater ones. */
const ID_STEP = 4_096;
const TABLES = ["execution", "event_log", "command", "wait"] as const;

const PLAYBOOK = `apiVersion: flow/v2
kind: Playbook
metadata: { name: waits, path: bench/waits }
workflow:
  - { step: pause, tool: { kind: wait, until: "{{ workload.due }}" }, next: { arcs: [{ step: end }] } }
  - { step: end, tool: { kind: noop } }
`;

/**
 * Waits at scale: how much memory of a server and how much of a look for what is due a million parked executions take, and how late timers
 * are that come due within one minute. An execution that the server has parked itself is copied with all its rows: starting as many would
 * take most of the time. The server is this process; it looks as the background work of a server does.
 */
export async function benchWaits(isQuick: boolean, log: (line: string) => void): Promise<Measurement[]> {
  const { timers, parked } = isQuick ? QUICK : FULL;
  const postgres = await startBenchPostgres();
  const folder = await mkdtemp(join(tmpdir(), "flow-bench-results-"));
  try {
    const database = openDatabase(await postgres.createDatabase("waits"));
    await migrate(database);
    const api = buildApi(database, folder);
    await call(api.app, "/api/catalog/register", { content: PLAYBOOK });
    const copyOf = await copier(database, api);
    const before = heapBytes();
    log(`  ${parked} parked executions …`);
    await copyOf(parked, () => Date.now() + MONTH_MS);
    await database.sql`vacuum analyze flow.wait`;
    const sweep = await sweepMs(database);
    const heap = (heapBytes() - before) / 1_048_576;
    log(`  ${timers} timers …`);
    const begin = Date.now() + 15_000 + timers;
    const due = await copyOf(timers, () => begin + Math.floor(Math.random() * MINUTE_MS));
    if (Date.now() > begin) throw new Error("The machine is too slow: timers were due before all of them were there");
    const late = await lateness(database, api, due);
    await api.service.orchestrator.close();
    await database.close();
    return [
      {
        name: `look for what is due, ${parked} parked, p95`,
        value: sweep,
        unit: "ms",
        target: SWEEP_MAX_MS,
        better: "less",
      },
      { name: `server memory for ${parked} parked executions`, value: heap, unit: "MiB", target: 5, better: "less" },
      { name: `${timers} timers within a minute: late, p50`, value: quantile(late, 0.5), unit: "ms" },
      { name: `${timers} timers within a minute: late, p99`, value: quantile(late, 0.99), unit: "ms" },
      {
        name: `${timers} timers within a minute: latest`,
        value: quantile(late, 1),
        unit: "ms",
        target: LATE_MAX_MS,
        better: "less",
      },
    ];
  } finally {
    await postgres.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Copies of an execution that waits, with the times at which they are due, by their ids. */
async function copier({ sql }: Database, { app }: Api) {
  let next = 1;
  let first: number | undefined;
  return async (count: number, dueOf: () => number): Promise<Map<string, number>> => {
    const due = new Date(Date.now() + MONTH_MS).toISOString();
    const { execution_id } = await call(app, "/api/execute", { path: "bench/waits", workload: { due } });
    const id = Number(execution_id);
    first ??= id;
    const base = first - id;
    const [{ catalog } = { catalog: "" }] = await sql<{ catalog: string }[]>`
      select catalog_id::text as catalog from flow.execution where execution_id = ${id}`;
    const texts = new Map<string, string>();
    for (const table of TABLES) {
      const [row] = await sql.unsafe<{ text: string }[]>(
        `select json_agg(t)::text as text from flow.${table} as t where execution_id = $1`,
        [id],
      );
      texts.set(table, row?.text.slice(1, -1) ?? "");
    }
    const made = new Map<string, number>();
    for (let from = 0; from < count; from += COPIES_PER_STATEMENT) {
      const copies = Array.from({ length: Math.min(COPIES_PER_STATEMENT, count - from) }, (_, at) => {
        const shift = base - (next + from + at) * ID_STEP;
        const copyDue = dueOf();
        made.set(String(id + shift), copyDue);
        const iso = new Date(copyDue).toISOString();
        // Those of the original are close to its own.
        const isOwn = (digits: string) => digits !== catalog && Math.abs(Number(digits) - id) < 1e6;
        const moved = (digits: string) => (isOwn(digits) ? String(Number(digits) + shift) : digits);
        return (text: string) => text.replace(/\b\d{14,17}\b/g, moved).replaceAll(due, iso);
      });
      for (const table of TABLES) {
        const text = `[${copies.map((copy) => copy(texts.get(table) ?? "")).join(",")}]`;
        await sql.unsafe(
          `insert into flow.${table} select * from json_populate_recordset(null::flow.${table}, $1::text::json)`,
          [text],
        );
      }
      // The column has another notation than the log.
      const ids = [...made.keys()].slice(-copies.length);
      const times = [...made.values()].slice(-copies.length).map(String);
      await sql`
        update flow.wait as w set due_at = to_timestamp(t.due / 1000.0)
        from unnest(${ids}::bigint[], ${times}::bigint[]) as t (id, due) where w.execution_id = t.id`;
    }
    next += count;
    await sql`delete from flow.wait where execution_id = ${id}`;
    return made;
  };
}

/** The 95th percentile of both statements of a look, where nothing is due. */
async function sweepMs(database: Database): Promise<number> {
  const times: number[] = [];
  for (let count = 0; count < SWEEPS; count += 1) {
    const began = performance.now();
    await findLeftWork(database);
    await takeDueWaits(database, 5_000, DUE_MAX);
    times.push(performance.now() - began);
  }
  return quantile(times, 0.95);
}

/** By how much each timer was late: from its time to the flush that ended its execution, by the database's clock. */
async function lateness(
  { sql, ...database }: Database,
  { service }: Api,
  due: ReadonlyMap<string, number>,
): Promise<number[]> {
  const { recovery } = service.orchestrator;
  const end = Math.max(...due.values());
  for (let left = due.size; left > 0; ) {
    const { waits, nextMs } = await findLeftWork({ ...database, sql });
    if (waits) while ((await recovery.wake()) === DUE_MAX) recovery.sweep();
    else await sleep(Math.min(700, Math.max(20, nextMs ?? 700)));
    recovery.sweep();
    // What a round has no time for is woken, and goes on in a later one.
    if (Date.now() > end) left = await openOf(sql, [...due.keys()]);
    if (left > 0 && Date.now() > end + 2 * MINUTE_MS)
      throw new Error(`${left} executions have not ended two minutes after their time`);
  }
  const late: number[] = [];
  const rows = await sql<{ id: string; at: string }[]>`
    select execution_id::text as id, extract(epoch from ended_at) * 1000 as at from flow.execution
    where execution_id = any(${[...due.keys()]}::bigint[])`;
  for (const { id, at } of rows) late.push(Number(at) - (due.get(id) ?? 0));
  return late;
}

async function openOf(sql: Database["sql"], ids: readonly string[]): Promise<number> {
  const [row] = await sql<{ count: number }[]>`
    select count(*)::int as count from flow.execution
    where execution_id = any(${[...ids]}::bigint[]) and ended_at is null`;
  return row?.count ?? 0;
}

/** Memory in use after a collection. */
function heapBytes(): number {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  return process.memoryUsage().heapUsed;
}
