import assert from "node:assert/strict";
import { test } from "node:test";
import { compileCondition, compileTemplate } from "../../../src/language/template/template.ts";
import { EventName, FAILURE_NAMES, LOOP_DONE } from "../../../src/language/views/event-name.ts";

// Language document, section 7: every spelling of one boundary compares equal.

const SUCCESS = ["step.done", "call.done", "step.exit", "task.done"];
const ALL = [...SUCCESS, ...FAILURE_NAMES, LOOP_DONE];

for (const [what, name, text, equal] of [
  ["a success", new EventName(false, false), "step.done", SUCCESS],
  ["a failure", new EventName(true, false), "step.failed", [...FAILURE_NAMES]],
  ["a loop's end", new EventName(false, true), LOOP_DONE, [...SUCCESS, LOOP_DONE]],
  ["a failed loop's end", new EventName(true, true), "step.failed", [...FAILURE_NAMES, LOOP_DONE]],
] as const) {
  const scope = { lookup: (key: string) => (key === "event" ? { name } : undefined), names: () => ["event"] };

  test(`${what} reads as ${text} and equals ${equal.join(", ")} only`, () => {
    assert.equal(compileTemplate("{{ event.name }}").render(scope), text);
    assert.equal(compileTemplate("<{{ event.name }}>").render(scope), `<${text}>`);
    for (const candidate of ALL) {
      const expected = equal.includes(candidate);
      assert.equal(compileCondition(`event.name == '${candidate}'`).test(scope), expected, candidate);
      assert.equal(compileCondition(`'${candidate}' == event.name`).test(scope), expected, candidate);
      assert.equal(compileCondition(`event.name != '${candidate}'`).test(scope), !expected, candidate);
      assert.equal(compileCondition(`event.name in ['${candidate}']`).test(scope), expected, candidate);
    }
  });

  test(`${what} equals nothing else and has no fields`, () => {
    for (const other of ["", "step", "STEP.DONE", 1, null, undefined, true]) assert.equal(name.equals(other), false);
    assert.equal(name.get(), undefined);
  });
}
