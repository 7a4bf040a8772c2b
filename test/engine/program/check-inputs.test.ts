import assert from "node:assert/strict";
import { test } from "node:test";
import { startExecution } from "../../../src/engine/decide/start.ts";
import { problemsWithData } from "../../../src/platform/json-schema.ts";
import { FlowError } from "../../../src/schema/words/errors.ts";
import type { RerunRef } from "../../../src/schema/words/event.ts";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import { countingEnv } from "../support/given.ts";
import { compile } from "../support/playbook.ts";

/* Declared inputs (docs/playbooks.md, Declared inputs), as every start checks them. */

const PROGRAM = compile(`
inputs:
  day: { type: string, format: date, required: true }
  mode: { enum: [full, delta], default: delta }
  hours: { type: array, items: { type: integer, minimum: 0, maximum: 23 } }
  name: { type: string, default: "{{ workload.mode ~ '-' ~ day }}" }
  region: { type: string, required: true }
workload: { region: null, other: 1 }
workflow: [{ step: one }]
`);

function start(input: JsonObject, more: { rerun?: RerunRef; workload?: JsonObject } = {}) {
  const request = { executionId: "1", catalogId: "2", input, ...more, findProblems: problemsWithData };
  return startExecution(request, PROGRAM, countingEnv());
}

/** What is wrong, as the detail of the refusal says it. */
function problems(input: JsonObject, more: Parameters<typeof start>[1] = {}): string[] {
  try {
    start(input, more);
    return [];
  } catch (error) {
    assert.ok(error instanceof FlowError);
    assert.equal(error.code, "INVALID_INPUT");
    const { errors } = error.detail as { errors: { path: string; message: string }[] };
    for (const { path } of errors) assert.ok(error.message.includes(path), error.message);
    return errors.map(({ path, message }) => `${path}: ${message}`);
  }
}

const GOOD = { day: "2026-01-31", region: "eu" };

test("what fits starts, with defaults filled in and rendered", () => {
  assert.deepEqual(start(GOOD).workload, {
    mode: "delta",
    name: "delta-2026-01-31",
    region: "eu",
    other: 1,
    day: "2026-01-31",
  });
  assert.deepEqual(start(GOOD).input, GOOD);
  assert.deepEqual(
    problems({ ...GOOD, mode: "full", hours: [0, 23], other: "of the workload", access_token: "t" }),
    [],
  );
});

test("what does not fit is refused, with every place", () => {
  assert.deepEqual(problems({ day: "2026-02-30", mode: "half", hours: [1, 24, "2"], region: null }), [
    "day: must be a date such as 2026-01-31",
    'mode: must be one of ["full","delta"]',
    "hours.1: 24 is greater than 23",
    "hours.2: must be integer",
    "region: must be string",
  ]);
});

test("what is required and absent is refused; a default of null is none", () => {
  assert.deepEqual(problems({}), ["day: is required", "region: is required"]);
});

test("an input that is not declared is refused, with the name that was meant", () => {
  assert.deepEqual(problems({ ...GOOD, mdoe: "full", further: 1 }), [
    "mdoe: is no input of it; did you mean 'mode'?",
    "further: is no input of it",
  ]);
});

test("a value that a default gives is checked too", () => {
  assert.deepEqual(problems({ ...GOOD, day: "x" })[0], "day: must be a date such as 2026-01-31");
});

test("of a rerun only the inputs that were edited have to be known; all values are checked", () => {
  const rerun: RerunRef = { execution_id: "9", from: ["one"], input: ["mode"] };
  const workload = { ...GOOD, gone: 1, mode: "half" };
  assert.deepEqual(problems({ ...GOOD, gone: 1, mode: "half" }, { rerun, workload }), [
    'mode: must be one of ["full","delta"]',
  ]);
  assert.deepEqual(problems({ ...GOOD, gone: 1 }, { rerun: { ...rerun, input: ["gone"] } }), [
    "gone: is no input of it",
  ]);
});

test("a playbook that declares no inputs takes any", () => {
  const program = compile("workflow: [{ step: one }]");
  const request = { executionId: "1", catalogId: "2", input: { any: 1 }, findProblems: problemsWithData };
  assert.deepEqual(startExecution(request, program, countingEnv()).workload, { any: 1 });
});

test("at most twenty problems are listed", () => {
  const many = Object.fromEntries(Array.from({ length: 21 }, (_, index) => [`x${index}`, index]));
  assert.equal(problems({ ...GOOD, ...many }).length, 20);
});
