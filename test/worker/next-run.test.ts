import assert from "node:assert/strict";
import { test } from "node:test";
import type { Retry } from "../../src/engine/state/state.ts";
import type { Json } from "../../src/schema/words/json.ts";
import { setup } from "./support/bench.ts";
import { bad, ok } from "./support/scripted-tools.ts";

// When a task runs again is told with the failure, and is known until it does.

const RETRYING = "retry: { max_attempts: 3, initial_delay: 5, backoff: exponential, multiplier: 2, jitter: false }";

/** What is known of next runs after each event of these types, by iteration. */
function watching(seen: [string, Json][]) {
  return (event: { type: string }, { commands }: { commands: Record<string, { retries?: Record<number, Retry> }> }) => {
    if (event.type !== "task.done" && event.type !== "command.claimed") return;
    const [command] = Object.values(commands);
    seen.push([event.type, structuredClone(command?.retries ?? null) as unknown as Json]);
  };
}

test("a failure that is tried again says when, and the last one says nothing", async (t) => {
  const bench = setup(t, { tools: { get: [bad("timeout", "T")] } });
  const ran = await bench.failed(`workflow: [{ step: s, tool: { kind: http, name: get, ${RETRYING} } }]`);
  const errors = ran.of("call.error");
  const waits = errors.map(({ at, next_run_at }) => (next_run_at === undefined ? null : Date.parse(next_run_at) - at));
  assert.deepEqual(waits, [5_000, 10_000, null]);
  assert.deepEqual(
    ran.of("task.done").map(({ next_run_at }) => next_run_at),
    errors.map(({ next_run_at }) => next_run_at),
  );
});

test("until the next run is over its time and its cause are known", async (t) => {
  const seen: [string, Json][] = [];
  const bench = setup(t, { tools: { get: [bad("timeout", "T"), ok({})] }, observe: watching(seen) });
  const ran = await bench.completed(`workflow: [{ step: s, tool: { kind: http, name: get, ${RETRYING} } }]`);
  const at = ran.of("call.error")[0]?.next_run_at ?? "";
  const error = { code: "T", message: "it failed with T" };
  assert.deepEqual(seen.slice(-2), [
    ["task.done", { 0: { task: "get", run: 1, at, error } }],
    ["task.done", {}],
  ]);
});

test("a run that went well and is wanted again has a next run without a cause", async (t) => {
  const seen: [string, Json][] = [];
  const bench = setup(t, { tools: { poll: [ok({ ready: false }), ok({ ready: true })] }, observe: watching(seen) });
  const ran = await bench.completed(`
workflow:
  - step: s
    tool:
      kind: http
      name: poll
      spec:
        policy:
          rules:
            - { when: "{{ not output.ready }}", then: { do: retry, attempts: 3, delay: 5 } }
            - { else: { then: { do: continue } } }
`);
  assert.deepEqual(ran.of("call.error"), []);
  const [first] = ran.of("task.done");
  assert.equal(Date.parse(first?.next_run_at ?? "") - (first?.at ?? 0), 5_000);
  assert.deepEqual(seen.at(-2), [
    "task.done",
    { 0: { task: "poll", run: 1, at: first?.next_run_at ?? "", error: null } },
  ]);
});

test("each iteration waits for its own next run, and the end of one leaves the others", async (t) => {
  const seen: [string, Json][] = [];
  const tries = new Map<unknown, number>();
  const bench = setup(t, {
    tools: {
      get({ config }) {
        const so = (tries.get(config["url"]) ?? 0) + 1;
        tries.set(config["url"], so);
        return so === 1 ? bad("timeout", String(config["url"])) : ok({});
      },
    },
    observe: watching(seen),
  });
  await bench.completed(`
workflow:
  - step: each
    loop: { in: [3, 7], iterator: n, spec: { mode: parallel, policy: { exec: local } } }
    tool: { kind: http, name: get, url: "u{{ n }}", spec: { policy: { rules: [
      { when: "{{ output.status == 'error' }}", then: { do: retry, attempts: 2, delay: "{{ n }}" } }, { else: { then: { do: continue } } }] } } }
`);
  const codes = seen.map(([, retries]) =>
    Object.values((retries ?? {}) as unknown as Record<string, Retry>).map(({ error }) => error?.code),
  );
  assert.deepEqual(codes.slice(-4), [["u3"], ["u3", "u7"], ["u7"], []]);
});

test("arcs that were taken are counted, around a loop each time; those that were not are absent", async (t) => {
  const bench = setup(t, { tools: { count: [ok({ again: true }), ok({ again: true }), ok({ again: false })] } });
  const ran = await bench.completed(`
workflow:
  - step: start
    tool: { kind: noop }
    next: [{ step: count }]
  - step: count
    tool: { kind: http, name: count }
    next:
      arcs:
        - { step: start, when: "{{ output.again }}" }
        - { step: never, when: "{{ output.nothing }}" }
        - { step: done, when: "{{ not output.again }}" }
  - step: never
    tool: { kind: noop }
  - step: done
    tool: { kind: noop }
`);
  assert.deepEqual(ran.state.arcs, { start: { count: 3 }, count: { start: 2, done: 1 } });
});

test("a step's name may be that of a field of every object", async (t) => {
  const ran = await setup(t).completed(`
workflow:
  - step: constructor
    tool: { kind: noop }
    next: [{ step: __proto__ }]
  - step: __proto__
    tool: { kind: noop }
`);
  assert.equal(JSON.stringify(ran.state.arcs), '{"constructor":{"__proto__":1}}');
});
