import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createJsonItems } from "../../../src/adapters/payloads/json-items.ts";

/** The items of a text that comes in parts of this many bytes. */
function itemsOf(text: string, size = text.length): { items: string[]; isList: boolean } {
  const items = createJsonItems();
  const bytes = Buffer.from(text);
  const found: string[] = [];
  for (let at = 0; at < bytes.length; at += size) found.push(...items.add(bytes.subarray(at, at + size)));
  found.push(...items.end());
  return { items: found, isList: items.isList() };
}

test("a list gives its items, whatever stands in them and however it is cut", () => {
  const text = ' [ {"a": [1, 2], "b": "],[\\"\\\\"} ,[] , "é🙂,", null,-1.50e3 ] ';
  for (let size = 1; size <= text.length + 5; size += 1) {
    assert.deepEqual(itemsOf(text, size), {
      items: ['{"a": [1, 2], "b": "],[\\"\\\\"}', "[]", '"é🙂,"', "null", "-1.50e3"],
      isList: true,
    });
  }
});

test("an empty list has no items; a value that is not a list is one item", () => {
  assert.deepEqual(itemsOf("[ ]", 1), { items: [], isList: true });
  for (const text of ['{"a": [1,2]}', '"[1,2]"', "7"]) {
    assert.deepEqual(itemsOf(` ${text}\n`, 2), { items: [text], isList: false });
  }
});

test("a comma too many leaves a hole, which is no JSON", () => {
  assert.deepEqual(itemsOf("[1,]").items, ["1", ""]);
  assert.deepEqual(itemsOf("[,1]").items, ["", "1"]);
});

test("the items of any list are its items", () => {
  fc.assert(
    fc.property(
      fc.array(fc.jsonValue()),
      fc.integer({ min: 1, max: 50 }),
      fc.constantFrom(undefined, 2),
      (list, size, indent) => {
        const { items } = itemsOf(JSON.stringify(list, null, indent), size);
        assert.deepEqual(
          items.map((item) => JSON.parse(item)),
          JSON.parse(JSON.stringify(list)),
        );
      },
    ),
    { verbose: true },
  );
});
