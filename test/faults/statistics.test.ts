import assert from "node:assert/strict";
import { test } from "node:test";
import { WORK_DONE } from "./support/playbooks.ts";
import { LONG, openStand } from "./support/stand.ts";
import { until } from "./support/until.ts";

/* Statistics are counted by servers that are killed: every execution once, whichever server counts it. */

test("of two servers one is killed as executions end: the other counts them, each once", async (t) => {
  const stand = await openStand(t, LONG);
  const [one, two] = [await stand.server(), await stand.server()];
  await stand.worker(two, "w");
  const client = await stand.client(one, two);
  const ids = await stand.start(client, "work", 3);
  await stand.finish(client, ids, WORK_DONE);
  await one.end("SIGKILL");
  const left = await stand.client(two);
  const counts = async () => {
    const { body } = await left.call("GET", "/api/stats?path=work&bucket=1d");
    return (body as unknown as { total: { counts: Record<string, number> } }).total.counts;
  };
  await until(
    "all are counted",
    async () => Object.values(await counts()).reduce((sum, n) => sum + n, 0) >= ids.length,
  );
  const { sql } = stand.database;
  const rows = await sql<{ status: string; n: number }[]>`
    select status, count(*)::int as n from flow.execution where path = 'work' group by status`;
  const ended = Object.fromEntries(rows.map(({ status, n }) => [status, n]));
  assert.deepEqual(await counts(), { COMPLETED: 0, FAILED: 0, CANCELLED: 0, ...ended });
  assert.deepEqual([...(await sql`select from flow.uncounted_execution`)], []);
});
