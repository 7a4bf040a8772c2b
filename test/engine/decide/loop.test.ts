import assert from "node:assert/strict";
import { test } from "node:test";
import { OPEN_ITERATIONS_MAX } from "../../../src/engine/decide/activate.ts";
import { COMMAND_ITERATIONS_MAX } from "../../../src/engine/decide/loop-commands.ts";
import type { Json } from "../../../src/schema/words/json.ts";
import { given } from "../support/given.ts";
import { done } from "../support/reports.ts";

// Language document, section 6: collections, modes, limits, the result of a loop.

/** A playbook with one loop; `spec` is its `loop.spec`, `list` the workload's collection. */
function loopOver(list: Json, spec = "{}", collection = "{{ list }}"): string {
  return `
workload: { list: ${JSON.stringify(list)} }
workflow:
  - { step: each, loop: { in: "${collection}", iterator: x, spec: ${spec} } }
`;
}

const COLLECTIONS: [string, Json, Json[]][] = [
  ["a list as it is", ["a", "b"], ["a", "b"]],
  [
    "a map as one item per key and value",
    { a: 1, b: 2 },
    [
      { key: "a", value: 1 },
      { key: "b", value: 2 },
    ],
  ],
  ["a result with rows as its rows", { rows: [{ id: 1 }], row_count: 1 }, [{ id: 1 }]],
  ["a JSON text as its list", "[1, 2]", [1, 2]],
  ["any other text as one item", "a,b", ["a,b"]],
  ["the text of a JSON object as one item", '{"a":1}', ['{"a":1}']],
  ["a number as 0 to n-1", 3, [0, 1, 2]],
];

for (const [what, list, items] of COLLECTIONS) {
  test(`a loop takes ${what}`, () => {
    const { commands } = given(loopOver(list, "{ mode: parallel }"));
    assert.deepEqual(
      commands.flatMap(({ loop }) => loop?.items),
      items,
    );
    assert.ok(commands.every(({ loop }) => loop?.total === items.length));
  });
}

for (const [what, list] of [
  ["an empty list", []],
  ["an empty map", {}],
  ["an empty text", ""],
  ["zero", 0],
  ["a negative number", -3],
] satisfies [string, Json][]) {
  test(`a loop over ${what} is done at once with zero iterations`, () => {
    given(loopOver(list))
      .then(
        "workflow.initialized each",
        `loop.started each ${typeof list === "number" ? 0 : Object.keys(list).length}`,
        "loop.done each 0/0",
        "step.completed each",
        "workflow.completed",
        "playbook.completed each",
      )
      .is({
        status: "COMPLETED",
        result: { results: [], stats: { total: 0, success: 0, failed: 0 }, iterations: 0, status: "completed" },
      });
  });
}

for (const list of [null, true, false]) {
  test(`a loop over ${list} fails its step and names it`, () => {
    given(loopOver(list)).is({ status: "FAILED", error: /Step 'each', loop: .*collection of step 'each'/ });
  });
}

test("a loop over something undefined fails its step, and an arc may take that", () => {
  given(`
workflow:
  - { step: each, loop: { in: "{{ nothing }}" }, next: { arcs: [{ step: b, when: "event.name == 'step.failed'" }] } }
  - { step: b }
`)
    .then("workflow.initialized each", "step.failed each (yes) -> b", "command.issued b")
    .when(done("b"))
    .is({ status: "COMPLETED" });
});

test("a sequential loop issues one iteration at a time, in order", () => {
  given(loopOver(["a", "b"]))
    .then("workflow.initialized each", "loop.started each 2", "command.issued each[0]")
    .when(done("each", 1))
    .then("command.issued each[1]")
    .when(done("each", 2))
    .then("loop.done each 2/2", "step.completed each", "workflow.completed", "playbook.completed each");
});

test("a parallel loop issues all at once; its results stand in collection order", () => {
  given(loopOver(["a", "b", "c"], "{ mode: parallel }"))
    .is({ open: ["each", "each", "each"] })
    .when(done("each", "C", { iteration: 2 }), done("each", "A", { iteration: 0 }), done("each", "B", { iteration: 1 }))
    .is({
      status: "COMPLETED",
      result: {
        results: ["A", "B", "C"],
        stats: { total: 3, success: 3, failed: 0 },
        iterations: 3,
        status: "completed",
      },
    });
});

test("async is another word for parallel", () => {
  given(loopOver(2, "{ mode: async }")).is({ open: ["each", "each"] });
});

test("max_in_flight bounds how many iterations are open, and may be a template", () => {
  const run = given(loopOver([2, 3, 4, 5, 6], '{ mode: parallel, max_in_flight: "{{ list[0] }}" }'));
  run
    .is({ open: ["each", "each"] })
    .when(done("each", 1, { iteration: 1 }))
    .then("command.issued each[2]")
    .when(done("each", 0, { iteration: 0 }))
    .then("command.issued each[3]")
    .when(done("each"), done("each"), done("each"))
    .is({ status: "COMPLETED" });
});

for (const limit of ["0", "-1", "1.5", "'many'", "[]"]) {
  test(`a max_in_flight that renders to ${limit} fails the step`, () => {
    given(loopOver(3, `{ mode: parallel, max_in_flight: "{{ ${limit} }}" }`)).is({
      status: "FAILED",
      error: /'max_in_flight' of the loop of step 'each' must be a whole number from 1/,
    });
  });
}

test("a parallel loop without a limit has at most a thousand iterations open", () => {
  const { state } = given(loopOver(5_000, "{ mode: parallel }"));
  assert.equal(Object.keys(state.commands).length, OPEN_ITERATIONS_MAX);
});

test("exec: local over a billion puts no more items than fit into one command", () => {
  const { commands } = given(loopOver(1_000_000_000, "{ policy: { exec: local } }"));
  const [command, another] = commands;
  assert.equal(another, undefined);
  assert.equal(command?.loop?.items.length, COMMAND_ITERATIONS_MAX);
  assert.equal(command?.loop?.total, 1_000_000_000);
});

test("exec: local puts all iterations into one command, with the same result", () => {
  const run = given(loopOver(["a", "b", "c"], "{ mode: parallel, max_in_flight: 2, policy: { exec: local } }"))
    .then("workflow.initialized each", "loop.started each 3", "command.issued each[0..2]")
    .when(done("each", "C", { iteration: 2 }), done("each", "A", { iteration: 0 }), done("each", "B", { iteration: 1 }))
    .is({ status: "COMPLETED", results: { each: doneWith(["A", "B", "C"]) } });
  assert.equal(run.commands[0]?.loop?.max_in_flight, 2);
  assert.deepEqual(run.commands[0]?.loop?.items, ["a", "b", "c"]);
});

function doneWith(results: Json[]): Json {
  const count = results.length;
  return { results, stats: { total: count, success: count, failed: 0 }, iterations: count, status: "completed" };
}

test("counters of a running loop can be read", () => {
  const { state } = given(loopOver(3)).when(done("each"));
  assert.deepEqual(state.steps["each"]?.loop, { total: 3, done: 1, failed: 0 });
});

test("arcs of a loop see loop.done, which equals step.done, and the loop's virtual data", () => {
  for (const name of ["loop.done", "step.done"]) {
    given(`
workflow:
  - step: each
    loop: { in: 2 }
    next: { arcs: [{ step: b, when: "{{ event.name == '${name}' and output.data[1] == 'y' and result.stats.total == 2 }}" }] }
  - { step: b }
`)
      .when(done("each", "x"), done("each", "y"))
      .is({ open: ["b"] });
  }
});

test("a step without a loop has no loop.done", () => {
  given(`
workflow:
  - { step: a, next: { arcs: [{ step: b, when: "event.name == 'loop.done'" }] } }
  - { step: b }
`)
    .when(done("a"))
    .is({ status: "COMPLETED", steps: { b: "SKIPPED" } });
});

test("a loop that runs again starts anew", () => {
  given(`
workflow:
  - step: each
    loop: { in: "{{ (n | default(2)) }}" }
    next: { arcs: [{ step: each, when: "{{ not n }}", set: { n: 1 } }] }
`)
    .when(done("each", "x"), done("each", "y"))
    .then(
      "command.issued each[1]",
      "loop.done each 2/2",
      "step.completed each -> each",
      "loop.started each 1",
      "command.issued each[0]",
    )
    .when(done("each", "z"))
    .is({ status: "COMPLETED", result: doneWith(["z"]) });
});

test("two loops side by side each issue their own iterations", () => {
  given(`
workflow:
  - { step: a, next: [p, q] }
  - { step: p, loop: { in: 2, spec: { mode: parallel } }, next: z }
  - { step: q, loop: { in: 1 }, next: z }
  - { step: z }
`)
    .when(done("a"))
    .is({ open: ["p", "p", "q"] })
    .when(done("p"), done("q"), done("p"))
    .is({ open: ["z"] });
});

test("iteration commands carry what templates read of the iteration's surroundings", () => {
  const { commands } = given(
    `
workload: { list: [10, 20], unused: 1, used: 2 }
workflow:
  - step: each
    loop: { in: "{{ workload.list }}", iterator: x }
    tool: { kind: noop, result: { v: "{{ x * used }}" } }
`,
    { parent: { execution_id: "7", step: "call", iter: { index: 3 } } },
  );
  assert.deepEqual(commands[0]?.loop, { from: 0, items: [10], total: 2, max_in_flight: 1, stop_on_error: true });
  assert.deepEqual(commands[0]?.context.workload, { used: 2 });
  assert.equal(commands[0]?.context.parent_execution_id, "7");
  assert.deepEqual(commands[0]?.context.parent_iter, { index: 3 });
});
