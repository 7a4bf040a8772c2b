import assert from "node:assert/strict";
import { test } from "node:test";
import { readOnly } from "../../src/repositories/doctor/read-snapshot.ts";
import { checkProjection } from "../../src/services/diagnosis/projection.ts";
import { SNAPSHOT_FORMAT } from "../../src/services/orchestration/memory/load-execution.ts";
import { openApi } from "../support/service/api.ts";
import { TWO_STEPS, workWith } from "../support/service/api-work.ts";

const api = await openApi();
const work = workWith(api);
const { sql } = api.database;
await work.register("two", TWO_STEPS);

/** What the check says of an execution; undefined where all is well. */
async function said(executionId: string): Promise<string | undefined> {
  const { findings } = await readOnly(api.database, 5_000, checkProjection);
  return findings.find(({ execution_ids: ids }) => ids?.includes(executionId))?.what;
}

test("rows that are what their log says are left alone: before, in and after the run, cancelled too", async () => {
  const executionId = await work.execute("two");
  assert.equal(await said(executionId), undefined, "nobody has claimed anything");
  const [command] = await work.claim("w");
  assert.ok(command);
  assert.equal(await said(executionId), undefined, "its first command is claimed");
  await work.finish("w", command);
  assert.equal(await said(executionId), undefined, "its first step has ended");
  await work.runToEnd(executionId);
  assert.equal(await said(executionId), undefined, "it has ended");
  const cancelled = await work.execute("two");
  await work.post(`/api/executions/${cancelled}/cancel`);
  assert.equal(await said(cancelled), undefined, "it was cancelled");
});

test("a row with another status than the fold of its log is found", async () => {
  const executionId = await work.execute("two");
  await work.runToEnd(executionId);
  await sql`update flow.execution set status = 'RUNNING', ended_at = null, result = null where execution_id = ${executionId}`;
  assert.match((await said(executionId)) ?? "", /its row says RUNNING, its log COMPLETED/);
});

test("a row without the log's error is found", async () => {
  const executionId = await work.execute("two");
  await work.post(`/api/executions/${executionId}/cancel`);
  await sql`update flow.execution set error = null where execution_id = ${executionId}`;
  assert.match((await said(executionId)) ?? "", /its row lacks the error that the log has/);
});

test("open commands that the log does not have, or that it has and that are gone, are found", async () => {
  const executionId = await work.execute("two");
  await sql`delete from flow.command where execution_id = ${executionId}`;
  assert.match((await said(executionId)) ?? "", /open commands are none by their rows, \d+ by its log/);
});

test("events that the row does not know of are found", async () => {
  const executionId = await work.execute("two");
  await work.runToEnd(executionId);
  await sql`update flow.execution set last_event_id = execution_id where execution_id = ${executionId}`;
  assert.match((await said(executionId)) ?? "", /its row does not know of the events after/);
});

test("a snapshot that is not the fold of its log is found; the right one is not", async () => {
  const executionId = await work.execute("two");
  const [row] = await sql<{ last: string }[]>`
    select last_event_id as last from flow.execution where execution_id = ${executionId}`;
  const write = (state: string) => sql`
    insert into flow.execution_snapshot (execution_id, event_id, format, state)
    values (${executionId}, ${row?.last ?? ""}, ${SNAPSHOT_FORMAT}, ${state})
    on conflict (execution_id) do update set state = excluded.state`;
  await write('{"status":"COMPLETED"}');
  assert.match((await said(executionId)) ?? "", /its snapshot at event \d+ is not the fold of its log/);
  // A form that this program does not know is not read.
  await sql`update flow.execution_snapshot set format = 999 where execution_id = ${executionId}`;
  assert.equal(await said(executionId), undefined);
});

test("a log that cannot be folded is reported with its error, and the others are compared all the same", async () => {
  const broken = await work.execute("two");
  await sql`
    update flow.event_log set body = regexp_replace(body, '"command_id":"[0-9]+"', '"command_id":null', 'g')
    where execution_id = ${broken}`;
  const fine = await work.execute("two");
  assert.ok(await said(broken));
  assert.equal(await said(fine), undefined);
});
