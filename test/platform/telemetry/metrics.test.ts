import assert from "node:assert/strict";
import { test } from "node:test";
import { createMetrics } from "../../../src/platform/telemetry/metrics.ts";

test("the series of event batches stand at zero from the start, under the names of the interface specification", async () => {
  const { text, contentType } = await createMetrics().expose();
  assert.match(contentType, /^text\/plain/);
  for (const name of [
    "noetl_batch_enqueue_latency_seconds_sum",
    "noetl_batch_enqueue_latency_seconds_count",
    "noetl_batch_ack_timeout_total",
    "noetl_batch_queue_depth",
    "noetl_batch_first_worker_claim_latency_seconds_sum",
    "noetl_batch_first_worker_claim_latency_seconds_count",
  ]) {
    assert.match(text, new RegExp(`^${name} 0$`, "m"));
  }
});

test("two servers in one process count each for itself", async () => {
  const [first, second] = [createMetrics(), createMetrics()];
  first.catalogRegistered("mcp", "created");
  assert.match((await first.expose()).text, /registrations_total\{kind="mcp",outcome="created"\} 1/);
  assert.match((await second.expose()).text, /registrations_total\{kind="mcp",outcome="created"\} 0/);
});
