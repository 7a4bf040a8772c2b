import assert from "node:assert/strict";
import { before, test } from "node:test";
import { type Body, openApi, TOKENS } from "../support/service/api.ts";
import { workWith } from "../support/service/api-work.ts";
import { addUser, allow, type TestUser } from "../support/service/users.ts";

/* Who tries to decide over what others are asked (control, rule 28). */

const api = await openApi({ FLOW_PURE_STEPS: "server" });
const work = workWith(api);

const steps = (approvers: string) => `  - step: release
    tool: { kind: wait, approval: { title: "Release?", description: "<img src=x onerror=alert(1)>", form: { type: object }${approvers} } }
    next: { arcs: [{ step: end }] }
  - { step: end, tool: { kind: noop, result: { by: "{{ release.by }}" } } }
`;

before(async () => {
  await work.register(
    "w/named",
    steps(", approvers: { roles: [viewer], users: [Boss@Example.com], not_starter: true }"),
  );
  await work.register("w/open", steps(", required: 2"));
});

const call = async (user: TestUser, method: string, path: string, body?: Body) => {
  const headers = { authorization: `Bearer ${TOKENS.operator}`, "x-flow-session": user.tokenSha256 };
  const init = { method, headers: { ...headers, "content-type": "application/json" } };
  const response = await api.guarded.request(path, body === undefined ? init : { ...init, body: JSON.stringify(body) });
  return { status: response.status, body: (await response.json()) as Body };
};
const decide = (user: TestUser, id: string, decision = "approve") =>
  call(user, "POST", `/api/approvals/${id}/decide`, { decision, data: { from: user.email } });

/** The approval for which an execution of the path waits, which this user has started. */
async function openedBy(user: TestUser, path: string): Promise<string> {
  const { body } = await call(user, "POST", "/api/execute", { path });
  const events = `/api/executions/${body["execution_id"]}/events?event_type=approval.opened`;
  for (;;) {
    const [event] = (await work.get(events)).body["events"] as Body[];
    if (event !== undefined) return String((event["meta"] as Body)["approval_id"]);
  }
}

async function people() {
  const starter = await addUser(api.database, { roles: ["viewer"] });
  await allow(api.database, starter, [{ allow: "w/*", can: ["execute", "view"] }]);
  const viewer = await addUser(api.database, { roles: ["viewer"] });
  const stranger = await addUser(api.database);
  return { starter, viewer, stranger };
}

test("the person who has started an execution does not approve it, whatever their roles; another one does", async () => {
  const { starter, viewer } = await people();
  const id = await openedBy(starter, "w/named");
  const refused = await decide(starter, id);
  assert.equal(refused.status, 403);
  assert.match(JSON.stringify(refused.body), /they have started the execution/);
  const mine = await call(starter, "GET", "/api/approvals?mine");
  assert.ok(!(mine.body["approvals"] as Body[]).some((one) => one["approval_id"] === id));
  const theirs = await call(viewer, "GET", "/api/approvals?mine");
  assert.ok((theirs.body["approvals"] as Body[]).some((one) => one["approval_id"] === id));
  assert.deepEqual((await decide(viewer, id)).body["status"], "approved");
});

test("a person who is not among the approvers learns nothing and decides nothing; each try is in the audit log", async () => {
  const { starter, stranger } = await people();
  for (const path of ["w/named", "w/open"]) {
    const id = await openedBy(starter, path);
    assert.equal((await call(stranger, "GET", `/api/approvals/${id}`)).status, 403);
    assert.equal((await decide(stranger, id)).status, 403);
    const { body } = await call(stranger, "GET", "/api/approvals");
    assert.deepEqual(body["approvals"], []);
  }
  const rows = () =>
    api.database
      .sql`select from auth.audit_log where actor = ${stranger.email} and action = 'approval.decide' and result = 'deny'`;
  while ((await rows()).length < 2);
});

test("an approver without a right on the playbook sees what is asked, and not the data of others; an address counts in any case", async () => {
  const { starter, viewer } = await people();
  const boss = await addUser(api.database, { email: `boss@example.com` });
  const id = await openedBy(starter, "w/named");
  const { status, body } = await call(boss, "GET", `/api/approvals/${id}`);
  assert.deepEqual([status, body["title"], body["may_decide"]], [200, "Release?", true]);
  const execution = await call(boss, "GET", `/api/executions/${body["execution_id"]}`);
  assert.equal(execution.status, 403);
  assert.equal((await decide(viewer, id)).status, 200);
  const [decision] = (await call(boss, "GET", `/api/approvals/${id}`)).body["decisions"] as Body[];
  assert.deepEqual([decision?.["by"], decision?.["data"]], [viewer.email, undefined]);
  assert.equal((await decide(boss, id)).status, 409);
});

test("without approvers those decide who may execute the playbook, each once; a right that is gone does not count", async () => {
  const { starter } = await people();
  const second = await addUser(api.database);
  const role = await allow(api.database, second, [{ allow: "w/*", can: ["execute"] }]);
  const id = await openedBy(starter, "w/open");
  assert.equal((await decide(starter, id)).body["status"], "open");
  assert.equal((await decide(starter, id, "reject")).status, 409);
  await api.database.sql`update auth.roles set is_active = false where name = ${role}`;
  assert.equal((await decide(second, id)).status, 403);
  await api.database.sql`update auth.roles set is_active = true where name = ${role}`;
  assert.equal((await decide(second, id)).body["status"], "approved");
});
