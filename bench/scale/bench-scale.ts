import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import type { Measurement } from "../report/measurement.ts";
import { quantile } from "../report/measurement.ts";
import { closedLoop } from "../service/load.ts";
import { type Filling, fill, holderNames } from "./fill.ts";
import { type Fleet, type FleetSize, PROCESS_KINDS, type ProcessKind, startFleet } from "./fleet.ts";
import { startHolders } from "./holders.ts";
import { dearestStatements, resetStatements, type StatementTime, statementTimes } from "./statements.ts";

/** How much {@link benchScale} does. */
export interface ScaleAmounts extends FleetSize, Filling {
  /** Workflows of a round, and rounds of each service, of which the middle one counts. */
  workflows: number;
  rounds: number;
  /** Callers that wait for executions which do not end, and for how long the services are watched at rest. */
  callers: number;
  restSeconds: number;
}

/** What is asked for: half an hour, 8 GB of memory and 20 GB of disk. */
export const FULL_SCALE: ScaleAmounts = {
  ...{ servers: 3, workers: 20 },
  ...{ events: 10_000_000, openExecutions: 100_000, holders: 20 },
  ...{ workflows: 300, rounds: 5, callers: 200, restSeconds: 30 },
};

/** A tenth of everything but the servers. */
export const QUICK_SCALE: ScaleAmounts = {
  ...{ servers: 3, workers: 6 },
  ...{ events: 1_000_000, openExecutions: 10_000, holders: 6 },
  ...{ workflows: 200, rounds: 3, callers: 50, restSeconds: 15 },
};

const STEPS = 10;
const IN_FLIGHT = 64;
/** Starts beside the load, whose answers do not wait for the end. */
const STARTS_PER_SECOND = 20;
/** Cost in a full service over that in an empty one. */
const RATIO_MAX = 1.2;

/**
 * Two services of the same size, each with a PostgreSQL and a broker of its own: one has a new database, the other one is filled. Both
 * get the load of B1 in turns, and each kind of process is measured. Then both rest while callers wait.
 */
export async function benchScale(amounts: ScaleAmounts, log: (line: string) => void): Promise<Measurement[]> {
  const fleets: Fleet[] = [];
  try {
    log(`  starting two services of ${amounts.servers} servers and ${amounts.workers} workers`);
    const empty = await startFleet("empty", amounts);
    fleets.push(empty);
    const full = await startFleet("full", amounts);
    fleets.push(full);
    log(`  filling one: ${(amounts.events / 1e6).toFixed(0)} million events`);
    await fill(full, amounts, log);
    const holders = await startHolders(full, holderNames(amounts));
    log("  vacuum, analyze, checkpoint");
    for (const { sql } of fleets) await settle(sql);
    for (const fleet of fleets) await warm(fleet, amounts.workflows);
    const rests = new Map<string, Rest>();
    for (const fleet of fleets) rests.set(fleet.name, await rest(fleet, amounts, log));
    const rounds = await inTurns(fleets, amounts, log);
    const memory = new Map<string, Memory>();
    for (const fleet of fleets) memory.set(fleet.name, await fleet.memoryMb());
    await holders.stop();
    return [...costLines(rounds, rests), ...restLines(rests, amounts), ...memoryLines(memory)];
  } finally {
    for (const fleet of fleets.reverse()) await fleet.stop();
  }
}

async function settle(sql: Fleet["sql"]): Promise<void> {
  await sql`vacuum (analyze) flow.event_log, flow.execution, flow.command`;
  await sql`checkpoint`;
}

/** One round of load on one service. */
interface Round {
  /** Microseconds of CPU per step. */
  perStep: Record<ProcessKind, number>;
  stepsPerSecond: number;
  ms: number;
  steps: number;
  /** How long a start took that did not wait for the end, ms. */
  starts: number[];
  walBytes: number;
  /** The statement that writes a round. */
  flush: StatementTime | undefined;
}

async function inTurns(fleets: readonly Fleet[], amounts: ScaleAmounts, log: (line: string) => void) {
  const rounds = new Map<string, Round[]>(fleets.map(({ name }) => [name, []]));
  for (let turn = 0; turn < amounts.rounds; turn += 1) {
    // The first of a pair is not always the same one.
    for (const fleet of turn % 2 === 0 ? fleets : [...fleets].reverse()) {
      const round = await load(fleet, amounts.workflows);
      rounds.get(fleet.name)?.push(round);
      const parts = PROCESS_KINDS.map((kind) => `${kind} ${round.perStep[kind].toFixed(0)}`).join(", ");
      log(`  ${fleet.name}: ${round.stepsPerSecond.toFixed(0)} steps/s; µs per step: ${parts}`);
      if (turn !== amounts.rounds - 1) continue;
      for (const line of await dearestStatements(fleet.sql, 8)) log(`  ${fleet.name}, with load: ${line}`);
    }
  }
  return rounds;
}

async function warm(fleet: Fleet, workflows: number): Promise<void> {
  // Registers the playbook.
  await fleet.execute({ kind: "chain", steps: STEPS });
  await load(fleet, workflows);
}

async function load(fleet: Fleet, workflows: number): Promise<Round> {
  const { sql } = fleet;
  await resetStatements(sql);
  const before = await used(fleet);
  const wal = await walPlace(sql);
  const done = new AbortController();
  const starting = startSome(fleet, done.signal);
  const { ms } = await closedLoop(workflows, IN_FLIGHT, () => fleet.execute({ kind: "chain", steps: STEPS }));
  done.abort();
  const starts = await starting;
  const after = await used(fleet);
  const steps = (workflows + starts.length) * STEPS;
  return {
    perStep: perUnit(before, after, steps),
    stepsPerSecond: (workflows * STEPS * 1_000) / ms,
    ...{ ms, steps },
    starts,
    walBytes: ((await walPlace(sql)) - wal) / steps,
    flush: (await statementTimes(sql)).get("flush"),
  };
}

/** Starts executions beside a load, one after the other, each at the next server; how long each start took. Waits for their ends. */
async function startSome({ clients }: Fleet, signal: AbortSignal): Promise<number[]> {
  const starts: number[] = [];
  const ends: Promise<unknown>[] = [];
  while (!signal.aborted) {
    const client = clients[starts.length % clients.length];
    const begun = performance.now();
    // The answer of the API.
    const answer = (await client?.post("/api/execute", { path: `bench/chain-${STEPS}` })) as { execution_id: string };
    starts.push(performance.now() - begun);
    ends.push(Promise.resolve(client?.get(`/api/executions/${answer.execution_id}/result?wait_ms=30000`)));
    await sleep(1_000 / STARTS_PER_SECOND, undefined, { signal }).catch(() => undefined);
  }
  await Promise.all(ends);
  return starts;
}

async function walPlace(sql: Fleet["sql"]): Promise<number> {
  const [row] = await sql<[{ bytes: number }]>`
    select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 as bytes`;
  return row.bytes;
}

type Used = Record<ProcessKind, number>;

async function used({ times }: Fleet): Promise<Used> {
  const entries = await Promise.all(PROCESS_KINDS.map(async (kind) => [kind, await times[kind]()] as const));
  return Object.fromEntries(entries) as Used;
}

function perUnit(before: Used, after: Used, units: number): Used {
  const entries = PROCESS_KINDS.map((kind) => [kind, (after[kind] - before[kind]) / units]);
  return Object.fromEntries(entries) as Used;
}

/** A service without load, for which callers wait. */
interface Rest {
  /** Microseconds of CPU per second. */
  perSecond: Used;
  statements: ReadonlyMap<string, StatementTime>;
  /** Of one sweep on request, the whole of it. */
  sweepMs: number[];
}

type Memory = Awaited<ReturnType<Fleet["memoryMb"]>>;

const SWEEPS = 5;
const CALLER_WAITS_MS = 10_000;

async function rest(fleet: Fleet, { callers, restSeconds }: ScaleAmounts, log: (line: string) => void): Promise<Rest> {
  const { sql, clients } = fleet;
  const open = await sql<{ id: string }[]>`
    select execution_id as id from flow.execution where status = 'RUNNING' order by execution_id desc limit ${callers}`;
  let isOver = false;
  const waiting = open.map(async ({ id }, index) => {
    while (!isOver)
      await clients[index % clients.length]?.get(`/api/executions/${id}/result?wait_ms=${CALLER_WAITS_MS}`);
  });
  await sleep(2_000);
  await resetStatements(sql);
  const before = await used(fleet);
  await sleep(restSeconds * 1_000);
  const perSecond = perUnit(before, await used(fleet), restSeconds);
  const sweepMs: number[] = [];
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const begun = performance.now();
    await clients[0]?.post("/api/admin/command_reaper/sweep", {});
    sweepMs.push(performance.now() - begun);
  }
  const statements = await statementTimes(sql);
  for (const line of await dearestStatements(sql, 8)) log(`  ${fleet.name}, at rest: ${line}`);
  isOver = true;
  await Promise.all(waiting);
  return { perSecond, statements, sweepMs };
}

/** A figure of the full service beside that of the empty one. */
function both(name: string, unit: string, of: (name: string) => number): Measurement {
  return { name: `scale: ${name}`, value: of("full"), unit, beside: { empty: of("empty") } };
}

function costLines(rounds: ReadonlyMap<string, Round[]>, rests: ReadonlyMap<string, Rest>): Measurement[] {
  const middle = (name: string, pick: (round: Round) => number) => quantile((rounds.get(name) ?? []).map(pick), 0.5);
  const all = (round: Round) => sum(round.perStep);
  const ratio = (name: string, pick: (round: Round) => number): Measurement => {
    const value = middle("full", pick) / middle("empty", pick);
    return { name: `scale: ${name}, full over empty`, value, unit: "×" };
  };
  /** Without what it costs anyway, whether steps run or not. */
  const aboveRest = (name: string) =>
    middle(name, (round) => all(round) - (sum(rests.get(name)?.perSecond) * round.ms) / 1_000 / round.steps);
  const starts = (name: string, share: number) =>
    quantile(
      (rounds.get(name) ?? []).flatMap((round) => round.starts),
      share,
    );
  return [
    both("CPU per step, all processes", "µs", (name) => middle(name, all)),
    { ...ratio("CPU per step, all processes", all), target: RATIO_MAX, better: "less" },
    both("the same above what they use at rest", "µs", aboveRest),
    {
      name: "scale: the same above what they use at rest, full over empty",
      ...{ value: aboveRest("full") / aboveRest("empty"), unit: "×", target: RATIO_MAX, better: "less" },
    },
    ...PROCESS_KINDS.flatMap((kind) => [
      both(`CPU per step, ${kind}`, "µs", (name) => middle(name, ({ perStep }) => perStep[kind])),
      ratio(`CPU per step, ${kind}`, ({ perStep }) => perStep[kind]),
    ]),
    both("steps", "/s", (name) => middle(name, ({ stepsPerSecond }) => stepsPerSecond)),
    both("a start beside the load, p50", "ms", (name) => starts(name, 0.5)),
    both("a start beside the load, p99", "ms", (name) => starts(name, 0.99)),
    both("write-ahead log per step", "bytes", (name) => middle(name, ({ walBytes }) => walBytes)),
    both("the statement of a round", "ms", (name) => middle(name, ({ flush }) => flush?.meanMs ?? Number.NaN)),
  ];
}

function restLines(rests: ReadonlyMap<string, Rest>, { callers }: ScaleAmounts): Measurement[] {
  const of = (pick: (rest: Rest) => number) => (name: string) => {
    const found = rests.get(name);
    return found === undefined ? Number.NaN : pick(found);
  };
  const names = [...new Set([...rests.values()].flatMap(({ statements }) => [...statements.keys()]))];
  return [
    ...PROCESS_KINDS.map((kind) =>
      both(
        `at rest, CPU of ${kind}`,
        "ms/s",
        of(({ perSecond }) => perSecond[kind] / 1_000),
      ),
    ),
    both(
      "a sweep of the reaper",
      "ms",
      of(({ sweepMs }) => quantile(sweepMs, 0.5)),
    ),
    ...names.flatMap((name) => [
      both(
        `at rest, ${callers} callers: ${name}`,
        "ms",
        of(({ statements }) => statements.get(name)?.meanMs ?? 0),
      ),
      both(
        `   calls of it`,
        "",
        of(({ statements }) => statements.get(name)?.calls ?? 0),
      ),
    ]),
  ];
}

function memoryLines(memory: ReadonlyMap<string, Memory>): Measurement[] {
  return [
    both("memory of the largest server", "MB", (name) => Math.max(...(memory.get(name)?.servers ?? []))),
    both("memory of all workers", "MB", (name) => memory.get(name)?.workers ?? Number.NaN),
  ];
}

function sum(used: Used | undefined): number {
  return PROCESS_KINDS.reduce((total, kind) => total + (used?.[kind] ?? Number.NaN), 0);
}
