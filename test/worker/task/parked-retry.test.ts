import assert from "node:assert/strict";
import { test } from "node:test";
import { setup } from "../support/bench.ts";
import { bad, ok } from "../support/scripted-tools.ts";

/* A command whose task runs again only after more than 10 s is parked: no worker holds it, and nothing that it had come to is lost. */

const BUSY = bad("connection", "REFUSED");
const RETRY = (then: string) =>
  `spec: { policy: { rules: [{ when: "output.status == 'error'", then: { do: retry, ${then} } }] } }`;

for (const [delay, isParked] of [
  [9.999, false],
  [10, false],
  [10.001, true],
] as const) {
  test(`a delay of ${delay} s ${isParked ? "parks" : "does not park"} the command`, async (t) => {
    const times: number[] = [];
    const bench = setup(t, {
      tools: {
        work: () => {
          times.push(bench.clock.now());
          return times.length < 2 ? BUSY : ok(1);
        },
      },
    });
    const { state, events } = await bench.run(`
workflow:
  - step: work
    tool: { kind: http, ${RETRY(`attempts: 2, delay: ${delay}`)} }
`);
    assert.equal(state.status, "COMPLETED");
    assert.equal((times[1] ?? 0) - (times[0] ?? 0), delay * 1_000);
    const about = events
      .map(({ type }) => type)
      .filter((type) => /^(command|call|task)[.]/.test(type) && type !== "command.started");
    const first = ["command.issued", "command.claimed", "call.error", "task.done"];
    const parked = ["command.parked", "command.woken", "command.claimed"];
    assert.deepEqual(about, [...first, ...(isParked ? parked : []), "task.done", "command.completed"]);
    const [failed, done] = events.filter((event) => event.type === "task.done");
    assert.deepEqual([failed?.run, done?.run, failed?.task_run_id === done?.task_run_id], [1, 2, true]);
    const wait = events.find((event) => event.type === "command.parked");
    if (isParked) assert.deepEqual(wait?.wait, { kind: "retry", due: failed?.next_run_at });
  });
}

test("a pipeline goes on where it was: results, variables, attempts, and the tasks before do not run again", async (t) => {
  const calls: string[] = [];
  const bench = setup(t, {
    tools: {
      first: () => {
        calls.push("first");
        return ok({ id: 7 });
      },
      second: ({ input, attempt }) => {
        calls.push(`second ${JSON.stringify(input)} ${attempt}`);
        return attempt < 4 ? BUSY : ok({ rows: 3 });
      },
    },
  });
  const { state, events } = await bench.run(`
workload: { n: 1 }
workflow:
  - step: work
    tool:
      - first: { kind: http, set: { seen: "{{ result.id }}", ctx.known: "{{ result.id + 1 }}" } }
      - second:
          kind: http
          input: { id: "{{ first.id }}", seen: "{{ seen }}", known: "{{ known }}", before: "{{ output.data.id }}", good: "{{ _prev.id }}", tried: "{{ ctx.tried | default(0) }}" }
          spec:
            policy:
              rules:
                - when: "output.status == 'error'"
                  then: { do: retry, attempts: 4, delay: 60, backoff: fixed, set: { ctx.tried: "{{ _attempt }}" } }
    next: { arcs: [{ step: end, when: "{{ known == 8 and tried == 3 }}" }] }
  - step: end
    tool: { kind: noop, result: { rows: "{{ work.second.rows }}", known: "{{ known }}" } }
`);
  assert.equal(state.status, "COMPLETED", JSON.stringify(state.error));
  const input = (tried: number) => JSON.stringify({ id: 7, seen: 7, known: 8, before: 7, good: 7, tried });
  assert.deepEqual(calls, ["first", ...[0, 1, 2, 3].map((tried) => `second ${input(tried)} ${tried + 1}`)]);
  assert.equal(events.filter(({ type }) => type === "command.parked").length, 3);
  assert.equal(state.steps["end"]?.status, "COMPLETED");
});

test("the most time for all runs and the number of runs count over the waits", async (t) => {
  for (const [then, runs] of [
    ["attempts: 3, delay: 30, backoff: fixed", 3],
    ["attempts: 9, delay: 30, backoff: fixed, max_elapsed: 70", 3],
  ] as const) {
    let count = 0;
    const bench = setup(t, {
      tools: {
        work: () => {
          count += 1;
          return BUSY;
        },
      },
    });
    const { state } = await bench.run(`
workflow:
  - step: work
    tool: { kind: http, ${RETRY(then)} }
`);
    assert.deepEqual([state.status, count, state.error?.code], ["FAILED", runs, "REFUSED"], then);
  }
});

test("each iteration of a loop waits by itself", async (t) => {
  const bench = setup(t, { tools: { work: ({ attempt, input }) => (attempt < 2 ? BUSY : ok(input["n"] ?? null)) } });
  const began = bench.clock.now();
  const { state, events } = await bench.run(`
workflow:
  - step: work
    loop: { in: [1, 2, 3], iterator: n, spec: { mode: parallel, exec: distributed } }
    tool: { kind: http, input: { n: "{{ n }}" }, ${RETRY("attempts: 2, delay: 30")} }
`);
  assert.equal(state.status, "COMPLETED", JSON.stringify(state.error));
  assert.deepEqual(
    events.flatMap((event) => (event.type === "command.parked" ? [event.iteration] : [])).sort(),
    [0, 1, 2],
  );
  assert.equal(bench.clock.now() - began, 30_000);
});

test("where one command has several iterations its worker waits", async (t) => {
  const bench = setup(t, { tools: { work: ({ attempt }) => (attempt < 2 ? BUSY : ok(1)) } });
  const { state, events } = await bench.run(`
workflow:
  - step: work
    loop: { in: [1, 2], iterator: n, spec: { mode: parallel, policy: { exec: local } } }
    tool: { kind: http, ${RETRY("attempts: 2, delay: 30")} }
`);
  assert.equal(state.status, "COMPLETED");
  assert.equal(events.filter(({ type }) => type === "command.parked").length, 0);
});

test("the time limit of the step ends the wait, as it ends one of a worker", async (t) => {
  for (const [delay, limit] of [
    [9, 5],
    [60, 30],
  ] as const) {
    let count = 0;
    const bench = setup(t, {
      tools: {
        work: () => {
          count += 1;
          return BUSY;
        },
      },
    });
    const began = bench.clock.now();
    const { state } = await bench.run(`
workflow:
  - step: work
    spec: { timeout: ${limit} }
    tool: { kind: http, ${RETRY(`attempts: 5, delay: ${delay}`)} }
`);
    assert.deepEqual([state.status, state.error?.code, state.error?.attempt, count], ["FAILED", "TIMEOUT", 1, 1]);
    assert.equal(bench.clock.now() - began, limit * 1_000);
  }
});

test("what is too much to be kept, is joined over several runs or is sensitive leaves the wait to the worker", async (t) => {
  for (const [bytes, spec, parks] of [
    [30_000, "", 1],
    [33_000, "", 0],
    [10, ", spec: { result: { sensitive: true } }", 0],
    [10, ", spec: { result: { accumulate: { strategy: append } } }", 0],
  ] as const) {
    const big = () => ok({ text: "x".repeat(bytes) });
    const bench = setup(t, { tools: { one: big, two: big, work: ({ attempt }) => (attempt < 2 ? BUSY : ok(1)) } });
    const { state, events } = await bench.run(`
workflow:
  - step: work
    tool:
      - one: { kind: http${spec} }
      - two: { kind: http }
      - work: { kind: http, ${RETRY("attempts: 2, delay: 30")} }
`);
    assert.equal(state.status, "COMPLETED", JSON.stringify(state.error));
    assert.equal(events.filter(({ type }) => type === "command.parked").length, parks, `${bytes} ${spec}`);
  }
});

test("a secret in what is kept meanwhile is sealed in the log, and open again for the next run", async (t) => {
  const seen: unknown[] = [];
  const bench = setup(t, {
    credentials: { api: { type: "bearer", data: { token: "canary-51c0ffee" } } },
    tools: {
      one: ({ auth }) => ok({ echo: JSON.stringify(auth) }),
      work: ({ attempt, input }) => {
        seen.push(input["echo"]);
        return attempt < 2 ? BUSY : ok(1);
      },
    },
  });
  const { state, events } = await bench.run(`
workflow:
  - step: work
    tool:
      - one: { kind: http, auth: api }
      - work: { kind: http, input: { echo: "{{ one.echo }}" }, ${RETRY("attempts: 2, delay: 30")} }
`);
  assert.equal(state.status, "COMPLETED", JSON.stringify(state.error));
  assert.equal(events.filter(({ type }) => type === "command.parked").length, 1);
  assert.ok(!JSON.stringify(events).includes("canary"));
  assert.equal(seen.length, 2);
  assert.match(String(seen[0]), /canary/);
  assert.equal(seen[1], seen[0]);
});

test("a wait whose time-out is tried again after a minute is parked in between, and waits the whole time again", async (t) => {
  const bench = setup(t, {});
  const began = bench.clock.now();
  const { state, events } = await bench.run(`
workflow:
  - step: work
    tool: { kind: wait, for: 1h, timeout: 100, ${RETRY("attempts: 2, delay: 60")} }
`);
  assert.deepEqual([state.status, state.error?.code], ["FAILED", "WAIT_TIMEOUT"]);
  assert.equal(bench.clock.now() - began, 260_000);
  assert.deepEqual(
    events.flatMap((event) => (event.type === "command.parked" ? [event.wait.kind] : [])),
    ["timer", "retry", "timer"],
  );
});
