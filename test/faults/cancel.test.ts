import assert from "node:assert/strict";
import { test } from "node:test";
import { LONG, openStand } from "./support/stand.ts";
import { until } from "./support/until.ts";

// Cancelling reaches what runs at once, and not with the next heartbeat.

/** The next heartbeat would come long after the test has given up, and the worker does not count as lost meanwhile. */
const SELDOM = {
  ...LONG,
  FLOW_WORKER_HEARTBEAT_SECONDS: "600",
  FLOW_COMMAND_CLAIM_LEASE_SECONDS: "1200",
  FLOW_COMMAND_REAPER_WORKER_STALE_SECONDS: "1200",
};

test("a tool that runs learns of its cancellation at once, whatever the worker's slots are doing", async (t) => {
  const stand = await openStand(t, SELDOM);
  const server = await stand.server();
  const client = await stand.client(server);
  const worker = await stand.worker(server, "only", { FLOW_WORKER_CAPACITY: "2" });
  const held = stand.effects.hold("first");
  const ids = await stand.start(client, "work", 2);
  await held.arrived(2);
  const began = performance.now();
  const { body } = await client.call("POST", `/api/executions/${ids[0]}/cancel`, {});
  assert.equal(body.status, "CANCELLED");
  await worker.untilLog("a command is given up");
  t.diagnostic(`heard after ${Math.round(performance.now() - began)} ms`);
  // Again, and for a command that was claimed after the heartbeat had begun.
  const [third] = await stand.start(client, "work", 1);
  await held.arrived(3);
  await client.call("POST", `/api/executions/${third}/cancel`, {});
  const givenUp = () => worker.log().match(/a command is given up/g)?.length ?? 0;
  await until("the second cancellation is heard", () => givenUp() >= 2);
  const detail = await client.call("GET", `/api/executions/${ids[0]}`);
  const [first, ...unreached] = detail.body.steps.map(({ status, error }) => [status, error?.kind]);
  assert.deepEqual(first, ["FAILED", "cancelled"]);
  assert.deepEqual(
    unreached,
    unreached.map(() => ["SKIPPED", undefined]),
  );
  assert.ok(detail.body.started_at <= (detail.body.steps[0]?.started_at ?? ""), "It began before its first step");
  held.release();
});
