import assert from "node:assert/strict";
import { test } from "node:test";
import type { Database } from "../../src/repositories/database/database.ts";
import { createClient } from "./support/client.ts";
import { closeEventGate } from "./support/event-gate.ts";
import { startManualWorker } from "./support/manual-worker.ts";
import { PAIR_DONE, WORK_DONE } from "./support/playbooks.ts";
import { LONG, openStand, ownedByFile } from "./support/stand.ts";
import { until } from "./support/until.ts";

/* What happens to servers (the fault matrix in the design): killed between two commits, told to stop under load. */

const stand = await openStand(ownedByFile(), LONG);
/** The server of the tests whose leases are long; each leaves the one that it started last to the next test. */
let server = await stand.server();
const client = await stand.client(server);

test("a server is killed after it accepted a batch and before it processed it: the next start processes it", async () => {
  const worker = await startManualWorker(client, "manual");
  const [id = ""] = await stand.start(client, "pair", 1);
  const command = await worker.claim(id);
  const gate = await closeEventGate(stand.database, "step.completed");
  const { status, body } = await worker.end(command, "key-1");
  assert.deepEqual([status, body.commands_generated], [202, 0]);
  await gate.reached();
  await server.end("SIGKILL");
  await gate.cutOff();
  await gate.open();
  assert.equal(await batchState(stand.database, body.request_id), "accepted");
  server = await stand.server({}, server.port);
  assert.equal(await batchState(stand.database, body.request_id), "completed", "It is worked out before it says ready");
  // The worker did not wait for the answer, and sends again.
  const again = await worker.end(command, "key-1");
  assert.deepEqual([again.status, again.body.duplicate, again.body.request_id], [202, true, body.request_id]);
  assert.deepEqual(again.body.event_ids, body.event_ids);
  await worker.end(await worker.claim(id));
  await stand.finish(client, [id], PAIR_DONE);
});

test("the statement of a server that was killed still commits, after the next one took the batch over: nothing is issued twice", async () => {
  const worker = await startManualWorker(client, "manual");
  const [id = ""] = await stand.start(client, "pair", 1);
  const command = await worker.claim(id);
  const gate = await closeEventGate(stand.database, "step.completed");
  await worker.end(command);
  const zombie = await gate.reached();
  await server.end("SIGKILL");
  // It finds the batch and waits for the same rows, or the zombie has them all and it finds nothing to do.
  let isReady = false;
  const starting = stand.server({}, server.port).then((next) => {
    isReady = true;
    server = next;
  });
  await until("the next server waits for the zombie, or is ready", async () => {
    const waiting = await stand.database.sql`
      select from pg_stat_activity where ${zombie} = any(pg_blocking_pids(pid))`;
    return isReady || waiting.length > 0;
  });
  await gate.open();
  await starting;
  await worker.end(await worker.claim(id));
  await stand.finish(client, [id], PAIR_DONE);
});

test("a batch that a dead server left is processed by a running one", async () => {
  const first = await stand.server();
  const client = createClient(first.url);
  const worker = await startManualWorker(client, "manual");
  const [id = ""] = await stand.start(client, "pair", 1);
  const command = await worker.claim(id);
  const gate = await closeEventGate(stand.database, "step.completed");
  await worker.end(command);
  await gate.reached();
  await first.end("SIGKILL");
  await gate.cutOff();
  await gate.open();
  const there = await startManualWorker(createClient(server.url), "manual");
  await there.end(await there.claim(id));
  await stand.finish(createClient(server.url), [id], PAIR_DONE);
});

test("SIGTERM of a server under load, and its restart: nothing is lost, nothing is done twice, workers continue", async (t) => {
  const { port } = server;
  const workers = stand.during(t);
  await Promise.all([workers.worker(server, "one"), workers.worker(server, "two")]);
  const before = stand.effects.counts.size;
  const ids = await stand.start(client, "work", 10);
  await until("work goes on", () => stand.effects.counts.size >= before + 5);
  const { code, stderr } = await server.end("SIGTERM");
  assert.equal(code, 0, stderr);
  server = await stand.server({}, port);
  await stand.finish(client, ids, { ...WORK_DONE, once: true });
});

test("a batch that cannot be processed keeps no server from starting, and no other batch from being processed", async () => {
  const worker = await startManualWorker(client, "manual");
  const ids = await stand.start(client, "pair", 2);
  const [broken = "", sound = ""] = ids;
  const commands = [await worker.claim(broken), await worker.claim(sound)];
  const gate = await closeEventGate(stand.database, "step.completed");
  for (const command of commands) await worker.end(command);
  await gate.reached();
  await server.end("SIGKILL");
  await gate.cutOff();
  await gate.open();
  const { sql } = stand.database;
  // A state that no program can load, and a batch whose events all came too late.
  await sql`insert into flow.execution_snapshot (execution_id, event_id, format, state)
    values (${broken}, ${Number(broken) + 1}, 1, 'no JSON')`;
  await sql`insert into flow.batch (request_id, caller, body_sha256, state, execution_ids, event_ids)
    values (1, 'manual', '', 'accepted', ${[broken]}::bigint[], '{}')`;
  server = await stand.server({}, server.port);
  await worker.end(await worker.claim(sound));
  await stand.finish(client, [sound], PAIR_DONE);
});

test("a server is killed after a commit and before its notice: the others find the commands by polling", async (t) => {
  const stand = await openStand(t);
  const [first, second] = [await stand.server(), await stand.server()];
  const client = await stand.client(first);
  const ids = await stand.start(client, "work", 5);
  // The answer comes after the commit. Without a broker no notice is ever sent.
  await first.end("SIGKILL");
  await stand.worker(second, "worker");
  await stand.finish(await stand.client(second), ids, WORK_DONE);
});

test("a server is killed again and again under load: all acknowledged work is done", async (t) => {
  const stand = await openStand(t);
  let server = await stand.server();
  const { port } = server;
  const client = await stand.client(server);
  await Promise.all([stand.worker(server, "one"), stand.worker(server, "two")]);
  const ids: string[] = [];
  for (let kills = 0; kills < 2; kills += 1) {
    ids.push(...(await stand.start(client, "work", 8)));
    const before = stand.effects.counts.size;
    await until("work goes on", () => stand.effects.counts.size >= before + 5);
    await server.end("SIGKILL");
    server = await stand.server({}, port);
  }
  await stand.finish(client, ids, WORK_DONE);
});

async function batchState({ sql }: Pick<Database, "sql">, requestId: string): Promise<string | undefined> {
  const [row] = await sql<{ state: string }[]>`select state from flow.batch where request_id = ${requestId}`;
  return row?.state;
}
