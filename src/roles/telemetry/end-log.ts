import type { ExecutionState } from "../../engine/state/state.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";

/** Failures told at `info` within a second; further ones go to `debug`, so that a storm of them does not drown the rest. */
const TOLD_PER_SECOND = 10;

/**
 * A line for each execution that ends: at `debug`, since a server may end a thousand in a second and its metrics count them;
 * at `info` where it failed, ten in a second at most.
 */
export function createEndLog(logger: Logger, now: () => number = Date.now): (state: ExecutionState) => void {
  let second = 0;
  let told = 0;
  const mayTell = () => {
    const current = Math.floor(now() / 1_000);
    if (current !== second) told = 0;
    second = current;
    told += 1;
    return told <= TOLD_PER_SECOND;
  };
  return ({ executionId, path, status, startedAt, endedAt, error }) => {
    const duration_ms = endedAt === null ? null : Math.max(0, endedAt - startedAt);
    const fields = { execution_id: executionId, path, status, duration_ms };
    if (status === "FAILED" && mayTell()) {
      logger.info({ ...fields, step: error?.step, error_code: error?.code }, "an execution failed");
    } else logger.debug(fields, `an execution ended ${status}`);
  };
}
