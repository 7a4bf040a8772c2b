import type { Logger } from "../../platform/telemetry/logger.ts";
import type { ResultMetrics } from "../../platform/telemetry/result-metrics.ts";
import type { ResultsObserver } from "../../services/results/observer.ts";

/** Turns the result store's events into metrics and log lines. */
export function createResultsObserver(metrics: ResultMetrics, logger: Logger): ResultsObserver {
  return {
    stored: metrics.resultStored,
    read: metrics.resultRead,
    removed: metrics.resultsRemoved,
    failed(store, doing, error) {
      metrics.resultStoreFailed(store, doing);
      logger.warn({ err: error, store, doing }, "a store of results failed; the same is tried again");
    },
    damaged(store, ref) {
      metrics.resultDamaged(store);
      logger.error({ store, ref }, "a stored result is not what was written (sha256 differs); it was not given out");
    },
  };
}
