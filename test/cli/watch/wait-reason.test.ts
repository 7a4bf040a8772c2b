import assert from "node:assert/strict";
import { test } from "node:test";
import { waitReason } from "../../../src/cli/watch/wait-reason.ts";

const worker = (more = {}) => ({
  ...{ status: "ready" as const, capabilities: ["http", "python"], labels: { zone: "eu" }, running: 1, capacity: 4 },
  ...more,
});

for (const [about, command, workers, text, isStuck] of [
  ["there is none", {}, [], "no worker is ready", true],
  ["all are away", {}, [worker({ status: "stale" }), worker({ status: "draining" })], "no worker is ready", true],
  [
    "a label is missing",
    { labels: { gpu: "true" } },
    [worker()],
    "no worker that is ready has the label gpu=true",
    true,
  ],
  [
    "labels are missing, and a kind is asked for that is there",
    { labels: { gpu: "true", zone: "eu" }, kinds: ["python"] },
    [worker()],
    "no worker that is ready has the labels gpu=true, zone=eu",
    true,
  ],
  ["the only one is of a pool", {}, [worker({ labels: { "flow.pool": "team" } })], "no worker is ready", true],
  ["a kind is missing", { kinds: ["shell"] }, [worker()], "no worker that is ready runs shell", true],
  [
    "one has the label and another one the kind",
    { kinds: ["shell"], labels: { zone: "eu" } },
    [worker(), worker({ capabilities: ["shell"], labels: {} })],
    "no worker that is ready has the label zone=eu and runs shell",
    true,
  ],
  ["all are full", { kinds: ["http"] }, [worker({ running: 4 })], "every worker that could take it is full", false],
  [
    "it was just issued",
    { kinds: ["http"] },
    [worker({ running: 4 }), worker()],
    "a worker is about to take it",
    false,
  ],
] as const) {
  test(`a command waits because ${about}`, () => {
    assert.deepEqual(waitReason(command as Parameters<typeof waitReason>[0], workers), { text, isStuck });
  });
}
