import assert from "node:assert/strict";
import { test } from "node:test";
import { insertWaiting } from "../support/waiting-commands.ts";
import { LONG, openStand, SHORT } from "./support/stand.ts";

/* Work that nobody can do, and the work beside it. */

const WAITING = 100_000;
/** A run of two steps takes some 10 ms; what stands still takes until the next poll, and more. */
const RUN_MS_MAX = 1_000;
const RUNS = 20;

test(`${WAITING} commands wait for a label that no worker has: a server that starts beside them runs everything else at once`, async (t) => {
  // The settings of the reaper are the short ones: it tells of them all the time.
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
