import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../../../src/adapters/system-clock.ts";
import { SIGNALS_KEPT_MAX } from "../../../src/engine/decide/match-signals.ts";
import type { Signal } from "../../../src/schema/words/command.ts";
import { isJsonObject, type JsonObject } from "../../../src/schema/words/json.ts";
import type { OrchestratorDeps } from "../../../src/services/orchestration/orchestrator.ts";
import { createPureSteps } from "../../../src/worker/command/pure-steps.ts";
import { createMemoryStore } from "../../support/engine/memory-store.ts";
import { openOrchestrator, type TestOrchestrator } from "../../support/engine/orchestrator.ts";

/* Signals (control, section 2 and rules 22 to 26), over a store in memory whose clock the tests move. */

const playbook = (steps: string, head = "") => `apiVersion: flow/v2
kind: Playbook
metadata: { name: p, path: p }
${head}workflow:
${steps}`;

const WAIT = playbook(`  - { step: a, tool: { kind: wait, signal: go }, next: { arcs: [{ step: b }] } }
  - { step: b, tool: { kind: noop, result: { got: "{{ a.data }}" } } }
`);

const signal = (more: Partial<Signal> = {}): Signal => ({ name: "go", data: 1, ...more });

/** A server that runs waits itself, and whose clock stands still until it is moved. */
function serve(runsSteps = true): TestOrchestrator & { move(ms: number): void } {
  let now = Date.UTC(2026, 0, 1);
  const clock = { ...systemClock, now: () => now, busy: () => 0 };
  const steps = createPureSteps({ worker: "s", clock, random: Math.random, signal: new AbortController().signal });
  const more: Partial<OrchestratorDeps> = { clock, ...(runsSteps && { pureSteps: steps }) };
  const service = openOrchestrator(
    more,
    createMemoryStore(() => now),
  );
  return {
    ...service,
    move: (ms) => {
      now += ms;
    },
  };
}

const row = ({ store }: TestOrchestrator, id: string) => store.executions.get(id);
const types = ({ store }: TestOrchestrator, id: string) => (store.events.get(id) ?? []).map((one) => one.event_type);

test("a signal ends the wait for it with its data; nothing of it is kept", async () => {
  const service = serve();
  const id = await service.start(WAIT);
  assert.deepEqual(
    [...service.store.waits.values()].map(({ kind, dueAt }) => [kind, dueAt]),
    [["signal", null]],
  );
  assert.deepEqual(await service.orchestrator.signal(id, signal({ name: "stop" })), {
    ...{ reached: 0, kept: true, duplicate: false },
  });
  assert.equal(row(service, id)?.status, "RUNNING");
  assert.deepEqual(await service.orchestrator.signal(id, signal({ data: { x: 2 } })), {
    ...{ reached: 1, kept: false, duplicate: false },
  });
  assert.equal(row(service, id)?.status, "COMPLETED");
  assert.deepEqual(row(service, id)?.result, { got: { x: 2 } });
  assert.equal(service.store.waits.size, 0);
  assert.equal(types(service, id).filter((type) => type === "signal.received").length, 2);
});

test("a signal that comes before its wait is kept, and used up by the first that waits", async () => {
  const service = serve();
  const head = playbook(`  - { step: first, tool: { kind: wait, for: 1h }, next: { arcs: [{ step: a }] } }
  - { step: a, tool: { kind: wait, signal: go }, next: { arcs: [{ step: b }] } }
  - { step: b, tool: { kind: wait, signal: go, timeout: 60, on_timeout: continue } }
`);
  const id = await service.start(head);
  assert.equal((await service.orchestrator.signal(id, signal())).kept, true);
  service.move(3_600_000);
  await service.orchestrator.recovery.wake();
  const view = await service.view(id);
  assert.deepEqual([view?.state.steps["a"]?.status, view?.state.steps["b"]?.status], ["COMPLETED", "RUNNING"]);
  assert.deepEqual(view?.state.signals, { kept: [], bytes: 0, ids: [] });
  service.move(60_000);
  await service.orchestrator.recovery.wake();
  const result = row(service, id)?.result;
  assert.ok(isJsonObject(result ?? null));
  assert.equal((result as JsonObject)["outcome"], "timeout");
});

test("the same id twice is one signal, on another server too", async () => {
  const service = serve();
  const id = await service.start(WAIT);
  const other = service.another();
  assert.equal((await service.orchestrator.signal(id, signal({ name: "later", id: "e1" }))).kept, true);
  assert.deepEqual(await other.signal(id, signal({ name: "later", id: "e1" })), {
    ...{ reached: 0, kept: false, duplicate: true },
  });
  assert.equal((await other.signal(id, signal({ name: "later", id: "e2" }))).duplicate, false);
});

test("two servers are sent the same signal at once: it counts once", async () => {
  const service = serve();
  const id = await service.start(WAIT);
  const other = service.another();
  const answers = await Promise.all(
    [service.orchestrator, other].map((one) => one.signal(id, signal({ id: "e" })).catch((error: Error) => error)),
  );
  assert.equal(row(service, id)?.status, "COMPLETED", JSON.stringify(row(service, id)));
  assert.equal(types(service, id).filter((type) => type === "signal.received").length, 1);
  const reached = answers.map((answer) => (answer instanceof Error ? 0 : answer.reached));
  assert.deepEqual(reached.sort(), [0, 1]);
  assert.deepEqual(service.faults, []);
});

test("a condition leaves a signal to others; one that cannot be evaluated holds for none, and does not stop the others", async () => {
  const service = serve();
  const step = (name: string, when: string) =>
    `  - { step: ${name}, tool: { kind: wait, signal: go, when: "${when}" }, next: { arcs: [{ step: end }] } }\n`;
  const id = await service.start(
    playbook(
      `  - { step: start, tool: { kind: noop }, next: { spec: { mode: inclusive }, arcs: [{ step: broken }, { step: big }, { step: own }] } }
${step("broken", "{{ signal.data.amount | int + nothing.at.all > 1 }}")}${step("big", "{{ signal.data.amount >= 100 }}")}${step("own", "{{ signal.data.who == workload.who and signal.name == 'go' }}")}  - { step: end, tool: { kind: noop } }
`,
      "workload: { who: me }\n",
    ),
  );
  const send = async (data: Signal["data"]) => (await service.orchestrator.signal(id, signal({ data }))).reached;
  const open = async () => {
    const { steps = {} } = (await service.view(id))?.state ?? {};
    return ["broken", "big", "own"].filter((name) => steps[name]?.status === "RUNNING");
  };
  assert.equal(await send({ amount: 5, who: "you" }), 0);
  assert.deepEqual(await open(), ["broken", "big", "own"]);
  assert.equal(await send({ amount: 5, who: "me" }), 1);
  assert.deepEqual(await open(), ["broken", "big"]);
  assert.equal(await send({ amount: 100, who: "me" }), 1);
  assert.deepEqual(await open(), ["broken"]);
});

test("iterations wait each for its own key; with one key, the one that waits longest is first", async () => {
  const service = serve();
  const loop = (key: string) =>
    playbook(`  - step: a
    loop: { in: [x, y, z], iterator: item, spec: { mode: parallel } }
    tool: { kind: wait, signal: go, key: "${key}" }
    next: { arcs: [{ step: b }] }
  - { step: b, tool: { kind: noop, result: { got: "{{ a.results | map(attribute='data') | list }}" } } }
`);
  const own = await service.start(loop("{{ item }}"));
  for (const [key, reached] of [
    ["z", 1],
    ["q", 0],
    ["x", 1],
    ["y", 1],
  ] as const) {
    assert.equal((await service.orchestrator.signal(own, signal({ key, data: key }))).reached, reached, key);
  }
  assert.deepEqual(row(service, own)?.result, { got: ["x", "y", "z"] });
  const shared = await service.start(loop("k"));
  assert.equal((await service.orchestrator.signal(shared, signal())).reached, 0);
  for (const data of [1, 2, 3]) await service.orchestrator.signal(shared, signal({ key: "k", data }));
  assert.deepEqual(row(service, shared)?.result, { got: [1, 2, 3] });
});

test("during a pause a signal is kept, and taken at the resumption; each wait takes one", async () => {
  const service = serve();
  const id = await service.start(
    playbook(`  - step: a
    loop: { in: [1, 2], iterator: item, spec: { mode: parallel } }
    tool: { kind: wait, signal: go, timeout: 3600 }
`),
  );
  await service.orchestrator.inject(id, { type: "execution.paused", at: 0 });
  for (const data of [1, 2]) {
    assert.deepEqual(await service.orchestrator.signal(id, signal({ data })), {
      ...{ reached: 0, kept: true, duplicate: false },
    });
  }
  assert.equal(row(service, id)?.status, "PAUSED");
  await service.orchestrator.inject(id, { type: "execution.resumed", at: 0 });
  assert.equal(row(service, id)?.status, "COMPLETED");
  assert.equal(service.store.waits.size, 0);
});

test("its time-out ends a wait with WAIT_TIMEOUT; the signal that comes too late is refused", async () => {
  const service = serve();
  const id = await service.start(playbook("  - { step: a, tool: { kind: wait, signal: go, timeout: 60 } }\n"));
  service.move(60_000);
  assert.equal(await service.orchestrator.recovery.wake(), 1);
  assert.equal(row(service, id)?.status, "FAILED");
  const view = await service.view(id);
  assert.deepEqual([view?.state.error?.kind, view?.state.error?.code], ["timeout", "WAIT_TIMEOUT"]);
  assert.match(view?.state.error?.message ?? "", /Signal 'go' did not come within its time-out of 60 s/);
  await assert.rejects(service.orchestrator.signal(id, signal()), { code: "already_terminal" });
  await assert.rejects(service.orchestrator.signal("404", signal()), { code: "NOT_FOUND" });
});

test(`an execution keeps ${SIGNALS_KEPT_MAX} signals, and refuses the next`, async () => {
  const service = serve();
  const id = await service.start(WAIT);
  for (let sent = 0; sent < SIGNALS_KEPT_MAX; sent += 1)
    await service.orchestrator.signal(id, signal({ name: "other" }));
  await assert.rejects(service.orchestrator.signal(id, signal({ name: "other" })), { code: "RATE_LIMITED" });
  const view = await service.view(id);
  assert.equal(view?.state.signals?.kept.length, SIGNALS_KEPT_MAX);
});

test("a worker that reports the wait learns with its next claim what has come", async () => {
  const service = serve(false);
  const { orchestrator } = service;
  const id = await service.start(WAIT);
  const claim = { worker: "w1", limit: 10, kinds: undefined, labels: {}, waitMs: 0 };
  const [first] = await orchestrator.claim(claim);
  assert.ok(first);
  const commandId = first.command.command_id;
  await orchestrator.signal(id, signal({ data: "early" }));
  const resume = { task: "a", run: 1, serial: 0, started_at: "2026-01-01T00:00:00.000Z" };
  await orchestrator.report({
    ...{ caller: "w1", idempotencyKey: null, bodySha256: "a", isAwaited: true },
    events: [
      {
        executionId: id,
        event: {
          ...{ type: "command.parked", at: 0, command_id: commandId, attempt: 1, step: "a", task: "a", worker: "w1" },
          ...{ wait: { kind: "signal", name: "go" }, resume },
        },
      },
    ],
  });
  const [second] = await orchestrator.claim({ ...claim, waitMs: 5_000 });
  assert.deepEqual([second?.attempt, second?.command.woken?.signal?.data], [2, "early"]);
});
