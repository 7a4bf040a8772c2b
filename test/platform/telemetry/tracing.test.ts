import assert from "node:assert/strict";
import { test } from "node:test";
import type { OtlpSpan } from "../../../src/platform/telemetry/otlp.ts";
import { openTracing } from "../../../src/platform/telemetry/tracing.ts";
import { recordLog } from "../../support/engine/recorded-log.ts";
import { closedPort } from "../../support/servers/http-server.ts";
import { startOtlpReceiver } from "../../support/servers/otlp-receiver.ts";

const span = (name: string, more: Partial<OtlpSpan> = {}): OtlpSpan => ({
  traceId: "a".repeat(32),
  spanId: "b".repeat(16),
  name,
  kind: "server",
  startMs: 1_700_000_000_000,
  endMs: 1_700_000_000_250,
  attributes: { "flow.execution_id": "7", "flow.attempt": 2, "error.type": undefined },
  ...more,
});

test("spans arrive as the protocol wants them, with the headers of the settings", async (t) => {
  const receiver = await startOtlpReceiver();
  t.after(() => receiver.close());
  const logger = recordLog();
  const tracing = openTracing({
    endpoint: receiver.endpoint,
    headers: { "x-tenant": "acme" },
    resource: { "service.name": "flow" },
    logger,
    intervalMs: 5,
  });
  tracing.end(span("good"));
  tracing.end(span("bad", { parentSpanId: "c".repeat(16), error: "x".repeat(5_000), startMs: 2_000, endMs: 1_000 }));
  await receiver.until(() => receiver.spans.length === 2);
  const [good, bad] = receiver.spans;
  assert.deepEqual(good, {
    traceId: "a".repeat(32),
    spanId: "b".repeat(16),
    name: "good",
    kind: 2,
    startTimeUnixNano: "1700000000000000000",
    endTimeUnixNano: "1700000000250000000",
    attributes: { "flow.execution_id": "7", "flow.attempt": "2" },
    status: {},
    resource: { "service.name": "flow" },
  });
  assert.deepEqual([bad?.parentSpanId, bad?.status.code, bad?.status.message?.length], ["c".repeat(16), 2, 1_024]);
  assert.equal(bad?.endTimeUnixNano, bad?.startTimeUnixNano, "no span ends before it begins");
  assert.equal(receiver.headers()["x-tenant"], "acme");
  await tracing.close();
});

test("closing sends what is left", async (t) => {
  const receiver = await startOtlpReceiver();
  t.after(() => receiver.close());
  const logger = recordLog();
  const tracing = openTracing({ endpoint: receiver.endpoint, headers: {}, resource: {}, logger, intervalMs: 60_000 });
  for (let n = 0; n < 1_000; n += 1) tracing.end(span(`span ${n}`));
  await tracing.close();
  assert.equal(receiver.spans.length, 1_000);
  assert.equal(new Set(receiver.spans.map(({ name }) => name)).size, 1_000);
});

test("a collector that refuses is logged once, and again when it accepts spans", async (t) => {
  const receiver = await startOtlpReceiver();
  t.after(() => receiver.close());
  const logger = recordLog();
  const tracing = openTracing({ endpoint: receiver.endpoint, headers: {}, resource: {}, logger, intervalMs: 5 });
  receiver.answer(503);
  for (const calls of [1, 2, 3]) {
    tracing.end(span("lost"));
    await receiver.until(() => receiver.calls() >= calls);
  }
  receiver.answer(200);
  tracing.end(span("taken"));
  await receiver.until(() => receiver.spans.length > 0);
  await tracing.close();
  const told = logger.matching("spans").map(({ level, message }) => `${level}: ${message}`);
  assert.deepEqual(told, ["warn: spans could not be sent: the collector answered 503", "info: spans are taken again"]);
});

test("an unreachable collector blocks neither adding spans nor closing", async () => {
  const logger = recordLog();
  const endpoint = `http://127.0.0.1:${await closedPort()}`;
  const tracing = openTracing({ endpoint, headers: {}, resource: {}, logger, intervalMs: 5 });
  for (let n = 0; n < 20_000; n += 1) tracing.end(span("lost"));
  await tracing.close();
});
