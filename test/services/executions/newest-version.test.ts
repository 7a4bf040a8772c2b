import assert from "node:assert/strict";
import { test } from "node:test";
import { buildApi, openApi } from "../../support/service/api.ts";
import { ONE_STEP, workWith } from "../../support/service/api-work.ts";

/* Two servers on one database: each remembers the newest version of a path, and no notice passes between them. */

const here = await openApi();
const there = await buildApi(here.database);
const [one, two] = [workWith(here), workWith(there)];

/** Another version of the playbook: its step has another name. */
async function register(work: typeof one, path: string, version: number, workflow = ONE_STEP): Promise<void> {
  await work.register(path, workflow, `, description: version ${version}`);
}

async function startedVersion(work: typeof one, path: string): Promise<unknown> {
  const { status, body } = await work.post("/api/execute", { path });
  assert.equal(status, 200, JSON.stringify(body));
  const { body: detail } = await work.get(`/api/executions/${String(body["execution_id"])}`);
  assert.equal(detail["version"], body["version"], "what is answered is what runs");
  return body["version"];
}

test("who registers at one server and starts at the other at once gets the new version, 200 times", async () => {
  for (let version = 1; version <= 200; version += 1) {
    const [at, other] = version % 2 === 0 ? [one, two] : [two, one];
    await register(at, "newest/turns", version);
    assert.equal(await startedVersion(other, "newest/turns"), version);
  }
});

test("starts beside a registration get the version before it or after it, and after its answer only that", async () => {
  await register(one, "newest/beside", 1);
  await startedVersion(two, "newest/beside");
  for (let version = 2; version <= 20; version += 1) {
    const beside = Array.from({ length: 8 }, () => startedVersion(two, "newest/beside"));
    await register(one, "newest/beside", version);
    const after = Array.from({ length: 8 }, () => startedVersion(two, "newest/beside"));
    assert.deepEqual(new Set(await Promise.all(after)), new Set([version]));
    for (const found of await Promise.all(beside)) assert.ok(found === version - 1 || found === version, String(found));
  }
});

test("a remembered version makes one statement less, and a version by its number is not looked for among the newest", async () => {
  await register(one, "newest/again", 1);
  assert.equal(await startedVersion(two, "newest/again"), 1);
  await register(one, "newest/again", 2);
  const { body } = await two.post("/api/execute", { path: "newest/again", version: 1 });
  assert.equal(body["version"], 1);
  assert.equal(await startedVersion(two, "newest/again"), 2);
});

test("what a remembered version would be refused for counts only if it is the newest", async () => {
  const missing = `  - step: start\n    tool: { kind: playbook, path: newest/absent }\n`;
  await register(one, "newest/refused", 1, ONE_STEP);
  await startedVersion(two, "newest/refused");
  await register(one, "newest/refused", 2, missing);
  const refused = await two.post("/api/execute", { path: "newest/refused" });
  assert.deepEqual([refused.status, refused.body["code"]], [404, "NOT_FOUND"], JSON.stringify(refused.body));
  await register(one, "newest/refused", 3, ONE_STEP);
  assert.equal(await startedVersion(two, "newest/refused"), 3);
  const step = await two.post("/api/execute", { path: "newest/refused", return_step: "absent" });
  assert.equal(step.status, 404, JSON.stringify(step.body));
});

test("a start that is refused for its version leaves nothing behind, and one with a key starts once", async () => {
  await register(one, "newest/once", 1);
  await startedVersion(two, "newest/once");
  await register(one, "newest/once", 2);
  const key = { "idempotency-key": "newest-once" };
  const answers = await Promise.all(
    Array.from({ length: 4 }, () => two.post("/api/execute", { path: "newest/once" }, key)),
  );
  assert.equal(new Set(answers.map(({ body }) => body["execution_id"])).size, 1, JSON.stringify(answers));
  const rows = await here.database.sql`
    select e.version, count(*)::int as executions, (select count(*)::int from flow.command c where c.catalog_id = e.catalog_id) as commands
      from flow.execution e where e.path = 'newest/once' group by e.version, e.catalog_id order by e.version`;
  assert.deepEqual(
    rows.map(({ version, executions, commands }) => [version, executions, commands]),
    [
      [1, 1, 1],
      [2, 1, 1],
    ],
  );
});

test("the other server ends", async () => {
  await there.service.orchestrator.close();
  await there.service.results.close();
});
