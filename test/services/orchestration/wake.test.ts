import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../../../src/adapters/system-clock.ts";
import type { ReportedEvent } from "../../../src/schema/api/event-input.ts";
import type { ParkedWork } from "../../../src/schema/words/command.ts";
import type { OrchestratorDeps } from "../../../src/services/orchestration/orchestrator.ts";
import { DUE_MAX } from "../../../src/services/orchestration/wake.ts";
import { createPureSteps } from "../../../src/worker/command/pure-steps.ts";
import { createMemoryStore } from "../../support/engine/memory-store.ts";
import { openOrchestrator, type TestOrchestrator } from "../../support/engine/orchestrator.ts";

/* Parked commands, over a store in memory whose clock the tests move. */

const WAIT = `apiVersion: flow/v2
kind: Playbook
metadata: { name: p, path: p }
workflow:
  - { step: a, tool: { kind: wait, for: 1h }, next: [{ step: b }] }
  - { step: b, tool: { kind: noop, result: { how: "{{ a.outcome }}" } } }
`;

const HOUR_MS = 3_600_000;

/** A server whose clock stands still until it is moved. */
function serve(
  runsSteps = true,
  busy = () => 0,
  limits?: Partial<OrchestratorDeps["limits"]>,
): TestOrchestrator & { move(ms: number): void } {
  let now = Date.UTC(2026, 0, 1);
  const clock = { ...systemClock, now: () => now, busy };
  const store = createMemoryStore(() => now);
  const steps = createPureSteps({
    worker: "server-1",
    clock,
    random: Math.random,
    signal: new AbortController().signal,
  });
  const more: Partial<OrchestratorDeps> = { clock, ...(runsSteps && { pureSteps: steps }) };
  const service = openOrchestrator(more, store, limits);
  return {
    ...service,
    move: (ms) => {
      now += ms;
    },
  };
}

const claim = { worker: "w1", limit: 10, kinds: undefined, labels: {}, waitMs: 0 };

function status({ store }: TestOrchestrator, executionId: string): string | undefined {
  return store.executions.get(executionId)?.status;
}

function types({ store }: TestOrchestrator, executionId: string): string[] {
  return (store.events.get(executionId) ?? []).map(({ event_type }) => event_type);
}

test("a server parks a wait, keeps its row alone, and goes on at its time in one round", async () => {
  const service = serve();
  const { orchestrator, store } = service;
  const executionId = await service.start(WAIT);
  const [row] = store.commands.values();
  assert.deepEqual([row?.status, row?.worker, row?.attempt], ["PARKED", null, 1]);
  assert.equal(store.waits.size, 1);
  assert.deepEqual(await orchestrator.claim(claim), []);
  assert.equal(await orchestrator.recovery.poll(), 0);
  service.move(HOUR_MS - 1);
  assert.equal(await orchestrator.recovery.wake(), 0);
  service.move(1);
  const { flushes } = store;
  assert.equal(await orchestrator.recovery.wake(), 1);
  assert.equal(status(service, executionId), "COMPLETED");
  assert.equal(store.flushes, flushes + 1);
  assert.deepEqual([store.waits.size, store.commands.size], [0, 0]);
  const view = await service.view(executionId);
  assert.equal(view?.state.steps["a"]?.attempts, 1);
  assert.deepEqual(store.executions.get(executionId)?.result, { how: "elapsed" });
});

test("two servers wake at once: it goes on once", async () => {
  const service = serve();
  const other = service.another();
  const executionId = await service.start(WAIT);
  service.move(HOUR_MS);
  // Nothing is left to the server that took it: the other one takes it too.
  const { takeDueWaits } = service.store;
  service.store.takeDueWaits = (_leaseMs, limit) => takeDueWaits(0, limit);
  await Promise.all([service.orchestrator.recovery.wake(), other.recovery.wake()]);
  await service.orchestrator.recovery.wake();
  assert.equal(status(service, executionId), "COMPLETED");
  assert.equal(types(service, executionId).filter((type) => type === "command.woken").length, 1);
  assert.deepEqual(service.faults, []);
});

test("what comes due during a pause goes on with the resumption", async () => {
  const service = serve();
  const executionId = await service.start(WAIT);
  await service.orchestrator.inject(executionId, { type: "execution.paused", at: 0 });
  assert.equal(service.store.waits.size, 0);
  service.move(2 * HOUR_MS);
  assert.equal(await service.orchestrator.recovery.wake(), 0);
  await service.orchestrator.inject(executionId, { type: "execution.resumed", at: 0 });
  assert.equal(await service.orchestrator.recovery.wake(), 1);
  assert.equal(status(service, executionId), "COMPLETED");
});

test("a cancelled execution waits for nothing any more", async () => {
  const service = serve();
  const executionId = await service.start(WAIT);
  await service.orchestrator.inject(executionId, { type: "execution.cancelled", at: 0, reason: "enough" });
  assert.deepEqual([service.store.waits.size, service.store.commands.size], [0, 0]);
  service.move(HOUR_MS);
  assert.equal(await service.orchestrator.recovery.wake(), 0);
  assert.equal(status(service, executionId), "CANCELLED");
});

test("a person ends a wait", async () => {
  const service = serve();
  const executionId = await service.start(WAIT);
  const skip = { type: "step.overridden" as const, at: 0, step: "a", action: "skip" as const, reason: "not today" };
  await service.orchestrator.override(executionId, skip);
  assert.equal(service.store.waits.size, 0);
  assert.equal(status(service, executionId), "COMPLETED");
});

/** What a worker reports when the task of its command waits. */
function parking(service: TestOrchestrator, commandId: string, attempt = 1): ReportedEvent {
  const at = Date.parse([...service.store.events.values()].flat()[0]?.created_at ?? "");
  const due = new Date(at + HOUR_MS).toISOString();
  const work: ParkedWork = {
    wait: { kind: "timer", due },
    resume: { task: "a", run: 1, serial: 0, started_at: due },
    wake_at: due,
  };
  return { type: "command.parked", at, command_id: commandId, attempt, step: "a", task: "a", worker: "w1", ...work };
}

test("a worker that runs the wait gives it back; the next claim, of any worker, goes on with it", async () => {
  const service = serve(false);
  const { orchestrator, store } = service;
  const executionId = await service.start(WAIT);
  const [first] = await orchestrator.claim(claim);
  assert.ok(first !== undefined && first.command.woken === undefined);
  const id = first.command.command_id;
  const report = (event: ReportedEvent) =>
    orchestrator.report({
      ...{ caller: "w1", idempotencyKey: null, bodySha256: "a", isAwaited: true },
      events: [{ executionId, event }],
    });
  await report(parking(service, id));
  assert.equal(store.commands.get(id)?.status, "PARKED");
  // Its claim is over: what it says again, or says of the end, changes nothing.
  await assert.rejects(report(parking(service, id)));
  service.move(HOUR_MS);
  assert.equal(await orchestrator.recovery.wake(), 1);
  await assert.rejects(report(parking(service, id)));
  const other = service.another();
  await other.offer([id]);
  const [second] = await other.claim({ ...claim, worker: "w2" });
  assert.equal(second?.attempt, 2);
  assert.equal(second?.command.woken?.resume.task, "a");
  const view = await service.view(executionId);
  assert.equal(view?.state.steps["a"]?.attempts, 1);
});

test("many waits that are over at once go on without their executions being loaded again and again", async () => {
  let busyMs = 0;
  let lookMs = 0;
  const service = serve(true, () => (busyMs += lookMs), { executionsMax: 20 });
  const { orchestrator, store } = service;
  const count = 200;
  for (let index = 0; index < count; index += 1) await service.start(WAIT);
  // Each look at the clock takes so long from now on: a round has room for a few of them.
  lookMs = 1;
  service.move(HOUR_MS);
  orchestrator.recovery.sweep();
  let loads = 0;
  const { find } = store;
  store.find = async (id) => {
    loads += 1;
    return await find(id);
  };
  const woken = orchestrator.recovery.wake();
  let flushes = 0;
  const { flush } = store;
  store.flush = async (writing) => {
    flushes += 1;
    return await flush(writing);
  };
  while ([...store.executions.values()].some(({ endedAt }) => endedAt === null)) {
    orchestrator.recovery.sweep();
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.equal(await woken, count);
  assert.ok(flushes > 4, "They wait for their turn");
  const written = [...store.executions.keys()].map((id) =>
    types(service, id).filter((type) => type === "command.woken"),
  );
  assert.ok(written.every(({ length }) => length === 1));
  assert.ok(loads <= count, `${loads} loads`);
  assert.deepEqual(service.faults, []);
});

test("what is due is woken no faster than it goes on: a thousand at most, and not while more than a thousand jobs wait", async () => {
  const service = serve(true, () => 0, { queueMax: 10 * DUE_MAX });
  const { orchestrator, store } = service;
  const executionId = await service.start(WAIT);
  service.move(HOUR_MS);
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const { flush, takeDueWaits } = store;
  store.flush = async (...about) => {
    await released;
    return await flush(...about);
  };
  const taken: [depth: number, limit: number][] = [];
  store.takeDueWaits = async (leaseMs, limit) => {
    taken.push([orchestrator.queueDepth(), limit]);
    return await takeDueWaits(leaseMs, limit);
  };
  const turns = async (count: number) => {
    for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  const starts: Promise<unknown>[] = [];
  const entry = { catalogId: "1", path: "p", version: 1 };
  while (orchestrator.queueDepth() <= DUE_MAX) {
    for (let more = 0; more < 100; more += 1) starts.push(orchestrator.start({ entry, input: {} }));
    await turns(3);
  }
  const woken = orchestrator.recovery.wake();
  await turns(50);
  assert.equal(taken.length, 0, "It waits until what was asked for before has gone on");
  assert.equal(types(service, executionId).includes("command.woken"), false);
  release();
  assert.equal(await woken, 1);
  const [depth = 0, limit] = taken[0] ?? [];
  assert.equal(limit, DUE_MAX);
  assert.ok(depth <= DUE_MAX, `${depth} jobs waited when it was taken`);
  await Promise.all(starts);
  assert.equal(status(service, executionId), "COMPLETED");
  assert.deepEqual(service.faults, []);
});
