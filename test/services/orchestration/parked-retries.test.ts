import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../../../src/adapters/system-clock.ts";
import type { ReportedEvent } from "../../../src/schema/api/event-input.ts";
import type { ParkedWork } from "../../../src/schema/words/command.ts";
import type { FlowEvent } from "../../../src/schema/words/event.ts";
import { createMemoryStore } from "../../support/engine/memory-store.ts";
import { openOrchestrator } from "../../support/engine/orchestrator.ts";

/* Commands that wait for the next run of a failed task, as the server sees them, over a store in memory whose clock the tests move. */

const RETRIED = `apiVersion: flow/v2
kind: Playbook
metadata: { name: p, path: p }
workflow:
  - step: a
    tool:
      - one: { kind: shell, cmd: "true" }
      - two: { kind: shell, cmd: "true", spec: { policy: { rules: [{ when: "output.status == 'error'", then: { do: retry, delay: 60 } }] } } }
    next: [{ step: b }]
  - { step: b, tool: { kind: noop } }
`;
const MINUTE_MS = 60_000;
const claim = { worker: "w1", limit: 10, kinds: undefined, labels: {}, waitMs: 0 };

/** A service of which a worker has run the first task and the first run of the second, and has not yet said what follows. */
async function begun() {
  let now = Date.UTC(2026, 0, 1);
  const clock = { ...systemClock, now: () => now, busy: () => 0 };
  const service = openOrchestrator(
    { clock },
    createMemoryStore(() => now),
  );
  const { orchestrator, store } = service;
  const executionId = await service.start(RETRIED);
  const claimed = async (worker = "w1") => {
    const [command] = await orchestrator.claim({ ...claim, worker });
    assert.ok(command);
    return command;
  };
  const { command } = await claimed();
  const id = command.command_id;
  const report = (attempt: number, events: Partial<ReportedEvent>[]) =>
    orchestrator.report({
      ...{ caller: "w1", idempotencyKey: null, bodySha256: "a", isAwaited: true },
      events: events.map((event) => ({
        executionId,
        event: { at: now, command_id: id, attempt, step: "a", worker: "w1", ...event } as ReportedEvent,
      })),
    });
  const done = (task: string, more: object) => ({
    type: "task.done" as const,
    task,
    task_run_id: `${id}-${task}`,
    duration_ms: 1,
    ...more,
  });
  const error = { kind: "connection" as const, code: "REFUSED", message: "no", retryable: true };
  const due = new Date(now + MINUTE_MS).toISOString();
  const work: ParkedWork = {
    wait: { kind: "retry", due },
    resume: { task: "two", run: 2, serial: 1, started_at: due, pipeline: { runs: 2, pages: { one: 1, two: 1 } } },
    wake_at: due,
  };
  await report(1, [
    done("one", { status: "ok", run: 1, final: true, result: { value: 1 } }),
    done("two", { status: "error", run: 1, final: false, error, next_run_at: due }),
  ]);
  return {
    ...{ ...service, executionId, id, due, claimed, report, done },
    park: (attempt = 1) => report(attempt, [{ type: "command.parked", task: "two", ...work }]),
    move: (ms: number) => {
      now += ms;
    },
    status: () => store.executions.get(executionId)?.status,
    inject: (
      event: Omit<Extract<FlowEvent, { type: "execution.paused" | "execution.resumed" | "execution.cancelled" }>, "at">,
    ) => orchestrator.inject(executionId, { ...event, at: now } as FlowEvent),
  };
}

test("no worker has it meanwhile; the next claim goes on with what the first has done, and that is the step's result", async () => {
  const { park, id, store, orchestrator, move, claimed, report, done, view, executionId, status, due } = await begun();
  await park();
  assert.deepEqual([store.commands.get(id)?.status, store.waits.get(id)?.kind], ["PARKED", "retry"]);
  assert.deepEqual(await orchestrator.claim(claim), []);
  const parked = (await view(executionId))?.state.commands[id];
  assert.deepEqual([parked?.retries?.[0]?.at, parked?.parked?.wait], [due, { kind: "retry", due }]);
  move(MINUTE_MS - 1);
  assert.equal(await orchestrator.recovery.wake(), 0);
  move(1);
  assert.equal(await orchestrator.recovery.wake(), 1);
  const { command, attempt } = await claimed();
  assert.deepEqual(
    [attempt, command.woken?.resume.run, command.woken?.resume.pipeline?.pages],
    [2, 2, { one: 1, two: 1 }],
  );
  await report(2, [
    done("two", { status: "ok", run: 2, final: true, result: { value: 2 } }),
    { type: "command.completed", tasks: ["one", "two"], pipeline: true },
  ] as Partial<ReportedEvent>[]);
  const { state } = (await view(executionId)) ?? {};
  assert.deepEqual([state?.steps["a"]?.status, state?.steps["a"]?.attempts], ["COMPLETED", 1]);
  assert.deepEqual([...store.waits.keys(), ...[...store.commands.values()].filter((row) => row.commandId === id)], []);
  assert.equal(status(), "RUNNING");
});

test("a claim that is lost after the wait is repeated from the same run, and its attempt does not count the wait", async () => {
  const { park, id, orchestrator, move, claimed, another, report, done, view, executionId } = await begun();
  await park();
  move(MINUTE_MS);
  await orchestrator.recovery.wake();
  await claimed();
  await orchestrator.offer([id], { worker: "w1", isGone: true });
  const { command, attempt } = await claimed("w2");
  assert.deepEqual([attempt, command.woken?.resume.task, command.woken?.resume.run], [3, "two", 2]);
  // What the lost worker says still changes nothing.
  await assert.rejects(report(2, [done("two", { status: "ok", run: 2, final: true, result: { value: 0 } })]));
  await another().offer([id]);
  assert.equal((await view(executionId))?.state.steps["a"]?.attempts, 2);
});

test("a worker that was given up and parks the command after all is too late", async () => {
  const { park, id, orchestrator, claimed, store } = await begun();
  await orchestrator.offer([id], { worker: "w1", isGone: true });
  await claimed("w2");
  await assert.rejects(park());
  assert.equal(store.waits.size, 0);
});

test("cancelled, ended by hand: nothing of it waits any more", async () => {
  const cancelled = await begun();
  await cancelled.park();
  await cancelled.inject({ type: "execution.cancelled", reason: "enough" });
  assert.deepEqual(
    [cancelled.store.waits.size, cancelled.store.commands.size, cancelled.status()],
    [0, 0, "CANCELLED"],
  );
  const skipped = await begun();
  await skipped.park();
  const skip = { type: "step.overridden" as const, at: 0, step: "a", action: "skip" as const, reason: "not today" };
  await skipped.orchestrator.override(skipped.executionId, skip);
  assert.equal(skipped.store.waits.size, 0);
  assert.equal((await skipped.view(skipped.executionId))?.state.steps["a"]?.status, "SKIPPED");
});

test("during a pause it stays parked, also where it is parked then; what came due goes on with the resumption", async () => {
  for (const isFirst of [true, false]) {
    const { park, store, orchestrator, move, inject, claimed } = await begun();
    if (isFirst) await inject({ type: "execution.paused" });
    await park();
    if (!isFirst) await inject({ type: "execution.paused" });
    assert.equal(store.waits.size, 0);
    move(2 * MINUTE_MS);
    assert.equal(await orchestrator.recovery.wake(), 0);
    await inject({ type: "execution.resumed" });
    assert.equal(await orchestrator.recovery.wake(), 1);
    assert.equal((await claimed()).command.woken?.resume.run, 2);
  }
});
