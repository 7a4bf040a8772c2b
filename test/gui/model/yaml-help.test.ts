import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { describeAt, keysAt, valuesAt } from "../../../gui/src/parts/editor/schema-lookup.ts";
import { ITEM, placeAt, type YamlPlace } from "../../../gui/src/parts/editor/yaml-place.ts";
import type { JsonObject } from "../../../src/schema/words/json.ts";

const schema = JSON.parse(
  readFileSync(join(import.meta.dirname, "../../../../playbooks/playbook.schema.json"), "utf8"),
) as JsonObject;

/** The place of `|` in a text. */
function at(text: string): YamlPlace {
  const offset = text.indexOf("|");
  const place = placeAt(text.replace("|", ""), offset);
  assert.ok(place !== undefined, text);
  return place;
}

const names = (place: YamlPlace) => keysAt(schema, place).map(({ name }) => name);

test("a place is found by indentation: keys of maps, items of lists, siblings", () => {
  for (const [text, path, siblings] of [
    ["apiVersion: flow/v2\nki|", [], ["apiVersion"]],
    ["metadata:\n  name: x\n  pa|\nworkload:\n  a: 1", ["metadata"], ["name"]],
    ["workflow:\n  - step: a\n    to|", ["workflow", ITEM], ["step"]],
    ["workflow:\n- step: a\n  to|\n- step: b", ["workflow", ITEM], ["step"]],
    [
      "workflow:\n  - step: a\n    tool:\n      kind: http\n      ur|\n    next: x",
      ["workflow", ITEM, "tool"],
      ["kind"],
    ],
    ["workflow:\n  - step: a\n    tool:\n      - kind: http\n        ur|", ["workflow", ITEM, "tool", ITEM], ["kind"]],
    ["workflow:\n  - step: a\n  - st|", ["workflow", ITEM], []],
    ["workflow:\n  - step: a\n    tool: { kind: http, ur| }", ["workflow", ITEM, "tool"], ["kind"]],
    ["workflow:\n  - { step: a, tool: { ki|", ["workflow", ITEM, "tool"], []],
    ["a:\n\n  # a remark: here\n  b: 1\n  c|", ["a"], ["b"]],
  ] as const) {
    const place = at(text);
    assert.deepEqual([place.path, [...place.siblings.keys()], place.at], [path, siblings, "key"], text);
  }
});

test("a value is distinguished from a key, and comments and quoted texts get no help", () => {
  const place = at("workflow:\n  - step: a\n    tool:\n      kind: ht|");
  assert.deepEqual([place.at, place.key, place.word, place.path], ["value", "kind", "ht", ["workflow", ITEM, "tool"]]);
  for (const text of ["# ki|", "a: 1 # x|", 'a: { b: "ki|']) {
    assert.equal(placeAt(text.replace("|", ""), text.indexOf("|")), undefined, text);
  }
});

test("keys and what they mean come from the schema, those of a task by its kind", () => {
  assert.ok(names(at("|")).includes("workflow"));
  assert.ok(names(at("workflow:\n  - st|")).includes("step"));
  const http = names(at("workflow:\n  - step: a\n    tool:\n      kind: http\n      |"));
  assert.ok(http.includes("url") && http.includes("auth") && !http.includes("code"), http.join(" "));
  const python = names(at("workflow:\n  - step: a\n    tool:\n      - name: b\n        kind: python\n        |"));
  assert.ok(python.includes("code") && !python.includes("url"), python.join(" "));
  assert.match(describeAt(schema, at("workflow:\n  - st|"), "when"), /Guard/);
  assert.equal(describeAt(schema, at("workflow:\n  - st|"), "constructor"), "");
});

test("values are offered where there are few", () => {
  const kinds = valuesAt(schema, at("workflow:\n  - step: a\n    tool:\n      kind: |"), "kind");
  assert.ok(kinds.includes("http") && kinds.includes("sqldb") && kinds.includes("mcp"), kinds.join(" "));
  assert.deepEqual(valuesAt(schema, at("|"), "kind"), ["Playbook", "Agent"]);
  assert.deepEqual(valuesAt(schema, at("metadata:\n  na|"), "name"), []);
});

test("texts of any kind give an answer at every place", () => {
  const text = "\t- : :\n{[}]\n- - - a: {b: [c, {d: '\"\n__proto__:\n  constructor: x\n- toString:\n";
  for (let offset = 0; offset <= text.length; offset += 1) {
    const place = placeAt(text, offset);
    if (place !== undefined) keysAt(schema, place);
  }
});
