import assert from "node:assert/strict";
import { test } from "node:test";
import { type ExecutionState, emptyState } from "../../../src/engine/state/state.ts";
import { createEndLog } from "../../../src/roles/telemetry/observer.ts";
import { recordLog } from "../../support/engine/recorded-log.ts";

function ended(status: ExecutionState["status"]): ExecutionState {
  const error = { kind: "timeout", code: "TIMEOUT", message: "secret detail", retryable: true, step: "fetch" } as const;
  const times = { startedAt: 1_000, endedAt: 1_250 };
  return {
    ...emptyState(),
    ...times,
    executionId: "7",
    path: "demo",
    status,
    error: status === "FAILED" ? error : null,
  };
}

test("what ends well or is cancelled is a line for those who look for it, with its id and duration", () => {
  const log = recordLog();
  const tell = createEndLog(log);
  tell(ended("COMPLETED"));
  tell(ended("CANCELLED"));
  assert.deepEqual(
    log.lines.map(({ level, message }) => [level, message]),
    [
      ["debug", "an execution ended COMPLETED"],
      ["debug", "an execution ended CANCELLED"],
    ],
  );
  const fields = { execution_id: "7", path: "demo", status: "COMPLETED", duration_ms: 250 };
  assert.deepEqual(log.lines[0]?.fields, fields);
});

test("a failure is logged at info with its step and code, ten in a second, and the rest of a storm at debug", () => {
  const log = recordLog();
  let now = 5_000;
  const tell = createEndLog(log, () => now);
  for (let n = 0; n < 1_000; n += 1) tell(ended("FAILED"));
  assert.equal(log.lines.filter(({ level }) => level === "info").length, 10);
  assert.equal(log.lines.length, 1_000);
  now += 1_000;
  tell(ended("FAILED"));
  const last = log.lines.at(-1);
  assert.deepEqual([last?.level, last?.fields["step"], last?.fields["error_code"]], ["info", "fetch", "TIMEOUT"]);
  assert.doesNotMatch(JSON.stringify(log.lines), /secret detail/);
});
