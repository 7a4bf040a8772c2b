import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { claimBulk, insertBulk } from "../../../../src/repositories/bulk/bulk.ts";
import { beginBulkItems } from "../../../../src/repositories/bulk/bulk-items.ts";
import { createBulkOperations } from "../../../../src/services/bulk/bulk.ts";
import { type Body, buildApi, openApi, posted, TOKENS } from "../../../support/service/api.ts";
import { ONE_STEP, workWith } from "../../../support/service/api-work.ts";
import { addUser } from "../../../support/service/users.ts";

/* Control, section 1, rules 15 and 16, with a second server of the same database. */

const api = await openApi();
const elsewhere = await buildApi(api.database);
after(() => elsewhere.service.orchestrator.close());
const work = workWith(api);
const { bulk } = api.service;

before(async () => {
  for (const path of ["b/one", "b/two", "b/mine", "b/gone"]) await work.register(path, ONE_STEP);
});

const start = async (body: Body) => {
  const { status, body: answer } = await work.post("/api/executions/bulk", body);
  assert.equal(status, 202, JSON.stringify(answer));
  return String(answer["bulk_id"]);
};
const find = async (id: string) => (await work.get(`/api/executions/bulk/${id}`)).body;
const statusOf = async (id: string) => (await work.get(`/api/executions/${id}`)).body["status"];
const workOff = async () => {
  while (await bulk.workOff());
};
const many = (path: string, count: number) => Promise.all(Array.from({ length: count }, () => work.execute(path)));
const counts = (matched: number, done: number, failed = 0, skipped = 0) => ({ matched, done, failed, skipped });

test("every execution of the filter is cancelled, and none that started after the call; counts and ends are as they were", async () => {
  const ids = await many("b/one", 45);
  const [ended = ""] = ids;
  await work.post(`/api/executions/${ended}/cancel`);
  const id = await start({ action: "cancel", filter: { path: "b/one" }, options: { reason: "wrong day" } });
  const later = await work.execute("b/one");
  const before = await find(id);
  assert.deepEqual([before["status"], before["counts"]], ["running", counts(45, 0)]);
  await workOff();
  const { status, counts: after, failures, by, ended_at } = await find(id);
  assert.deepEqual([status, after, failures, by], ["completed", counts(45, 44, 0, 1), [], "operator"]);
  assert.notEqual(ended_at, null);
  assert.deepEqual(new Set(await Promise.all(ids.map(statusOf))), new Set(["CANCELLED"]));
  assert.equal(await statusOf(later), "RUNNING");
  await work.post(`/api/executions/${later}/cancel`);
});

test("pause and resume; what is so already is skipped; none matched has ended at once", async () => {
  const ids = await many("b/two", 3);
  await work.post(`/api/executions/${ids[0]}/pause`);
  const filter = { path: "b/two", status: ["RUNNING", "PAUSED"] };
  const paused = await start({ action: "pause", filter, options: { reason: "quota" } });
  await workOff();
  assert.deepEqual((await find(paused))["counts"], counts(3, 2, 0, 1));
  assert.equal(((await work.get(`/api/executions/${ids[1]}`)).body["paused"] as Body)["reason"], "quota");
  const resumed = await start({ action: "resume", filter: { path: "b/two", status: "PAUSED" } });
  await workOff();
  assert.deepEqual((await find(resumed))["counts"], counts(3, 3));
  const none = await start({ action: "resume", filter: { path: "b/nowhere" } });
  assert.deepEqual([(await find(none))["status"], (await find(none))["counts"]], ["completed", counts(0, 0)]);
});

test("a preview counts and shows some, and changes nothing", async () => {
  const [id = ""] = await many("b/mine", 22);
  const { status, body } = await work.post("/api/executions/bulk", {
    ...{ action: "cancel", filter: { path: "b/mine" }, dry_run: true },
  });
  const { matched, sample, bulk_id } = body as { matched: number; sample: Body[]; bulk_id?: string };
  assert.deepEqual([status, matched, sample.length, bulk_id], [200, 22, 20, undefined]);
  assert.deepEqual([sample[0]?.["path"], sample[0]?.["status"]], ["b/mine", "RUNNING"]);
  await workOff();
  assert.equal(await statusOf(id), "RUNNING");
});

test("it can be paused, goes on, and is ended; an ended one cannot be changed", async () => {
  const ids = await many("b/two", 2);
  const change = (id: string, what: string) => work.post(`/api/executions/bulk/${id}/${what}`, {});
  const id = await start({ action: "cancel", filter: { path: "b/two", status: "RUNNING" } });
  assert.deepEqual([(await change(id, "pause")).body["status"], (await change(id, "pause")).status], ["paused", 200]);
  await workOff();
  assert.equal(await statusOf(ids[0] ?? ""), "RUNNING");
  assert.equal((await change(id, "resume")).body["status"], "running");
  assert.equal((await change(id, "cancel")).body["status"], "cancelled");
  assert.equal((await change(id, "cancel")).status, 200);
  await workOff();
  assert.equal(await statusOf(ids[0] ?? ""), "RUNNING");
  const refused = await change(id, "resume");
  assert.deepEqual([refused.status, refused.body["code"]], [409, "already_terminal"]);
  assert.equal((await change("1", "pause")).status, 404);
});

test("what a server had begun when it died is decided again by another, and counts once", async () => {
  const ids = await many("b/gone", 4);
  const sorted = [...ids].sort((left, right) => Number(left) - Number(right));
  const [bulkId] = ["999999999999"];
  const asked = { filter: {}, options: {}, askedBy: "operator", userId: null, asker: {} };
  await insertBulk(api.database, { bulkId: bulkId ?? "", action: "cancel", ...asked }, ids);
  // As a server does that is killed after it has cancelled the first, and before it has written that.
  const dead = { bulkId: bulkId ?? "", worker: "dead" };
  await claimBulk(api.database, dead.worker, 0);
  assert.equal((await beginBulkItems(api.database, dead, 2)).length, 2);
  await work.post(`/api/executions/${sorted[0]}/cancel`);
  while (await elsewhere.service.bulk.workOff());
  const { status, counts: told } = await find(bulkId ?? "");
  assert.deepEqual([status, told], ["completed", counts(4, 4)]);
  assert.deepEqual(new Set(await Promise.all(ids.map(statusOf))), new Set(["CANCELLED"]));
});

test("two servers work on one operation at once: nothing is counted twice", async () => {
  await many("b/gone", 60);
  const id = await start({ action: "cancel", filter: { path: "b/gone", status: "RUNNING" } });
  const { executions, access, triggers, sealing } = elsewhere.service;
  const parts = {
    database: api.database,
    executions,
    access,
    triggers,
    sealerOf: sealing.sealerOf,
    busy: () => performance.now(),
    onFault: assert.fail,
  };
  const other = createBulkOperations({ ...parts, holder: "another" });
  const isOver = async () => (await find(id))["ended_at"] !== null;
  // What one has begun is not the other's, which finds nothing to do meanwhile.
  const both = [bulk, other].map(async (one) => {
    while (!(await isOver())) await one.workOff();
  });
  await Promise.all(both);
  assert.deepEqual([(await find(id))["status"], (await find(id))["counts"]], ["completed", counts(60, 60)]);
});

test("what was deleted meanwhile is skipped", async () => {
  const [id = ""] = await many("b/gone", 1);
  const operation = await start({ action: "cancel", filter: { id_prefix: id } });
  await work.post(`/api/executions/${id}/cancel`);
  await work.send("DELETE", `/api/executions/${id}`);
  await workOff();
  assert.deepEqual((await find(operation))["counts"], counts(1, 0, 0, 1));
});

test("a user's operation is about what they may execute, and each item is decided by their rights at its turn", async () => {
  const { userId, tokenSha256 } = await addUser(api.database, { roles: ["analyst"] });
  const other = await addUser(api.database, { roles: ["admin"] });
  const headers = (token: string) => ({ authorization: `Bearer ${TOKENS.operator}`, "x-flow-session": token });
  const [id = ""] = await many("b/mine", 1);
  const body = { action: "cancel", filter: { id_prefix: id } };
  const answer = await api.guarded.request("/api/executions/bulk", posted(body, headers(tokenSha256)));
  const { bulk_id, matched } = (await answer.json()) as { bulk_id: string; matched: number };
  assert.deepEqual([answer.status, matched], [202, 1]);
  const seen = (token: string) => api.guarded.request(`/api/executions/bulk/${bulk_id}`, { headers: headers(token) });
  assert.deepEqual([(await seen(tokenSha256)).status, (await seen(other.tokenSha256)).status], [200, 404]);
  await api.database.sql`update auth.users set is_active = false where user_id = ${userId}`;
  await workOff();
  const { counts: told, failures } = await find(bulk_id);
  assert.deepEqual(told, counts(1, 0, 1));
  assert.deepEqual(
    (failures as Body[]).map(({ execution_id, code }) => [execution_id, code]),
    [[id, "FORBIDDEN"]],
  );
  assert.equal(await statusOf(id), "RUNNING");
  const nobody = await addUser(api.database, { roles: [] });
  const none = await api.guarded.request(
    "/api/executions/bulk",
    posted({ ...body, dry_run: true }, headers(nobody.tokenSha256)),
  );
  assert.deepEqual([none.status, ((await none.json()) as Body)["matched"]], [200, 0]);
});

test("refused: no filter, an empty one, unknown keys and actions", async () => {
  const bodies: Body[] = [
    { action: "cancel" },
    { action: "cancel", filter: {} },
    { action: "cancel", filter: { stauts: "RUNNING" } },
    { action: "delete", filter: { path: "b/one" } },
    { action: "cancel", filter: { path: "b/one" }, options: { force: true } },
    { action: "rerun", filter: { path: "b/one" }, options: { cascade: false } },
    { action: "cancel", filter: { path: "b/one" }, options: { from: "failed" } },
    { action: "cancel", filter: { execution_ids: [] } },
    { action: "cancel", filter: { execution_ids: ["x"] } },
    { action: "cancel", filter: { execution_ids: Array.from({ length: 1_001 }, (_, index) => String(index + 1)) } },
  ];
  for (const body of bodies)
    assert.equal((await work.post("/api/executions/bulk", body)).status, 422, JSON.stringify(body));
});

test("marked executions are named by their ids: these and no others, as the list has them too", async () => {
  const ids = await many("b/two", 3);
  const [first = "", , last = ""] = ids;
  const listed = await work.get(`/api/executions?execution_ids=${last},${first},1`);
  assert.deepEqual(
    (listed.body["executions"] as Body[]).map(({ execution_id: id }) => id),
    [last, first],
  );
  const id = await start({ action: "cancel", filter: { execution_ids: [first, last] } });
  await workOff();
  assert.deepEqual((await find(id))["counts"], counts(2, 2));
  assert.deepEqual(await Promise.all(ids.map(statusOf)), ["CANCELLED", "RUNNING", "CANCELLED"]);
  await work.post(`/api/executions/${ids[1]}/cancel`);
});

test("a key begins one operation, also of two calls at once; with another body it is refused; a preview takes no key", async () => {
  const [execution = ""] = await many("b/two", 1);
  const body = { action: "pause", filter: { id_prefix: execution } };
  const key = { "idempotency-key": "again" };
  const post = (sent: Body, headers = key) => work.post("/api/executions/bulk", sent, headers);
  assert.equal((await post({ ...body, dry_run: true })).status, 200);
  const [one, other] = await Promise.all([post(body), post(body)]);
  assert.deepEqual([one.status, other.status], [202, 202]);
  assert.equal(one.body["bulk_id"], other.body["bulk_id"]);
  assert.deepEqual([one, other].map(({ body: told }) => told["duplicate"] ?? false).sort(), [false, true]);
  const again = await post(body);
  assert.deepEqual(again.body, { bulk_id: one.body["bulk_id"], matched: 1, duplicate: true });
  const refused = await post({ ...body, action: "cancel" });
  assert.deepEqual([refused.status, (refused.body["detail"] as Body)["idempotency_key"]], [422, "again"]);
  assert.equal((await post(body, { "idempotency-key": "\u00e4" })).status, 422);
  const fresh = await post(body, { "idempotency-key": "another" });
  assert.notEqual(fresh.body["bulk_id"], one.body["bulk_id"]);
  const [row] = await api.database.sql<{ count: number }[]>`
    select count(*)::int as count from auth.audit_log where resource = ${`bulk/${one.body["bulk_id"]}`}`;
  assert.equal(row?.count, 1);
  await workOff();
  await work.post(`/api/executions/${execution}/cancel`);
});

test("each item has its row of the audit log: what was done, what was not, and for whom", async () => {
  const ids = await many("b/two", 2);
  await work.post(`/api/executions/${ids[1]}/cancel`);
  const filter = { execution_ids: ids };
  const id = await start({ action: "pause", filter, options: { reason: "quota" } });
  await workOff();
  const rows = await api.database.sql<{ resource: string; result: string; rule: string; detail: Body }[]>`
    select resource, result, rule, detail from auth.audit_log
    where action = 'execution.pause' and detail ->> 'bulk_id' = ${id} order by resource`;
  const about = { bulk_id: id, reason: "quota" };
  const expected = [
    [`execution/${ids[0]}`, "allow", "access:operator", about],
    [`execution/${ids[1]}`, "error", "access:operator", { ...about, code: "already_terminal" }],
  ];
  assert.deepEqual(
    rows.map(({ resource, result, rule, detail }) => [resource, result, rule, detail]),
    expected.sort(),
  );
  await work.post(`/api/executions/${ids[0]}/cancel`);
});

test("the audit log has who began it, with the filter, and who ended it", async () => {
  const id = await start({ action: "cancel", filter: { path: "b/nothing" } });
  const rows = await api.database.sql<{ action: string; detail: Body }[]>`
    select action, detail from auth.audit_log where resource = ${`bulk/${id}`} and result = 'allow' order by audit_id`;
  assert.deepEqual(
    rows.map(({ action, detail }) => [action, detail["matched"], detail["filter"]]),
    [["execution.bulk", 0, { path: "b/nothing" }]],
  );
});
