import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { FlowError } from "../../src/schema/words/errors.ts";
import { type Bench, type BenchOptions, type Ran, setup } from "../worker/support/bench.ts";
import { bad, type Call, ok, untilStopped } from "../worker/support/scripted-tools.ts";

// Decisions, "States": a run that is cancelled while it does one thing or another. Every command is closed, every tool told.

/**
 * Runs a playbook and cancels it one second after so many calls of tools, or before it starts; the run must end as
 * cancelled.
 */
async function cancelled(
  t: TestContext,
  text: string,
  options: BenchOptions & { afterCalls: number },
): Promise<{ bench: Bench; ran: Ran; cancelledAt: number }> {
  const stop = new AbortController();
  let cancelledAt = 0;
  const cancel = () => {
    cancelledAt = bench.clock.now();
    stop.abort(new FlowError("CANCELLED", "The user said stop"));
  };
  const onCall = () => {
    if (bench.calls.length === options.afterCalls) bench.clock.after(1_000, cancel);
  };
  const bench: Bench = setup(t, { ...options, onCall });
  if (options.afterCalls === 0) cancel();
  const ran = await bench.run(text, { signal: stop.signal });
  assert.equal(ran.state.status, "CANCELLED");
  assert.deepEqual([ran.state.error?.kind, ran.state.error?.message], ["cancelled", "The user said stop"]);
  for (const execution of bench.executions()) {
    const issued = execution.of("command.issued").map((event) => event.command_id);
    const closed = execution.events.filter(({ type }) => /^command\.(completed|failed|cancelled)$/.test(type));
    const ids = closed.map((event) => ("command_id" in event ? event.command_id : ""));
    assert.deepEqual([...ids].sort(), [...issued].sort(), "Each command is closed exactly once");
    assert.deepEqual(
      execution.events.filter(({ type }) => /^(playbook\.(completed|failed)|execution\.cancelled)$/.test(type)).length,
      1,
    );
  }
  return { bench, ran, cancelledAt };
}

test("while tools run: they are asked to stop, and the run ends when they have", async (t) => {
  const stopped: string[] = [];
  const { bench, ran } = await cancelled(
    t,
    `
workflow:
  - step: first
    next: { spec: { mode: inclusive }, arcs: [{ step: a }, { step: b }] }
  - step: a
    tool: { kind: http }
    next: [{ step: after }]
  - step: b
    tool: { kind: shell, cmd: x }
  - step: after
`,
    {
      tools: {
        a: (call) => untilStopped(call, () => stopped.push("a")),
        b: (call) => untilStopped(call, () => stopped.push("b")),
      },
      afterCalls: 2,
    },
  );
  assert.deepEqual(stopped.sort(), ["a", "b"]);
  const statuses = ["first", "a", "b", "after"].map((name) => ran.state.steps[name]?.status ?? "PENDING");
  assert.deepEqual(statuses, ["COMPLETED", "FAILED", "FAILED", "PENDING"]);
  assert.equal(bench.calls.length, 2);
});

test("while a tool does not listen: it is left behind after its grace", async (t) => {
  const { bench, cancelledAt } = await cancelled(t, "workflow: [{ step: a, tool: { kind: http } }]", {
    tools: { a: () => new Promise(() => {}) },
    afterCalls: 1,
  });
  assert.equal(bench.clock.now() - cancelledAt, 5_000);
});

test("while a retry waits: the wait ends and no further run is made", async (t) => {
  const { bench, cancelledAt } = await cancelled(
    t,
    `
workflow:
  - step: a
    tool: { kind: http, retry: { max_attempts: 9, initial_delay: 100 } }
`,
    { tools: { a: [bad("timeout", "T")] }, afterCalls: 2 },
  );
  assert.equal(bench.calls.length, 2);
  assert.equal(bench.clock.now(), cancelledAt);
});

test("while commands are queued: they are closed and never run", async (t) => {
  const { bench, ran } = await cancelled(
    t,
    `
workflow:
  - step: each
    loop: { in: 10, spec: { mode: parallel } }
    tool: { kind: http, name: work }
`,
    {
      capacity: 2,
      tools: { work: (call) => untilStopped(call) },
      afterCalls: 2,
    },
  );
  assert.equal(bench.calls.length, 2);
  assert.equal(ran.of("command.cancelled").length, 10);
  assert.equal(ran.of("command.claimed").length, 2);
});

test("while iterations run in one command: none starts any more", async (t) => {
  const { bench } = await cancelled(
    t,
    `
workflow:
  - step: each
    loop: { in: 10, spec: { policy: { exec: local } } }
    tool: { kind: http, name: work }
`,
    { tools: { work: (call) => untilStopped(call) }, afterCalls: 1 },
  );
  assert.equal(bench.calls.length, 1);
});

test("before it starts: nothing is called", async (t) => {
  const { bench } = await cancelled(t, "workflow: [{ step: a, tool: { kind: http } }]", { afterCalls: 0 });
  assert.equal(bench.calls.length, 0);
});

test("a tool's answer that comes after the cancellation changes nothing", async (t) => {
  const { ran } = await cancelled(
    t,
    "workflow: [{ step: a, tool: { kind: http, set: { x: 1 } }, next: [{ step: b }] }, { step: b }]",
    {
      tools: {
        a: (call: Call) =>
          new Promise((resolve) => {
            call.signal.addEventListener("abort", () => resolve(ok({ late: true })));
          }),
      },
      afterCalls: 1,
    },
  );
  assert.deepEqual(ran.state.vars, {});
  assert.equal(ran.of("task.done").length, 0);
});

const GRANDCHILD = "workflow: [{ step: inner, tool: { kind: http } }]";

for (const mode of ["", ", mode: async"]) {
  test(`sub-playbooks are cancelled with their caller${mode === "" ? "" : ", asynchronous ones too"}`, async (t) => {
    let stopped = 0;
    const { bench } = await cancelled(
      t,
      `
workflow:
  - step: call
    tool: [{ child: { kind: playbook, path: child${mode} } }, { wait: { kind: shell, cmd: x } }]
`,
      {
        files: {
          "child.yaml": `workflow: [{ step: call, tool: { kind: playbook, path: grandchild${mode} }, next: [{ step: more }] }, { step: more, tool: { kind: sqldb, query: x } }]`,
          "grandchild.yaml": GRANDCHILD,
        },
        tools: {
          inner: (call) =>
            untilStopped(call, () => {
              stopped += 1;
            }),
          wait: (call) => untilStopped(call),
          more: (call) => untilStopped(call),
        },
        // With async children, `more` and `wait` run beside `inner`.
        afterCalls: mode === "" ? 1 : 3,
      },
    );
    await bench.clock.runUntil(bench.runtime.close());
    assert.deepEqual(
      bench.executions().map(({ state }) => state.status),
      ["CANCELLED", "CANCELLED", "CANCELLED"],
    );
    assert.equal(stopped, 1);
  });
}

test("a child that ran out of its caller's time is cancelled, and the caller goes on", async (t) => {
  let stopped = 0;
  const bench = setup(t, {
    files: { "child.yaml": GRANDCHILD },
    tools: {
      inner: (call) =>
        bench.calls.length === 1
          ? ok({})
          : untilStopped(call, () => {
              stopped += 1;
            }),
    },
  });
  // Read once, so that no time of the test's clock passes while the file is read.
  await bench.completed("workflow: [{ step: call, tool: { kind: playbook, path: child } }]");
  const ran = await bench.completed(`
workflow:
  - step: call
    tool: { kind: playbook, path: child, timeout: 5 }
    next: { arcs: [{ step: end, when: "event.name == 'step.failed' and output.error.kind == 'timeout'" }] }
  - step: end
`);
  assert.deepEqual(
    bench.executions().map(({ state }) => state.status),
    ["COMPLETED", "COMPLETED", "COMPLETED", "CANCELLED"],
  );
  assert.equal(stopped, 1);
  assert.equal(ran.state.steps["call"]?.status, "FAILED");
});

test("a child that exceeded its caller's time ends together with its asynchronous children", async (t) => {
  let stopped = 0;
  const stopping = (call: Call) =>
    untilStopped(call, () => {
      stopped += 1;
    });
  const bench: Bench = setup(t, {
    files: {
      "child.yaml": `
workflow:
  - step: start
    tool: { kind: playbook, path: grandchild, mode: async }
    next: [{ step: wait }]
  - step: wait
    tool: { kind: shell, cmd: x }
`,
      "grandchild.yaml": GRANDCHILD,
    },
    tools: {
      inner: (call) => (bench.calls.length <= 2 ? ok({}) : stopping(call)),
      wait: (call) => (bench.calls.length <= 2 ? ok({}) : stopping(call)),
    },
  });
  const calling = (timeout: string) => `workflow: [{ step: call, tool: { kind: playbook, path: child ${timeout} } }]`;
  // Both documents are read once, so that no time of the test's clock passes while files are read.
  await bench.completed(calling(""));
  await bench.failed(calling(", timeout: 5"));
  await bench.clock.runUntil(bench.runtime.close());
  const statuses = bench.executions().map(({ state }) => state.status);
  assert.deepEqual(statuses, ["COMPLETED", "COMPLETED", "COMPLETED", "FAILED", "CANCELLED", "CANCELLED"]);
  assert.equal(stopped, 2);
});

test("a child whose caller's time runs out while its document is read is not started", async (t) => {
  const bench = setup(t, { files: { "child.yaml": GRANDCHILD } });
  const { clock, runtime } = bench;
  const timed = bench.compile("workflow: [{ step: call, tool: { kind: playbook, path: child, timeout: 5 } }]");
  const running = runtime.run(timed, { input: {} }, new AbortController().signal);
  // Stepping does not wait for the file that is being read.
  const outAt = clock.now() + 5_000;
  while (clock.now() < outAt) await clock.step();
  const { status, error } = await clock.runUntil(running);
  assert.deepEqual([status, error?.kind], ["FAILED", "timeout"]);
  // The second call gets the same document, once it has been read.
  await bench.completed("workflow: [{ step: call, tool: { kind: playbook, path: child } }]");
  const calls = bench.executions().map((execution) => execution.state.steps["call"]?.status ?? "of a child");
  assert.deepEqual(calls, ["FAILED", "COMPLETED", "of a child"]);
});

for (const [what, step] of [
  ["a loop of one command", "loop: { in: 1000000, spec: { policy: { exec: local } } }, tool: { kind: noop }"],
  ["a loop of many commands", "loop: { in: 1000000 }, tool: { kind: noop }"],
  [
    "a jump that never ends",
    "tool: [{ a: { kind: noop, spec: { policy: { rules: [{ else: { then: { do: jump, to: a } } }] } } } }]",
  ],
] as const) {
  test(`${what} whose tool answers at once is cancelled by a signal that comes from outside`, async (t) => {
    const stop = new AbortController();
    let isCancelling = false;
    // As with Ctrl-C, nothing but the event loop brings it; a run that never lets it come round would go on for a minute.
    const observe = () => {
      if (!isCancelling) setImmediate(() => stop.abort());
      isCancelling = true;
    };
    // Each look at the work finds that it has taken a millisecond, on any machine.
    let looks = 0;
    const busy = () => {
      looks += 1;
      return looks;
    };
    const bench = setup(t, { forgetful: true, observe, busy });
    const { state } = await bench.run(`workflow: [{ step: s, ${step} }]`, { signal: stop.signal });
    assert.equal(state.status, "CANCELLED");
  });
}
