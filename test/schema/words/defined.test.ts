import assert from "node:assert/strict";
import { test } from "node:test";
import { defined } from "../../../src/schema/words/defined.ts";

test("fields that are undefined are left out, every other value stays, in the order as given", () => {
  const [none, text]: [string | undefined, string | undefined] = [undefined, "x"];
  const sent: { id: number; none?: string; text?: string } = { id: 1, ...defined({ none, text }) };
  assert.deepEqual(Object.entries(sent), [
    ["id", 1],
    ["text", "x"],
  ]);
  assert.deepEqual(defined({ zero: 0, no: false, empty: "", nothing: null }), {
    zero: 0,
    no: false,
    empty: "",
    nothing: null,
  });
  assert.deepEqual(Object.keys({ ...{ text: "before" }, ...defined({ text: none }) }), ["text"]);
});

test("nothing defined adds nothing", () => {
  assert.deepEqual(defined({}), {});
  assert.deepEqual(defined({ a: undefined, b: undefined }), {});
});
