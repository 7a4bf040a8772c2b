import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createMetrics, type Metrics } from "../../../src/platform/telemetry/metrics.ts";
import { openDatabase } from "../../../src/repositories/database/database.ts";
import { createOpenCounts } from "../../../src/services/overview/overview.ts";
import { type Body, buildApi, openApi, posted, TOKENS } from "../../support/service/api.ts";
import { ONE_STEP, TWO_STEPS, workWith } from "../../support/service/api-work.ts";

/* Control, section 1 and rules 1 to 4, through the API, with a second server of the same database that hears nothing of the first. */

const api = await openApi();
const elsewhere = await buildApi(api.database);
after(() => elsewhere.service.orchestrator.close());
const work = workWith(api);
const there = workWith(elsewhere);

before(async () => {
  await work.register("p/one", ONE_STEP);
  await work.register("p/two", TWO_STEPS);
  await work.register("p/limited", TWO_STEPS, " }\nexecutor: { spec: { timeout: 0.3 }");
});

const detailOf = async (id: string) => (await work.get(`/api/executions/${id}`)).body;
const statusOf = async (id: string) => (await detailOf(id))["status"];
const pause = (id: string, body: Body = {}) => work.post(`/api/executions/${id}/pause`, body);
const resume = (id: string, body: Body = {}) => work.post(`/api/executions/${id}/resume`, body);
/** The commands of this execution that a worker gets, without waiting for more. */
const claimed = async (id: string, at = work) =>
  (await at.claim("w", 100, 0)).filter(({ execution_id }) => execution_id === id);

test("from the answer on nothing is claimed, by no server's workers; the resumption brings it back", async () => {
  const id = await work.execute("p/one");
  await elsewhere.service.orchestrator.recovery.poll();
  const { status, body } = await pause(id, { reason: "quota" });
  assert.equal(status, 202);
  assert.deepEqual(body, { execution_id: id, status: "PAUSED", children: 0 });
  assert.deepEqual(await claimed(id), []);
  assert.deepEqual(await claimed(id, there), []);
  await elsewhere.service.orchestrator.recovery.poll();
  assert.deepEqual(await claimed(id, there), []);
  assert.equal((await resume(id)).status, 202);
  assert.equal((await claimed(id)).length, 1);
});

test("another server's workers get it after the resumption too", async () => {
  const id = await work.execute("p/one");
  await pause(id);
  await resume(id);
  await elsewhere.service.orchestrator.recovery.poll();
  assert.equal((await claimed(id, there)).length, 1);
});

test("a claim by the command's id gets nothing either", async () => {
  const id = await work.execute("p/one");
  const [row] = await api.database.sql<{ id: string }[]>`
    select command_id as id from flow.command where execution_id = ${id}`;
  await pause(id);
  const { status } = await work.post(`/api/commands/${row?.id}/claim`, { worker: "w" });
  assert.equal(status, 409);
});

test("the detail says since when, by whom and why; lists find it by its state", async () => {
  const id = await work.execute("p/one");
  await pause(id, { reason: "quota" });
  const { status, paused } = await detailOf(id);
  assert.equal(status, "PAUSED");
  const { since, ...told } = paused as Body;
  assert.deepEqual(told, { by: "operator", reason: "quota" });
  assert.ok(Math.abs(Date.now() - Date.parse(String(since))) < 60_000);
  const { body } = await work.get("/api/executions?status=PAUSED&path=p/one");
  assert.ok((body["executions"] as Body[]).some(({ execution_id }) => execution_id === id));
  await resume(id);
  assert.equal((await detailOf(id))["paused"], undefined);
});

test("what a worker has is finished and recorded; the next step begins after the resumption", async () => {
  const id = await work.execute("p/two");
  const [command] = await claimed(id);
  assert.ok(command);
  await pause(id);
  assert.equal((await work.finish("w", command)).status, 202);
  const { body: events } = await work.get(`/api/executions/${id}/events?event_type=command.completed`);
  assert.equal((events["events"] as Body[]).length, 1);
  assert.deepEqual(await claimed(id), []);
  assert.equal(await statusOf(id), "PAUSED");
  await resume(id);
  assert.deepEqual(
    (await claimed(id)).map(({ step }) => step),
    ["end"],
  );
});

test("a pause that another server's worker does not know of: its report is recorded, and the resumption there goes on", async () => {
  const id = await work.execute("p/two");
  await elsewhere.service.orchestrator.recovery.poll();
  const [command] = await claimed(id, there);
  assert.ok(command);
  await pause(id);
  assert.equal((await there.finish("w", command)).status, 202);
  assert.equal((await there.post(`/api/executions/${id}/resume`)).status, 202);
  assert.equal((await there.runToEnd(id))["status"], "COMPLETED");
});

test("a server resumes, and pauses, what another has paused or resumed since it looked", async () => {
  const id = await work.execute("p/one");
  assert.equal((await there.post(`/api/executions/${id}/pause`)).body["status"], "PAUSED");
  const resumed = await resume(id);
  assert.deepEqual([resumed.status, resumed.body["status"]], [202, "RUNNING"]);
  const paused = await there.post(`/api/executions/${id}/pause`);
  assert.deepEqual([paused.status, paused.body["status"]], [202, "PAUSED"]);
});

test("a server that has a pause in memory gives the command to its workers once another server has resumed it", async () => {
  const id = await work.execute("p/one");
  await there.post(`/api/executions/${id}/pause`);
  await resume(id);
  await elsewhere.service.orchestrator.recovery.poll();
  const waiting = (await there.claim("w", 100)).filter(({ execution_id }) => execution_id === id);
  assert.equal(waiting.length, 1);
});

test("a claim by its id gets such a command too", async () => {
  const id = await work.execute("p/one");
  const [row] = await api.database.sql<{ id: string }[]>`
    select command_id as id from flow.command where execution_id = ${id}`;
  await there.post(`/api/executions/${id}/pause`);
  await resume(id);
  assert.equal((await there.post(`/api/commands/${row?.id}/claim`, { worker: "w" })).status, 200);
});

test("a second pause and a resumption of what runs answer 200 and write nothing", async () => {
  const id = await work.execute("p/one");
  assert.equal((await resume(id)).status, 200);
  await pause(id);
  const again = await pause(id, { reason: "another" });
  assert.deepEqual([again.status, again.body["status"]], [200, "PAUSED"]);
  const { body } = await work.get(`/api/executions/${id}/events`);
  const types = (body["events"] as Body[]).map(({ event_type }) => event_type);
  assert.equal(types.filter((type) => type === "execution.paused").length, 1);
  assert.equal(types.filter((type) => type === "execution.resumed").length, 0);
});

test("a key that the body does not have is refused, and nothing is paused: a dry run is the command line's", async () => {
  const id = await work.execute("p/one");
  for (const what of ["pause", "resume"]) {
    const { status, body } = await work.post(`/api/executions/${id}/${what}`, { dry_run: true });
    assert.deepEqual([status, body["detail"]], [422, { errors: [{ path: "dry_run", message: "is not a known key" }] }]);
  }
  assert.equal((await detailOf(id))["status"], "RUNNING");
});

test("one that has ended cannot be paused or resumed, and one that is unknown neither", async () => {
  const id = await work.execute("p/one");
  await work.runToEnd(id);
  for (const act of [pause, resume]) {
    const { status, body } = await act(id);
    assert.deepEqual([status, body["code"]], [409, "already_terminal"]);
    assert.equal((await act("1")).status, 404);
  }
});

test("children follow, and theirs; without cascade they go on, and one that starts later too", async () => {
  const child = (parent: string) => work.execute("p/one", { parent_execution_id: parent, parent_step: "start" });
  const root = await work.execute("p/one");
  const first = await child(root);
  const below = await child(first);
  assert.equal((await pause(root)).body["children"], 2);
  assert.deepEqual(await Promise.all([root, first, below].map(statusOf)), ["PAUSED", "PAUSED", "PAUSED"]);
  assert.equal(await statusOf(await child(root)), "PAUSED", "its parent was paused with all that it calls");
  assert.equal((await resume(root)).body["children"], 3);
  assert.equal((await pause(root, { cascade: false })).body["children"], 0);
  assert.deepEqual(await Promise.all([root, first, below].map(statusOf)), ["PAUSED", "RUNNING", "RUNNING"]);
  assert.equal(await statusOf(await child(root)), "RUNNING");
});

test("a child can be paused and resumed alone; its parent goes on", async () => {
  const root = await work.execute("p/one");
  const child = await work.execute("p/one", { parent_execution_id: root, parent_step: "start" });
  await pause(child);
  assert.deepEqual(await Promise.all([root, child].map(statusOf)), ["RUNNING", "PAUSED"]);
  await resume(child);
  assert.equal(await statusOf(child), "RUNNING");
});

test("a time limit that passes during a pause ends the execution with the resumption, not before", async () => {
  const id = await work.execute("p/limited");
  await pause(id);
  const overdue = () => api.database.sql`
    select from flow.execution where execution_id = ${id} and deadline_at <= now()`;
  while ((await overdue()).length === 0) await api.database.sql`select pg_sleep(0.05)`;
  await api.service.orchestrator.recovery.expire();
  assert.equal(await statusOf(id), "PAUSED");
  await resume(id);
  await api.service.orchestrator.recovery.expire();
  const { status, error } = await detailOf(id);
  assert.deepEqual([status, (error as Body)["code"]], ["FAILED", "TIMEOUT"]);
});

test("a command of a worker that has signed off is not given to another before the resumption", async () => {
  const id = await work.execute("p/one");
  await work.post("/api/worker/pool/register", { name: "leaving", capacity: 4 });
  const [command] = (await work.claim("leaving", 100, 0)).filter(({ execution_id }) => execution_id === id);
  assert.ok(command);
  await pause(id);
  await work.post("/api/worker/pool/deregister", { name: "leaving" });
  await api.service.orchestrator.recovery.poll();
  assert.deepEqual(await claimed(id), []);
  await resume(id);
  await api.service.orchestrator.recovery.poll();
  assert.deepEqual(
    (await work.claim("w", 100)).filter(({ execution_id }) => execution_id === id).map(({ attempt }) => attempt),
    [2],
  );
});

test("a paused execution can be cancelled, and leaves no row of a command", async () => {
  const id = await work.execute("p/one");
  await pause(id);
  await work.post(`/api/executions/${id}/cancel`);
  assert.equal(await statusOf(id), "CANCELLED");
  assert.equal((await api.database.sql`select from flow.command where execution_id = ${id}`).length, 0);
});

test("the audit log says who paused and resumed it; a worker may not", async () => {
  const id = await work.execute("p/one");
  await pause(id, { reason: "quota" });
  await resume(id);
  const rows = await api.database.sql<{ action: string; detail: Body }[]>`
    select action, detail from auth.audit_log where resource = ${`execution/${id}`} and result = 'allow' order by audit_id`;
  assert.deepEqual(
    rows.map(({ action, detail }) => [action, detail["reason"] ?? null]),
    [
      ["execution.pause", "quota"],
      ["execution.resume", null],
    ],
  );
  const headers = { authorization: `Bearer ${TOKENS.worker}` };
  const refused = await api.guarded.request(`/api/executions/${id}/pause`, posted({}, headers));
  assert.equal(refused.status, 403);
  assert.equal(await statusOf(id), "RUNNING");
});

test("the doctor finds nothing wrong with what is paused", async () => {
  const id = await work.execute("p/two");
  const [command] = await claimed(id);
  assert.ok(command);
  await pause(id);
  await work.finish("w", command);
  const { body } = await work.get("/api/doctor?stale_seconds=0.001");
  assert.doesNotMatch(JSON.stringify(body["findings"] ?? body), new RegExp(id));
});

/** What `GET /metrics` says of open executions. */
async function openByStatus(metrics: Metrics): Promise<Record<string, number>> {
  const { text } = await metrics.expose();
  const lines = text.matchAll(/^flow_executions_open\{status="(\w+)"\} (\S+)$/gm);
  return Object.fromEntries([...lines].map(([, status = "", count]) => [status, Number(count)]));
}

test("a metric has what is paused apart from what runs; the database is asked every ten seconds at most", async () => {
  let now = 1_000_000;
  const metrics = createMetrics({ openExecutions: createOpenCounts({ database: api.database, now: () => now }) });
  const id = await work.execute("p/one");
  const before = await openByStatus(metrics);
  await pause(id);
  now += 9_999;
  assert.deepEqual(await openByStatus(metrics), before);
  now += 1;
  const { RUNNING = 0, PAUSED = 0, PENDING = 0 } = before;
  assert.deepEqual(await openByStatus(metrics), { PENDING, RUNNING: RUNNING - 1, PAUSED: PAUSED + 1 });
  await resume(id);
  now += 10_000;
  assert.deepEqual(await openByStatus(metrics), before);
});

test("while the database is away the metric is no number, and not zero; the others are there", async () => {
  const database = openDatabase("postgres://127.0.0.1:1/away");
  const metrics = createMetrics({ openExecutions: createOpenCounts({ database, now: Date.now }) });
  const counts = await openByStatus(metrics);
  assert.deepEqual(counts, { PENDING: Number.NaN, RUNNING: Number.NaN, PAUSED: Number.NaN });
  assert.match((await metrics.expose()).text, /^noetl_batch_queue_depth 0$/m);
  await database.close();
});
