import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { test } from "node:test";
import { Cron } from "croner";
import { cronProblem, duesBetween, jitterOf, lastDue, nextDue } from "../../src/language/words/schedule.ts";
import type { Schedule } from "../../src/schema/triggers/trigger.ts";
import { planDues } from "../../src/services/triggers/plan-dues.ts";
import { seededRandom } from "../simulator/random.ts";

/* Times of schedules (control, rules 36 to 38): a table of hard dates, and a year of every change of the clock in five zones. */

const cron = (pattern: string | string[], timezone = "UTC"): Schedule => ({
  cron: [pattern].flat(),
  timezone,
  jitterMs: 0,
});
const at = (text: string) => Date.parse(text);
const texts = (dues: readonly number[]) => dues.map((due) => new Date(due).toISOString().slice(0, 16));
const after = (schedule: Schedule, from: string, count: number) =>
  texts(duesBetween(schedule, { from: at(from), until: Number.POSITIVE_INFINITY, activeSince: 0 }, count));

const DAY_MS = 86_400_000;

const HARD: readonly [pattern: string, zone: string, from: string, times: readonly string[]][] = [
  // The gap of spring: a fixed time runs once at its end, a stepped one is left out, a wildcard follows the instants.
  ["30 2 * * *", "Europe/Berlin", "2026-03-28T12:00Z", ["2026-03-29T01:00", "2026-03-30T00:30"]],
  ["15,45 2 * * *", "Europe/Berlin", "2026-03-28T12:00Z", ["2026-03-29T01:00", "2026-03-30T00:15"]],
  ["0 2-3 * * *", "Europe/Berlin", "2026-03-28T12:00Z", ["2026-03-29T01:00", "2026-03-30T00:00"]],
  ["*/15 2 * * *", "Europe/Berlin", "2026-03-28T12:00Z", ["2026-03-30T00:00", "2026-03-30T00:15"]],
  ["0 * * * *", "Europe/Berlin", "2026-03-29T00:30Z", ["2026-03-29T01:00", "2026-03-29T02:00"]],
  ["30 2 * * *", "America/New_York", "2026-03-07T12:00Z", ["2026-03-08T07:00", "2026-03-09T06:30"]],
  ["15 2 * * *", "Australia/Lord_Howe", "2026-10-02T16:00Z", ["2026-10-03T15:30", "2026-10-04T15:15"]],
  ["0 0 * * *", "America/Santiago", "2026-09-05T12:00Z", ["2026-09-06T04:00", "2026-09-07T03:00"]],
  // The doubled hour of autumn: a fixed time runs the first time, a wildcard follows the instants.
  ["30 2 * * *", "Europe/Berlin", "2026-10-24T12:00Z", ["2026-10-25T00:30", "2026-10-26T01:30"]],
  ["0 * * * *", "Europe/Berlin", "2026-10-24T23:30Z", ["2026-10-25T00:00", "2026-10-25T01:00", "2026-10-25T02:00"]],
  ["30 1 * * *", "America/New_York", "2026-10-31T12:00Z", ["2026-11-01T05:30", "2026-11-02T06:30"]],
  ["45 1 * * *", "Australia/Lord_Howe", "2026-04-03T16:00Z", ["2026-04-04T14:45", "2026-04-05T15:15"]],
  // A zone without changes, and half an hour beside the others.
  ["0 6 * * 1-5", "Asia/Kolkata", "2026-01-02T01:00Z", ["2026-01-05T00:30", "2026-01-06T00:30"]],
  // Months, leap days, weekdays.
  ["0 0 31 * *", "UTC", "2026-01-31T00:00Z", ["2026-03-31T00:00", "2026-05-31T00:00"]],
  ["0 0 29 2 *", "UTC", "2026-01-01T00:00Z", ["2028-02-29T00:00", "2032-02-29T00:00"]],
  ["0 0 13 * 5", "UTC", "2026-01-09T00:00Z", ["2026-01-13T00:00", "2026-01-16T00:00"]],
  ["0 0 L * *", "UTC", "2026-01-31T00:00Z", ["2026-02-28T00:00", "2026-03-31T00:00"]],
  ["0 0 * * 5#2", "UTC", "2026-01-01T00:00Z", ["2026-01-09T00:00", "2026-02-13T00:00"]],
  ["0 0 15W * *", "UTC", "2026-01-31T00:00Z", ["2026-02-16T00:00", "2026-03-16T00:00"]],
  ["@daily", "UTC", "2025-12-31T23:59Z", ["2026-01-01T00:00", "2026-01-02T00:00"]],
];

test("a table of hard dates", () => {
  for (const [pattern, zone, from, times] of HARD) {
    assert.deepEqual(after(cron(pattern, zone), from, times.length), times, `${pattern} in ${zone}`);
  }
});

test("answers that are kept are those of a schedule that was never asked before, in whatever order it is asked", (context) => {
  const seed = Number(process.env["FLOW_SEED"] ?? randomInt(1_000_000));
  context.diagnostic(`FLOW_SEED=${seed}`);
  const random = seededRandom(seed);
  const changes = ["2026-03-29T01:00Z", "2026-10-25T01:00Z", "2026-11-01T06:00Z", "2026-04-04T15:00Z"].map(at);
  const patterns = ["30 2 * * *", "15,45 1-3 * * *", "*/20 * * * *", "0 0 1 1 *", "0 0 30 2 *", "*/7 * * * * *"];
  for (let round = 0; round < 400; round += 1) {
    const zone = random.pick(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]);
    const pattern = random.pick(patterns.slice(0, round % 10 === 0 ? undefined : 4));
    const moment = random.pick(changes) + random.between(-2 * DAY_MS, 2 * DAY_MS);
    const fresh = new Cron(pattern, {
      timezone: zone,
      mode: "5-or-6-parts",
      fixedTimeRule: "no-wildcard",
      paused: true,
    });
    const expected = fresh.nextRun(new Date(moment))?.getTime();
    assert.equal(nextDue(cron(pattern, zone), moment, 0), expected, `${pattern} in ${zone} after ${moment}`);
  }
});

const ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Asia/Kolkata"];

/** What the clock of a zone shows, as `2026-03-29 02:30`, from the runtime and not from the library. */
function shown(zone: string): (ms: number) => string {
  const format = new Intl.DateTimeFormat("sv-SE", { timeZone: zone, dateStyle: "short", timeStyle: "short" });
  return (ms) => format.format(new Date(ms));
}

test("a year in five zones: a daily time runs once on each day, however the clock changes, and a server that looks at odd moments misses none", () => {
  const [from, until] = [at("2026-01-01T12:00Z"), at("2027-01-01T12:00Z")];
  for (const zone of ZONES) {
    const clock = shown(zone);
    for (const time of ["30 2 * * *", "0 0 * * *"]) {
      const schedule = cron(time, zone);
      const dues = duesBetween(schedule, { from, until, activeSince: 0 }, 1_000);
      const days = dues.map((due) => clock(due).slice(0, 10));
      assert.equal(new Set(days).size, days.length, `${time} in ${zone} runs twice on a day`);
      assert.equal(days.length, 365, `${time} in ${zone}`);
      assert.equal(lastDue(schedule, { from, until, activeSince: 0 }), dues.at(-1));
      // The same through looks with jumps of up to three days: each time once, as `all` makes up for what was missed.
      const state = { triggerId: "1", schedule, catchup: { mode: "all" as const }, activeSince: 0, countedFrom: from };
      const fired: number[] = [];
      for (let now = from; now < until + 1; ) {
        now = Math.min(until, now + 1 + ((fired.length * 7_919_000 + now) % 259_200_000));
        const plan = planDues(state, now);
        fired.push(...plan.dues.map(({ due }) => due));
        state.countedFrom = plan.countedFrom;
        if (now === until) break;
      }
      assert.deepEqual(fired, dues, `${time} in ${zone}`);
    }
    if (zone !== "Europe/Berlin" && zone !== "Australia/Lord_Howe") continue;
    const hourly = duesBetween(cron("0 * * * *", zone), { from, until: from + 120 * DAY_MS, activeSince: 0 }, 10_000);
    // Lord Howe moves its clocks by half an hour: what they show twice or not at all is no whole hour's instant.
    assert.ok(Math.abs(hourly.length - 120 * 24) <= 1, `${zone}: ${hourly.length}`);
  }
});

test("an interval counts from when it became active; several patterns fire at the times of all", () => {
  const every = { cron: [], everyMs: 900_000, timezone: "UTC", jitterMs: 0 };
  const activeSince = at("2026-01-01T00:07Z");
  assert.equal(nextDue(every, at("2026-01-01T00:00Z"), activeSince), at("2026-01-01T00:22Z"));
  assert.equal(nextDue(every, at("2026-01-01T00:22Z"), activeSince), at("2026-01-01T00:37Z"));
  assert.equal(
    lastDue(every, { from: activeSince, until: at("2026-02-01T00:00Z"), activeSince }),
    at("2026-01-31T23:52Z"),
  );
  assert.deepEqual(after(cron(["0 6 * * *", "30 5 * * *", "0 6 * * *"]), "2026-01-01T05:00Z", 3), [
    "2026-01-01T05:30",
    "2026-01-01T06:00",
    "2026-01-02T05:30",
  ]);
});

test("what is no pattern is refused with a reason", () => {
  for (const pattern of [
    "",
    "* * * *",
    "60 * * * *",
    "* * * * * * 2026",
    "@reboot",
    "2026-01-01T00:00:00",
    "0 0 30 2 *",
    "5 4 * * 8",
  ]) {
    assert.notEqual(cronProblem(pattern), undefined, pattern);
  }
  for (const pattern of ["* * * * *", "*/10 * * * * *", "@hourly", "0 0 L * *", "0 9 * * MON-FRI"]) {
    assert.equal(cronProblem(pattern), undefined, pattern);
  }
});

test("a time waits for its jitter, which is the same on every server and within its limit; a clock that steps back fires nothing again", () => {
  const schedule = { ...cron("* * * * *"), jitterMs: 30_000 };
  const from = at("2026-01-01T00:00Z");
  const state = { triggerId: "42", schedule, catchup: { mode: "none" as const }, activeSince: from, countedFrom: from };
  const due = from + 60_000;
  const jitter = jitterOf("42", due, 30_000);
  assert.ok(jitter >= 0 && jitter <= 30_000);
  assert.equal(jitterOf("42", due, 30_000), jitter);
  assert.deepEqual(planDues(state, due + jitter - 1).dues, []);
  assert.equal(planDues(state, due + jitter - 1).wakeAt, due + jitter);
  const plan = planDues(state, due + jitter);
  assert.deepEqual(plan.dues, [{ due, is: "due" }]);
  const again = { ...state, countedFrom: plan.countedFrom };
  assert.deepEqual(planDues(again, from - 3_600_000).dues, []);
  const spread = new Set(Array.from({ length: 100 }, (_, index) => jitterOf(String(index), due, 30_000)));
  assert.ok(spread.size > 90, `${spread.size} of 100 differ`);
});

test("late by a minute is late, and not missed; a millisecond more is missed", () => {
  const schedule = cron("0 * * * *");
  const [from, due] = [at("2026-01-01T00:30Z"), at("2026-01-01T01:00Z")];
  const state = { triggerId: "1", schedule, catchup: { mode: "none" as const }, activeSince: from, countedFrom: from };
  assert.deepEqual(planDues(state, due + 60_000).dues, [{ due, is: "due" }]);
  assert.deepEqual(planDues(state, due + 60_001).dues, [{ due, is: "missed" }]);
  const last = { ...state, catchup: { mode: "last" as const, windowMs: 3_600_000 } };
  assert.deepEqual(planDues(last, due + 60_001).dues, [{ due, is: "late" }]);
  assert.deepEqual(planDues(last, due + 3_599_999).dues, [{ due, is: "late" }]);
});
