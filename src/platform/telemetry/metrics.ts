import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry, Summary } from "prom-client";
import { CLOSE_REASONS, type CloseReason } from "../../schema/routes/messages.ts";
import { FIRE_STATUSES, TRIGGER_KINDS } from "../../schema/triggers/trigger.ts";
import { PROCESS_METRICS, REQUEST_SECONDS, type RequestMetrics, requestSeries } from "./request-metrics.ts";
import { type ResultMetrics, resultSeries } from "./result-metrics.ts";

/** The numbers of one process, in Prometheus' text format. */
export interface Metrics extends ResultMetrics, RequestMetrics, WorkerConnectionMetrics {
  /** A version was added to the catalog, or (`unchanged`) was there already. */
  catalogRegistered(kind: string, outcome: "created" | "unchanged"): void;
  /** A batch of events is in the log, or was not taken in time. */
  batchAccepted(seconds: number): void;
  batchTimedOut(): void;
  /** The first command that follows from a batch was claimed. */
  batchFirstClaim(seconds: number): void;
  /** A command was claimed after it had been ready for so long. */
  commandClaimed(queuedSeconds: number): void;
  /** A claim request was answered. */
  claimAnswered(seconds: number): void;
  /** A step ended. */
  stepEnded(status: "COMPLETED" | "FAILED", seconds: number): void;
  /** One statement wrote so many executions and events. */
  flushed(seconds: number, executions: number, events: number): void;
  /** A trigger fired for a time or a delivery this long after it, or did not. */
  triggerFired(fire: { kind: string; status: string; lateMs: number }): void;
  /** The reaper looked; `undefined`: another server holds its lease. */
  reaperSwept(republished: Readonly<Record<ReaperReason, number>> | undefined): void;
  /** `GET /metrics`. */
  expose(): Promise<{ contentType: string; text: string }>;
}

/** Numbers of worker connections. `open`: how many there are from then on. */
export interface WorkerConnectionMetrics {
  workerConnectionOpened(open: number): void;
  /** `left`: by the worker, or by the network. */
  workerConnectionClosed(reason: CloseReason | "left", open: number): void;
}

/** Why the reaper published a command again. */
export type ReaperReason = "pending" | "worker" | "timeout";
const REAPER_REASONS: readonly ReaperReason[] = ["pending", "worker", "timeout"];

/** Statuses of executions that have not ended. */
const OPEN_STATUSES = ["PENDING", "RUNNING", "PAUSED"] as const;

const NONE_OPEN = { PENDING: 0, RUNNING: 0, PAUSED: 0 };

/** What is read when the metrics are asked for. */
export interface MetricSources {
  queueDepth?(): number;
  executionsInMemory?(): number;
  /** Undefined where the database does not answer. Default: there are none. */
  openExecutions?(): Promise<Record<(typeof OPEN_STATUSES)[number], number> | undefined>;
}

/** A separate registry, so that two servers in one process (tests) do not count for each other. */
export function createMetrics(sources: MetricSources = {}): Metrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ ...PROCESS_METRICS, register: registry });
  const batches = batchSeries(registers, sources.queueDepth ?? (() => 0));
  const work = workSeries(registers);
  new Gauge({
    name: "flow_executions_in_memory",
    help: "Executions whose state is kept in memory to advance them",
    registers,
    collect() {
      this.set(sources.executionsInMemory?.() ?? 0);
    },
  });
  new Gauge({
    name: "flow_executions_open",
    help: "Executions that have not ended by status, of all servers, each counted to 100000",
    labelNames: ["status"] as const,
    registers,
    async collect() {
      const counts = sources.openExecutions === undefined ? NONE_OPEN : await sources.openExecutions();
      // Unknown is not zero: an alert on it must not go off, nor end.
      for (const status of OPEN_STATUSES) this.set({ status }, counts?.[status] ?? Number.NaN);
    },
  });
  const help = "Time from a request's arrival to its answer";
  const requests = requestSeries(registers, "flow_http_request_duration_seconds", help);
  const registrations = new Counter({
    name: "flow_catalog_registrations_total",
    help: "Accepted registrations by kind of resource, and whether they made a version",
    labelNames: ["kind", "outcome"] as const,
    registers,
  });
  for (const kind of ["playbook", "agent", "mcp", "trigger"]) {
    for (const outcome of ["created", "unchanged"]) registrations.inc({ kind, outcome }, 0);
  }
  return {
    ...requests,
    catalogRegistered: (kind, outcome) => registrations.inc({ kind, outcome }),
    ...batches,
    ...work,
    ...triggerSeries(registers),
    expose: async () => ({ contentType: registry.contentType, text: await registry.metrics() }),
  };
}

/**
 * The series of event batches, under the names of the interface specification. They are zero from the start, so that a
 * dashboard or an alert can distinguish "nothing happened" from "nothing is measured".
 */
function batchSeries(registers: Registry[], queueDepth: () => number) {
  // Without percentiles a summary is exactly the two series `_sum` and `_count` that the specification names.
  const summary = (name: string, help: string) => new Summary({ name, help, percentiles: [], registers });
  const enqueue = summary("noetl_batch_enqueue_latency_seconds", "Time until an accepted batch was in the queue");
  const claim = summary(
    "noetl_batch_first_worker_claim_latency_seconds",
    "Time from a batch to the first claim of its commands",
  );
  const timeouts = new Counter({
    name: "noetl_batch_ack_timeout_total",
    help: "Batches whose enqueueing took too long",
    registers,
  });
  new Gauge({
    name: "noetl_batch_queue_depth",
    help: "Batches accepted and not yet processed",
    registers,
    collect() {
      this.set(queueDepth());
    },
  });
  return {
    batchAccepted: (seconds: number) => enqueue.observe(seconds),
    batchTimedOut: () => timeouts.inc(),
    batchFirstClaim: (seconds: number) => claim.observe(seconds),
  };
}

/** What triggers have fired, and how punctual they are. */
function triggerSeries(registers: Registry[]) {
  const fires = new Counter({
    name: "flow_trigger_fires_total",
    help: "Fires of triggers by their kind and what has become of them",
    labelNames: ["kind", "status"] as const,
    registers,
  });
  for (const status of FIRE_STATUSES) {
    if (status === "queued") continue;
    for (const kind of TRIGGER_KINDS) if (status !== "missed" || kind === "schedule") fires.inc({ kind, status }, 0);
  }
  const late = new Histogram({
    name: "flow_trigger_lateness_seconds",
    help: "Time from when a fire was due to the start of its execution",
    buckets: [0.1, 0.5, 1, 2, 5, 10, 30, 60, 300, 3_600],
    registers,
  });
  return {
    triggerFired({ kind, status, lateMs }: Parameters<Metrics["triggerFired"]>[0]) {
      fires.inc({ kind, status });
      if (status === "started") late.observe(lateMs / 1_000);
    },
  };
}

/** Seconds that commands wait and steps last: from a millisecond to an hour. */
const WORK_SECONDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 3_600];

/** What operators look at when nothing moves: the claims, the age of the queue, the steps, the database, the reaper. */
function workSeries(registers: Registry[]) {
  const histogram = (name: string, help: string, buckets: number[]) =>
    new Histogram({ name, help, buckets, registers });
  const age = histogram("flow_command_queue_age_seconds", "Time that a claimed command had been ready", WORK_SECONDS);
  const claims = histogram("flow_claim_duration_seconds", "Time to answer a claim, its waiting included", WORK_SECONDS);
  const claimed = new Counter({ name: "flow_commands_claimed_total", help: "Commands given to workers", registers });
  const database = histogram("flow_database_flush_seconds", "Time of a statement that writes a round", REQUEST_SECONDS);
  const events = new Counter({ name: "flow_events_written_total", help: "Events written to the log", registers });
  const moves = new Counter({ name: "flow_executions_moved_total", help: "Changes of executions written", registers });
  const steps = new Histogram({
    name: "flow_step_duration_seconds",
    help: "Time from a step's start to its end",
    labelNames: ["status"] as const,
    buckets: WORK_SECONDS,
    registers,
  });
  for (const status of ["COMPLETED", "FAILED"]) steps.zero({ status });
  return {
    ...reaperSeries(registers),
    ...resultSeries(registers),
    ...connectionSeries(registers),
    commandClaimed: (seconds: number) => {
      age.observe(seconds);
      claimed.inc();
    },
    claimAnswered: (seconds: number) => claims.observe(seconds),
    stepEnded: (status: "COMPLETED" | "FAILED", seconds: number) => steps.observe({ status }, seconds),
    flushed(seconds: number, executions: number, written: number) {
      database.observe(seconds);
      moves.inc(executions);
      events.inc(written);
    },
  };
}

function connectionSeries(registers: Registry[]): WorkerConnectionMetrics {
  const open = new Gauge({ name: "flow_worker_connections", help: "Worker connections that are open", registers });
  const closed = new Counter({
    name: "flow_worker_connections_closed_total",
    help: "Worker connections that ended, and why",
    labelNames: ["reason"] as const,
    registers,
  });
  for (const reason of ["left", ...Object.keys(CLOSE_REASONS)]) closed.inc({ reason }, 0);
  return {
    workerConnectionOpened: (count) => open.set(count),
    workerConnectionClosed(reason, count) {
      open.set(count);
      closed.inc({ reason });
    },
  };
}

function reaperSeries(registers: Registry[]) {
  const sweeps = new Counter({
    name: "flow_command_reaper_sweeps_total",
    help: "Sweeps of the command reaper by this server",
    registers,
  });
  const leader = new Gauge({
    name: "flow_command_reaper_leader",
    help: "1 while this server holds the reaper's lease",
    registers,
  });
  const republished = new Counter({
    name: "flow_command_reaper_republished_total",
    help: "Stranded commands whose notification was published again",
    labelNames: ["reason"] as const,
    registers,
  });
  for (const reason of REAPER_REASONS) republished.inc({ reason }, 0);
  return {
    reaperSwept(found: Readonly<Record<ReaperReason, number>> | undefined) {
      leader.set(found === undefined ? 0 : 1);
      if (found === undefined) return;
      sweeps.inc();
      for (const reason of REAPER_REASONS) republished.inc({ reason }, found[reason]);
    },
  };
}
