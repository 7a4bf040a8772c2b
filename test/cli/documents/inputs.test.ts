import assert from "node:assert/strict";
import { test } from "node:test";
import { readInputs } from "../../../src/cli/documents/inputs.ts";
import type { Json } from "../../../src/schema/words/json.ts";
import { folderWith } from "../../support/service/cli-process.ts";

/** Texts after `--set x=`, and the value they mean. */
const VALUES: readonly [text: string, value: Json][] = [
  ["42", 42],
  ["-1.5e3", -1500],
  ["true", true],
  ["null", null],
  ['"42"', "42"],
  ["[1, 2]", [1, 2]],
  ['{"a": {"b": 1}}', { a: { b: 1 } }],
  ["hello world", "hello world"],
  ["", ""],
  ["a=b=c", "a=b=c"],
  ["007", "007"],
  ["True", "True"],
  ["[not json", "[not json"],
  ["9007199254740993", "9007199254740993"],
  ["1e999", "1e999"],
];

for (const [text, value] of VALUES) {
  test(`--set x=${text} means ${JSON.stringify(value)}`, async () => {
    assert.deepEqual(await readInputs({ set: [`x=${text}`] }, "/"), { x: value });
  });
}

test("dots lead into maps, later options win, and --set wins over --workload", async () => {
  const workload = '{"db": {"host": "a", "port": 1}, "day": "monday"}';
  const set = ["db.port=2", "db.pool.size=3", "day=tuesday", "day=friday"];
  assert.deepEqual(await readInputs({ workload, set }, "/"), {
    db: { host: "a", port: 2, pool: { size: 3 } },
    day: "friday",
  });
});

test("a workload can stand in a file, found from the folder", async (t) => {
  const folder = await folderWith(t, { "inputs.json": '{"a": [1]}' });
  assert.deepEqual(await readInputs({ workload: "@inputs.json" }, folder), { a: [1] });
});

test("a key called __proto__ is an ordinary key", async () => {
  const inputs = await readInputs({ set: ["__proto__.polluted=1", "constructor.prototype.polluted=1"] }, "/");
  assert.deepEqual(Object.keys(inputs), ["__proto__", "constructor"]);
  assert.equal(({} as { polluted?: unknown }).polluted, undefined);
});
