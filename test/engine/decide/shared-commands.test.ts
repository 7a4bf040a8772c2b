import assert from "node:assert/strict";
import { test } from "node:test";
import type { Command } from "../../../src/schema/words/command.ts";
import { given } from "../support/given.ts";
import { claimed, done } from "../support/reports.ts";

// Short iterations share commands: how many there are in one, when the next is issued, and what stays as it was.

/** A parallel loop on a server that takes so many iterations for one command. */
function loopOf(count: number, atOnce: number, spec = "mode: parallel") {
  const text = `
workflow:
  - { step: each, loop: { in: ${count}, iterator: x, spec: { ${spec} } } }
`;
  return given(text, {}, { iterationsAtOnce: () => atOnce });
}

function sizes(commands: readonly Command[]): (number | undefined)[] {
  return commands.map(({ loop }) => loop?.items.length);
}

for (const [count, sizesOf] of [
  [7, Array.from({ length: 7 }, () => 1)],
  [8, Array.from({ length: 8 }, () => 1)],
  [15, Array.from({ length: 15 }, () => 1)],
  [16, Array.from({ length: 8 }, () => 2)],
  [17, [...Array.from({ length: 8 }, () => 2), 1]],
  [100, [...Array.from({ length: 8 }, () => 12), 4]],
] satisfies [number, number[]][]) {
  test(`a loop of ${count} has at least eight commands, if it has so many iterations`, () => {
    assert.deepEqual(sizes(loopOf(count, 16).commands), sizesOf);
  });
}

test("a command has no more iterations than are known to be short together, in the order of the collection", () => {
  const { commands } = loopOf(100, 5);
  assert.deepEqual(
    sizes(commands),
    Array.from({ length: 20 }, () => 5),
  );
  assert.deepEqual(
    commands.flatMap(({ loop }) => loop?.items),
    Array.from({ length: 100 }, (_, index) => index),
  );
});

test("they are said to begin at once; one alone is as ever", () => {
  const { commands } = loopOf(17, 2);
  assert.deepEqual(
    commands.map(({ loop }) => loop?.at_once),
    [...Array.from({ length: 8 }, () => true), undefined],
  );
});

for (const [what, spec] of [
  ["whose document says exec: distributed", "mode: parallel, policy: { exec: distributed }"],
  ["that is sequential", "mode: sequential"],
] as const) {
  test(`a loop ${what} has a command for each iteration`, () => {
    const { commands } = loopOf(40, 4, spec);
    assert.ok(sizes(commands).every((size) => size === 1));
  });
}

test("exec: local is one command, whatever is known", () => {
  const { commands } = loopOf(40, 4, "mode: parallel, policy: { exec: local }");
  assert.deepEqual(sizes(commands), [40]);
  assert.equal(commands[0]?.loop?.at_once, undefined);
});

test("max_in_flight is exact at the start, and never exceeded: the next command begins when it fits whole", () => {
  const run = loopOf(60, 4, "mode: parallel, max_in_flight: 33");
  assert.deepEqual(sizes(run.commands), [...Array.from({ length: 8 }, () => 4), 1]);
  for (const [iteration, issued] of [
    [4, 0],
    [9, 0],
    [14, 0],
    [19, 1],
    [20, 0],
  ] as const) {
    const before = run.commands.length;
    run.when(done("each", iteration, { iteration }));
    assert.equal(run.commands.length - before, issued, `after iteration ${iteration}`);
    assert.ok((run.state.steps["each"]?.run?.loop?.open ?? 0) <= 33);
  }
  assert.deepEqual(run.commands.at(-1)?.loop?.items, [33, 34, 35, 36]);
});

test("the last iterations do not wait for a whole command", () => {
  const run = loopOf(34, 2, "mode: parallel, max_in_flight: 33");
  run.when(done("each", 0, { iteration: 0 })).then("command.issued each[33]");
});

test("iterations that turn out to be long get commands of their own from then on", () => {
  let atOnce = 4;
  const text = `
workflow:
  - { step: each, loop: { in: 60, iterator: x, spec: { mode: parallel, max_in_flight: 32 } } }
`;
  const run = given(text, {}, { iterationsAtOnce: () => atOnce });
  run.when(done("each", 0, { iteration: 0 })).then();
  atOnce = 1;
  run.when(done("each", 1, { iteration: 1 })).then("command.issued each[32]", "command.issued each[33]");
});

test("what had ended stays so when another claim takes the rest", () => {
  const run = loopOf(16, 2, "mode: parallel");
  run.when(done("each", "A", { iteration: 0 }), claimed("each", 2, 1));
  for (let iteration = 1; iteration < 16; iteration += 1) run.when(done("each", iteration, { iteration }));
  run.is({ status: "COMPLETED" });
});
