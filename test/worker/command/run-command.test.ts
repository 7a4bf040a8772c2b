import assert from "node:assert/strict";
import { test } from "node:test";
import { createLocalResults } from "../../../src/local/results.ts";
import type { Command } from "../../../src/schema/words/command.ts";
import { FlowError } from "../../../src/schema/words/errors.ts";
import type { FlowEvent } from "../../../src/schema/words/event.ts";
import { failed, type ToolResult } from "../../../src/schema/words/outcome.ts";
import { createSteppedClock } from "../../../src/testing/stepped-clock.ts";
import { runCommand } from "../../../src/worker/command/run-command.ts";
import type { WorkerDeps } from "../../../src/worker/deps.ts";
import { createIterationStops } from "../../../src/worker/iteration-stops.ts";
import { compile } from "../../engine/support/playbook.ts";
import { type Call, ok, type Scripts, scriptedTools } from "../support/scripted-tools.ts";

// One claimed command, without an engine: whatever happens, it is reported to its end.

interface Given {
  tools?: Scripts;
  deps?: Partial<WorkerDeps>;
  command?: Partial<Command>;
  signal?: AbortSignal;
  report?: (event: FlowEvent) => void;
}

async function work(text: string, given: Given = {}): Promise<FlowEvent[]> {
  const clock = createSteppedClock(1_767_225_600_000);
  const events: FlowEvent[] = [];
  const deps: WorkerDeps = {
    worker: "w1",
    tools: scriptedTools(given.tools ?? {}, () => undefined),
    credentials: { find: () => Promise.resolve(undefined) },
    sealers: undefined,
    children: { run: () => Promise.reject(new Error("no children here")) },
    results: createLocalResults(),
    clock,
    random: () => 0,
    env: {},
    log: () => undefined,
    ...given.deps,
  };
  const command: Command = {
    command_id: "100",
    execution_id: "1",
    catalog_id: "test",
    step: "s",
    step_run_id: "99",
    step_started_at: clock.now(),
    context: { workload: {}, vars: {}, steps: {}, input: {} },
    ...given.command,
  };
  const source = { program: compile(text), file: "test.yaml" };
  const report = async (list: FlowEvent[]) => {
    for (const event of list) {
      given.report?.(event);
      events.push(event);
    }
  };
  const signal = given.signal ?? new AbortController().signal;
  await clock.runUntil(runCommand(deps, source, { command, attempt: 3 }, report, signal));
  return events;
}

/** A tool that notes its calls. */
function noting(called: string[]): (call: Call) => ToolResult {
  return ({ task }) => {
    called.push(task);
    return ok({});
  };
}

const ONE = "workflow: [{ step: s, tool: { kind: http } }]";

test("every event names the command, its claim and the worker", async () => {
  const events = await work(ONE);
  assert.deepEqual(
    events.map(({ type }) => type),
    ["task.done", "command.completed"],
  );
  for (const event of events) {
    const { command_id, attempt, step, worker } = event as FlowEvent & Record<string, unknown>;
    assert.deepEqual({ command_id, attempt, step, worker }, { command_id: "100", attempt: 3, step: "s", worker: "w1" });
  }
});

test("a loop command whose report fails starts no further iteration, and ends after those that run", async () => {
  const called: string[] = [];
  const text = `
workflow:
  - step: s
    loop: { in: 6, spec: { mode: parallel, policy: { exec: local } } }
    tool: { kind: noop }
`;
  const loop = { from: 0, items: [0, 1, 2, 3, 4, 5], total: 6, max_in_flight: 2, stop_on_error: false };
  let isBroken = false;
  const report = (event: FlowEvent) => {
    if (event.type === "task.done") called.push(`${event.iteration}`);
    if (event.type !== "loop.iteration.completed" || isBroken) return;
    isBroken = true;
    throw new Error("nobody takes reports");
  };
  const events = await work(text, { command: { loop }, report });
  assert.ok(called.length < 6, `iterations ${called.join(", ")} ran`);
  assert.equal(events.at(-1)?.type, "command.failed", "nothing is reported after the end of the command");
});

test("a jump that never ends fails its command when the task runs are used up", async () => {
  const text = `
workflow:
  - step: s
    tool: [{ a: { kind: noop, spec: { policy: { rules: [{ else: { then: { do: jump, to: a } } }] } } } }]
`;
  const events = await work(text, { deps: { taskRunsMax: 50 } });
  const last = events.at(-1);
  assert.equal(last?.type, "command.failed");
  assert.equal(last.error.code, "TASK_RUNS_MAX");
  assert.match(last.error.message, /'a' was about to make run 51/);
  assert.equal(events.filter(({ type }) => type === "task.done").length, 50);
});

test("a command for a step that the playbook does not have fails", async () => {
  const [event, ...more] = await work(ONE, { command: { step: "gone" } });
  assert.deepEqual(more, []);
  assert.equal(event?.type, "command.failed");
  assert.match(event.error.message, /step 'gone', which this version of the playbook does not have/);
});

/** What a command reports whose tool takes `ms`, and whose reports of a type take `reportMs` to be accepted. */
async function clocked(ms: number, reportMs: Partial<Record<FlowEvent["type"], number>> = {}): Promise<string[]> {
  const clock = createSteppedClock(0);
  const tools = { s: () => clock.sleep(ms).then(() => ok({})) };
  const events: FlowEvent[] = [];
  const report = async (list: FlowEvent[]) => {
    const isEnd = list.some(({ type }) => type === "command.completed");
    if (isEnd) events.push(...list);
    await clock.sleep(reportMs[list[0]?.type ?? "task.done"] ?? 0);
    if (!isEnd) events.push(...list);
  };
  const deps = {
    clock,
    tools: scriptedTools(tools, () => undefined),
    results: createLocalResults(),
  } as unknown as WorkerDeps;
  const context = { workload: {}, vars: {}, steps: {}, input: {} };
  const command = {
    command_id: "1",
    execution_id: "1",
    catalog_id: "c",
    step: "s",
    step_run_id: "1",
    step_started_at: 0,
    context,
  };
  const signal = new AbortController().signal;
  await clock.runUntil(runCommand(deps, { program: compile(ONE), file: "f" }, { command, attempt: 1 }, report, signal));
  return events.map(({ type }) => type);
}

test("work that lasts longer than 250 ms is marked as started, shorter work is not", async () => {
  assert.deepEqual(await clocked(249), ["task.done", "command.completed"]);
  assert.deepEqual(await clocked(251), ["command.started", "task.done", "command.completed"]);
});

test("a command whose end waits to be taken is not marked as started after it", async () => {
  assert.deepEqual(await clocked(240, { "command.completed": 20 }), ["task.done", "command.completed"]);
});

test("the end of a command comes after its mark, however long that takes", async () => {
  assert.deepEqual(await clocked(251, { "command.started": 20 }), [
    "task.done",
    "command.started",
    "command.completed",
  ]);
});

test("no task run is begun while the worker does not know that the command is its own, and none where it is not", async () => {
  const RETRIED = `
workflow:
  - step: s
    tool:
      - a: { kind: http, spec: { policy: { rules: [{ when: "{{ output.status == 'error' }}", then: { do: retry, attempts: 2 } }] } } }
      - b: { kind: http }
`;
  const called: string[] = [];
  let failures = 1;
  const tools: Scripts = {
    a: (call) => {
      called.push(call.task);
      failures -= 1;
      return failures >= 0 ? failed("server_error", "HTTP_503", "later") : ok({});
    },
    b: noting(called),
  };
  let waits = 0;
  const lease = {
    held: async () => {
      await new Promise(setImmediate);
      waits += 1;
    },
  };
  await work(RETRIED, { tools, deps: { lease } });
  assert.deepEqual([called, waits], [["a", "a", "b"], 3], "the first run, its retry, and the next task");
  called.length = 0;
  const stop = new AbortController();
  const lost = {
    held: async () => {
      stop.abort(new FlowError("CANCELLED", "its claim was lost"));
    },
  };
  const events = await work(RETRIED, { tools, signal: stop.signal, deps: { lease: lost } });
  assert.deepEqual(called, []);
  assert.equal(events.at(-1)?.type, "command.failed");
});

test("a result that cannot be stored fails the command", async () => {
  const results = {
    ...createLocalResults(),
    save: () => Promise.reject(new FlowError("INTERNAL", "no space left on the device")),
  };
  const events = await work(
    "workflow: [{ step: s, tool: { kind: http, spec: { result: { inline_max_bytes: 1 } } } }]",
    { deps: { results } },
  );
  const last = events.at(-1);
  assert.equal(last?.type, "command.failed");
  assert.match(last.error.message, /no space left/);
});

test("a command whose signal is aborted already calls no tool and fails as cancelled", async () => {
  const called: string[] = [];
  const events = await work(ONE, { signal: AbortSignal.abort(), tools: { s: noting(called) } });
  const last = events.at(-1);
  assert.equal(last?.type, "command.failed");
  assert.equal(last.error.kind, "cancelled");
  assert.deepEqual(called, []);
});

test("a tool is not called when the signal is aborted while its task is prepared", async () => {
  const stop = new AbortController();
  const called: string[] = [];
  const credentials = {
    find: (name: string) => {
      stop.abort();
      return Promise.resolve({ name, type: "bearer", data: {} });
    },
  };
  const events = await work("workflow: [{ step: s, tool: { kind: http, auth: api } }]", {
    signal: stop.signal,
    deps: { credentials },
    tools: { s: noting(called) },
  });
  assert.deepEqual(called, []);
  const last = events.at(-1);
  assert.equal(last?.type === "command.failed" && last.error.kind, "cancelled");
});

test("iterations that a stopped command leaves out are not counted as run", async () => {
  const stop = new AbortController();
  const loop = { from: 5, items: ["a", "b", "c"], max_in_flight: 1, stop_on_error: true };
  const text = "workflow: [{ step: s, loop: { in: [], iterator: x }, tool: { kind: http } }]";
  const events = await work(text, {
    command: { loop },
    signal: stop.signal,
    tools: {
      s: () => {
        stop.abort();
        return ok({});
      },
    },
  });
  const ends = events.filter(({ type }) => type.startsWith("loop.iteration"));
  assert.deepEqual(
    ends.map((event) => "iteration" in event && event.iteration),
    [5],
  );
  const last = events.at(-1);
  assert.equal(last?.type === "command.completed" && last.iterations, 1);
});

const ITERATIONS = "workflow: [{ step: s, loop: { in: [], iterator: x }, tool: { kind: http } }]";

test("an iteration ended by hand: its tool is stopped, one not begun is left out, the others run, also where the first error ends the loop", async () => {
  const stops = createIterationStops(() => new AbortController());
  const called: string[] = [];
  const events = await work(ITERATIONS, {
    command: { loop: { from: 5, items: ["a", "b", "c", "d"], max_in_flight: 1, stop_on_error: true } },
    deps: { stops },
    tools: {
      async s({ signal, taskRunId }) {
        called.push(taskRunId);
        if (called.length > 1) return ok({});
        // 99 is of another command, and 5 is told twice, as each heartbeat does.
        stops.stop([7, 99]);
        stops.stop([5]);
        stops.stop([5, 7]);
        assert.equal(signal.aborted, true);
        assert.match(String(signal.reason), /Iteration 5 was ended by hand/);
        return failed("cancelled", "CANCELLED", "stopped");
      },
    },
  });
  assert.deepEqual(called, ["100-5-0", "100-6-0", "100-8-0"]);
  const last = events.at(-1);
  assert.equal(last?.type === "command.completed" && last.iterations, 4);
});

test("a command that is stopped stops those of its iterations that run, and those that begin afterwards", async () => {
  const stop = new AbortController();
  const stops = createIterationStops(() => new AbortController());
  const reasons: string[] = [];
  await work(ITERATIONS, {
    command: { loop: { from: 0, items: ["a", "b"], max_in_flight: 2, stop_on_error: false } },
    deps: { stops },
    signal: stop.signal,
    tools: {
      async s({ signal }) {
        const aborted = new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
        if (reasons.length === 0) queueMicrotask(() => stop.abort(new FlowError("CANCELLED", "all of it")));
        reasons.push("begun");
        await aborted;
        reasons.push(String(signal.reason));
        return failed("cancelled", "CANCELLED", "stopped");
      },
    },
  });
  const ends = reasons.filter((reason) => reason !== "begun");
  assert.ok(ends.length > 0 && ends.every((reason) => reason.includes("all of it")), reasons.join());
});
