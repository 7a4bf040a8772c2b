import assert from "node:assert/strict";
import { test } from "node:test";
import type { Diagnostic } from "../../src/schema/words/diagnostic.ts";
import { readTests } from "../../src/testing/document.ts";

const problems = (text: string) => readTests(text, "x.test.yaml").diagnostics();
const shown = ({ line, column, code }: Diagnostic) => `${line}:${column} ${code}`;

test("a valid document is read with its types", () => {
  const { document, diagnostics } = readTests(
    "tests:\n  - name: works\n    mocks: {a: {status: 503}, b: [{data: null}, {error: {kind: timeout}}]}\n    expect: {elapsed_seconds: {max: 3}}\n",
    "x.test.yaml",
  );
  assert.deepEqual(diagnostics(), []);
  assert.deepEqual(document?.tests[0]?.mocks, {
    a: { status: 503 },
    b: [{ data: null }, { error: { kind: "timeout" } }],
  });
});

test("a key called like a method of the host language is unknown as any other", () => {
  const [problem] = problems("tests: [{ name: x, constructor: 1 }]");
  assert.equal(problem?.code, "unknown-key");
  assert.equal(problem?.hint, undefined);
});

test("all problems are reported at once, each with its place", () => {
  const text = [
    "tests:",
    "  - mocks:",
    "      fetch: {dat: 1, bdy: 2, takes: -1}",
    "      load: [{result: 1, rows: []}]",
    "    expect: {status: DONE, calls: {fetch: 1.5}, resutl: 1}",
    "    now: yesterday",
    "  - {name: 3, run_real: python}",
  ].join("\n");
  assert.deepEqual(problems(text).map(shown), [
    "2:5 missing-key",
    "3:15 unknown-key",
    "3:23 unknown-key",
    "3:38 wrong-value",
    "4:14 wrong-value",
    "5:22 wrong-value",
    "5:43 wrong-value",
    "5:49 unknown-key",
    "6:10 wrong-value",
    "7:12 wrong-type",
    "7:25 wrong-type",
  ]);
});

test("an unknown key is an error with the key that was meant", () => {
  const [problem] = problems("tests: [{name: a, expcet: {}}]");
  assert.equal(problem?.severity, "error");
  assert.equal(problem?.hint, "did you mean `expect`?");
  const [other] = problems("tests: [{name: a, mocks: {b: {body: 1}}}]");
  assert.match(other?.hint ?? "", /`data`/);
});

test("an answer says its result in one way only", () => {
  assert.match(problems("tests: [{name: a, mocks: {b: {result: 1, data: 2}}}]")[0]?.message ?? "", /more than one of/);
  assert.match(
    problems("tests: [{name: a, mocks: {b: {error: {}, rows: []}}}]")[0]?.message ?? "",
    /an `error` and a result/,
  );
  assert.match(problems("tests: [{name: a, mocks: {b: []}}]")[0]?.message ?? "", /no answer/);
});

for (const [what, text, code] of [
  ["an empty document", "", "empty-document"],
  ["a list", "- a", "not-a-map"],
  ["broken YAML", "tests: [", "yaml-syntax"],
  ["no tests", "tests: []", "wrong-value"],
  ["a document without tests", "playbook: x.yaml", "missing-key"],
  ["tabs", "tests:\n\t- name: a", "tab-indent"],
] as const) {
  test(`${what} is refused as ${code}`, () => {
    const list = problems(text);
    assert.ok(
      list.some((problem) => problem.code === code),
      JSON.stringify(list),
    );
    assert.equal(readTests(text, "x.test.yaml").document, undefined);
  });
}

test("the hint of an empty document speaks of tests, not of playbooks", () => {
  assert.match(problems("")[0]?.hint ?? "", /tests:/);
});
