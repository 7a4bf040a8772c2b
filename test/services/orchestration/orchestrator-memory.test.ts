import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { queryObjects } from "node:v8";
import type { Orchestrator } from "../../../src/services/orchestration/orchestrator.ts";
import type { ClaimedCommand } from "../../../src/services/orchestration/rounds/types.ts";
import { openOrchestrator } from "../../support/engine/orchestrator.ts";

const TWO_STEPS = `apiVersion: flow/v2
kind: Playbook
metadata: { name: two, path: two }
workflow:
  - { step: one, tool: { kind: noop }, next: two }
  - { step: two, tool: { kind: noop } }
`;

/** Reports the end of a command and claims the next; of what it is given it keeps no more than what the memory does. */
async function reportAndClaim(
  orchestrator: Orchestrator,
  { command, attempt }: ClaimedCommand,
): Promise<WeakRef<ClaimedCommand>> {
  const { command_id, step, execution_id } = command;
  const event = { type: "command.completed", at: Date.now(), command_id, attempt, step, tasks: [] } as const;
  const events = [{ executionId: execution_id, event: { ...event, tasks: [] } }];
  const claim = { worker: "w", limit: 1, kinds: undefined, labels: {}, waitMs: 0 };
  const { commands } = await orchestrator.report({ caller: "w", idempotencyKey: "k", bodySha256: "a", events, claim });
  assert.ok(commands[0]);
  return new WeakRef(commands[0]);
}

// They have contexts of up to megabytes, and the keys of 5,000 batches are remembered.
test("a batch that is remembered for its key does not keep the commands of its answer", async () => {
  const { orchestrator, start } = openOrchestrator();
  const executionId = await start(TWO_STEPS);
  const [first] = await orchestrator.claim({ worker: "w", limit: 1, kinds: undefined, labels: {}, waitMs: 0 });
  assert.ok(first);
  const answered = await reportAndClaim(orchestrator, first);
  // The marker of the batch's end is the last that is written of it.
  await new Promise<void>((resolve) => orchestrator.watch(executionId, () => resolve()));
  await orchestrator.close();
  await setImmediate();
  // Counts after a full collection of garbage; the count itself is of no interest.
  queryObjects(Map, { format: "count" });
  assert.equal(answered.deref(), undefined);
});
