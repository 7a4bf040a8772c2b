import assert from "node:assert/strict";
import { test } from "node:test";
import { isTimeZone, momentMs } from "../../src/language/words/moments.ts";

const MOMENTS: [text: string, zone: string, at: string | undefined][] = [
  ["2026-01-31T12:00:00Z", "UTC", "2026-01-31T12:00:00.000Z"],
  ["2026-01-31T12:00:00.5+02:00", "Asia/Tokyo", "2026-01-31T10:00:00.500Z"],
  ["2026-01-31", "UTC", "2026-01-31T00:00:00.000Z"],
  ["2026-01-31 12:00", "Europe/Berlin", "2026-01-31T11:00:00.000Z"],
  ["2026-07-31 12:00", "Europe/Berlin", "2026-07-31T10:00:00.000Z"],
  // Clocks go from 02:00 to 03:00: the time in between is the moment of the change.
  ["2026-03-29 01:59:59", "Europe/Berlin", "2026-03-29T00:59:59.000Z"],
  ["2026-03-29 02:30", "Europe/Berlin", "2026-03-29T01:00:00.000Z"],
  ["2026-03-29 03:00", "Europe/Berlin", "2026-03-29T01:00:00.000Z"],
  // Clocks go from 03:00 back to 02:00: a time that comes twice is the first of the two.
  ["2026-10-25 02:30", "Europe/Berlin", "2026-10-25T00:30:00.000Z"],
  ["2026-10-25 03:00", "Europe/Berlin", "2026-10-25T02:00:00.000Z"],
  ["2026-03-08 02:30", "America/New_York", "2026-03-08T07:00:00.000Z"],
  ["2026-11-01 01:30", "America/New_York", "2026-11-01T05:30:00.000Z"],
  // Half an hour, and south of the equator.
  ["2026-10-04 02:15", "Australia/Lord_Howe", "2026-10-03T15:30:00.000Z"],
  ["2026-04-05 01:45", "Australia/Lord_Howe", "2026-04-04T14:45:00.000Z"],
  // A day that a country left out.
  ["2011-12-30 12:00", "Pacific/Apia", "2011-12-30T10:00:00.000Z"],
  ["2026-02-30", "UTC", undefined],
  ["2026-13-01", "UTC", undefined],
  ["2026-01-31T25:00Z", "UTC", undefined],
  ["tomorrow", "UTC", undefined],
  ["", "UTC", undefined],
];

for (const [text, zone, at] of MOMENTS) {
  test(`'${text}' in ${zone}`, () => {
    const ms = momentMs(text, zone);
    assert.equal(ms === undefined ? undefined : new Date(ms).toISOString(), at);
  });
}

test("time zones are those of the runtime", () => {
  assert.deepEqual(["UTC", "Europe/Berlin", "Mars/Olympus", ""].map(isTimeZone), [true, true, false, false]);
});
