import assert from "node:assert/strict";
import { test } from "node:test";
import type { Json } from "../../src/schema/words/json.ts";
import { DIFFERENCES_MAX, missing, unequal } from "../../src/testing/compare.ts";

const paths = (list: { path: string }[]) => list.map(({ path }) => path);

test("an expected map may leave fields out, an exact one may not", () => {
  const actual: Json = { a: 1, b: { c: [1, 2], d: "x" } };
  assert.deepEqual(missing({ b: { d: "x" } }, actual), []);
  assert.deepEqual(paths(unequal({ b: { d: "x" } }, actual)), ["b.c", "a"]);
  assert.deepEqual(unequal(actual, actual), []);
});

test("each difference has its path and both values", () => {
  const [difference] = missing({ users: [{ name: "ann" }] }, { users: [{ name: "bob", id: 1 }] });
  assert.deepEqual(difference, { path: "users[0].name", expected: "ann", actual: "bob" });
  assert.deepEqual(missing({ "odd key": 1 }, {}), [{ path: '["odd key"]', expected: 1, actual: undefined }]);
});

test("lists must have the same length", () => {
  assert.deepEqual(missing([1], [1, 2]), [{ path: "", expected: [1], actual: [1, 2] }]);
  assert.deepEqual(missing([{}, 2], [{ more: true }, 2]), []);
});

test("a text between slashes is a regular expression, in an exact comparison it is a text", () => {
  assert.deepEqual(missing({ m: "/timed? OUT/i" }, { m: "it time out" }), []);
  assert.deepEqual(paths(missing({ m: "/nothing/" }, { m: "it time out" })), ["m"]);
  assert.deepEqual(paths(missing("/x/", { x: 1 })), [""]);
  assert.deepEqual(paths(unequal("/a/", "a")), [""]);
  assert.deepEqual(missing("/(/", "/(/"), [], "what is no regular expression is a text");
});

test("null, false, 0 and nothing are four different values", () => {
  assert.deepEqual(paths(missing({ a: null }, {})), ["a"]);
  assert.deepEqual(missing({ a: null }, { a: null }), []);
  assert.deepEqual(paths(missing({ a: 0 }, { a: false })), ["a"]);
});

test("a key that JavaScript objects inherit is not there", () => {
  assert.deepEqual(paths(missing({ constructor: "/./" }, {})), ["constructor"]);
});

test("the differences of a long list are bounded", () => {
  const long = Array.from({ length: 10_000 }, (_, index) => index);
  assert.equal(
    missing(
      long,
      long.map((item) => item + 1),
    ).length,
    DIFFERENCES_MAX,
  );
});
