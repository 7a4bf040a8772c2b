import assert from "node:assert/strict";
import { before, test } from "node:test";
import { storedResults } from "../support/database/stored-results.ts";
import { type Body, openApi, posted, TOKENS } from "../support/service/api.ts";
import { type Claimed, endOf, ONE_STEP } from "../support/service/api-work.ts";
import { addUser, allow, type TestUser } from "../support/service/users.ts";

/*
 * A worker of one team reports, in the name of its own command, that its result is what another team's execution has stored. The
 * server reads results when it decides what follows: it must read none for which the execution has no right.
 */

const CANARY = "canary-of-the-other-team";
const READING = `  - step: start
    tool: { kind: noop }
    next: { arcs: [{ step: end, args: { taken: "{{ start.said }}" } }] }
  - step: end
    tool: { kind: noop, result: "{{ taken }}" }
`;

const api = await openApi();
const { work, claimed, put, refOf } = storedResults(api);
let foreign: Claimed;
let user: TestUser;

before(async () => {
  await work.register("other/b", ONE_STEP);
  await work.register("mine/a", READING);
  foreign = await claimed("other/b");
  assert.equal((await put(foreign, JSON.stringify({ said: CANARY }))).status, 200);
  assert.equal(
    (await put(foreign, manifestOf(refOf(foreign)), { ref: `${refOf(foreign, "2")}/manifest` })).status,
    200,
  );
  user = await addUser(api.database);
  await allow(api.database, user, [{ allow: "mine/**", can: ["execute", "view"] }]);
});

function manifestOf(ref: string): string {
  return JSON.stringify({ kind: "manifest", strategy: "replace", parts: [{ ref }] });
}

/** Starts the team's playbook, as the user or as the operator, and claims its first command. */
async function begun(isUser: boolean): Promise<Claimed> {
  const session = isUser ? { "x-flow-session": user.tokenSha256 } : {};
  const headers = { authorization: `Bearer ${TOKENS.operator}`, ...session };
  const response = await api.guarded.request("/api/execute", posted({ path: "mine/a" }, headers));
  const { execution_id } = (await response.json()) as Body;
  const found = (await work.claim("w", 100)).find((command) => command.execution_id === execution_id);
  return found ?? assert.fail("its command cannot be claimed");
}

/** Reports this reference as the command's result; gives all that the execution says then. */
async function reported(command: Claimed, ref: string): Promise<string> {
  const reference = {
    kind: "result_ref",
    ref,
    store: "kv",
    meta: { bytes: 10, sha256: "" },
    extracted: {},
    preview: {},
  };
  const [done, ...end] = endOf(command);
  const events = [{ ...done, result: { status: "ok", reference, context: {} } }, ...end];
  // Answered when all that follows is written.
  const { status, body } = await work.post("/api/events/batch", { worker: "w", events, claim: { limit: 1 } });
  assert.equal(status, 202, JSON.stringify(body));
  const detail = await work.get(`/api/executions/${command.execution_id}`);
  const log = await work.get(`/api/executions/${command.execution_id}/events`);
  return JSON.stringify([body, detail.body, log.body]);
}

test("a reference to another team's result gives nothing to an execution whose user may not view it; its own does", async () => {
  const own = await begun(true);
  assert.equal((await put(own, JSON.stringify({ said: CANARY }))).status, 200);
  assert.match(await reported(own, refOf(own)), new RegExp(CANARY), "its own result is read");
  for (const ref of [refOf(foreign), `${refOf(foreign, "2")}/manifest`]) {
    const text = await reported(await begun(true), ref);
    assert.doesNotMatch(text, new RegExp(CANARY), text);
  }
  const rows = await api.service.audit.close().then(
    () => api.database.sql`
      select resource from auth.audit_log where action = 'playbook.view' and result = 'deny' and actor = ${user.email}`,
  );
  assert.ok(rows.some(({ resource }) => resource === "playbook/other/b"));
});

test("a manifest of its own, whose parts are another team's, gives nothing either", async () => {
  const command = await begun(true);
  const ref = `${refOf(command)}/manifest`;
  assert.equal((await put(command, manifestOf(refOf(foreign)), { ref })).status, 200);
  const text = await reported(command, ref);
  assert.doesNotMatch(text, new RegExp(CANARY), text);
});

test("an execution of operators may read all results, as its tasks may", async () => {
  assert.match(await reported(await begun(false), refOf(foreign)), new RegExp(CANARY));
});
