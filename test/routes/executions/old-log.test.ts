import assert from "node:assert/strict";
import { after, test } from "node:test";
import { readOnly } from "../../../src/repositories/doctor/read-snapshot.ts";
import { checkProjection } from "../../../src/services/diagnosis/projection.ts";
import { type Body, buildApi, openApi } from "../../support/service/api.ts";
import { TWO_STEPS, workWith } from "../../support/service/api-work.ts";

// An execution that a server of the version before segments began, whose log is a row for each event, goes on.

const api = await openApi();
const { sql } = api.database;
const work = workWith(api);
await work.register("two", TWO_STEPS);

/** Rewrites the log of an execution as that version wrote it, through what it wrote to: `flow.event`. */
async function asSingleRows(executionId: string): Promise<void> {
  await sql.begin(async (tx) => {
    await tx`create temporary table old_log on commit drop as select * from flow.event where execution_id = ${executionId}`;
    await tx`delete from flow.event_log where execution_id = ${executionId}`;
    await tx`insert into flow.event select * from old_log`;
  });
  const rows = await sql`select body from flow.event_log where execution_id = ${executionId}`;
  assert.ok(rows.length > 0 && rows.every(({ body }) => body === null));
}

/** Another server on the same database, which has nothing in memory. */
async function newServer() {
  const second = await buildApi(api.database);
  after(() => second.service.orchestrator.close());
  return workWith(second);
}

const typesOf = (body: Body) => (body["events"] as Body[]).map(({ event_type }) => event_type);

test("it is advanced by a new server to its end; its log is read as one", async () => {
  const executionId = await work.execute("two");
  const [command] = await work.claim("w");
  assert.ok(command);
  const expected = await work.execute("two");
  await asSingleRows(executionId);
  const server = await newServer();
  await server.finish("w", command);
  await server.runToEnd(executionId);
  await work.runToEnd(expected);
  const { body } = await server.get(`/api/executions/${executionId}/events?limit=500`);
  const other = await server.get(`/api/executions/${expected}/events?limit=500`);
  assert.deepEqual(typesOf(body).filter(isOfRun), typesOf(other.body).filter(isOfRun));
  const forms = await sql`
    select body is null as single from flow.event_log where execution_id = ${executionId} group by 1 order by 1`;
  assert.deepEqual(
    forms.map(({ single }) => single),
    [false, true],
  );
  const { findings } = await readOnly(api.database, 5_000, checkProjection);
  assert.deepEqual(findings, []);
});

test("a server of that version, which may still run, reads through the view what a new one wrote", async () => {
  const executionId = await work.execute("two");
  await work.runToEnd(executionId);
  const { body } = await work.get(`/api/executions/${executionId}/events?limit=500`);
  const read = await sql`
    select event_id::float8, event_type, node_name, status, result, meta from flow.event
    where execution_id = ${executionId} and event_id > greatest(0, ${executionId}::bigint) order by event_id limit 1000`;
  const shown = (body["events"] as Body[]).map(
    ({ event_id, event_type, node_name, status, result = null, meta = null }) => ({
      ...{ event_id, event_type, node_name, status, result, meta },
    }),
  );
  assert.deepEqual(
    read.map((row) => ({ ...row })),
    shown,
  );
});

function isOfRun(type: unknown): boolean {
  return !String(type).startsWith("batch.");
}
