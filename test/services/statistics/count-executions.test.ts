import assert from "node:assert/strict";
import { before, beforeEach, test } from "node:test";
import type { EndTally } from "../../../src/ports/execution-store.ts";
import { type Database, transaction } from "../../../src/repositories/database/database.ts";
import { type EndedExecution, takeUncounted } from "../../../src/repositories/statistics/count.ts";
import {
  countBacklog,
  countEnded,
  forgetStatistics,
  rollUp,
} from "../../../src/services/statistics/count-executions.ts";
import { createStatistics, type StatisticsRequest } from "../../../src/services/statistics/statistics.ts";
import { openServiceDatabase } from "../../repositories/service-database.ts";

// Executions that have ended become statistics: each once, in the bucket in which it ended.

let database: Database;
before(async () => {
  database = await openServiceDatabase();
});
beforeEach(async () => {
  await database.sql`truncate flow.uncounted_execution, flow.statistic, flow.step_statistic, flow.statistic_backlog`;
});

let last = 0;
const NOW = Date.parse("2026-11-21T12:00:00Z");
const read = (request: Partial<StatisticsRequest> = {}) =>
  createStatistics({ database, now: () => NOW })({ bucket: "1h", ...request });

/** An execution that ended at this time, not counted yet. */
async function ended(
  at: string,
  { path = "etl/load", status = "COMPLETED", ...tally }: { path?: string; status?: string } & Partial<EndTally> = {},
): Promise<void> {
  last += 1;
  const whole: EndTally = { durationMs: 100, waited: {}, steps: [], ...tally };
  await database.sql`
    insert into flow.uncounted_execution (execution_id, path, status, ended_at, tally)
    values (${last}, ${path}, ${status}, ${at}::timestamptz, ${JSON.stringify(whole)}::text::json)`;
}

const counted = async (request: Partial<StatisticsRequest> = {}) =>
  Object.fromEntries(
    (await read(request)).buckets
      .filter(({ counts }) => counts.COMPLETED + counts.FAILED + counts.CANCELLED > 0)
      .map(({ at, counts }) => [at, counts.COMPLETED + counts.FAILED + counts.CANCELLED]),
  );

test("without executions every bucket is there and empty", async () => {
  assert.equal(await countEnded(database, 10), 0);
  const answer = await read();
  assert.equal(answer.buckets.length, 24);
  assert.deepEqual(answer.buckets[0], {
    at: "2026-11-20T12:00:00.000Z",
    ...{ counts: { COMPLETED: 0, FAILED: 0, CANCELLED: 0 }, duration: null, waiting: null },
  });
  assert.deepEqual([answer.total.success_rate, answer.steps, "paths" in answer], [null, [], false]);
});

test("a bucket has its first millisecond and not that of the next one, in UTC whatever the offset", async () => {
  await ended("2026-11-21T08:59:59.999Z");
  await ended("2026-11-21T10:00:00.000+01:00");
  await ended("2026-11-21T09:59:59.999Z");
  await ended("2026-11-21T10:00:00.000Z");
  assert.equal(await countEnded(database, 10), 4);
  const hours = { "2026-11-21T08:00:00.000Z": 1, "2026-11-21T09:00:00.000Z": 2, "2026-11-21T10:00:00.000Z": 1 };
  assert.deepEqual(await counted(), hours);
  assert.deepEqual(await counted({ bucket: "1d", since: "2026-11-20T12:00:00Z" }), { "2026-11-21T00:00:00.000Z": 4 });
  assert.deepEqual(await counted({ bucket: "5m", since: "2026-11-21T08:57:00Z", until: "2026-11-21T10:01:00Z" }), {
    "2026-11-21T08:55:00.000Z": 1,
    "2026-11-21T09:00:00.000Z": 1,
    "2026-11-21T09:55:00.000Z": 1,
    "2026-11-21T10:00:00.000Z": 1,
  });
  assert.deepEqual(await counted({ bucket: "1m", since: "2026-11-21T09:00:00Z", until: "2026-11-21T10:00:00Z" }), {
    "2026-11-21T09:00:00.000Z": 1,
    "2026-11-21T09:59:00.000Z": 1,
  });
});

test("counts add up by status; durations are of those that completed or failed", async () => {
  await ended("2026-11-21T09:00:00Z", { durationMs: 100, waited: { 10: 2 } });
  await ended("2026-11-21T09:10:00Z", { durationMs: 1_000, status: "FAILED" });
  assert.equal(await countEnded(database, 1), 1);
  assert.equal(await countEnded(database, 1), 1);
  await ended("2026-11-21T09:20:00Z", { durationMs: 90_000, status: "CANCELLED" });
  await countEnded(database, 1);
  const { total } = await read();
  assert.deepEqual([total.counts, total.success_rate], [{ COMPLETED: 1, FAILED: 1, CANCELLED: 1 }, 0.5]);
  const { p50 = 0, p99 = 0 } = total.duration ?? {};
  assert.ok(Math.abs(p50 - 100) <= 5 && Math.abs(p99 - 1_000) <= 50, `${p50} ${p99}`);
  assert.ok(total.waiting !== null && total.waiting.p99 === total.waiting.p50);
});

test("what dies in the middle is counted by the next one, once", async () => {
  await ended("2026-11-21T09:00:00Z");
  const dying = transaction(database, async (tx) => {
    assert.equal((await takeUncounted(tx, 10)).length, 1);
    throw new Error("killed");
  });
  await assert.rejects(dying, /killed/);
  assert.deepEqual(await counted(), {});
  assert.equal(await countEnded(database, 10), 1);
  assert.equal(await countEnded(database, 10), 0);
  assert.deepEqual(await counted(), { "2026-11-21T09:00:00.000Z": 1 });
});

test("servers that count at the same time count each execution once", async () => {
  for (let index = 0; index < 60; index += 1) {
    await ended(`2026-11-21T0${index % 10}:00:00Z`, { path: `p/${index % 7}`, steps: [["a", 1, 0, { 5: 1 }]] });
  }
  const taken = await Promise.all(Array.from({ length: 8 }, () => countEnded(database, 10)));
  assert.equal(taken.reduce((sum, count) => sum + count, 0) + (await countEnded(database, 100)), 60);
  const { total, steps } = await read();
  assert.equal(total.counts.COMPLETED, 60);
  assert.equal(
    steps.reduce((sum, { count }) => sum + count, 0),
    60,
  );
});

test("steps are told by the slowest, with odd names and those of whole hours", async () => {
  const odd = "o\u0000d\ud800d";
  await ended("2026-11-21T09:10:00Z", {
    steps: [
      ["load", 2, 1, { 50: 2 }],
      [odd, 1, 0, { 70: 1 }],
    ],
  });
  await ended("2026-11-21T09:20:00Z", { steps: [["load", 1, 0, { 52: 1 }]] });
  await countEnded(database, 10);
  const steps = (await read({ bucket: "1m", since: "2026-11-21T09:55:00Z", until: "2026-11-21T10:00:00Z" })).steps;
  assert.deepEqual(
    steps.map(({ path, step, count, failed }) => [path, step, count, failed]),
    [
      ["etl/load", "o\ufffdd\ufffdd", 1, 0],
      ["etl/load", "load", 3, 1],
    ],
  );
});

test("by playbook: those that fail, that are slow, and that run most", async () => {
  for (let index = 0; index < 3; index += 1) await ended("2026-11-21T09:00:00Z", { path: "etl/often" });
  await ended("2026-11-21T09:00:00Z", { path: "etl/slow", durationMs: 60_000 });
  await ended("2026-11-21T09:00:00Z", { path: "other/bad", status: "FAILED" });
  await countEnded(database, 10);
  const first = async (paths: "failed" | "slowest" | "count") => (await read({ paths })).paths?.[0]?.path;
  assert.deepEqual(await Promise.all((["failed", "slowest", "count"] as const).map(first)), [
    "other/bad",
    "etl/slow",
    "etl/often",
  ]);
  assert.equal((await read({ path: "etl/*" })).total.counts.COMPLETED, 4);
  assert.equal((await read({ path: "etl/slow" })).total.counts.COMPLETED, 1);
  assert.equal((await read({ visible: [] })).total.counts.COMPLETED, 0);
});

test("1,500 buckets are given and 1,501 refused; so is a time that ends before it begins", async () => {
  const until = "2026-11-21T12:00:00.000Z";
  const since = (minutes: number) => new Date(Date.parse(until) - minutes * 60_000).toISOString();
  assert.equal((await read({ bucket: "1m", since: since(1_500), until })).buckets.length, 1_500);
  await assert.rejects(read({ bucket: "1m", since: since(1_501), until }), /1501 buckets of 1m/);
  await assert.rejects(read({ since: until, until }), /must be before 'until'/);
});

test("what had ended before there were statistics is counted once, a part at a time, and nothing that ended later", async () => {
  const { sql } = database;
  await sql`insert into flow.statistic_backlog values (0, '2026-11-21T10:00:00Z')`;
  for (const [id, end] of [
    [101, "2026-11-21T09:00:00Z"],
    [102, null],
    [103, "2026-11-21T10:00:00Z"],
    [104, "2026-11-21T10:00:00.001Z"],
  ] as const) {
    await sql`
      insert into flow.execution (execution_id, catalog_id, path, version, status, last_event_id, root_execution_id, started_at, ended_at)
      values (${id}, 1, 'old', 1, ${end === null ? "RUNNING" : "COMPLETED"}, ${id}, ${id}, '2026-11-21T08:59:00Z', ${end}::timestamptz)`;
  }
  const others = transaction(database, async (tx) => {
    await tx.sql`select from flow.statistic_backlog for update`;
    // Another server is at it: there is more, and nothing to do.
    assert.equal(await countBacklog(database, 2), true);
    assert.deepEqual(await counted(), {});
  });
  await others;
  while (await countBacklog(database, 2));
  assert.equal(await countBacklog(database, 2), false);
  assert.deepEqual(await counted(), { "2026-11-21T09:00:00.000Z": 1, "2026-11-21T10:00:00.000Z": 1 });
});

test("minutes are kept for two days, hours for 35, days for three years", async () => {
  const { sql } = database;
  for (const [seconds, days] of [
    [60, 2],
    [3_600, 35],
    [86_400, 1_100],
  ] as const) {
    for (const more of [-0.01, 0.01]) {
      const age = days + more;
      await sql`insert into flow.statistic values (${seconds}, 'p', now() - ${age}::float8 * interval '1 day', 1)`;
    }
  }
  await sql`insert into flow.step_statistic values (3600, 'p', now() - interval '36 days', 's', 1)`;
  assert.equal(await forgetStatistics(database, 10), 1);
  assert.deepEqual(
    (await sql`select seconds from flow.statistic order by seconds`).map(({ seconds }) => seconds),
    [60, 3_600, 86_400],
  );
  assert.equal((await sql`select from flow.step_statistic`).length, 0);
  assert.equal(await forgetStatistics(database, 10), 0);
});

test("an execution that has not ended adds nothing", () => {
  const open: EndedExecution = {
    ...{ path: "p", status: "RUNNING", endedAt: new Date(NOW) },
    tally: { durationMs: 1, waited: {}, steps: [] },
  };
  assert.deepEqual(rollUp([open]), { executions: [], steps: [] });
});
