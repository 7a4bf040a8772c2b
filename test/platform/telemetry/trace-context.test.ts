import assert from "node:assert/strict";
import { test } from "node:test";
import {
  formatTraceparent,
  newTraceId,
  parseTraceparent,
  spanIdOf,
} from "../../../src/platform/telemetry/trace-context.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";

test("a traceparent is read and written as it was", () => {
  for (const flags of ["00", "01"]) {
    const header = `00-${TRACE}-${SPAN}-${flags}`;
    const context = parseTraceparent(header);
    assert.deepEqual(context, { traceId: TRACE, spanId: SPAN, sampled: flags === "01" });
    assert.equal(formatTraceparent(context), header);
  }
});

test("a later version may say more than we know", () => {
  assert.equal(parseTraceparent(`cc-${TRACE}-${SPAN}-03-more-of-it`)?.sampled, true);
});

for (const [what, header] of [
  ["nothing", undefined],
  ["an empty text", ""],
  ["words", "not a traceparent"],
  ["a trace id of zeros", `00-${"0".repeat(32)}-${SPAN}-01`],
  ["a span id of zeros", `00-${TRACE}-${"0".repeat(16)}-01`],
  ["a short trace id", `00-${TRACE.slice(1)}-${SPAN}-01`],
  ["capital letters", `00-${TRACE.toUpperCase()}-${SPAN}-01`],
  ["the version that there is not", `ff-${TRACE}-${SPAN}-01`],
  ["more than version 00 has", `00-${TRACE}-${SPAN}-01-more`],
  ["a line break", `00-${TRACE}-${SPAN}-01\r\nx-other: 1`],
] as const) {
  test(`${what} begins no trace`, () => assert.equal(parseTraceparent(header), undefined));
}

test("a span's id follows from the ids of its subject, and differs for other ids", () => {
  assert.equal(spanIdOf("12", 1), spanIdOf("12", 1));
  assert.notEqual(spanIdOf("12", 1), spanIdOf("1", 21));
  assert.match(spanIdOf("12"), /^[\da-f]{16}$/);
  assert.match(newTraceId(), /^[\da-f]{32}$/);
});
