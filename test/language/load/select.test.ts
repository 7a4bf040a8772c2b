import assert from "node:assert/strict";
import { test } from "node:test";
import { loadPlaybook } from "../../../src/language/load/load.ts";

// Language document, section 8, "Storage": the name by which a selected field is read.

function load(path: string) {
  const text = `
apiVersion: test/v2
kind: Playbook
metadata: { name: x }
workflow:
  - step: a
    tool: { kind: noop, spec: { result: { select: [{ path: ${JSON.stringify(path)} }] } } }
`;
  return loadPlaybook(text, "x.yaml");
}

for (const [path, name] of [
  ["$.data.items[0].id", "id"],
  ["$.data.items", "items"],
  ["$.items[0]", "items"],
  ["$.items[0]['x']", "items"],
  ["$.items[*].order-id", "order-id"],
  ["total", "total"],
  ["$['a']", "$['a']"],
  ["$.a[?(@.b[0]>1)]", "$.a[?(@.b[0]>1)]"],
  ["$", "$"],
] as const) {
  test(`${path} is read as ${name} unless the document names it`, () => {
    assert.equal(load(path).playbook?.steps[0]?.tasks[0]?.result.select[0]?.as, name);
  });
}

for (const [path, message] of [
  ["$.a[", "`$.a[` is no path: unclosed bracketed selection, at its character 5"],
  ["$.a[?@.b ==]", "`$.a[?@.b ==]` is no path: unexpected end of expression, at its character 12"],
  ["$[?nope(@.a)]", "`$[?nope(@.a)]` is no path: no such function 'nope', at its character 4"],
  ["a.b[", "`a.b[` is no path: unclosed bracketed selection, at its character 5"],
  ["]", "`]` is no path: unexpected shorthand selector ']', at its character 1"],
] as const) {
  test(`the path ${path} is refused, with the place`, () => {
    const [first] = load(path).diagnostics;
    assert.deepEqual([first?.code, first?.message], ["wrong-value", message]);
    assert.equal(first?.path, "workflow[0].tool.spec.result.select[0].path");
    assert.equal(first?.line, 7);
  });
}

for (const [what, path] of [
  ["a hundred subscripts", `a${"['x']".repeat(100)} `],
  ["a word of 200,000 letters", `${"a".repeat(200_000)} `],
  ["100,000 brackets", "]".repeat(100_000)],
] as const) {
  // A pattern with nested repetitions did not come back from the first of these.
  test(`a path of ${what} is refused at once`, () => {
    assert.equal(load(path).playbook, undefined);
  });
}

test("a kind that is called like a method of the host language has unknown keys as any unknown kind", () => {
  const document = (kind: string) => `
apiVersion: test/v2
kind: Playbook
metadata: { name: x }
workflow: [{ step: a, tool: { kind: ${kind}, anything: 1 } }]
`;
  const codesOf = (kind: string) => loadPlaybook(document(kind), "x.yaml").diagnostics.map(({ code }) => code);
  assert.deepEqual(codesOf("constructor"), codesOf("another"));
});
