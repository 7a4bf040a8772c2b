import { Counter, type Registry } from "prom-client";

/** Numbers of stored results. */
export interface ResultMetrics {
  /** A payload was kept, of so many bytes before compression. */
  resultStored(store: string, bytes: number): void;
  /** A payload, or that many bytes of it, was read. */
  resultRead(store: string, bytes: number): void;
  /** Results were taken away, and why. */
  resultsRemoved(reason: string, count: number): void;
  /** A request to a store failed. */
  resultStoreFailed(store: string, doing: string): void;
  /** What a store has is not what was written. */
  resultDamaged(store: string): void;
}

const STORES = ["kv", "s3", "cloud_bucket", "sqldb", "disk"];

/** The series of stored results; those that matter most are there from the start. */
export function resultSeries(registers: Registry[]): ResultMetrics {
  const counter = <L extends string>(name: string, help: string, labelNames: L[]) =>
    new Counter({ name, help, labelNames, registers });
  const stored = counter("flow_results_stored_total", "Payloads of results that were kept", ["store"]);
  const storedBytes = counter("flow_results_stored_bytes_total", "Their bytes before compression", ["store"]);
  const read = counter("flow_results_read_total", "Payloads of results that were asked for", ["store"]);
  const readBytes = counter("flow_results_read_bytes_total", "Their bytes before compression", ["store"]);
  const removed = counter("flow_results_removed_total", "Results that were deleted, and why", ["reason"]);
  const failures = counter("flow_result_store_failures_total", "What a store did not do; it is tried again", [
    "store",
    "operation",
  ]);
  const damaged = counter("flow_results_damaged_total", "Reads that found another payload than was written", ["store"]);
  for (const store of STORES) {
    for (const series of [stored, storedBytes, read, readBytes, damaged]) series.inc({ store }, 0);
    failures.inc({ store, operation: "remove" }, 0);
  }
  for (const reason of ["expired", "scope", "execution"]) removed.inc({ reason }, 0);
  return {
    resultStored(store, bytes) {
      stored.inc({ store });
      storedBytes.inc({ store }, bytes);
    },
    resultRead(store, bytes) {
      read.inc({ store });
      readBytes.inc({ store }, bytes);
    },
    resultsRemoved: (reason, count) => removed.inc({ reason }, count),
    resultStoreFailed: (store, operation) => failures.inc({ store, operation }),
    resultDamaged: (store) => damaged.inc({ store }),
  };
}
