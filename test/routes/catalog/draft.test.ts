import assert from "node:assert/strict";
import { after, test } from "node:test";
import { deleteDraftsLeft } from "../../../src/repositories/catalog/drafts.ts";
import { countEnded } from "../../../src/services/statistics/count-executions.ts";
import { type Body, buildApi, openApi, posted, TOKENS } from "../../support/service/api.ts";
import { workWith } from "../../support/service/api-work.ts";
import { addUser, allow } from "../../support/service/users.ts";

/* A document that is run without being registered. */

const api = await openApi({ FLOW_PURE_STEPS: "server" });
const elsewhere = await buildApi(api.database);
after(() => elsewhere.service.orchestrator.close());
const work = workWith(api);
const { sql } = api.database;

const textOf = (path: string, result = "one", more = "") =>
  `apiVersion: flow/v2\nkind: Playbook\nmetadata: { name: n, path: ${path} }\nworkload: { who: world }\nworkflow:\n  - { step: start, tool: { kind: noop, result: { was: "${result} {{ workload.who }}" } } }\n${more}`;
const run = (content: string, more: Body = {}, headers: Record<string, string> = {}) =>
  work.post("/api/execute/draft", { content, ...more }, headers);
const idOf = ({ body }: { body: Body }) => String(body["execution_id"]);
const detail = async (id: string) => (await work.get(`/api/executions/${id}`)).body;
const drafts = async () => Number((await sql`select count(*) as n from flow.draft`)[0]?.["n"]);

test("the text runs as it is, and is no version: not in the catalog, and not found by its number", async () => {
  await work.register("d/run", "  - { step: start, tool: { kind: noop, result: registered } }\n");
  const answer = await run(textOf("d/run"), { workload: { who: "you" }, labels: { why: "trial" } });
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  assert.deepEqual([answer.body["path"], answer.body["version"]], ["d/run", 0]);
  const { status, result, version } = await detail(idOf(answer));
  assert.deepEqual([status, version], ["COMPLETED", 0]);
  assert.match(JSON.stringify(result), /one you/);
  const { body: versions } = await work.get("/api/catalog/versions/d/run");
  assert.deepEqual(
    (versions["versions"] as Body[]).map((one) => one["version"]),
    [1],
  );
  assert.equal((await work.get("/api/catalog/resource/d/run?version=0")).status, 422);
  const { body: listed } = await work.get("/api/executions?path=d/run");
  assert.deepEqual(
    (listed["executions"] as Body[]).map((one) => one["version"]),
    [0],
  );
  // Its text is where a worker and the page read it, on any server.
  const entry = await workWith(elsewhere).get(`/api/catalog/entries/${answer.body["catalog_id"]}`);
  assert.deepEqual([entry.body["version"], entry.body["content"]], [0, textOf("d/run")]);
});

test("a path that was never registered runs too, and stays unknown to the catalog", async () => {
  const answer = await run(textOf("d/new"));
  assert.equal((await detail(idOf(answer)))["status"], "COMPLETED");
  assert.equal((await work.get("/api/catalog/resource/d/new")).status, 404);
  assert.equal((await work.post("/api/execute", { path: "d/new" })).status, 404);
});

test("what does not fit is refused, and nothing is left of it", async () => {
  const before = await drafts();
  const broken = await run(textOf("d/bad").replace("tool:", "next: { arcs: [{ step: nowhere }] }, tool:"));
  assert.deepEqual([broken.status, broken.body["code"]], [422, "INVALID_PLAYBOOK"]);
  assert.match(String(broken.body["error"]), /^The draft was not run: it has 1 error/);
  assert.ok(((broken.body["detail"] as Body)["errors"] as Body[])[0]?.["line"]);
  const server = await run(
    "apiVersion: flow/v2\nkind: Mcp\nmetadata: { name: s, path: d/mcp }\nspec: { endpoint: http://127.0.0.1:9/mcp }\n",
  );
  assert.equal(server.status, 422);
  assert.match(String(server.body["error"]), /only playbooks run/);
  const declared = `${textOf("d/bad")}`.replace("workload: { who: world }", "inputs: { who: { type: string } }");
  assert.equal((await run(declared, { workload: { who: 7 } })).status, 422);
  assert.equal((await run(declared, { target: "nowhere" })).status, 404);
  const child = textOf("d/bad").replace("kind: noop", "kind: playbook, path: d/nothing");
  assert.equal((await run(child.replace(/, result: .*? } }/, " }"))).status, 404);
  assert.equal((await run(textOf("d/bad"), { version: 3 })).status, 422);
  assert.equal((await run("")).status, 422);
  await work.register("d/held", "  - { step: start, tool: { kind: noop } }\n");
  await work.post("/api/catalog/pause/d/held");
  assert.equal((await run(textOf("d/held"))).body["code"], "playbook_paused");
  assert.equal(await drafts(), before);
});

test("a call that is repeated under its key runs once; the same key with another text is refused", async () => {
  const before = await drafts();
  const key = { "idempotency-key": "draft-1" };
  const first = await run(textOf("d/once"), {}, key);
  const again = await run(textOf("d/once"), {}, key);
  assert.deepEqual([idOf(again), again.body["duplicate"]], [idOf(first), true]);
  assert.equal((await run(textOf("d/once", "two"), {}, key)).status, 422);
  assert.equal(await drafts(), before + 1);
});

test("it is run again from its own text, which is kept as long as an execution of it", async () => {
  const id = idOf(await run(textOf("d/again", "kept")));
  await detail(id);
  const rerun = await work.post(`/api/executions/${id}/rerun`, { from: "start" });
  assert.equal(rerun.status, 202, JSON.stringify(rerun.body));
  assert.equal(rerun.body["version"], 0);
  const other = await detail(idOf(rerun));
  assert.match(JSON.stringify(other["result"]), /kept world/);
  const later = new Date(Date.now() + 1_000);
  const sweep = () => deleteDraftsLeft(api.database, later, String(BigInt(String(other["catalog_id"])) - 1n), 1);
  assert.equal((await api.open.request(`/api/executions/${id}`, { method: "DELETE" })).status, 200);
  assert.deepEqual((await sweep()).deleted, 0);
  assert.equal((await api.open.request(`/api/executions/${idOf(rerun)}`, { method: "DELETE" })).status, 200);
  assert.deepEqual((await sweep()).deleted, 1);
  assert.equal((await work.get(`/api/catalog/entries/${other["catalog_id"]}`)).status, 404);
});

test("a young draft without an execution stays: its start may be under way", async () => {
  await sql`insert into flow.draft (catalog_id, path, kind, content) values (3, 'd/young', 'playbook', 'x')`;
  assert.deepEqual(await deleteDraftsLeft(api.database, new Date(Date.now() - 60_000), "2", 1), {
    deleted: 0,
    next: "3",
  });
  assert.deepEqual(await deleteDraftsLeft(api.database, new Date(Date.now() + 60_000), "2", 1), {
    deleted: 1,
    next: "3",
  });
});

test("statistics have what is registered: no draft, no rerun of one, no test of a step", async () => {
  await work.register("d/counted", "  - { step: start, tool: { kind: noop } }\n");
  await work.runToEnd(await work.execute("d/counted"));
  const text = textOf("d/counted");
  const draft = idOf(await run(text));
  await work.runToEnd(draft);
  const { body: rerun } = await work.post(`/api/executions/${draft}/rerun`, { from: "start" });
  const { body: test } = await work.post("/api/execute/draft/step", { content: text, step: "start" });
  for (const body of [rerun, test]) await work.runToEnd(idOf({ body }));
  while ((await countEnded(api.database, 100)) > 0);
  const { body } = await work.get("/api/stats?path=d/counted&group=path");
  const { counts } = body["total"] as { counts: Body };
  assert.deepEqual(counts, { COMPLETED: 1, FAILED: 0, CANCELLED: 0 });
  const [step, ...more] = body["steps"] as Body[];
  assert.deepEqual([step?.["count"], more], [1, []]);
  // Lists have them all, each with what it is.
  const { body: listed } = await work.get("/api/executions?path=d/counted");
  const versions = (listed["executions"] as Body[]).map((one) => one["version"]);
  assert.deepEqual(versions, [0, 0, 0, 1]);
});

test("its triggers do not fire, and no trigger of others fires for its end", async () => {
  api.service.watching.ends = true;
  const after = `triggers:\n  - { name: after, execution: { path: d/quiet } }\n`;
  const { status } = await work.post("/api/catalog/register", { content: textOf("d/after", "after", after) });
  assert.equal(status, 200);
  const schedule = "triggers:\n  - { name: often, schedule: { every: 1s } }\n";
  const id = idOf(await run(textOf("d/quiet", "q", schedule)));
  assert.equal((await detail(id))["status"], "COMPLETED");
  await api.service.triggers.sweep();
  const fired = await sql`
    select from flow.trigger_fire as f join flow.trigger as t on t.trigger_id = f.trigger_id where t.path like 'd/%'`;
  assert.equal(fired.length, 0);
  assert.equal((await sql`select from flow.trigger where path = 'd/quiet'`).length, 0);
  api.service.watching.ends = false;
});

test("who runs a draft needs to change and to execute its path; both are in the audit log with the execution", async () => {
  const as = async (can: ("modify" | "execute" | "view")[], path: string, allowed = "d/**") => {
    const user = await addUser(api.database);
    await allow(api.database, user, [{ allow: allowed, can }]);
    const headers = { authorization: `Bearer ${TOKENS.operator}`, "x-flow-session": user.tokenSha256 };
    const answer = await api.guarded.request("/api/execute/draft", posted({ content: textOf(path) }, headers));
    return { user, status: answer.status, body: (await answer.json()) as Body };
  };
  assert.equal((await as(["execute", "view"], "d/who")).status, 403);
  assert.equal((await as(["modify"], "d/who")).status, 403);
  assert.equal((await as(["modify", "execute"], "other/who")).status, 403);
  assert.equal((await as(["modify", "execute", "view"], "system/mine", "**")).status, 403);
  const { user, status, body } = await as(["modify", "execute"], "d/who");
  assert.equal(status, 200, JSON.stringify(body));
  const worker = posted({ content: textOf("d/who") }, { authorization: `Bearer ${TOKENS.worker}` });
  assert.equal((await api.guarded.request("/api/execute/draft", worker)).status, 403);
  await api.service.audit.close();
  const rows = await sql<{ action: string; result: string; id: string | null }[]>`
    select action, result, execution_id as id from auth.audit_log where actor = ${user.email} order by action`;
  assert.deepEqual(
    rows.map((row) => ({ ...row })),
    [
      { action: "playbook.execute", result: "allow", id: String(body["execution_id"]) },
      { action: "playbook.modify", result: "allow", id: String(body["execution_id"]) },
    ],
  );
});
