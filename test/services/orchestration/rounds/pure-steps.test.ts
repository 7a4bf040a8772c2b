import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../../../../src/adapters/system-clock.ts";
import type { OrchestratorDeps } from "../../../../src/services/orchestration/orchestrator.ts";
import type { PureSteps } from "../../../../src/services/orchestration/rounds/pure-steps.ts";
import { createPureSteps } from "../../../../src/worker/command/pure-steps.ts";
import { createMemoryStore } from "../../../support/engine/memory-store.ts";
import { openOrchestrator, type TestOrchestrator } from "../../../support/engine/orchestrator.ts";

/* Steps without effects, which the server runs within its rounds: over a store in memory, without workers unless a test has one. */

/** However busy the machine is, no time is used up. */
const clock = { ...systemClock, busy: () => 0 };
const steps = createPureSteps({ worker: "server-1", clock, random: Math.random, signal: new AbortController().signal });
const claim = (limit = 100) => ({ worker: "w1", limit, kinds: undefined, labels: {}, waitMs: 0 });
/** A claim that waits until there is a command. */
const forever = { ...claim(1), waitMs: 60_000 };

/** `head` is what stands before the steps. */
function playbook(workflow: string, head = ""): string {
  return `apiVersion: flow/v2\nkind: Playbook\nmetadata: { name: p, path: p }\n${head}workflow:\n${workflow}`;
}

/** Steps s1, s2, … in a row. */
function chain(length: number): string {
  const step = (at: number) =>
    `  - { step: s${at}, tool: { kind: noop, result: { n: ${at} } }${at < length ? `, next: s${at + 1}` : ""} }\n`;
  return playbook(Array.from({ length }, (_, index) => step(index + 1)).join(""));
}

/** Flushes that wrote the execution. */
function counting(more: Partial<OrchestratorDeps> = {}): TestOrchestrator & { flushes(): number } {
  const store = createMemoryStore(Date.now);
  let flushes = 0;
  const counted = {
    ...store,
    flush: async (flush: Parameters<typeof store.flush>[0]) => {
      flushes += flush.executions.length;
      return await store.flush(flush);
    },
  };
  return { ...openOrchestrator({ pureSteps: steps, clock, ...more }, counted), flushes: () => flushes };
}

/** Resolves when the execution has ended. */
async function ended({ orchestrator, store }: TestOrchestrator, executionId: string): Promise<string> {
  for (;;) {
    const moved = new Promise<void>((resolve) => {
      const stop = orchestrator.watch(executionId, () => {
        stop();
        resolve();
      });
    });
    const row = store.executions.get(executionId);
    if (row !== undefined && row.endedAt !== null) return row.status;
    await moved;
  }
}

async function types({ store }: TestOrchestrator, executionId: string): Promise<string[]> {
  return (store.events.get(executionId) ?? []).map(({ event_type }) => event_type);
}

test("an execution of steps without effects begins and ends in one flush, under the name of the server", async () => {
  const service = counting();
  const executionId = await service.start(chain(3));
  assert.equal(await ended(service, executionId), "COMPLETED");
  assert.equal(service.flushes(), 1);
  const log = service.store.events.get(executionId) ?? [];
  const claims = log.filter(({ event_type }) => event_type === "command.claimed");
  assert.deepEqual(
    claims.map(({ worker, attempt }) => ({ worker, attempt })),
    [1, 2, 3].map(() => ({ worker: "server-1", attempt: 1 })),
  );
  assert.deepEqual(await service.orchestrator.claim(claim()), []);
  assert.deepEqual(service.faults, []);
});

for (const length of [255, 256, 257, 512, 513]) {
  test(`a chain of ${length}: a round runs 256 steps, the next one goes on`, async () => {
    const service = counting();
    const executionId = await service.start(chain(length));
    assert.equal(await ended(service, executionId), "COMPLETED");
    assert.equal(service.flushes(), Math.ceil(length / 256));
    const log = await types(service, executionId);
    assert.deepEqual(log.slice(0, 2), ["playbook.initialized", "workflow.initialized"]);
    const step = ["command.issued", "command.claimed", "task.done", "command.completed", "step.completed"];
    assert.deepEqual(log.slice(2, -2), Array.from({ length }, () => step).flat());
    assert.deepEqual(service.faults, []);
  });
}

test("results that together are too large for one flush are written with several", async () => {
  const text = "x".repeat(60_000);
  const step = (at: number) =>
    `  - { step: s${at}, tool: { kind: noop, result: { n: ${at}, text: "{{ workload.text }}" } }, next: s${at + 1} }\n`;
  const service = counting();
  const steps = Array.from({ length: 60 }, (_, index) => step(index)).join("");
  const workflow = `${steps}  - { step: s60, tool: { kind: noop } }\n`;
  const executionId = await service.start(playbook(workflow, `workload: { text: ${text} }\n`));
  assert.equal(await ended(service, executionId), "COMPLETED");
  // 60 results of 60 kB are 3.6 MB, of which 2 Mi characters are in one round.
  assert.equal(service.flushes(), 2);
  assert.deepEqual(service.faults, []);
});

test("a round whose time is used up holds the rest", async () => {
  // Each look at the clock takes 20 ms: longer than a round runs one execution.
  let now = 0;
  const slow = {
    ...systemClock,
    busy: () => {
      now += 20;
      return now;
    },
  };
  const service = counting({ clock: slow });
  const executionId = await service.start(chain(10));
  assert.equal(await ended(service, executionId), "COMPLETED");
  assert.ok(service.flushes() > 1 && service.flushes() <= 10, `${service.flushes()} flushes`);
  assert.deepEqual(service.faults, []);
});

test("times in the log do not go back", async () => {
  let now = Date.UTC(2026, 0, 1);
  const ticking = {
    ...clock,
    now: () => {
      now += 1;
      return now;
    },
  };
  const ticked = createPureSteps({
    worker: "server-1",
    clock: ticking,
    random: Math.random,
    signal: new AbortController().signal,
  });
  const service = counting({ clock: ticking, pureSteps: ticked });
  const executionId = await service.start(chain(3));
  await ended(service, executionId);
  const times = (service.store.events.get(executionId) ?? []).map(({ created_at }) => created_at);
  assert.deepEqual(times, times.toSorted());
});

test("however long a step takes, executions of one round have their turns", async () => {
  // Each look at the clock takes 30 ms: a round is over after two commands.
  let now = 0;
  const slow = {
    ...systemClock,
    busy: () => {
      now += 30;
      return now;
    },
  };
  const service = counting({ clock: slow });
  const cycle = "  - { step: a, tool: { kind: noop }, next: { arcs: [{ step: a, when: '{{ true }}' }] } }\n";
  await Promise.all(Array.from({ length: 4 }, () => service.start(playbook(cycle))));
  const other = await service.start(chain(10));
  assert.equal(await ended(service, other), "COMPLETED");
  await service.orchestrator.close();
  assert.deepEqual(service.faults, []);
});

test("executions of which a round runs nothing, as its time is over, go on in the next", async () => {
  let now = 0;
  // The time of a round is over with its first step.
  const slow = {
    ...systemClock,
    busy: () => {
      now += 60;
      return now;
    },
  };
  const service = counting({ clock: slow });
  const all = await Promise.all(Array.from({ length: 5 }, () => service.start(chain(4))));
  for (const executionId of all) assert.equal(await ended(service, executionId), "COMPLETED");
  assert.deepEqual(service.faults, []);
});

test("a cycle without end lets other executions begin and end, and lets the server stop", async () => {
  const service = counting();
  const cycle = await service.start(
    playbook(
      `  - { step: a, tool: { kind: noop }, next: b }\n  - { step: b, tool: { kind: noop }, next: { arcs: [{ step: a, when: "{{ true }}" }] } }\n`,
    ),
  );
  const other = await service.start(chain(100));
  assert.equal(await ended(service, other), "COMPLETED");
  assert.equal(service.store.executions.get(cycle)?.status, "RUNNING");
  await service.orchestrator.close();
  // What it left is claimable: a worker, or another server's, goes on with it.
  const waiting = [...service.store.commands.values()].filter(({ status }) => status === "PENDING");
  assert.deepEqual(
    waiting.map(({ executionId }) => executionId),
    [cycle],
  );
  assert.deepEqual(service.faults, []);
});

const WORKERS: [what: string, workflow: string, head?: string][] = [
  ["a step with labels", "  - { step: a, spec: { labels: { gpu: 'yes' } }, tool: { kind: noop } }\n"],
  [
    "a retry",
    "  - { step: a, tool: { kind: noop, spec: { policy: { rules: [{ when: '{{ false }}', then: { do: retry } }] } } } }\n",
  ],
  [
    "a jump",
    "  - { step: a, tool: [{ name: x, kind: noop }, { name: y, kind: noop, spec: { policy: { rules: [{ when: '{{ false }}', then: { do: jump, to: x } }] } } }] }\n",
  ],
  ["a step's time limit", "  - { step: a, spec: { timeout: 5 }, tool: { kind: noop } }\n"],
  [
    "a sensitive result",
    "  - { step: a, tool: { kind: noop, result: { a: 1 } }, spec: { result: { sensitive: true } } }\n",
  ],
  ["the environment", "  - { step: a, tool: { kind: noop, result: { home: '{{ env.HOME }}' } } }\n"],
  [
    "another kind beside it",
    "  - { step: a, tool: [{ name: x, kind: noop }, { name: y, kind: shell, cmd: 'true' }] }\n",
  ],
  [
    "a result too large for an event",
    "  - { step: a, tool: { kind: noop, result: { text: '{{ workload.text }}' } } }\n",
    `workload: { text: ${"x".repeat(70_000)} }\n`,
  ],
  ["templates that take long", "  - { step: a, tool: { kind: noop, result: { sum: '{{ range(100000) | sum }}' } } }\n"],
];

for (const [what, workflow, head] of WORKERS) {
  test(`${what} leaves a step to workers`, async () => {
    const service = counting();
    const executionId = await service.start(playbook(workflow, head));
    const commands = await service.orchestrator.claim({ ...forever, labels: { gpu: "yes" } });
    assert.deepEqual(
      commands.map(({ command, attempt }) => ({ id: command.execution_id, step: command.step, attempt })),
      [{ id: executionId, step: "a", attempt: 1 }],
    );
    assert.deepEqual(service.faults, []);
  });
}

test("the commands of a pool are for its workers", async () => {
  const service = counting({ poolOf: () => "trusted" });
  await service.start(chain(1));
  const [command] = await service.orchestrator.claim({ ...forever, isOfPool: (pool) => pool === "trusted" });
  assert.equal(command?.command.step, "s1");
});

for (const [what, suits] of [
  ["with the first step", "s1"],
  ["with a later step", "s3"],
] as const) {
  test(`when running them fails ${what}, workers get them, and the fault is told`, async () => {
    const failing: PureSteps = {
      ...steps,
      run: async (source, command, attempt) => {
        if (command.step === suits) throw new Error("a fault of this program");
        return await steps.run(source, command, attempt);
      },
    };
    const service = counting({ pureSteps: failing });
    const executionId = await service.start(chain(3));
    const [command] = await service.orchestrator.claim(forever);
    assert.equal(command?.command.step, "s1");
    assert.equal(command?.command.execution_id, executionId);
    assert.deepEqual(service.faults.map(String), ["Error: a fault of this program"]);
  });
}

test("a held command that another server's worker takes meanwhile is run once", async () => {
  const store = createMemoryStore(Date.now);
  const others: TestOrchestrator[] = [];
  let isTaken = false;
  const racing: PureSteps = {
    ...steps,
    run: async (source, command, attempt) => {
      // The 257th is held by the first round, so it is in the store: there another server finds it.
      if (command.step === "s257" && !isTaken) {
        isTaken = true;
        const other = others[0]?.another();
        await other?.offer([command.command_id]);
        const commands = await other?.claim(forever);
        assert.equal(commands?.[0]?.command.step, "s257");
      }
      return await steps.run(source, command, attempt);
    },
  };
  const service = openOrchestrator({ pureSteps: racing, clock }, store);
  others.push(service);
  const executionId = await service.start(chain(258));
  const row = () => [...store.commands.values()].find(({ step }) => step === "s257");
  while (row()?.worker !== "w1") await new Promise(setImmediate);
  await service.orchestrator.inject(executionId, { type: "execution.cancelled", at: Date.now(), reason: "enough" });
  const log = store.events.get(executionId) ?? [];
  const claims = log.filter(({ event_type, node_name }) => event_type === "command.claimed" && node_name === "s257");
  assert.deepEqual(
    claims.map(({ worker }) => worker),
    ["w1"],
  );
  assert.equal(log.filter(({ event_type, node_name }) => event_type === "task.done" && node_name === "s257").length, 0);
  assert.deepEqual(service.faults, []);
});

test("a round that is not written is run again as a whole", async () => {
  const store = createMemoryStore(Date.now);
  let tries = 0;
  const flush: typeof store.flush = async (change) => {
    tries += 1;
    if (tries === 1) throw new Error("busy");
    return await store.flush(change);
  };
  const service = openOrchestrator({ pureSteps: steps, clock, isRetryable: () => true }, { ...store, flush });
  const executionId = await service.start(chain(5));
  assert.equal(await ended({ ...service, store }, executionId), "COMPLETED");
  assert.equal(tries, 2);
  const log = store.events.get(executionId) ?? [];
  assert.equal(log.filter(({ event_type }) => event_type === "step.completed").length, 5);
});

test("a loop, its order and its results are those of a worker's", async () => {
  const workflow = `  - step: each
    loop: { in: "{{ range(100) | list }}", iterator: n, spec: { mode: parallel, max_in_flight: 7 } }
    tool: { kind: noop, result: { n: "{{ n * 2 }}" } }
    next: sum
  - { step: sum, tool: { kind: noop, result: { count: "{{ each.results | length }}", last: "{{ each.results[99].n }}" } } }
`;
  const service = counting();
  const executionId = await service.start(playbook(workflow));
  assert.equal(await ended(service, executionId), "COMPLETED");
  const view = await service.view(executionId);
  assert.deepEqual(view?.state.steps["sum"]?.result?.value, { count: 100, last: 198 });
  const log = service.store.events.get(executionId) ?? [];
  const order = log.flatMap(({ event_type, iteration }) =>
    event_type === "loop.iteration.completed" ? [iteration] : [],
  );
  assert.deepEqual(
    order,
    Array.from({ length: 100 }, (_, index) => index),
  );
});

test("a loop that stops at its first failure leaves nothing open", async () => {
  const workflow = `  - step: each
    loop: { in: 40, iterator: n, spec: { mode: parallel, on_error: stop } }
    tool: { kind: noop, result: "no map" }
`;
  const service = counting();
  const executionId = await service.start(playbook(workflow));
  assert.equal(await ended(service, executionId), "FAILED");
  assert.deepEqual([...service.store.commands.values()], []);
  assert.deepEqual(service.faults, []);
});

test("what fails fails as on a worker, and its arcs see it", async () => {
  const service = counting();
  const executionId = await service.start(
    playbook(
      `  - { step: a, tool: { kind: noop, result: "a text is no map" }, next: { arcs: [{ step: b, when: "{{ event.name == 'step.failed' }}" }] } }\n  - { step: b, tool: { kind: noop } }\n`,
    ),
  );
  await ended(service, executionId);
  const log = await types(service, executionId);
  assert.ok(log.includes("step.failed"), log.join());
});

test("a pause stops a run of such steps between two rounds; the resumption goes on with it, without a worker", async () => {
  const service = counting();
  const executionId = await service.start(chain(600));
  const { orchestrator } = service;
  assert.equal(await orchestrator.inject(executionId, { type: "execution.paused", at: Date.now() }), "accepted");
  const row = service.store.executions.get(executionId);
  assert.equal(row?.status, "PAUSED");
  const before = service.flushes();
  await orchestrator.recovery.poll();
  assert.deepEqual(await orchestrator.claim(claim()), []);
  assert.equal(service.flushes(), before, "nothing happens during the pause");
  await orchestrator.inject(executionId, { type: "execution.resumed", at: Date.now() });
  assert.equal(await ended(service, executionId), "COMPLETED");
  const log = await types(service, executionId);
  assert.equal(log.filter((type) => type === "command.claimed").length, 600);
  assert.deepEqual(service.faults, []);
});
