import { createPostgresExecutionStore } from "../adapters/postgres-execution-store.ts";
import { systemClock } from "../adapters/system-clock.ts";
import { resultOf } from "../engine/results.ts";
import { boundedResult } from "../language/bounded-result.ts";
import type { Config } from "../platform/config.ts";
import { findById } from "../repositories/catalog.ts";
import type { Database } from "../repositories/database.ts";
import { isRetryable, unavailable, violatedConstraint } from "../repositories/failure.ts";
import type { JsonObject } from "../schema/json.ts";
import type { Advance, AdvanceDeps, AdvanceObserver } from "../services/advance.ts";
import { type Batches, createBatches } from "../services/batch-status.ts";
import { createAdvance } from "../services/create-advance.ts";
import { createExecutions, type Executions } from "../services/executions.ts";
import { createPrograms } from "../services/programs.ts";
import { reportEvents } from "../services/reports.ts";
import { createResultFiles } from "../services/result-files.ts";
import { createResults, type Results } from "../services/results.ts";
import { createWorkers, type Workers } from "../services/workers.ts";

/** Settings that the service's parts read. */
export type ServiceConfig = Pick<
  Config,
  | "batchEnqueueTimeoutMs"
  | "batchQueueMax"
  | "batchProcessingTimeoutMs"
  | "batchProcessors"
  | "batchStatusPollMs"
  | "claimHardTimeoutMs"
  | "claimLeaseMs"
  | "reaperHardTimeoutMs"
  | "reaperWorkerStaleMs"
  | "resultBytesMax"
  | "resultTtlMs"
>;

/** What the service is made of. */
export interface ServiceDeps {
  database: Database;
  /** A pool of its own for writing; default: `database`. */
  flushDatabase?: Database;
  config: ServiceConfig;
  /** Folder of results that are too large for the database. */
  resultsFolder: string;
  /** Name of this server, unique among those of one database. */
  processor: string;
  /** The allow-listed environment, readable as `env` in templates. */
  env: JsonObject;
  observer: AdvanceObserver;
  /** The place of a new execution in a trace; default: directly under its caller. */
  traceOf?: AdvanceDeps["traceOf"];
}

/** The use cases of executions, over one database. */
export interface Service {
  advance: Advance;
  executions: Executions;
  workers: Workers;
  batches: Batches;
  results: Results;
  report: ReturnType<typeof reportEvents>;
}

/** Builds the service. It works until `advance.close()`. */
export function createService(deps: ServiceDeps): Service {
  const { database, config, observer, env } = deps;
  const hardTimeoutMs = config.claimHardTimeoutMs ?? config.reaperHardTimeoutMs;
  const policy = { staleMs: config.reaperWorkerStaleMs, hardTimeoutMs };
  const results = createResults({
    database,
    files: createResultFiles(deps.resultsFolder),
    bytesMax: config.resultBytesMax,
    ttlMs: config.resultTtlMs,
  });
  const advance = createAdvance({
    store: createPostgresExecutionStore({ ...deps, policy }),
    programs: createPrograms((catalogId) => findById(database, catalogId)),
    results,
    clock: systemClock,
    defer: setImmediate,
    env,
    ...(deps.traceOf !== undefined && { traceOf: deps.traceOf }),
    limits: {
      leaseMs: config.claimLeaseMs,
      ackMs: config.batchEnqueueTimeoutMs,
      queueMax: config.batchQueueMax,
      processingMs: config.batchProcessingTimeoutMs,
      processors: config.batchProcessors,
    },
    resultOf: (state) => {
      const result = resultOf(state);
      return result === null ? null : boundedResult(result);
    },
    isRetryable,
    isDuplicateKey: (error) => /_for_idempotency$/.test(violatedConstraint(error) ?? ""),
    unavailable,
    observer,
  });
  return {
    advance,
    results,
    executions: createExecutions({ database, advance, results, now: systemClock.now }),
    workers: createWorkers({ database, advance, policy, leaseMs: config.claimLeaseMs }),
    batches: createBatches({ database, advance, pollMs: config.batchStatusPollMs }),
    report: reportEvents({ database, advance }),
  };
}
