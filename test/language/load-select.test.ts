import assert from "node:assert/strict";
import { test } from "node:test";
import { loadPlaybook } from "../../src/language/load.ts";

// Language document, section 8, "Storage": the name by which a selected field is read.

function nameFor(path: string): string | undefined {
  const text = `
apiVersion: test/v2
kind: Playbook
metadata: { name: x }
workflow:
  - step: a
    tool: { kind: noop, spec: { result: { select: [{ path: ${JSON.stringify(path)} }] } } }
`;
  return loadPlaybook(text, "x.yaml").playbook?.steps[0]?.tasks[0]?.result.select[0]?.as;
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
  ["]", "]"],
] as const) {
  test(`${path} is read as ${name} unless the document names it`, () => {
    assert.equal(nameFor(path), name);
  });
}

for (const [what, path] of [
  ["a hundred subscripts", `a${"['x']".repeat(100)} `],
  ["a word of 200,000 letters", `${"a".repeat(200_000)} `],
  ["100,000 brackets", "]".repeat(100_000)],
] as const) {
  // A pattern with nested repetitions did not come back from the first of these.
  test(`a path of ${what} that ends in no name is its own name at once`, () => {
    assert.equal(nameFor(path), path);
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
