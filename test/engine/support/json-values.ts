import fc from "fast-check";
import type { Json } from "../../../src/schema/words/json.ts";

// Texts that meet: of few letters, so that secrets stand in values, at their ends, in keys, and within each other.
const TEXT = fc.oneof(
  fc.stringMatching(/^[ab1 ]{0,12}$/),
  fc.stringMatching(/^[ab]{8,10}$/),
  fc.constantFrom(
    "[sealed:",
    "[sealed:k1:",
    "]",
    "[",
    "demo",
    "demographics_done",
    "swordfish",
    "[secret]",
    "é%2F\"'\\",
  ),
);
const JOINED = fc.array(TEXT, { maxLength: 3 }).map((texts) => texts.join(""));
const NUMBER = fc.oneof(
  fc.integer(),
  fc.constantFrom(4711, 12345678, 123456789, 1e21, 0.5),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);
const LEAF = fc.oneof(
  JOINED,
  NUMBER.map((number) => (Object.is(number, -0) ? 0 : number)),
  fc.boolean(),
  fc.constant(null),
);
/** Any JSON value. */
export const VALUE = fc.letrec<{ json: Json }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 3 },
    LEAF,
    fc.array(tie("json"), { maxLength: 4 }),
    fc.dictionary(JOINED, tie("json"), { maxKeys: 4 }),
  ),
})).json;

/** The texts, numbers and the like of a value. */
export function leavesOf(value: Json): Json[] {
  if (Array.isArray(value)) return value.flatMap(leavesOf);
  return typeof value === "object" && value !== null
    ? Object.values(value).flatMap((one) => leavesOf(one as Json))
    : [value];
}
