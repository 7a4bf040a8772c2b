import assert from "node:assert/strict";
import { test } from "node:test";
import type { ReportedEvent } from "../../../src/schema/api/event-input.ts";
import { FlowError } from "../../../src/schema/words/errors.ts";
import type { ClaimedCommand } from "../../../src/services/orchestration/rounds/types.ts";
import { openOrchestrator, type TestOrchestrator } from "../../support/engine/orchestrator.ts";

// Executions of the service go forward in rounds: over a store in memory, without HTTP and without workers.

const TWO_STEPS = `apiVersion: flow/v2
kind: Playbook
metadata: { name: two, path: two }
workflow:
  - step: one
    tool: { kind: noop }
    next: { arcs: [{ step: two }] }
  - step: two
    tool: { kind: noop }
`;

const claim = (limit = 1, worker = "w1", waitMs = 0) => ({ worker, limit, kinds: undefined, labels: {}, waitMs });

/** What a worker reports of a command that went well. */
function reportOf({ command, attempt }: ClaimedCommand, value: string | number = 1) {
  const ref = { command_id: command.command_id, attempt, step: command.step, worker: "w1" };
  const at = Date.now();
  const events: ReportedEvent[] = [
    {
      type: "task.done",
      at,
      ...ref,
      task: command.step,
      task_run_id: "r",
      status: "ok",
      run: 1,
      final: true,
      result: { value },
      duration_ms: 1,
    },
    { type: "command.completed", at, ...ref, tasks: [command.step] },
  ];
  return events.map((event) => ({ executionId: command.execution_id, event }));
}

let keys = 0;
function report(advancing: TestOrchestrator, events: ReturnType<typeof reportOf>, more: object = {}) {
  keys += 1;
  return advancing.orchestrator.report({ caller: "w1", idempotencyKey: `k${keys}`, bodySha256: "a", events, ...more });
}

async function types({ store }: TestOrchestrator, executionId: string) {
  return (store.events.get(executionId) ?? []).map(({ event_type }) => event_type);
}

for (const [what, limit, expected] of [
  ["has room for all", 10, { waited: [0, 1, 2, 3, 4], reported: [] }],
  ["has room for one less", 4, { waited: [0, 1, 2, 3], reported: [4] }],
  ["has room for one", 1, { waited: [0], reported: [1] }],
] as const) {
  test(`a loop right after an ordinary step begins in its order: a worker's waiting claim ${what}`, async () => {
    const advancing = openOrchestrator();
    await advancing.start(`apiVersion: flow/v2
kind: Playbook
metadata: { name: fan, path: fan }
workflow:
  - { step: start, tool: { kind: noop }, next: fan }
  - { step: fan, loop: { in: 5, spec: { mode: parallel } }, tool: { kind: noop } }
`);
    const [first] = await advancing.orchestrator.claim(claim());
    // As a worker does it: with a slot that is free it waits, and asks for the slot that its report frees.
    const waiting = advancing.orchestrator.claim(claim(limit, "w1", 30_000));
    const { commands } = await report(advancing, reportOf(first!), { claim: claim() });
    const order = (list: readonly ClaimedCommand[]) => list.map(({ command }) => command.loop?.from);
    assert.deepEqual({ waited: order(await waiting), reported: order(commands) }, expected);
  });
}

test("another worker's waiting claim takes nothing from a worker that reports", async () => {
  const advancing = openOrchestrator();
  await advancing.start(TWO_STEPS);
  const [first] = await advancing.orchestrator.claim(claim());
  const waiting = advancing.orchestrator.claim(claim(10, "w2", 30_000));
  const { commands } = await report(advancing, reportOf(first!), { claim: claim() });
  assert.equal(commands.length, 1);
  advancing.orchestrator.dismiss("w2");
  assert.deepEqual(await waiting, []);
});

test("a worker that waits too is answered with one command in its report", async () => {
  const advancing = openOrchestrator();
  await advancing.start(TWO_STEPS);
  const [first] = await advancing.orchestrator.claim(claim());
  const waiting = advancing.orchestrator.claim(claim(10, "w1", 30_000));
  const { commands } = await report(advancing, reportOf(first!), { claim: claim() });
  assert.equal(commands.length, 1);
  advancing.orchestrator.dismiss("w1");
  assert.deepEqual(await waiting, []);
});

test("a report with a claim is answered with the next command, in one flush", async () => {
  const advancing = openOrchestrator();
  const executionId = await advancing.start(TWO_STEPS);
  const [first] = await advancing.orchestrator.claim(claim());
  assert.equal(first?.command.step, "one");
  assert.equal(first?.attempt, 1);
  const flushes = advancing.store.flushes;
  const outcome = await report(advancing, reportOf(first!), { claim: claim() });
  assert.equal(advancing.store.flushes, flushes + 1);
  assert.equal(outcome.commandsGenerated, 1);
  assert.equal(outcome.eventIds.length, 2);
  const [second] = outcome.commands;
  assert.equal(second?.command.step, "two");
  await report(advancing, reportOf(second!, 7), { claim: claim() });
  const row = advancing.store.executions.get(executionId);
  assert.equal(row?.status, "COMPLETED");
  assert.equal(row?.result, 7);
  assert.deepEqual(await types(advancing, executionId), [
    "playbook.initialized",
    "workflow.initialized",
    "command.issued",
    "command.claimed",
    "batch.accepted",
    "task.done",
    "command.completed",
    "step.completed",
    "command.issued",
    "command.claimed",
    "batch.completed",
    "batch.accepted",
    "task.done",
    "command.completed",
    "step.completed",
    "workflow.completed",
    "playbook.completed",
  ]);
  assert.deepEqual(advancing.faults, []);
  await advancing.orchestrator.close();
});

test("a report without a claim is accepted first and processed afterwards", async () => {
  const advancing = openOrchestrator();
  const executionId = await advancing.start(TWO_STEPS);
  const [first] = await advancing.orchestrator.claim(claim());
  const outcome = await report(advancing, reportOf(first!));
  assert.equal(outcome.commandsGenerated, 0);
  assert.equal(advancing.store.batches.get(outcome.requestId)?.state, "accepted");
  const [second] = await advancing.orchestrator.claim(claim(1, "w1", 5_000));
  assert.equal(second?.command.step, "two");
  assert.equal(advancing.store.batches.get(outcome.requestId)?.state, "completed");
  assert.equal(advancing.store.batches.get(outcome.requestId)?.commandsGenerated, 1);
  await advancing.orchestrator.close();
  assert.equal(advancing.store.executions.get(executionId)?.status, "RUNNING");
});

test("a report of a claim that was lost is refused and writes nothing", async () => {
  const advancing = openOrchestrator();
  const executionId = await advancing.start(TWO_STEPS);
  const [lost] = await advancing.orchestrator.claim(claim(1, "w1"));
  await advancing.orchestrator.offer([lost!.command.command_id], { worker: "w1", isGone: false });
  const [newer] = await advancing.orchestrator.claim(claim(1, "w2"));
  assert.equal(newer?.attempt, 2);
  const before = await types(advancing, executionId);
  await assert.rejects(report(advancing, reportOf(lost!), { claim: claim() }), (error: unknown) => {
    assert.ok(error instanceof FlowError);
    assert.equal(error.code, "CONFLICT");
    assert.deepEqual(error.detail, {
      events: [0, 1].map((index) => ({ index, command_id: lost!.command.command_id, reason: "stale" })),
    });
    return true;
  });
  assert.deepEqual(await types(advancing, executionId), before);
  await advancing.orchestrator.close();
});

test("the same key again is answered as a duplicate and writes nothing", async () => {
  const advancing = openOrchestrator();
  const executionId = await advancing.start(TWO_STEPS);
  const [first] = await advancing.orchestrator.claim(claim());
  const input = { caller: "w1", idempotencyKey: "same", bodySha256: "a", events: reportOf(first!), claim: claim() };
  const one = await advancing.orchestrator.report(input);
  const log = (await types(advancing, executionId)).length;
  const again = await advancing.orchestrator.report(input);
  assert.deepEqual(again, { ...one, duplicate: true, commands: [] });
  // Another server knows it from the store.
  const elsewhere = await advancing.another().report(input);
  assert.equal(elsewhere.duplicate, true);
  assert.equal(elsewhere.requestId, one.requestId);
  assert.deepEqual(elsewhere.eventIds, one.eventIds);
  await assert.rejects(advancing.orchestrator.report({ ...input, bodySha256: "b" }), /another body/);
  assert.equal((await types(advancing, executionId)).filter((type) => type !== "batch.completed").length, log);
  await advancing.orchestrator.close();
});

test("two servers on one store move an execution together", async () => {
  const advancing = openOrchestrator();
  const other = advancing.another();
  const executionId = await advancing.start(TWO_STEPS);
  const [first] = await other.claim(claim());
  assert.equal(first?.command.step, "one");
  // The first server still has the state before the claim: its write is refused, it loads and decides again.
  const outcome = await report(advancing, reportOf(first!), { claim: claim() });
  assert.equal(outcome.commands[0]?.command.step, "two");
  await other.report({
    caller: "w1",
    idempotencyKey: null,
    bodySha256: "a",
    events: reportOf(outcome.commands[0]!),
    claim: claim(),
  });
  assert.equal(advancing.store.executions.get(executionId)?.status, "COMPLETED");
  const ids = (advancing.store.events.get(executionId) ?? []).map(({ event_id }) => event_id);
  assert.deepEqual(
    ids,
    ids.toSorted((left, right) => left - right),
  );
  await advancing.orchestrator.close();
  await other.close();
});

test("a step that asks for labels goes to a worker that has them", async () => {
  const advancing = openOrchestrator();
  await advancing.start(`apiVersion: flow/v2
kind: Playbook
metadata: { name: gpu, path: gpu }
workflow:
  - step: train
    tool: { kind: noop }
    spec: { labels: { gpu: "yes", zone: a } }
`);
  const claimWith = (labels: Record<string, string>) => advancing.orchestrator.claim({ ...claim(), labels });
  assert.deepEqual(await claimWith({}), []);
  assert.deepEqual(await claimWith({ gpu: "yes", zone: "b" }), []);
  const [given] = await claimWith({ gpu: "yes", zone: "a", disk: "fast" });
  assert.equal(given?.command.step, "train");
  await advancing.orchestrator.close();
});
