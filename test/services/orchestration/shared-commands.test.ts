import assert from "node:assert/strict";
import { test } from "node:test";
import type { ReportedEvent } from "../../../src/schema/api/event-input.ts";
import type { ClaimedCommand } from "../../../src/services/orchestration/rounds/types.ts";
import { openOrchestrator } from "../../support/engine/orchestrator.ts";

// Iterations that share a command, as claims see them.

const DOCUMENT = `apiVersion: flow/v2
kind: Playbook
metadata: {name: p, path: p}
workflow:
  - step: each
    loop: {in: 40, spec: {mode: parallel}}
    tool: {kind: noop}
`;

/** A loop of eight commands with five iterations each, which take two slots. */
async function started() {
  const opened = openOrchestrator({ pace: { note: () => undefined, atOnce: () => 5 } });
  const executionId = await opened.start(DOCUMENT);
  const claim = (limit: number, worker = "w") =>
    opened.orchestrator.claim({ worker, limit, kinds: undefined, labels: {}, waitMs: 30_000 });
  return { ...opened, executionId, claim };
}

for (const [limit, count] of [
  [1, 1],
  [2, 1],
  [3, 2],
  [4, 2],
  [5, 3],
  [100, 8],
] as const) {
  test(`a worker with ${limit} slots gets ${count} commands of two slots: the last may take more than is left`, async () => {
    const { orchestrator, claim } = await started();
    const commands = await claim(limit);
    assert.equal(commands.length, count);
    assert.ok(commands.every(({ slots, command: { loop } }) => slots === 2 && loop?.at_once === true));
    await orchestrator.close();
  });
}

test("a report asks for the slots of what it ends, and gets no more", async () => {
  const { orchestrator, claim, executionId } = await started();
  const [first] = await claim(1);
  assert.ok(first);
  const from = first.command.loop?.from ?? 0;
  const iterations = [0, 1, 2, 3, 4].flatMap((offset) => ended(first, from + offset));
  const ref = { command_id: first.command.command_id, attempt: 1, step: "each", worker: "w" };
  const { commands } = await orchestrator.report({
    ...{ caller: "w", idempotencyKey: null, bodySha256: "a" },
    events: [...iterations, { type: "command.completed" as const, at: 2, ...ref, iterations: 5 }].map((event) => ({
      executionId,
      event,
    })),
    claim: { worker: "w", limit: 2, kinds: undefined, labels: {}, waitMs: 0 },
  });
  assert.deepEqual(
    commands.map(({ command }) => command.loop?.from),
    [5],
  );
  await orchestrator.close();
});

function ended({ command, attempt }: ClaimedCommand, iteration: number, worker = "w"): ReportedEvent[] {
  const ref = { command_id: command.command_id, attempt, step: "each", worker, iteration };
  const ids = { step_run_id: command.step_run_id, task_run_id: `${command.command_id}-${iteration}-0` };
  const result = { value: { status: "ok" } };
  return [
    {
      ...{ type: "task.done", at: 1, ...ref, ...ids, task: "each", status: "ok", run: 1 },
      ...{ final: true, result, bytes: 15, duration_ms: 1 },
    },
    { type: "loop.iteration.completed", at: 1, ...ref, tasks: ["each"] },
  ];
}

test("the next worker of a lost command is told which iterations have ended, and they take no slot", async () => {
  const { orchestrator, claim, executionId } = await started();
  const [lost] = await claim(1, "w1");
  assert.ok(lost);
  await orchestrator.report({
    ...{ caller: "w1", idempotencyKey: null, bodySha256: "a", isAwaited: true },
    events: [2, 0].flatMap((iteration) => ended(lost, iteration, "w1").map((event) => ({ executionId, event }))),
  });
  await orchestrator.offer([lost.command.command_id], { worker: "w1", isGone: true });
  const [again] = await claim(1, "w2");
  assert.deepEqual(
    [again?.command.command_id, again?.attempt, again?.slots, again?.command.loop?.ended],
    [lost.command.command_id, 2, 1, { below: 1, above: [2] }],
  );
  assert.equal(lost.command.loop?.ended, undefined);
  await assert.rejects(
    orchestrator.report({
      ...{ caller: "w1", idempotencyKey: null, bodySha256: "b", isAwaited: true },
      events: ended(lost, 1, "w1").map((event) => ({ executionId, event })),
    }),
    { code: "CONFLICT" },
    "the late report of the worker that lost it",
  );
  await orchestrator.close();
});
