import assert from "node:assert/strict";
import { before, test } from "node:test";
import { storedResults } from "../../support/database/stored-results.ts";
import { type Body, openApi, posted, TOKENS } from "../../support/service/api.ts";
import { claimOf, ONE_STEP } from "../../support/service/api-work.ts";
import { addUser, allow, type TestUser } from "../../support/service/users.ts";

/* References that a playbook names itself: what a worker reads for an execution it reads in the name of the user who started it. */

const api = await openApi();
const { work, claimed, put, refOf } = storedResults(api);
before(async () => {
  for (const path of ["team/a", "team/b", "other/a"]) await work.register(path, ONE_STEP);
});

/** A stored result of an operator's execution of this path. */
async function stored(path: string): Promise<string> {
  const command = await claimed(path);
  assert.equal((await put(command, '"of somebody"')).status, 200);
  return refOf(command);
}

/** An execution of this user, who may do everything below `team/`. */
async function startedBy(user: TestUser): Promise<string> {
  const headers = { authorization: `Bearer ${TOKENS.operator}`, "x-flow-session": user.tokenSha256 };
  const response = await api.guarded.request("/api/execute", posted({ path: "team/a" }, headers));
  assert.equal(response.status, 200);
  return String(((await response.json()) as Body)["execution_id"]);
}

async function member(): Promise<TestUser> {
  const user = await addUser(api.database);
  await allow(api.database, user, [{ allow: "team/**", can: ["execute", "view", "modify"] }]);
  return user;
}

async function read(ref: string, executionId: string) {
  const query = new URLSearchParams({ ref, sealed: "true", execution_id: executionId });
  const response = await api.guarded.request(`/api/results/resolve?${query}`, {
    headers: await claimOf(api, executionId),
  });
  return { status: response.status, text: await response.text() };
}

test("a user's execution reads results of what they may view, and no others by any reference", async () => {
  const user = await member();
  const id = await startedBy(user);
  const [ours, others] = [await stored("team/b"), await stored("other/a")];
  assert.deepEqual(await read(ours, id), { status: 200, text: '"of somebody"' });
  const refused = await read(others, id);
  assert.equal(refused.status, 404);
  assert.match(refused.text, new RegExp(`runs in the name of ${user.email}, who may not view`));
  assert.doesNotMatch(refused.text, /other\/a/);
  const whole = await read(JSON.stringify({ kind: "result_ref", ref: others }), id);
  assert.equal(whole.status, 404);
  await api.service.audit.close();
  const rows = await api.database.sql`
    select distinct action, resource, result from auth.audit_log where user_id = ${user.userId} and result = 'deny'`;
  assert.deepEqual(
    rows.map((row) => ({ ...row })),
    [{ action: "playbook.view", resource: "playbook/other/a", result: "deny" }],
  );
});

test("who may view nothing any more is read nothing of another tree for; a machine's executions read what they name", async () => {
  const user = await member();
  const id = await startedBy(user);
  const ref = await stored("team/b");
  assert.equal((await read(ref, id)).status, 200);
  await api.database.sql`update auth.users set is_active = false where user_id = ${user.userId}`;
  assert.equal((await read(ref, id)).status, 404);
  const machine = await work.execute("team/a");
  assert.equal((await read(ref, machine)).status, 200);
});

test("children read what their parent has stored", async () => {
  const user = await member();
  const id = await startedBy(user);
  const own = `noetl://execution/${id}/step/start/task/t/run/1`;
  const body = { path: "team/b", parent_execution_id: id, parent_step: "start" };
  const child = (await (
    await api.guarded.request("/api/execute", posted(body, await claimOf(api, id)))
  ).json()) as Body;
  await api.database.sql`update auth.user_roles set is_active = false where user_id = ${user.userId}`;
  // Nothing is stored there; who may not read would be told so.
  assert.doesNotMatch((await read(own, String(child["execution_id"]))).text, /in the name of/);
});
