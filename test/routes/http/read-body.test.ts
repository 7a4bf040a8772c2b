import assert from "node:assert/strict";
import { test } from "node:test";
import { parseJson } from "../../../src/routes/http/read-body.ts";

/** As a body, with `before` characters in front of the number. */
function bodyWith(number: string, before: number): Buffer {
  return Buffer.from(`{"text":"${"x".repeat(before)}","n":${number}}`);
}

test("a number of 309 digits is refused wherever it stands in the body, one of 308 is taken", () => {
  const infinite = `2${"0".repeat(308)}`;
  const finite = `9${"0".repeat(307)}`;
  for (let before = 0; before <= 700; before += 1) {
    assert.throws(() => parseJson(bodyWith(infinite, before)), /beyond ±1\.8e308 at 'n'/, `after ${before}`);
    assert.deepEqual(parseJson(bodyWith(finite, before)), { text: "x".repeat(before), n: 9e307 });
  }
});

test("a number is refused by its exponent of three digits, and taken where it is finite", () => {
  for (const number of ["1e309", "1E+309", "-1e0309", "0.1e310", "10.0e308"]) {
    assert.throws(() => parseJson(bodyWith(number, 0)), /beyond ±1\.8e308/, number);
  }
  for (const number of ["1e308", "1e99", "1e-400", "0e999", "-1.7e+308"]) {
    assert.deepEqual(parseJson(bodyWith(number, 0)), { text: "", n: Number(number) }, number);
  }
});
