import assert from "node:assert/strict";
import { test } from "node:test";
import { insertWaiting } from "../support/database/waiting-commands.ts";
import { WORK_DONE } from "./support/playbooks.ts";
import { LONG, openStand, SHORT } from "./support/stand.ts";

/* Work that no worker can do, and the work beside it. */

const WAITING = 50_000;
/** A run of two steps takes some 10 ms; what stands still takes until the next poll, and more. */
const RUN_MS_MAX = 1_000;
const RUNS = 20;

test(`${WAITING} commands wait for a label that no worker has: a server that starts beside them runs everything else at once`, async (t) => {
  // The settings of the reaper are the short ones: it publishes notices all the time.
  const stand = await openStand(t, { ...SHORT, ...LONG });
  await insertWaiting(stand.database, WAITING, { gpu: "none" });
  await insertWaiting(stand.database, 100, { gpu: "none", zone: "nowhere" });
  const server = await stand.server();
  const client = await stand.client(server);
  await stand.worker(server, "one");
  const lasted: number[] = [];
  for (let count = 0; count < RUNS; count += 1) {
    const began = performance.now();
    const [id = ""] = await stand.start(client, "pair", 1);
    const { body } = await client.call("GET", `/api/executions/${id}/result?wait_ms=30000`);
    lasted.push(performance.now() - began);
    assert.equal(body.status, "COMPLETED");
    await stand.finish(client, [id], { once: true });
  }
  const median = lasted.sort((left, right) => left - right)[RUNS / 2] ?? 0;
  t.diagnostic(`a run took ${median.toFixed(1)} ms, the longest ${lasted.at(-1)?.toFixed(1)} ms`);
  assert.ok(median < RUN_MS_MAX, `a run took ${median} ms`);
});

test(`the commands of a killed worker do not queue behind ${WAITING} waiting commands`, async (t) => {
  const stand = await openStand(t);
  await insertWaiting(stand.database, WAITING, { gpu: "none" });
  const server = await stand.server();
  const client = await stand.client(server);
  const first = await stand.worker(server, "first");
  const held = stand.effects.hold("first");
  const ids = await stand.start(client, "work", 3);
  await held.arrived(3);
  await stand.worker(server, "second");
  await first.end("SIGKILL");
  const began = performance.now();
  await held.arrived(6);
  const seconds = (performance.now() - began) / 1_000;
  t.diagnostic(`another worker had them after ${seconds.toFixed(1)} s`);
  held.release();
  await stand.finish(client, ids, WORK_DONE);
  // Lease, silence and sweep take a second each; behind what waits it would be 100 s.
  assert.ok(seconds < 30, `${seconds} s`);
});
