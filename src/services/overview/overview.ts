import type { Database } from "../../repositories/database/database.ts";
import { unreachable } from "../../repositories/database/error-codes.ts";
import { databaseNumbers } from "../../repositories/doctor/database-health.ts";
import {
  batchNumbers,
  databaseClock,
  leaseHolder,
  listedServers,
  listedWorkers,
  openExecutions,
} from "../../repositories/doctor/overview.ts";
import { type Reading, readOnly } from "../../repositories/doctor/read-snapshot.ts";
import { waitingCommands } from "../../repositories/doctor/stuck-work.ts";
import { EXECUTIONS_NAMED_MAX } from "../../schema/api/doctor.ts";
import {
  OVERVIEW_COMMANDS_MAX,
  OVERVIEW_COUNT_MAX,
  OVERVIEW_WORKERS_MAX,
  type Overview,
  type OverviewWorker,
  type Verdict,
} from "../../schema/api/overview.ts";
import { isInServer } from "../../schema/rules/pool-label.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { counted } from "../diagnosis/finding.ts";
import { REAPER_LEASE } from "../workers/reaper.ts";
import { type CauseLimits, causesOf, DATABASE_PART, type Seen } from "./causes.ts";
import { batchesPart, bounded, queuePart, reaperPart, type SeenReaper, workerPart } from "./parts.ts";

/** What is looked at. */
export interface OverviewDeps {
  database: Database;
  /** The database is this server's own. */
  embedded: boolean;
  /** Undefined: not configured. */
  broker?: { isUp(): boolean; latencyMs(): Promise<number | undefined> };
  reaper: SeenReaper;
  /** This process among the servers. */
  server: string;
  /** Silence after which a worker counts as gone. */
  staleMs: number;
  now(): number;
}

/** Limit of one statement, and of one part: a person waits for the page. */
const STATEMENT_MS = 2_000;
const PART_MS = 4_000;
/** Failed batches are counted among this many newest ones. */
const BATCHES_LOOKED = 1_000;
/** Servers that are named, and their silence after which they are not. */
const SERVERS_MAX = 50;
const SERVER_SILENT_MS = 120_000;

/**
 * Why nothing is running, from the present state. Each part is read separately: a part that cannot be read is null and listed
 * in `missing`. Never throws when the database is unavailable: that is an answer too.
 */
export function createOverview(deps: OverviewDeps): () => Promise<Overview> {
  const { database, staleMs } = deps;
  return async () => {
    const missing: Overview["missing"] = [];
    let away: string | undefined;
    const part = async <T>(name: string, look: () => Promise<T>): Promise<T | null> => {
      try {
        if (away !== undefined) throw new Error(away);
        return await inTime(look());
      } catch (error) {
        const gone = unreachable(error) ?? (error instanceof FlowError ? error : undefined);
        if (gone !== undefined) away = gone.message;
        missing.push({ part: name, why: gone?.message ?? messageOf(error) });
        return null;
      }
    };
    const read = <T>(name: string, look: (reading: Reading) => Promise<T>) =>
      part(name, () => readOnly(database, STATEMENT_MS, look));
    const state = await part(DATABASE_PART, () => databasePart(deps));
    const nowMs = state?.nowMs ?? deps.now();
    const listed = await read("workers", (reading) =>
      listedWorkers(reading, { limit: OVERVIEW_WORKERS_MAX + 1, commandsMax: OVERVIEW_COMMANDS_MAX }),
    );
    const workers = listed && {
      items: listed.slice(0, OVERVIEW_WORKERS_MAX).map((worker): OverviewWorker => workerPart(worker, staleMs)),
      more: listed.length > OVERVIEW_WORKERS_MAX,
    };
    const waiting = await read("the queue", (reading) =>
      waitingCommands(reading, { staleMs: 0, rowsMax: OVERVIEW_COUNT_MAX + 1, executionsMax: EXECUTIONS_NAMED_MAX }),
    );
    const open = await read("executions", (reading) => openExecutions(reading, OVERVIEW_COUNT_MAX + 1));
    const batches = await read("batches", (reading) => batchNumbers(reading, OVERVIEW_COUNT_MAX + 1, BATCHES_LOOKED));
    const holder = await read("the reaper", (reading) => leaseHolder(reading, REAPER_LEASE));
    const servers = await read("servers", (reading) => listedServers(reading, SERVER_SILENT_MS, SERVERS_MAX));
    const seen = {
      missing,
      workers,
      queue: waiting && queuePart(waiting, workers?.items ?? [], nowMs),
      executions: open && {
        running: bounded(open.running),
        pending: bounded(open.pending),
        paused: bounded(open.paused),
      },
      batches: batches && batchesPart(batches),
      reaper: missing.some(({ part: name }) => name === "the reaper") ? null : reaperPart(deps.reaper, holder),
      database: state?.shown ?? null,
      broker: await brokerPart(deps),
      servers:
        servers?.map((server) => ({
          name: server.name,
          answers: server.name === deps.server,
          version: typeof server.about["version"] === "string" ? server.about["version"] : null,
          started_at: server.createdAt.toISOString(),
          heartbeat_age_ms: server.heartbeatAgeMs,
        })) ?? null,
    };
    return { at: new Date(nowMs).toISOString(), verdict: verdictOf(seen), ...seen };
  };
}

/** Open executions of each status are counted to this many. */
const OPEN_COUNTED_MAX = 100_000;
/** `GET /metrics` needs no token: however often it is asked, the database is not asked more often. */
const OPEN_COUNTED_EVERY_MS = 10_000;

/**
 * Counts open executions of the whole database by their status, for metrics: at most every ten seconds, a call in between gets what was
 * counted last. Undefined while the database does not answer.
 */
export function createOpenCounts({
  database,
  now,
}: Pick<OverviewDeps, "database" | "now">): () => Promise<OpenByStatus | undefined> {
  let last: { at: number; counts: Promise<OpenByStatus | undefined> } | undefined;
  const count = async () => {
    const open = await readOnly(database, STATEMENT_MS, (reading) => openExecutions(reading, OPEN_COUNTED_MAX));
    return { PENDING: open.pending, RUNNING: open.running, PAUSED: open.paused };
  };
  return async () => {
    const at = now();
    if (last === undefined || Math.abs(at - last.at) >= OPEN_COUNTED_EVERY_MS) {
      last = { at, counts: inTime(count()).catch(() => undefined) };
    }
    return await last.counts;
  };
}

/** How many open executions there are, by status. */
export type OpenByStatus = Record<"PENDING" | "RUNNING" | "PAUSED", number>;

async function databasePart({ database, embedded }: OverviewDeps) {
  const from = performance.now();
  const { now: moment, version } = await databaseClock(database);
  const latencyMs = performance.now() - from;
  const { bytes, connections, connectionsMax } = await readOnly(database, STATEMENT_MS, databaseNumbers);
  return {
    nowMs: moment.getTime(),
    shown: {
      latency_ms: Math.round(Math.max(0, latencyMs) * 100) / 100,
      embedded,
      bytes,
      connections,
      connections_max: connectionsMax,
      version,
    },
  };
}

async function brokerPart({ broker }: OverviewDeps): Promise<Overview["broker"]> {
  if (broker === undefined) return { kind: "process", connected: true, latency_ms: null };
  const latencyMs = await broker.latencyMs().catch(() => undefined);
  return { kind: "nats", connected: broker.isUp(), latency_ms: latencyMs ?? null };
}

/** The driver waits for a connection without a limit; the page must show that it waits. */
async function inTime<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const error = new FlowError("UNAVAILABLE", `the database did not answer within ${PART_MS / 1_000} s`);
    timer = setTimeout(() => reject(error), PART_MS);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
    work.catch(() => undefined);
  }
}

/** Why nothing is running, or that everything is well, in one sentence. */
export function verdictOf(seen: Seen, limits?: CauseLimits): Verdict {
  const causes = causesOf(seen, limits);
  const [first] = causes;
  if (first === undefined) return { level: "good", what: wellSentence(seen), causes };
  return { level: first.level === "anomaly" ? "bad" : "warn", what: first.what, causes };
}

/** What a healthy service does at the moment; why nothing runs where nothing does. */
function wellSentence({ workers, queue, executions }: Seen): string {
  const items = workers?.items ?? [];
  const ready = items.filter(({ status, labels }) => status === "ready" && !isInServer(labels));
  const running = items.reduce((sum, worker) => sum + worker.running, 0);
  const free = ready.reduce((sum, worker) => sum + Math.max(0, worker.capacity - worker.running), 0);
  const waiting = queue?.waiting.count ?? 0;
  const room = `${counted(ready.length, "worker")} ${ready.length === 1 ? "is" : "are"} ready with ${counted(free, "free slot")}`;
  if (running > 0 || waiting > 0) {
    const more = queue?.waiting.more ? "more than " : "";
    const runs = `${counted(running, "command")} ${running === 1 ? "is" : "are"} running`;
    const waits = `${more}${counted(waiting, "command")} about to be taken`;
    const parts = [...(running > 0 ? [runs] : []), ...(waiting > 0 ? [waits] : [])];
    return `${parts.join(", ")}; ${room}.`;
  }
  const open = (executions?.running.count ?? 0) + (executions?.pending.count ?? 0);
  const paused = executions?.paused.count ?? 0;
  if (open > 0)
    return `${counted(open, "execution")} ${open === 1 ? "is" : "are"} open, and wait for time or for one another; ${room}.`;
  if (paused > 0) return `Nothing runs, because what is open is paused (${counted(paused, "execution")}); ${room}.`;
  return `Nothing runs, because nothing was started; ${room}.`;
}
