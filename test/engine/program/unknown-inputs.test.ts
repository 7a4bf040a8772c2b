import assert from "node:assert/strict";
import { test } from "node:test";
import { compileProgram } from "../../../src/engine/program/program.ts";
import { unknownInputs } from "../../../src/engine/program/unknown-inputs.ts";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import { HEAD, loadValid } from "../../language/load-support.ts";

function warnings(document: string, input: JsonObject): string[] {
  return unknownInputs(compileProgram(loadValid(HEAD + document)), input);
}

const NAMED =
  "workload: { name: x, region: y }\nworkflow: [{ step: a, when: ready, tool: { kind: noop, result: { n: '{{ name }} {{ workload.extra }}' } } }]\n";

test("an input that the workload does not declare is reported with the likely name", () => {
  assert.deepEqual(warnings(NAMED, { naem: 1 }), [
    "The workload of 'demo' has no 'naem', and nothing reads it; did you mean 'name'?",
  ]);
  assert.deepEqual(warnings(NAMED, { colour: 1 }), ["The workload of 'demo' has no 'colour', and nothing reads it"]);
});

test("inputs that the workload declares, or a template or condition reads, are not reported", () => {
  assert.deepEqual(warnings(NAMED, { name: 1, region: 2, extra: 3, ready: true }), []);
});

test("if all inputs are read at once, only a misspelling is reported", () => {
  const all =
    "workload: { name: x }\nworkflow: [{ step: a, tool: { kind: noop, result: { all: '{{ workload }}' } } }]\n";
  assert.deepEqual(warnings(all, { colour: 1 }), []);
  assert.equal(warnings(all, { nmae: 1 }).length, 1);
});

test("words of Python code are names of inputs", () => {
  const code = "workload: { name: x }\nworkflow: [{ step: a, tool: { kind: python, code: 'result = colour' } }]\n";
  assert.deepEqual(warnings(code, { colour: 1 }), []);
  assert.equal(warnings(code, { shade: 1 }).length, 1);
});

test("without a workload there is nothing to compare with", () => {
  assert.deepEqual(warnings("workflow: [{ step: a, tool: { kind: noop } }]\n", { any: 1 }), []);
});

test("of many inputs that nothing reads, the first twenty are compared with the workload's names", () => {
  const names = Array.from({ length: 300 }, (_, index) => `name_number_${index}: 1`).join(", ");
  const document = `workload: { ${names} }\nworkflow: [{ step: a, tool: { kind: noop } }]\n`;
  const input = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`name_nunber_${index}`, 1]));
  for (const [count, hints] of [
    [19, 19],
    [20, 20],
    [21, 20],
    [2_000, 20],
  ] as const) {
    const found = warnings(document, input(count));
    assert.equal(found.length, count);
    assert.equal(found.filter((text) => text.includes("did you mean")).length, hints, String(count));
  }
});
