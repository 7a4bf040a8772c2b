import type { ExecutionState } from "../../engine/state/state.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";
import type { Metrics } from "../../platform/telemetry/metrics.ts";
import type { Broker } from "../../ports/broker.ts";
import { NOTICE_COMMANDS_MAX } from "../../schema/words/notice.ts";
import type { OrchestratorObserver } from "../../services/orchestration/orchestrator.ts";
import type { OwnNotices } from "../../services/workers/own-notices.ts";
import type { ExecutionTraces } from "./execution-traces.ts";

/** Turns the orchestrator's events into metrics, log lines, and notices for other servers. */
export function createObserver(deps: {
  metrics: Metrics;
  logger: Logger;
  broker: Pick<Broker, "publish">;
  ownNotices: OwnNotices;
  /** Name of this server. */
  server: string;
  traces: Pick<ExecutionTraces, "ended"> | undefined;
}): OrchestratorObserver {
  const { metrics, logger, broker, ownNotices, server, traces } = deps;
  const logEnd = createEndLog(logger);
  return {
    committed({ moved, unclaimed, steps, ended, cancelled, timings }) {
      if (timings.executions > 0) metrics.flushed(timings.flushMs / 1_000, timings.executions, timings.events);
      for (const { status, durationMs } of steps) metrics.stepEnded(status, durationMs / 1_000);
      for (const state of ended) {
        logEnd(state);
        traces?.ended(state);
      }
      for (const { executionId, commands } of cancelled) {
        broker.publish({ kind: "cancel", executionId, stopped: commands.slice(0, NOTICE_COMMANDS_MAX) });
      }
      const over = new Set(ended.map(({ executionId }) => executionId));
      for (const [executionId, lastEventId] of moved) {
        const move = { executionId, lastEventId: String(lastEventId), ...(over.has(executionId) && { ended: true }) };
        broker.publish({ kind: "execution", ...move, server });
      }
      if (unclaimed.length === 0) return;
      ownNotices.published(unclaimed);
      broker.publish({ kind: "commands", commandIds: [...unclaimed] });
    },
    returned(commandIds) {
      for (let start = 0; start < commandIds.length; start += NOTICE_COMMANDS_MAX) {
        broker.publish({ kind: "commands", commandIds: commandIds.slice(start, start + NOTICE_COMMANDS_MAX) });
      }
    },
    batchAccepted: metrics.batchAccepted,
    ackTimedOut: metrics.batchTimedOut,
    firstClaim: metrics.batchFirstClaim,
    claimed: metrics.commandClaimed,
    fault: (error, executionIds) =>
      logger.error({ err: error, execution_ids: executionIds.slice(0, LOGGED_MAX) }, "advancing executions failed"),
  };
}

/** Ids in one log line. */
const LOGGED_MAX = 20;

/** Failures logged at `info` within a second; further ones go to `debug`, so that a storm of them does not drown the rest. */
const LOGGED_PER_SECOND = 10;

/**
 * A line for each execution that ends: at `debug`, since a server may end a thousand in a second and its metrics count them;
 * at `info` where it failed, ten in a second at most.
 */
export function createEndLog(logger: Logger, now: () => number = Date.now): (state: ExecutionState) => void {
  let second = 0;
  let logged = 0;
  const mayLog = () => {
    const current = Math.floor(now() / 1_000);
    if (current !== second) logged = 0;
    second = current;
    logged += 1;
    return logged <= LOGGED_PER_SECOND;
  };
  return ({ executionId, path, status, startedAt, endedAt, error }) => {
    const duration_ms = endedAt === null ? null : Math.max(0, endedAt - startedAt);
    const fields = { execution_id: executionId, path, status, duration_ms };
    if (status === "FAILED" && mayLog()) {
      logger.info({ ...fields, step: error?.step, error_code: error?.code }, "an execution failed");
    } else logger.debug(fields, `an execution ended ${status}`);
  };
}
