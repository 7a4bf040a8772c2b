import assert from "node:assert/strict";
import { test } from "node:test";
import { readOnly } from "../../src/repositories/doctor/read-snapshot.ts";
import type { Finding } from "../../src/schema/api/doctor.ts";
import { DOCTOR_LIMITS } from "../../src/services/diagnosis/limits.ts";
import {
  checkBatches,
  checkExecutions,
  checkIsolation,
  checkLeft,
  checkStale,
  checkWaiting,
  checkWorkers,
  countOpen,
} from "../../src/services/diagnosis/work.ts";
import { openApi } from "../support/service/api.ts";
import { ONE_STEP, workWith } from "../support/service/api-work.ts";

/* Real executions over a real database, with nothing in the background that would mend them. */

const api = await openApi();
const work = workWith(api);
const { sql } = api.database;
await work.register("one", ONE_STEP);

/** Everything is stale at once, or nothing for an hour. */
const NOW = { ...DOCTOR_LIMITS, staleMs: 0 };
const LATER = { ...DOCTOR_LIMITS, staleMs: 3_600_000 };

type Check = typeof checkStale;
/** What a check finds about an execution. */
async function about(executionId: string, check: Check, limits = NOW): Promise<Finding[]> {
  const { findings } = await readOnly(api.database, 5_000, (reading) => check(reading, limits));
  return findings.filter(({ execution_ids: ids }) => ids?.includes(executionId));
}

async function started(): Promise<string> {
  return await work.execute("one");
}

/** An execution whose command a worker has claimed. */
async function claimed(worker: string): Promise<string> {
  const executionId = await started();
  await sql`
    update flow.command set status = 'CLAIMED', attempt = 1, worker = ${worker}, claimed_at = now() - interval '1 hour',
      lease_expires_at = now() - interval '1 second'
    where execution_id = ${executionId}`;
  return executionId;
}

const registered = (name: string) =>
  work.post("/api/worker/pool/register", { name, capacity: 4, capabilities: ["noop"], labels: {} });
const silence = (name: string) => sql`
  update flow.runtime set heartbeat_at = now() - interval '2 hours' where name = ${name}`;

test("a command that no worker may take is found at once with its execution", async () => {
  const executionId = await started();
  const [found] = await about(executionId, checkWaiting);
  assert.match(found?.what ?? "", /no worker is ready/);
  assert.equal(found?.command, "flow serve --role=worker");
  assert.equal((await about(executionId, checkWaiting, LATER)).length, 1, "however patient one is");
});

test("a command that a ready worker with free slots does not claim is to be published again", async () => {
  const executionId = await started();
  await registered("has-room");
  // With everything stale at once, only a worker whose last heartbeat is in the future counts as ready.
  await sql`update flow.runtime set heartbeat_at = now() + interval '1 hour' where name = 'has-room'`;
  const [ready] = await about(executionId, checkWaiting);
  assert.equal(ready?.command, "flow-doctor repair trigger-reaper");
  assert.deepEqual(await about(executionId, checkWaiting, LATER), [], "a young one is about to be taken");
  await sql`delete from flow.runtime where name = 'has-room'`;
});

test("a command of an unknown worker is stale, and its lease is shown", async () => {
  const executionId = await claimed("gone-for-good");
  const [found] = await about(executionId, checkStale, LATER);
  assert.equal(found?.what, "The worker gone-for-good is gone and holds 1 command");
  assert.equal(found?.command, "flow-doctor repair trigger-reaper");
  await sql`update flow.command set lease_expires_at = now() + interval '1 hour' where execution_id = ${executionId}`;
  const [later] = await about(executionId, checkStale, LATER);
  assert.match(later?.why_it_matters ?? "", /when their leases end/);
});

test("a command of a live worker is left alone, until it has had it for too long", async () => {
  await registered("alive");
  const executionId = await claimed("alive");
  assert.deepEqual(await about(executionId, checkStale, { ...LATER, hardTimeoutMs: 7_200_000 }), []);
  const [found] = await about(executionId, checkStale, { ...LATER, hardTimeoutMs: 1_000 });
  assert.match(found?.what ?? "", /^The worker alive lives and has held 1 command for more than 1 s$/);
  assert.match(found?.command ?? "", new RegExp(`^flow cancel ${executionId} `));
});

test("a worker that drains ends what it holds, and is no anomaly", async () => {
  await registered("draining");
  await sql`update flow.runtime set status = 'draining' where name = 'draining'`;
  const executionId = await claimed("draining");
  assert.deepEqual(await about(executionId, checkStale, LATER), []);
});

test("a worker that runs code without a sandbox is worth a notice; one with a sandbox, or without code, is not", async () => {
  for (const [name, isolation, kind] of [
    ["open", "none (bubblewrap: no such program)", "python"],
    ["boxed", "unshare, guarded network", "shell"],
    ["no-code", "none (FLOW_TASK_ISOLATION=none)", "noop"],
  ]) {
    const runtime = { isolation };
    await work.post("/api/worker/pool/register", { name, capacity: 4, capabilities: [kind], labels: {}, runtime });
  }
  const { findings } = await readOnly(api.database, 5_000, (reading) => checkIsolation(reading, LATER));
  assert.deepEqual(
    findings.map(({ level, what }) => `${level}: ${what}`),
    ["notice: The worker open runs python and shell tasks without a sandbox: none (bubblewrap: no such program)"],
  );
  await sql`delete from flow.runtime where name in ('open', 'boxed', 'no-code')`;
});

test("a worker that is silent is an anomaly while it holds something, else worth a notice", async () => {
  for (const name of ["silent-busy", "silent-idle"]) {
    await registered(name);
    await silence(name);
  }
  await claimed("silent-busy");
  const { findings } = await readOnly(api.database, 5_000, (reading) => checkWorkers(reading, LATER));
  const levels = Object.fromEntries(findings.map(({ what, level }) => [/worker (\S+) has/.exec(what)?.[1], level]));
  assert.equal(levels["silent-busy"], "anomaly");
  assert.equal(levels["silent-idle"], "notice");
  assert.equal(levels["alive"], undefined);
});

test("an execution that nothing can move is found; one with an open command or a batch is not", async () => {
  const executionId = await started();
  assert.deepEqual(await about(executionId, checkExecutions), [], "its command is open");
  await sql`delete from flow.command where execution_id = ${executionId}`;
  const [found] = await about(executionId, checkExecutions);
  assert.match(found?.what ?? "", /is RUNNING, and nothing is open that could move it$/);
  assert.match(found?.command ?? "", new RegExp(`flow cancel ${executionId} `));
  assert.deepEqual(await about(executionId, checkExecutions, LATER), [], "it was written a moment ago");
  await openBatch(executionId);
  assert.deepEqual(await about(executionId, checkExecutions), [], "a batch is to be worked out");
});

async function openBatch(executionId: string): Promise<void> {
  await sql`
    insert into flow.batch (request_id, caller, body_sha256, state, execution_ids, event_ids)
    values ((select max(execution_id) + 1 from flow.execution), 'w', ${"0".repeat(64)}, 'accepted',
      array[${executionId}]::bigint[], array[]::bigint[])`;
}

test("a batch that no server processes is found with its execution, and a young one is not", async () => {
  const executionId = await started();
  await openBatch(executionId);
  const [found] = await about(executionId, checkBatches);
  assert.match(found?.what ?? "", /accepted and not worked out$/);
  assert.deepEqual(await about(executionId, checkBatches, LATER), []);
});

test("an execution that is open past its deadline says that no server does its background work", async () => {
  const executionId = await started();
  await sql`update flow.execution set deadline_at = now() - interval '1 minute' where execution_id = ${executionId}`;
  const overdue = async (limits: typeof NOW) =>
    (await about(executionId, checkExecutions, limits)).filter(({ check }) => check === "overdue_executions");
  assert.equal((await overdue(NOW)).length, 1);
  assert.equal((await overdue(LATER)).length, 0);
});

test("a command that is open after the end of its execution is found", async () => {
  const executionId = await started();
  const [row] = await sql`select * from flow.command where execution_id = ${executionId}`;
  const { body } = await work.post(`/api/executions/${executionId}/cancel`);
  assert.equal(body["status"], "CANCELLED");
  assert.deepEqual(await about(executionId, (reading) => checkLeft(reading)), []);
  assert.ok(row !== undefined);
  await sql`insert into flow.command ${sql(row)}`;
  const [found] = await about(executionId, (reading) => checkLeft(reading));
  assert.equal(found?.check, "left_commands");
});

test("what is open is counted, with the age of the oldest command that waits", async () => {
  await started();
  await sql`
    update flow.command set created_at = now() - interval '1 hour'
    where command_id = (select min(command_id) from flow.command where status = 'PENDING')`;
  const { counts = {} } = await readOnly(api.database, 5_000, (reading) => countOpen(reading));
  assert.ok((counts["executions_open"] ?? 0) >= 1);
  const executionId = await started();
  await work.post(`/api/executions/${executionId}/pause`);
  const { counts: paused = {} } = await readOnly(api.database, 5_000, (reading) => countOpen(reading));
  assert.equal(paused["executions_open"], (counts["executions_open"] ?? 0) + 1);
  assert.equal(paused["executions_paused"], (counts["executions_paused"] ?? 0) + 1);
  assert.ok((counts["commands_pending"] ?? 0) >= 1);
  assert.ok((counts["queue_age_seconds"] ?? 0) >= 3_600);
});

test("looking cannot write: the database itself refuses it", async () => {
  const writing = readOnly(api.database, 5_000, ({ sql: tx }) => tx`delete from flow.batch`);
  await assert.rejects(writing, /read-only transaction/);
});
