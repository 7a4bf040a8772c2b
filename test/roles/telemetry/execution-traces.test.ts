import assert from "node:assert/strict";
import { test } from "node:test";
import { type ExecutionState, emptyState } from "../../../src/engine/state/state.ts";
import type { OtlpSpan } from "../../../src/platform/telemetry/otlp.ts";
import { spanIdOf } from "../../../src/platform/telemetry/trace-context.ts";
import { createExecutionTraces } from "../../../src/roles/telemetry/execution-traces.ts";

const TRACE = "a".repeat(32);
const CALLER = "b".repeat(16);
const ID = "77";

function traces(ratio: number, drawn: number) {
  const spans: OtlpSpan[] = [];
  const made = createExecutionTraces({ tracing: { end: (span) => spans.push(span) }, ratio, random: () => drawn });
  return { ...made, spans };
}

function ended(more: Partial<ExecutionState>): ExecutionState {
  return {
    ...emptyState(),
    executionId: ID,
    path: "demo",
    status: "COMPLETED",
    startedAt: 1_000,
    endedAt: 3_000,
    ...more,
  };
}

test("the share of executions that begin a trace is that of the settings", () => {
  assert.equal(traces(0, 0).traceOf(ID, undefined), undefined);
  assert.equal(traces(0.1, 0.1).traceOf(ID, undefined), undefined);
  assert.match(traces(0.1, 0.099).traceOf(ID, undefined)?.context ?? "", /^00-[\da-f]{32}-[\da-f]{16}-01$/);
  assert.match(traces(1, 0.999).traceOf(ID, undefined)?.context ?? "", /^00-/);
});

test("a caller's trace is followed whatever the share, and the execution's span stands under the caller's", () => {
  const { traceOf, ended: end, spans } = traces(0, 0.5);
  const trace = traceOf(ID, `00-${TRACE}-${CALLER}-01`);
  assert.deepEqual(trace, { context: `00-${TRACE}-${spanIdOf(ID)}-01`, parent: CALLER });
  const error = { kind: "timeout", code: "TIMEOUT", message: "too slow", retryable: true } as const;
  end(ended({ trace, status: "FAILED", error }));
  const [span] = spans;
  assert.deepEqual(
    [span?.traceId, span?.spanId, span?.parentSpanId, span?.error, span?.startMs, span?.endMs],
    [TRACE, spanIdOf(ID), CALLER, "too slow", 1_000, 3_000],
  );
});

test("what its caller keeps no spans of has none here, and is handed on as it came", () => {
  const { traceOf, ended: end, spans } = traces(1, 0);
  const traceparent = `00-${TRACE}-${CALLER}-00`;
  const trace = traceOf(ID, traceparent);
  assert.deepEqual(trace, { context: traceparent });
  end(ended({ trace }));
  assert.deepEqual(spans, []);
});

test("an execution that was started without tracing ends without a span: its context is the caller's", () => {
  const { ended: end, spans } = traces(1, 0);
  end(ended({ trace: { context: `00-${TRACE}-${CALLER}-01` } }));
  end(ended({}));
  assert.deepEqual(spans, []);
});
