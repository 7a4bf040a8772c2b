import assert from "node:assert/strict";
import { test } from "node:test";
import type { FlowEvent } from "../../src/schema/words/event.ts";
import { setup } from "../worker/support/bench.ts";
import { recordsOf } from "../worker/support/recorded.ts";
import { bad, longText, ok } from "../worker/support/scripted-tools.ts";

/*
 * Decisions, "Event types". That what is stored of an event gives the event, and that the stored events give the state, is
 * checked after every run of every test here and of the worker (worker/support/recorded.ts).
 */

test("a plain step takes at most six rows", async (t) => {
  const { completed } = setup(t);
  const ran = await completed(`
workflow:
  - step: a
    tool: { kind: http }
    set: { x: 1 }
    next: { arcs: [{ step: b, when: "x == 1" }] }
  - step: b
    tool: { kind: http }
`);
  const rows = (name: string) =>
    ran.events.filter((event) => "step" in event && event.step === name).map(({ type }) => type);
  assert.deepEqual(
    rows("a").filter((type) => type !== "workflow.initialized"),
    ["command.issued", "command.claimed", "task.done", "command.completed", "step.completed", "next.evaluated"],
  );
  assert.equal(rows("b").length, 5);
});

test("work that lasts has one row more", async (t) => {
  const bench = setup(t, { tools: { a: () => bench.clock.sleep(300).then(() => ok({})) } });
  const ran = await bench.completed("workflow: [{ step: a, tool: { kind: http } }]");
  assert.equal(ran.of("command.started").length, 1);
  assert.equal(ran.of("task.done")[0]?.duration_ms, 300);
});

test("a run begins and ends with one event each, and ids of commands grow", async (t) => {
  const { completed } = setup(t);
  const ran = await completed(
    "workflow: [{ step: a, next: [{ step: b }] }, { step: b, next: [{ step: c }] }, { step: c }]",
  );
  const types = ran.events.map(({ type }) => type);
  assert.deepEqual(types.slice(0, 2), ["playbook.initialized", "workflow.initialized"]);
  assert.deepEqual(types.slice(-2), ["workflow.completed", "playbook.completed"]);
  const ids = ran.of("command.issued").map((event) => BigInt(event.command_id));
  assert.ok(ids.every((id, index) => index === 0 || id > (ids[index - 1] ?? id)));
  assert.ok(BigInt(ran.state.executionId) < (ids[0] ?? 0n));
});

test("events are reported in the order in which they were folded, with times that do not go back", async (t) => {
  const seen: FlowEvent[] = [];
  const bench = setup(t, {
    observe: (event) => seen.push(event),
    tools: { work: (call) => bench.clock.sleep(100 - 10 * Number(call.config["n"])).then(() => ok({})) },
  });
  const ran = await bench.completed(`
workflow:
  - step: each
    loop: { in: 5, spec: { mode: parallel } }
    tool: { kind: http, name: work, n: "{{ item }}" }
`);
  assert.deepEqual(seen, ran.events);
  const times = seen.map(({ at }) => at);
  assert.deepEqual(
    times,
    [...times].sort((left, right) => left - right),
  );
});

test("every event type that a local run has is written and read back", async (t) => {
  const files = { "child.yaml": "workflow: [{ step: inner, tool: { kind: shell, cmd: x } }]" };
  const bench = setup(t, {
    files,
    tools: {
      flaky: [bad("timeout", "T"), ok({ text: longText(70_000) }, { virtual: { command_0: { n: 1 } } })],
      slow: (call) => {
        call.progress?.({ rows: 1 });
        return bench.clock.sleep(1_000).then(() => ok({}));
      },
      odd: (call) => (Number(call.config["n"]) % 2 === 1 ? bad("client_error", "ODD") : ok({ text: longText(40_000) })),
      claim: [ok({ rows: [{ id: 1 }] }), ok({ rows: [] })],
      wait: (call) => new Promise((resolve) => call.signal.addEventListener("abort", () => resolve(ok({})))),
    },
  });
  const types = new Set<string>();
  const note = (ran: { events: FlowEvent[] }) => {
    for (const { type } of ran.events) types.add(type);
  };
  note(
    await bench.failed(`
workload: { list: [0, 1, 2, 3, 4] }
workflow:
  - step: start
    tool: [{ flaky: { kind: http, retry: { max_attempts: 2 } } }, { slow: { kind: shell, cmd: x } }]
    set: { a: { b: [null, 1, "text"] } }
    next: { spec: { mode: inclusive }, arcs: [{ step: child, when: "a.b[1] == 1" }, { step: never, when: "false" }] }
  - step: never
  - step: child
    tool: { kind: playbook, path: child }
    next: [{ step: rows }]
  - step: rows
    loop: { cursor: { kind: postgres, claim: x }, iterator: row }
    tool: [{ one: { kind: noop, set: { ctx.row: "{{ row.id }}" } }, two: { kind: noop } }]
    next: [{ step: guarded }]
  - step: guarded
    when: "false"
    next: [{ step: each }]
  - step: each
    loop: { in: "{{ list }}", spec: { mode: parallel, policy: { exec: local } } }
    tool: { kind: http, name: odd, n: "{{ item }}" }
    next: { arcs: [{ step: failing, when: "event.name == 'loop.done'" }] }
  - step: failing
    tool: { kind: noop, result: wrong }
`),
  );
  const stop = new AbortController();
  bench.clock.after(100, () => stop.abort());
  note(await bench.run("workflow: [{ step: wait, tool: { kind: http } }]", { signal: stop.signal }));
  note(await bench.completed("workflow: [{ step: last }]"));
  assert.deepEqual([...types].sort(), [
    "call.done",
    "call.error",
    "command.cancelled",
    "command.claimed",
    "command.completed",
    "command.failed",
    "command.issued",
    "command.started",
    "execution.cancelled",
    "loop.done",
    "loop.iteration.completed",
    "loop.iteration.failed",
    "loop.results.stored",
    "loop.started",
    "next.evaluated",
    "playbook.completed",
    "playbook.failed",
    "playbook.initialized",
    "step.completed",
    "step.failed",
    "step.skipped",
    "task.done",
    "task.progress",
    "workflow.completed",
    "workflow.failed",
    "workflow.initialized",
  ]);
});

test("a record has the names of the specification", async (t) => {
  const { completed } = setup(t, { tools: { a: [ok({ n: 1 })] } });
  const ran = await completed("workflow: [{ step: a, tool: { kind: http } }]");
  const records = recordsOf(ran.state, ran.events);
  const done = records.find((record) => record.event_type === "task.done");
  const { state } = ran;
  const issued = ran.of("command.issued")[0];
  assert.deepEqual(done, {
    event_id: 5,
    execution_id: state.executionId,
    catalog_id: "test",
    event_type: "task.done",
    node_id: "a",
    node_name: "a",
    node_type: "task",
    status: "COMPLETED",
    created_at: "2026-01-01T00:00:00.000Z",
    command_id: issued?.command_id,
    worker: "local",
    attempt: 1,
    step_run_id: issued?.step_run_id,
    task_run_id: `${issued?.command_id}-0-0`,
    duration_ms: 0,
    result: {
      status: "ok",
      context: {
        task: "a",
        value: { n: 1 },
        about: { meta: { attempt: 1, duration_ms: 0 } },
        run: 1,
        final: true,
        bytes: 7,
      },
    },
  });
});
