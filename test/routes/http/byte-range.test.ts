import assert from "node:assert/strict";
import { test } from "node:test";
import { isKnown, requestedRange } from "../../../src/routes/http/byte-range.ts";

const ETAG = '"abc"';
const asked = (range: string | undefined, ifRange?: string) =>
  requestedRange(range, ifRange, { bytes: 100, etag: ETAG });

test("one range of bytes gives a part; an invalid range, or several, give everything", () => {
  for (const [range, expected] of [
    ["bytes=0-0", { start: 0, end: 1 }],
    ["bytes=10-19", { start: 10, end: 20 }],
    ["BYTES = 99-", { start: 99, end: 100 }],
    ["bytes=90-1000", { start: 90, end: 100 }],
    ["bytes=-10", { start: 90, end: 100 }],
    ["bytes=-1000", { start: 0, end: 100 }],
    ["bytes=100-", "none"],
    ["bytes=-0", "none"],
    ["bytes=20-10", "all"],
    ["bytes=0-1,5-6", "all"],
    ["bytes=-", "all"],
    ["rows=1-2", "all"],
    [undefined, "all"],
  ] as const) {
    assert.deepEqual(asked(range), expected, range);
  }
});

test("a range of another version is not given", () => {
  assert.deepEqual(asked("bytes=0-0", ETAG), { start: 0, end: 1 });
  assert.equal(asked("bytes=0-0", '"other"'), "all");
  assert.equal(asked("bytes=0-0", "Wed, 21 Oct 2026 07:28:00 GMT"), "all");
});

test("an empty payload has no ranges", () => {
  assert.equal(requestedRange("bytes=0-", undefined, { bytes: 0, etag: ETAG }), "none");
  assert.equal(requestedRange("bytes=-1", undefined, { bytes: 0, etag: ETAG }), "none");
});

test("a client that has a version is recognised by its tag", () => {
  assert.ok(isKnown('"x", W/"abc"', ETAG));
  assert.ok(isKnown("*", ETAG));
  assert.ok(!isKnown('"x"', ETAG));
  assert.ok(!isKnown(undefined, ETAG));
});
