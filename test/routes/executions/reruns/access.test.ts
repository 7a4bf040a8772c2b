import assert from "node:assert/strict";
import { before, test } from "node:test";
import { type Body, openApi, playbook, TOKENS } from "../../../support/service/api.ts";
import { ONE_STEP } from "../../../support/service/api-work.ts";
import { addUser, allow, type TestUser } from "../../../support/service/users.ts";
import { asUser, rerunsOf } from "./support.ts";

/* Who may rerun what, and what the audit log has of it (control, rule 4). */

const api = await openApi();
const { work, detail, begun } = rerunsOf(api);
const { sql } = api.database;
const SYSTEM = "api_integration/idp/login";

before(async () => {
  await work.register("p/one", ONE_STEP);
  const { status } = await work.post("/api/catalog/register", { content: playbook(SYSTEM) });
  assert.equal(status, 200);
});

async function ended(path: string): Promise<string> {
  const id = await work.execute(path);
  await work.runToEnd(id);
  return id;
}

async function userWith(
  can: readonly ("execute" | "view" | "modify")[],
  pattern = "p/**",
  roles: readonly string[] = [],
): Promise<TestUser> {
  const user = await addUser(api.database, { roles });
  await allow(api.database, user, [{ allow: pattern, can }]);
  return user;
}

const ask = (user: TestUser, id: string, body: Body = {}) => asUser(api, user, `/api/executions/${id}/rerun`, body);
const rerunsFrom = async (id: string) => (await sql`select from flow.execution where rerun_of = ${id}`).length;

test("who may execute the path may rerun; who may only view it, or neither, may not, nor see a plan", async () => {
  const id = await ended("p/one");
  const [execute, view, none] = [await userWith(["execute"]), await userWith(["view", "modify"]), await userWith([])];
  for (const dry_run of [true, false]) {
    for (const user of [view, none]) {
      const { status, body } = await ask(user, id, { dry_run });
      assert.deepEqual([status, body["code"]], [403, "FORBIDDEN"]);
      assert.doesNotMatch(JSON.stringify(body), /p\/one/, "an id does not tell its path");
    }
    // As a start of something that is not there, and as other calls about an id.
    const unknown = await ask(none, "12345", { dry_run });
    assert.deepEqual([unknown.status, unknown.body["code"]], [404, "NOT_FOUND"]);
  }
  assert.equal(await rerunsFrom(id), 0);
  const plan = await ask(execute, id, { dry_run: true });
  assert.deepEqual([plan.status, plan.body["execution_id"]], [200, undefined]);
  assert.equal(await rerunsFrom(id), 0);
  const { status, body } = await ask(execute, id);
  assert.equal(status, 202, JSON.stringify(body));
  const [row] = await sql<{ by: number }[]>`
    select started_by::float8 as by from flow.execution where execution_id = ${String(body["execution_id"])}`;
  assert.equal(row?.by, execute.userId, "it runs in the name of the one who asked");
  await work.runToEnd(String(body["execution_id"]));
});

test("what an execution is doing is told only to those who may rerun it", async () => {
  const id = await work.execute("p/one");
  const [execute, view] = [await userWith(["execute"]), await userWith(["view"])];
  for (const body of [{ dry_run: true }, { version: 99 }, { from: ["nowhere"] }]) {
    assert.equal((await ask(view, id, body)).status, 403);
  }
  const { status, body } = await ask(execute, id);
  assert.deepEqual([status, body["code"]], [409, "not_terminal"]);
  await work.runToEnd(id);
});

test("without a token, or with a worker's, no rerun begins", async () => {
  const id = await ended("p/one");
  for (const [headers, status] of [
    [{}, 401],
    [{ authorization: `Bearer ${TOKENS.worker}` }, 403],
    [{ authorization: `Bearer ${TOKENS.operator}` }, 200],
  ] as const) {
    const init = { method: "POST", headers, body: '{"dry_run":true}' };
    const response = await api.guarded.request(`/api/executions/${id}/rerun`, init);
    assert.equal(response.status, status, await response.text());
  }
});

test("a system playbook takes what starting it takes: a permission to manage users or roles beside the path's", async () => {
  const id = await ended(SYSTEM);
  const plain = await userWith(["execute", "view"], "api_integration/**");
  const admin = await userWith([], "p/**", ["admin"]);
  for (const dry_run of [true, false]) assert.equal((await ask(plain, id, { dry_run })).status, 403);
  const started = await asUser(api, plain, "/api/execute", { path: SYSTEM });
  assert.equal(started.status, 403);
  const { status, body } = await ask(admin, id);
  assert.equal(status, 202, JSON.stringify(body));
  await work.runToEnd(String(body["execution_id"]));
});

test("a rerun that began has one row in the audit log, with its reason; a refused one has a row that denies; a plan changes nothing", async () => {
  const id = await ended("p/one");
  const [execute, view] = [await userWith(["execute"]), await userWith(["view"])];
  const rows = async (user: TestUser) => {
    await api.service.audit.close();
    return (
      await sql<{ action: string; resource: string; result: string; detail: Body | null; about: string | null }[]>`
        select action, resource, result, detail, execution_id::text as about from auth.audit_log
        where user_id = ${user.userId} order by audit_id`
    ).map((row) => ({ ...row }));
  };
  await ask(execute, id, { dry_run: true });
  assert.deepEqual(
    (await rows(execute)).filter(({ action }) => action === "execution.rerun"),
    [],
  );
  const { body } = await ask(execute, id, { reason: "once more" });
  const again = String(body["execution_id"]);
  const told = (await rows(execute)).filter(({ action }) => action === "execution.rerun");
  assert.deepEqual(
    told.map(({ resource, result, detail: more }) => ({ resource, result, more })),
    [{ resource: `execution/${id}`, result: "allow", more: { execution_id: again, reason: "once more" } }],
  );
  await ask(view, id);
  const denied = (await rows(view)).map(({ action, resource, result }) => ({ action, resource, result }));
  assert.deepEqual(denied, [{ action: "playbook.execute", resource: "playbook/p/one", result: "deny" }]);
  await work.runToEnd(again);
});

test("rights are those of now: who lost them since the original ran may not rerun it", async () => {
  const user = await userWith(["execute", "view"]);
  const first = await asUser(api, user, "/api/execute", { path: "p/one" });
  const id = String(first.body["execution_id"]);
  await work.runToEnd(id);
  const again = await begun(id);
  await sql`update auth.user_roles set is_active = false where user_id = ${user.userId}`;
  assert.equal((await ask(user, id)).status, 403);
  assert.equal((await ask(user, again)).status, 403);
  await work.runToEnd(again);
  assert.deepEqual((await detail(again))["started_by"], { kind: "rerun", id, name: "p/one" });
});

test("a paused playbook is not run again; its plan is shown", async () => {
  const id = await ended("p/one");
  await work.post("/api/catalog/pause/p/one", { reason: "closed" });
  const { status, body } = await work.post(`/api/executions/${id}/rerun`);
  assert.deepEqual([status, body["code"]], [409, "playbook_paused"]);
  assert.equal((await work.post(`/api/executions/${id}/rerun`, { dry_run: true })).status, 200);
  await work.post("/api/catalog/resume/p/one");
  await work.runToEnd(await begun(id));
});
