import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { agentToolName, hasDigest, pathOfToolName, TOOL_NAME_MAX } from "../../../src/services/mcp/tool.ts";

for (const [path, name] of [
  ["restart", "restart"],
  ["ops/restart-pod", "ops__restart-pod"],
  ["ops/on_call/page", "ops__on_call__page"],
  ["Ops/V2", "Ops__V2"],
] as const) {
  test(`'${path}' is called '${name}', and the name says the path`, () => {
    assert.equal(agentToolName(path), name);
    assert.equal(pathOfToolName(name), path);
  });
}

for (const path of [
  "ops/on_call_",
  "ops/_x",
  "a__b",
  "a/b c",
  "städte/wetter",
  "v1.2/x",
  "a".repeat(65),
  `${"a/".repeat(40)}b`,
  "_",
]) {
  test(`the name of '${path.slice(0, 20)}' has a digest: its path must be looked for`, () => {
    const name = agentToolName(path);
    assert.ok(hasDigest(name), name);
    assert.equal(pathOfToolName(name), undefined);
  });
}

const segment = fc.string({
  unit: fc.constantFrom("a", "B", "1", "_", "-", ".", " ", "ä"),
  minLength: 1,
  maxLength: 30,
});
const anyPath = fc.array(segment, { minLength: 1, maxLength: 5 }).map((segments) => segments.join("/"));

test("names are valid, and no two paths have the same", () => {
  fc.assert(
    fc.property(anyPath, anyPath, (left, right) => {
      const name = agentToolName(left);
      assert.match(name, /^[a-zA-Z0-9_-]+$/);
      assert.ok(name.length <= TOOL_NAME_MAX);
      assert.ok(pathOfToolName(name) === left || hasDigest(name));
      if (left !== right) assert.notEqual(name, agentToolName(right));
    }),
  );
});

for (const name of ["", "a___b", "a____b", "_a", "a__", "a/b", "a b", "x".repeat(65)]) {
  test(`'${name.slice(0, 20)}' is the name of no path`, () => {
    assert.equal(pathOfToolName(name), undefined);
    assert.equal(hasDigest(name), false);
  });
}
