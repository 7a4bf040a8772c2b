import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Database } from "../../src/repositories/database/database.ts";
import { startManualWorker } from "./support/manual-worker.ts";
import { residentMb } from "./support/memory.ts";
import { startOwnPostgres } from "./support/own-postgres.ts";
import { PAIR_DONE, WORK_DONE } from "./support/playbooks.ts";
import { LONG, openStand, ownedByFile } from "./support/stand.ts";
import { until } from "./support/until.ts";

/* What happens to the database (the fault matrix in the design): crashed, cut off, full, slow. */

const postgres = await startOwnPostgres();

const stand = await openStand(ownedByFile(), undefined, postgres.url);
/** Of all tests but the last: they outlive what happens to their database. */
const shared = await stand.server();
const client = await stand.client(shared);
const workers = await Promise.all([stand.worker(shared, "one"), stand.worker(shared, "two")]);

test("PostgreSQL is restarted `immediate` under load, twice: every process reconnects and continues, and nothing is lost", async () => {
  const ids: string[] = [];
  for (let crashes = 0; crashes < 2; crashes += 1) {
    ids.push(...(await stand.start(client, "work", 8)));
    const before = stand.effects.counts.size;
    await until("work goes on", () => stand.effects.counts.size >= before + 8);
    await postgres.crash();
    const away = await client.call("POST", "/api/execute", { path: "work" });
    assert.deepEqual([away.status, away.body.code, away.headers.get("retry-after")], [503, "UNAVAILABLE", "1"]);
    assert.equal((await client.call("GET", "/api/health")).status, 200);
    await postgres.start();
  }
  await stand.finish(client, ids, WORK_DONE);
  assert.deepEqual(
    [shared, ...workers].map((process) => process.isRunning()),
    [true, true, true],
  );
});

test("connections are terminated five times a second under load: the work continues and ends", async () => {
  const ids = await stand.start(client, "work", 10);
  let isOver = false;
  let cut = 0;
  const cutting = (async () => {
    // For five seconds at most: a machine on which nothing is done within 200 ms would never come to an end.
    for (let round = 0; round < 25 && !isOver; round += 1) {
      cut += await terminate(stand.database);
      // The fault itself, at its rate: no caller waits for it.
      await sleep(200);
    }
  })();
  await Promise.all(ids.map((id) => client.watch(id))).finally(() => {
    isOver = true;
  });
  await cutting;
  assert.ok(cut > 0, "No connection was terminated");
  await stand.finish(client, ids, WORK_DONE);
  assert.ok([shared, ...workers].every((process) => process.isRunning()));
});

test("no database connection is left: callers get 503 with Retry-After, and work continues when connections are available again", async () => {
  const held = stand.effects.hold("first");
  const ids = await stand.start(client, "work", 4);
  await held.arrived(4);
  const { sql } = stand.database;
  await sql`alter database flow connection limit 0`;
  await terminate(stand.database);
  held.release();
  const full = await until("calls are refused", async () => {
    const answer = await client.call("GET", `/api/executions/${ids[0]}`);
    return answer.status !== 200 && answer;
  });
  await Promise.any(workers.map((worker) => worker.untilLog("the server does not answer while reporting")));
  // Before anything is asserted: the tests that follow share this database.
  await sql`alter database flow connection limit -1`;
  const faults = shared
    .log()
    .split("\n")
    .filter((line) => /"level":(50|60)/.test(line));
  const refusal = [full.status, full.body.code, full.headers.get("retry-after")];
  assert.deepEqual(refusal, [503, "UNAVAILABLE", "1"], faults.slice(-5).join("\n"));
  await stand.finish(client, ids, WORK_DONE);
});

test("PostgreSQL stands still: batches are refused within their time limit, the queue is bounded, memory does not grow, and nothing is lost", async (t) => {
  // They would take its commands.
  await Promise.all(workers.map((worker) => worker.end("SIGTERM")));
  await shared.end("SIGTERM");
  const limits = { FLOW_BATCH_ACCEPT_QUEUE_MAXSIZE: "8", FLOW_BATCH_ACCEPT_ENQUEUE_TIMEOUT_SECONDS: "1" };
  const stand = await openStand(t, { ...LONG, ...limits }, postgres.url);
  const server = await stand.server();
  const client = await stand.client(server);
  const worker = await startManualWorker(client, "manual");
  const ids = await stand.start(client, "pair", 40);
  const commands: Awaited<ReturnType<typeof worker.claim>>[] = [];
  for (const id of ids) commands.push(await worker.claim(id));
  const lock = await lockTable(stand.database, "execution");
  const began = performance.now();
  const endOf = (command: (typeof commands)[number]) => worker.end(command, `slow-${command.command_id}`);
  // Two rounds are under way at most; a round that begins takes all that is queued. Once both wait, the queue fills.
  const stuck = [];
  for (const [index, command] of commands.slice(0, 2).entries()) {
    stuck.push(endOf(command));
    await until("a round waits for the table", async () => (await lockWaiters(stand.database)) > index);
  }
  const refused = await Promise.all([...stuck, ...commands.slice(2).map(endOf)]);
  const tookMs = performance.now() - began;
  const codes = new Set(refused.map(({ status, body }) => `${status} ${body.code}`));
  assert.deepEqual([...codes].sort(), ["503 ack_timeout", "503 queue_unavailable"]);
  for (const { headers } of refused) assert.equal(headers.get("retry-after"), "1");
  assert.ok(tookMs < 20_000, `They were refused after ${tookMs} ms`);
  const before = residentMb(server.pid);
  for (let round = 0; round < 20; round += 1) {
    await Promise.all(commands.map(endOf));
  }
  const grown = residentMb(server.pid) - before;
  assert.ok(grown < 100, `The server grew by ${grown} MB over 800 refused batches`);
  await lock.release();
  for (const command of commands) {
    await until("the batch is taken", async () => (await endOf(command)).status === 202);
  }
  for (const id of ids)
    await until("its end is taken", async () => (await worker.end(await worker.claim(id))).status === 202);
  await stand.finish(client, ids, PAIR_DONE);
});

test("PostgreSQL is slow for a while: all that waits is answered late, nothing is refused, and each is written once", async (t) => {
  const stand = await openStand(t, LONG, postgres.url);
  const server = await stand.server();
  const client = await stand.client(server);
  const worker = await startManualWorker(client, "manual");
  const ids = await stand.start(client, "pair", 20);
  const commands: Awaited<ReturnType<typeof worker.claim>>[] = [];
  for (const id of ids) commands.push(await worker.claim(id));
  const lock = await lockTable(stand.database, "execution");
  const answers = Promise.all(commands.map((command) => worker.end(command, `slow-${command.command_id}`)));
  const began = performance.now();
  await until("a round waits for the table", async () => (await lockWaiters(stand.database)) > 0);
  // Longer than a disk or a lock may take without being broken.
  await until("a second is over", () => performance.now() - began > 1_000);
  await lock.release();
  const statuses = (await answers).map(({ status }) => status);
  assert.deepEqual(statuses, Array(20).fill(202));
  for (const id of ids) await worker.end(await worker.claim(id));
  await stand.finish(client, ids, PAIR_DONE);
});

/** Cuts off all sessions but this one, and says how many. */
async function terminate({ sql }: Pick<Database, "sql">): Promise<number> {
  const rows = await sql`select pg_terminate_backend(pid) from pg_stat_activity
    where usename = current_user and pid <> pg_backend_pid()`;
  return rows.length;
}

/** How many sessions wait for a table that they are about to write. */
async function lockWaiters({ sql }: Pick<Database, "sql">): Promise<number> {
  const [row] = await sql`select count(*)::int as waiting from pg_locks
    where not granted and locktype = 'relation' and mode = 'RowExclusiveLock'`;
  return Number(row?.["waiting"]);
}

/** No other connection reads or writes the table until it is released. */
async function lockTable({ sql }: Pick<Database, "sql">, table: string): Promise<{ release(): Promise<void> }> {
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  let done: Promise<unknown> = Promise.resolve();
  await new Promise<void>((locked, failed) => {
    done = sql.begin(async (transaction) => {
      await transaction`lock table flow.${transaction(table)} in access exclusive mode`;
      locked();
      await released;
    });
    done.catch(failed);
  });
  return {
    async release() {
      release();
      await done;
    },
  };
}
