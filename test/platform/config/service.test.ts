import assert from "node:assert/strict";
import { test } from "node:test";
import { loadConfig } from "../../../src/platform/config/config.ts";

test("the service's settings have the defaults of the specification, in milliseconds and bytes", () => {
  const config = loadConfig({});
  // Not its 0.25 s: a queue that is long makes a server answer late, and one that is full makes it refuse.
  assert.equal(config.batchEnqueueTimeoutMs, 10_000);
  assert.deepEqual(
    [
      config.batchQueueMax,
      config.batchQueueBytes,
      config.batchProcessors,
      config.batchProcessingTimeoutMs,
      config.batchStatusPollMs,
      config.batchEventsMax,
      config.batchBytesMax,
    ],
    [1_024, 67_108_864, 1, 15_000, 500, 256, 2_097_152],
  );
  assert.deepEqual(
    [
      config.reaperEnabled,
      config.reaperIntervalMs,
      config.reaperWorkerStaleMs,
      config.reaperHardTimeoutMs,
      config.reaperPendingRetryMs,
      config.reaperMaxPerRun,
      config.claimHardTimeoutMs,
      config.claimLeaseMs,
    ],
    [true, 60_000, 60_000, 1_800_000, 60_000, 100, undefined, 120_000],
  );
  assert.deepEqual([config.resultTtlMs, config.resultBytesMax, config.retentionDays], [2_592_000_000, 67_108_864, 90]);
});

test("settings in seconds may have a fraction, and become milliseconds", () => {
  const config = loadConfig({
    FLOW_BATCH_STATUS_STREAM_POLL_SECONDS: "0.05",
    FLOW_COMMAND_CLAIM_HEALTHY_WORKER_HARD_TIMEOUT_SECONDS: "90",
    FLOW_COMMAND_REAPER_ENABLED: "FALSE",
    FLOW_RESULT_TTL_DEFAULT: "12h",
  });
  assert.deepEqual(
    [config.batchStatusPollMs, config.claimHardTimeoutMs, config.reaperEnabled, config.resultTtlMs],
    [50, 90_000, false, 43_200_000],
  );
});

test("times name the least and the greatest value that can be used; these two can", () => {
  const name = "FLOW_BATCH_PROCESSING_TIMEOUT_SECONDS";
  const told = { code: "INVALID_SETTING", message: /must be a number of seconds from 0\.001 to 2147483, got/ };
  for (const text of ["0.0009", "2147483.1"]) assert.throws(() => loadConfig({ [name]: text }), told);
  for (const text of ["0.001", "2147483"]) {
    assert.equal(loadConfig({ [name]: text }).batchProcessingTimeoutMs, Number(text) * 1_000);
  }
});

for (const [name, text] of [
  ["FLOW_BATCH_ACCEPT_QUEUE_MAXSIZE", "0"],
  ["FLOW_BATCH_ACCEPT_QUEUE_MAXSIZE", "1.5"],
  ["FLOW_BATCH_ACCEPT_QUEUE_BYTES", "64MiB"],
  ["FLOW_BATCH_EVENTS_MAX", "many"],
  ["FLOW_BATCH_PROCESSING_TIMEOUT_SECONDS", "0"],
  ["FLOW_BATCH_PROCESSING_TIMEOUT_SECONDS", "-1"],
  ["FLOW_BATCH_PROCESSING_TIMEOUT_SECONDS", "1e9"],
  ["FLOW_COMMAND_CLAIM_HEALTHY_WORKER_HARD_TIMEOUT_SECONDS", "soon"],
  ["FLOW_COMMAND_REAPER_ENABLED", "yes"],
  ["FLOW_RESULT_TTL_DEFAULT", "30"],
] as const) {
  test(`${name}=${text} is refused, by its name`, () => {
    assert.throws(() => loadConfig({ [name]: text }), {
      code: "INVALID_SETTING",
      message: new RegExp(`^${name} must be`),
    });
  });
}
