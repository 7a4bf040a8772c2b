import assert from "node:assert/strict";
import { test } from "node:test";
import { peakMb, residentMb } from "./support/memory.ts";
import { LONG, openStand } from "./support/stand.ts";
import { until } from "./support/until.ts";

/**
 * Results of 100 KB that end with their execution. FLOW_TEST_RESULTS=10000 is the full run, of which these figures were
 * taken (docs/performance.md, "Stored results").
 */
const COUNT = Number(process.env["FLOW_TEST_RESULTS"] ?? 200);
const BYTES = 100_000;
/** What a process may grow by while a hundred times as much passes through it. */
const GROWTH_MB_MAX = 150;

const MANY = `apiVersion: flow/v2
kind: Playbook
metadata: {name: many, path: many}
workload: {count: 1}
workflow:
  - step: make
    loop: {in: "{{ range(workload.count) }}", iterator: item, mode: parallel}
    tool:
      kind: python
      code: |
        import os
        result = {"text": os.urandom(${BYTES / 2}).hex(), "item": 1}
      spec: {result: {preview_max_bytes: 64, store: {scope: execution}}}
    next: {arcs: [{step: pause}]}
  - step: pause
    tool: {kind: http, method: POST, url: "{{ workload.effects }}/{{ execution_id }}/pause"}
    next: {arcs: [{step: done}]}
  - step: done
    tool: {kind: noop, result: {done: "{{ workload.count }}"}}
`;

test(`${COUNT} results of 100 KB: no copy in any event, bounded memory, all deleted with their execution`, async (t) => {
  const stand = await openStand(t, LONG);
  const server = await stand.server();
  const client = await stand.client(server);
  await client.register(MANY);
  const worker = await stand.worker(server, "one");
  const { sql } = stand.database;
  const run = async (count: number) => {
    const held = stand.effects.hold("pause");
    const began = Date.now();
    const id = await client.start("many", { effects: stand.effects.url, count });
    await until("all results are stored", () => stand.effects.counts.has(`${id}/pause`), {
      ...{ deadlineMs: 60_000 + count * 200, pollMs: 100 },
    });
    return { id, held, seconds: (Date.now() - began) / 1_000 };
  };
  // Warm: code, connections and buffers are there before anything is measured.
  const warm = await run(20);
  warm.held.release();
  await stand.finish(client, [warm.id], { result: { done: 20 } });
  const before = { server: residentMb(server.pid), worker: residentMb(worker.pid) };

  const { id, held, seconds } = await run(COUNT);
  const [stored] = await sql<{ count: number; bytes: string }[]>`
    select count(*)::int as count, sum(bytes) as bytes from flow.result where execution_id = ${id} and scope = 'execution'`;
  assert.equal(stored?.count, COUNT);
  assert.ok(Number(stored?.bytes) >= COUNT * BYTES);
  const [events] = await sql<{ longest: number; total: string }[]>`
    select max(length(coalesce(result::text, '') || coalesce(meta::text, '')))::int as longest,
      sum(length(coalesce(result::text, ''))) as total
    from flow.event where execution_id = ${id}`;
  assert.ok(Number(events?.longest) < BYTES, `an event of ${events?.longest} characters`);
  assert.ok(Number(events?.total) < COUNT * 4_000, `${events?.total} characters of results in events`);
  held.release();
  const ended = Date.now();
  await until(
    "the results are deleted",
    async () => {
      const [row] = await sql<[{ left: number }]>`
      select count(*)::int as left from flow.result where execution_id = ${id} and scope <> 'permanent'`;
      return row.left === 0;
    },
    { deadlineMs: 60_000 + COUNT * 20 },
  );
  const peaks = { server: peakMb(server.pid), worker: peakMb(worker.pid) };
  t.diagnostic(
    JSON.stringify({
      count: COUNT,
      seconds,
      deletedWithinMs: Date.now() - ended,
      before,
      peaks,
      longest: events?.longest,
    }),
  );
  assert.ok(
    peaks.server - before.server < GROWTH_MB_MAX,
    `the server grew from ${before.server} to ${peaks.server} MB`,
  );
  assert.ok(
    peaks.worker - before.worker < GROWTH_MB_MAX,
    `the worker grew from ${before.worker} to ${peaks.worker} MB`,
  );
});
