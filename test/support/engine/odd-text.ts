import fc from "fast-check";

const trap = fc.constantFrom(
  "\u0000",
  "\ud800",
  "\udfff",
  "\\u0000",
  '"\\0"',
  '"\\ud800"',
  "\u2028",
  "__proto__",
  "'",
  ";--",
);
/** Any text, and texts made of what databases and parsers stumble over. */
export const oddText = fc.oneof(
  fc.string({ unit: "binary" }),
  trap,
  fc.array(trap, { maxLength: 4 }).map((parts) => parts.join("")),
);
