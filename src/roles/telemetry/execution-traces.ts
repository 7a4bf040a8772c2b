import type { ExecutionState } from "../../engine/state/state.ts";
import { formatTraceparent, newTraceId, parseTraceparent, spanIdOf } from "../../platform/telemetry/trace-context.ts";
import type { Tracing } from "../../platform/telemetry/tracing.ts";
import type { TraceRef } from "../../schema/words/command.ts";

/** Spans of executions. */
export interface ExecutionTraces {
  /**
   * The place of a new execution: under its caller where that has a trace, kept or not; else, for its share of the executions,
   * at the root of a new one.
   */
  traceOf(executionId: string, traceparent: string | undefined): TraceRef | undefined;
  /** Sends the span of an execution that has ended. */
  ended(state: ExecutionState): void;
}

/** Traces executions. `ratio` is the share of those without a caller's trace that begin one. */
export function createExecutionTraces({
  tracing,
  ratio,
  random,
}: {
  tracing: Pick<Tracing, "end">;
  ratio: number;
  random(): number;
}): ExecutionTraces {
  return {
    traceOf(executionId, traceparent) {
      const spanId = spanIdOf(executionId);
      const caller = parseTraceparent(traceparent);
      if (caller === undefined) {
        if (random() >= ratio) return undefined;
        return { context: formatTraceparent({ traceId: newTraceId(), spanId, sampled: true }) };
      }
      // It is not sampled: passing it on unchanged costs nothing.
      if (!caller.sampled) return { context: formatTraceparent(caller) };
      return { context: formatTraceparent({ ...caller, spanId }), parent: caller.spanId };
    },
    ended({ trace, executionId, path, status, startedAt, endedAt, error }) {
      const context = parseTraceparent(trace?.context);
      // The execution has no trace of its own: the context is the caller's.
      if (context === undefined || !context.sampled || context.spanId !== spanIdOf(executionId)) return;
      tracing.end({
        traceId: context.traceId,
        spanId: context.spanId,
        ...(trace?.parent !== undefined && { parentSpanId: trace.parent }),
        name: `execution ${path}`,
        kind: "server",
        startMs: startedAt,
        endMs: endedAt ?? startedAt,
        ...(error !== null && { error: error.message }),
        attributes: {
          "flow.execution_id": executionId,
          "flow.path": path,
          "flow.status": status,
          "error.type": error?.code,
        },
      });
    },
  };
}
