import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Body, buildApi, openApi, posted, TOKENS } from "../../support/service/api.ts";
import { ONE_STEP, workWith } from "../../support/service/api-work.ts";
import { addUser, allow } from "../../support/service/users.ts";

/* A playbook that is paused in the catalog: nothing new of it starts, on any server. */

const api = await openApi();
const elsewhere = await buildApi(api.database);
after(() => elsewhere.service.orchestrator.close());
const work = workWith(api);
const there = workWith(elsewhere);

before(async () => {
  for (const path of ["q/caller", "q/plain", "q/kept", "q/key", "q/child", "q/shown", "q/who"]) {
    await work.register(path, ONE_STEP);
  }
});

const pause = (path: string, body: Body = {}) => work.post(`/api/catalog/pause/${path}`, body);
const resume = (path: string) => work.post(`/api/catalog/resume/${path}`);
const start = (path: string, more: Body = {}, at = work) => at.post("/api/execute", { path, ...more });

test("no start of a paused path succeeds, by path, version or id, on any server; what runs goes on", async () => {
  const running = await work.execute("q/plain");
  // Its newest version is in the memory of both servers now.
  const there1 = await start("q/plain", {}, there);
  assert.equal(there1.status, 200);
  assert.equal((await pause("q/plain", { reason: "the warehouse is down" })).status, 200);
  const { body: entry } = await work.get("/api/catalog/resource/q/plain");
  for (const refused of [
    await start("q/plain"),
    await start("q/plain", {}, there),
    await start("q/plain", { version: 1 }),
    await work.post("/api/execute", { catalog_id: entry["catalog_id"] }),
  ]) {
    assert.deepEqual([refused.status, refused.body["code"]], [409, "playbook_paused"]);
    assert.match(
      String(refused.body["error"]),
      /^'q\/plain' was not started: operator paused it at .*: the warehouse is down\. Resume it with/,
    );
  }
  assert.equal((await work.runToEnd(running))["status"], "COMPLETED");
  assert.deepEqual((await resume("q/plain")).body, { path: "q/plain", paused: null });
  assert.equal((await start("q/plain")).status, 200);
  assert.equal((await start("q/plain", {}, there)).status, 200);
});

test("the first reason stays, over a second pause and a new version; resuming what is not paused changes nothing", async () => {
  const { body: first } = await pause("q/kept", { reason: "one" });
  const { body: second } = await pause("q/kept", { reason: "two" });
  assert.deepEqual(second, first);
  await work.register("q/kept", ONE_STEP, ", description: changed");
  assert.equal((await start("q/kept")).status, 409);
  await resume("q/kept");
  assert.deepEqual((await resume("q/kept")).body, { path: "q/kept", paused: null });
  assert.equal((await start("q/kept")).status, 200);
});

test("a start that was made before is answered again under its key; a new one under a new key is refused", async () => {
  const keyed = (key: string) => work.post("/api/execute", { path: "q/key" }, { "idempotency-key": key });
  const { body } = await keyed("a");
  await pause("q/key");
  const again = await keyed("a");
  assert.deepEqual([again.status, again.body["execution_id"]], [200, body["execution_id"]]);
  assert.equal((await keyed("b")).status, 409);
  await resume("q/key");
});

test("a child of a paused path is not started either", async () => {
  const parent = await work.execute("q/caller");
  await pause("q/child");
  const refused = await start("q/child", { parent_execution_id: parent, parent_step: "start" });
  assert.equal(refused.body["code"], "playbook_paused");
  await resume("q/child");
});

test("the catalog and the entry say since when, by whom and why", async () => {
  await pause("q/shown", { reason: "why not" });
  const { body } = await work.get("/api/catalog?prefix=q/");
  const listed = (body["resources"] as Body[]).filter(({ paused }) => paused !== undefined);
  assert.deepEqual(
    listed.map(({ path, paused }) => [path, (paused as Body)["reason"]]),
    [["q/shown", "why not"]],
  );
  const { body: entry } = await work.get("/api/catalog/resource/q/shown");
  const { since, ...told } = entry["paused"] as Body;
  assert.deepEqual(told, { by: "operator", reason: "why not" });
  assert.ok(Math.abs(Date.now() - Date.parse(String(since))) < 60_000);
  await resume("q/shown");
  assert.equal((await work.get("/api/catalog/resource/q/shown")).body["paused"], undefined);
});

test("an unknown path is 404; a reason that is too long 422", async () => {
  assert.equal((await pause("q/nothing")).status, 404);
  assert.equal((await resume("q/nothing")).status, 404);
  assert.equal((await pause("q/plain", { reason: "x".repeat(1_025) })).status, 422);
});

test("who may change the playbook may pause it, and the audit log says who did, and who was refused", async () => {
  const author = await addUser(api.database);
  await allow(api.database, author, [{ allow: "q/**", can: ["modify"] }]);
  const runner = await addUser(api.database);
  await allow(api.database, runner, [{ allow: "q/**", can: ["execute", "view"] }]);
  const as = async (session: string) =>
    (
      await api.guarded.request(
        "/api/catalog/pause/q/who",
        posted({ reason: "mine" }, { authorization: `Bearer ${TOKENS.operator}`, "x-flow-session": session }),
      )
    ).status;
  assert.equal(await as(runner.tokenSha256), 403);
  assert.equal(await as(author.tokenSha256), 200);
  await api.service.audit.close();
  const rows = await api.database.sql<{ actor: string | null; action: string; result: string }[]>`
    select actor, action, result from auth.audit_log where resource = 'playbook/q/who'`;
  const seen = rows.map(({ actor, action, result }) => `${result} ${action} ${actor ?? ""}`);
  assert.ok(seen.includes(`allow playbook.pause ${author.email}`), seen.join());
  assert.ok(seen.includes(`deny playbook.modify ${runner.email}`), seen.join());
  await resume("q/who");
  const worker = posted({}, { authorization: `Bearer ${TOKENS.worker}` });
  assert.equal((await api.guarded.request("/api/catalog/pause/q/who", worker)).status, 403);
});
