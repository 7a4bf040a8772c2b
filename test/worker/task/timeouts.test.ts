import assert from "node:assert/strict";
import { test } from "node:test";
import { setup } from "../support/bench.ts";
import { bad, ok, untilStopped } from "../support/scripted-tools.ts";

// Language document, sections 3 and 12: time-outs of tasks, steps and runs, and tools that do not keep to the rules.

test("a task's time-out stops its tool and is an error of kind timeout", async (t) => {
  let stopped = 0;
  const bench = setup(t, {
    tools: {
      slow: (call) =>
        untilStopped(call, () => {
          stopped += 1;
        }),
    },
  });
  for (const timeout of [
    "timeout: 2",
    "timeout_seconds: 2",
    "timeout_ms: 2000",
    'timeout: "{{ 1 + 1 }}"',
    "spec: { timeout: 2 }",
  ]) {
    const before = bench.clock.now();
    const { state } = await bench.failed(`
workflow:
  - step: a
    tool: { kind: http, name: slow, ${timeout} }
`);
    assert.deepEqual([state.error?.kind, state.error?.retryable], ["timeout", true], timeout);
    assert.match(state.error?.message ?? "", /Task 'slow' \(http\) did not end within 2 s and was stopped/);
    assert.equal(bench.clock.now() - before, 2_000);
  }
  assert.equal(stopped, 5);
});

test("a task that ends in time has no time-out, and a rule may retry one that has not", async (t) => {
  let runs = 0;
  const bench = setup(t, {
    tools: {
      slow: async (call) => {
        runs += 1;
        if (runs === 1) return await untilStopped(call);
        await bench.clock.sleep(1_999);
        return ok({ run: runs });
      },
    },
  });
  const ran = await bench.completed(`
workflow:
  - step: a
    tool: { kind: http, name: slow, timeout: 2, spec: { policy: { rules: [{ when: "output.error.kind == 'timeout'", then: { do: retry } }] } } }
`);
  assert.deepEqual(await ran.result(), { run: 2 });
});

test("a time-out that is no duration is an error of the configuration", async (t) => {
  const { failed, calls } = setup(t);
  const { state } = await failed(`
workflow:
  - step: a
    tool: { kind: http, timeout_ms: "{{ 'soon' }}" }
`);
  assert.equal(state.error?.kind, "configuration");
  assert.match(state.error?.message ?? "", /time-out must be a positive number, got "soon"/);
  assert.equal(calls.length, 0);
});

test("a tool that does not stop is left behind after a grace of 5 s", async (t) => {
  const bench = setup(t, { tools: { deaf: () => new Promise(() => {}) } });
  const before = bench.clock.now();
  const { state } = await bench.failed(`
workflow:
  - step: a
    tool: { kind: http, name: deaf, timeout: 1 }
`);
  assert.equal(state.error?.kind, "timeout");
  assert.equal(bench.clock.now() - before, 6_000);
});

test("a tool that throws when it is stopped has stopped", async (t) => {
  const { failed } = setup(t, {
    tools: {
      slow: (call) =>
        new Promise((_, reject) => {
          call.signal.addEventListener("abort", () => reject(call.signal.reason));
        }),
    },
  });
  const { state } = await failed(`
workflow:
  - step: a
    tool: { kind: http, name: slow, timeout: 1 }
`);
  assert.equal(state.error?.kind, "timeout");
});

test("a tool that throws fails its task, which its rules may take", async (t) => {
  const tools = {
    rejects: () => Promise.reject(new Error("a fault of the tool")),
    throws: () => {
      throw new TypeError("another");
    },
  };
  const { completed } = setup(t, { tools });
  const go = "spec: { policy: { rules: [{ else: { then: { do: continue } } }] } }";
  const ran = await completed(`
workflow:
  - step: a
    tool:
      - rejects: { kind: http, ${go} }
      - throws: { kind: http, ${go} }
`);
  const errors = ran.of("call.error").map(({ error }) => [error.kind, error.code, error.message]);
  assert.deepEqual(errors, [
    ["unknown", "INTERNAL", "a fault of the tool"],
    ["unknown", "INTERNAL", "another"],
  ]);
});

test("a step's time-out counts over its tasks and their retries", async (t) => {
  const bench = setup(t, {
    tools: {
      one: async () => {
        await bench.clock.sleep(1_000);
        return bad("connection", "REFUSED");
      },
    },
  });
  const before = bench.clock.now();
  const { state } = await bench.failed(`
workflow:
  - step: a
    spec: { timeout: 5 }
    tool:
      - one: { kind: http, spec: { policy: { rules: [{ else: { then: { do: retry, attempts: 99, delay: 3 } } }] } } }
      - two: { kind: shell, cmd: x }
`);
  assert.equal(state.error?.kind, "timeout");
  assert.match(state.error?.message ?? "", /Step 'a' did not end within 5 s/);
  assert.equal(bench.clock.now() - before, 5_000);
  assert.equal(bench.calls.filter(({ task }) => task === "two").length, 0);
});

for (const exec of ["local", "distributed"]) {
  test(`a step's time-out counts over the iterations of its loop, run ${exec}`, async (t) => {
    const bench = setup(t, {
      tools: {
        work: async () => {
          await bench.clock.sleep(1_000);
          return ok({});
        },
      },
    });
    const { state } = await bench.failed(`
workflow:
  - step: a
    spec: { timeout: 3.5 }
    loop: { in: 10, spec: { policy: { exec: ${exec} } } }
    tool: { kind: http, name: work }
`);
    assert.equal(state.error?.kind, "timeout");
    assert.equal(bench.calls.length, 4, "Three end, the fourth is stopped, no further one starts");
    assert.deepEqual(state.steps["a"]?.loop, { total: 10, done: 4, failed: 1 });
  });
}

test("a step's time-out may be one of its own inputs", async (t) => {
  const bench = setup(t, { tools: { slow: (call) => untilStopped(call, () => undefined) } });
  const { state } = await bench.failed(`
workload: { seconds: 2 }
workflow:
  - step: a
    input: { limit: "{{ seconds + 1 }}" }
    spec: { timeout: "{{ limit }}" }
    tool: { kind: http, name: slow }
`);
  assert.equal(state.error?.kind, "timeout");
  assert.match(state.error?.message ?? "", /Step 'a' did not end within 3 s/);
});

test("a run's time-out fails the run and stops what runs", async (t) => {
  let stopped = 0;
  const bench = setup(t, {
    tools: {
      slow: (call) =>
        untilStopped(call, () => {
          stopped += 1;
        }),
    },
  });
  const { state } = await bench.failed(`
workload: { limit: 60 }
executor: { spec: { timeout: "{{ limit * 2 }}" } }
workflow:
  - step: a
    tool: { kind: http, name: slow }
    next: { arcs: [{ step: b, when: "event.name == 'step.failed'" }] }
  - step: b
`);
  assert.equal(state.error?.kind, "timeout");
  assert.match(state.error?.message ?? "", /The execution of 'test' did not end within 120 s/);
  assert.equal(stopped, 1);
  assert.equal(state.steps["b"]?.status ?? "PENDING", "PENDING");
});

test("a run that ends before its time-out has none", async (t) => {
  const bench = setup(t, { tools: { quick: [ok({})] } });
  await bench.completed(`
executor: { spec: { timeout: 1 } }
workflow:
  - step: a
    tool: { kind: http, name: quick }
`);
});

test("the tool's own time-out holds where the task sets none", async (t) => {
  const bench = setup(t, { tools: { slow: (call) => untilStopped(call) }, defaultTimeoutMs: 4_000 });
  const { state } = await bench.failed("workflow: [{ step: a, tool: { kind: http, name: slow } }]");
  assert.match(state.error?.message ?? "", /within 4 s/);
  const { state: own } = await bench.failed("workflow: [{ step: a, tool: { kind: http, name: slow, timeout: 9 } }]");
  assert.match(own.error?.message ?? "", /within 9 s/);
});
