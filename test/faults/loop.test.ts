import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import type { ServerResponse } from "node:http";
import { test } from "node:test";
import { startHttpServer } from "../support/servers/http-server.ts";
import { LONG, openStand } from "./support/stand.ts";

/* Loops of real requests on a machine that has other things to do. */

/**
 * Iterations, each about as long as the time after which a command is marked as started. FLOW_TEST_ITERATIONS=5000 is the full
 * run, in which marks that followed the ends of their commands were found.
 */
const COUNT = Number(process.env["FLOW_TEST_ITERATIONS"] ?? 600);
const AT_ONCE = 200;
const LASTS_MS = 200;
const BODY = JSON.stringify({ text: "x".repeat(5_000) });

const LOOP = `apiVersion: flow/v2
kind: Playbook
metadata: {name: loop, path: loop}
workload: {url: ""}
workflow:
  - step: start
    loop: {in: ${COUNT}, iterator: i, spec: {mode: parallel, max_in_flight: ${AT_ONCE}}}
    tool: {kind: http, url: "{{ workload.url }}/{{ i }}"}
`;

test(`${COUNT} requests of a loop under load: a healthy worker is never refused, and no request is made twice`, async (t) => {
  const counts = new Map<string, number>();
  const waiting: ServerResponse[] = [];
  const answerAll = () => {
    for (const response of waiting.splice(0)) response.end(BODY);
  };
  const http = await startHttpServer(({ url }, response) => {
    counts.set(url, (counts.get(url) ?? 0) + 1);
    // Together, as they come from a machine that has stood still: what the worker has to do then takes more than one turn.
    waiting.push(response);
    if (waiting.length === 1) setTimeout(answerAll, LASTS_MS);
  });
  t.after(() => http.close());
  const busy = spawn(process.execPath, ["-e", "for (;;);"]);
  t.after(() => busy.kill("SIGKILL"));
  const stand = await openStand(t, LONG);
  const server = await stand.server();
  const client = await stand.client(server);
  await client.register(LOOP);
  const worker = await stand.worker(server, "one", { FLOW_WORKER_CAPACITY: String(AT_ONCE) });
  const run = await client.watch(await client.start("loop", { url: http.origin }));
  assert.doesNotMatch(worker.log(), /a command is given up/);
  assert.equal(counts.size, COUNT);
  assert.deepEqual(
    [...counts].filter(([, count]) => count > 1),
    [],
  );
  const [row] = await stand.database.sql<{ status: string; tried: number }[]>`
    select e.status, (select max(v.attempt) from flow.event v where v.execution_id = e.execution_id) as tried
    from flow.execution e where e.execution_id = ${run.executionId}`;
  assert.deepEqual({ ...row }, { status: "COMPLETED", tried: 1 });
});
