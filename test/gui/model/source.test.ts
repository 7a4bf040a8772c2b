import assert from "node:assert/strict";
import { test } from "node:test";
import { readSource, stepAt } from "../../../gui/src/catalog/source/read-source.ts";

/* What stands beside the editor: a document with the places of its steps. */

const TEXT = `kind: Playbook
workflow:
  - step: one
    tool: { kind: noop }
  # of one still
  - tool: { kind: noop }
    step: two
`;

function readOf(text: string) {
  const read = readSource(text);
  assert.ok("source" in read, JSON.stringify(read));
  return read.source;
}

test("each place of a text belongs to the step around it", () => {
  const { steps } = readOf(TEXT);
  assert.deepEqual(
    steps.map(({ name, line, column }) => [name, line, column]),
    [
      ["one", 3, 5],
      ["two", 6, 5],
    ],
  );
  const at = (word: string) => stepAt(steps, TEXT.indexOf(word));
  assert.equal(at("kind: Playbook"), undefined);
  assert.equal(at("workflow"), undefined);
  assert.equal(at("  - step: one"), "one");
  assert.equal(at("noop"), "one");
  assert.equal(at("# of one"), "one");
  assert.equal(at("- tool"), "two");
  assert.equal(at("step: two"), "two");
  // Here its author writes on.
  assert.equal(stepAt(steps, TEXT.length), "two");
});

test("steps of one line are told apart, and what has no name is left out", () => {
  const text = "workflow: [{ step: a }, { tool: {} }, { step: b }, 7]";
  const { steps } = readOf(text);
  assert.deepEqual(
    steps.map(({ name }) => name),
    ["a", "b"],
  );
  assert.equal(stepAt(steps, text.indexOf("step: a")), "a");
  assert.equal(stepAt(steps, text.indexOf("step: b")), "b");
});

test("a text that is no YAML, or no map, says where", () => {
  assert.deepEqual("fault" in readSource(`${TEXT}  - step: [`) && 8, 8);
  const broken = readSource("a: 1\nb: [\n");
  assert.ok("fault" in broken);
  assert.ok(broken.fault.line >= 2, String(broken.fault.line));
  assert.notEqual(broken.fault.why, "");
  const text = readSource("only words");
  assert.ok("fault" in text);
  assert.match(text.fault.why, /map/);
});

test("a document without steps, and an empty one, are told apart", () => {
  assert.deepEqual(readOf("kind: Mcp\nspec: {}\n").steps, []);
  assert.deepEqual(readOf("workflow: {}\n").steps, []);
  assert.ok("fault" in readSource(""));
});
