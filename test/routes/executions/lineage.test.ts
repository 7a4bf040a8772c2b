import assert from "node:assert/strict";
import { before, test } from "node:test";
import { type Body, openApi, TOKENS } from "../../support/service/api.ts";
import { ONE_STEP, workWith } from "../../support/service/api-work.ts";
import { addUser, allow } from "../../support/service/users.ts";

/* Where an execution comes from, and what came from it (control, rule 17). */

const api = await openApi();
const work = workWith(api);
const { sql } = api.database;

/** A row, as it is written by who starts an execution. */
async function row(id: number, of: { parent?: number; rerun?: number; hook?: number; path?: string } = {}) {
  const { parent = null, rerun = null, hook = null, path = "shop/a" } = of;
  await sql`insert into flow.execution (execution_id, catalog_id, path, version, status, last_event_id, parent_execution_id, root_execution_id,
      rerun_of, rerun_request, started_kind, started_id)
    values (${id}, 1, ${path}, 1, 'RUNNING', ${id}, ${parent}, ${parent ?? id}, ${rerun}, ${rerun === null ? null : '{"from":["load"]}'}::json,
      ${hook === null ? null : "execution"}, ${hook})`;
}
async function stub(id: number, of: { parent?: number; rerun?: number } = {}) {
  await sql`insert into flow.deleted_execution (execution_id, path, version, status, parent_execution_id, rerun_of)
    values (${id}, 'shop/a', 2, 'FAILED', ${of.parent ?? null}, ${of.rerun ?? null})`;
}

/** 1 is the first: 2 and 5 by it; 3 and 9 by 2; 4 repeats 3 (deleted), 6 repeats 4; 7 is a hook of 5; 8 repeats 1. */
before(async () => {
  await row(1);
  await row(2, { parent: 1, path: "shop/b" });
  await stub(3, { parent: 2 });
  await row(4, { rerun: 3 });
  await row(5, { parent: 1, path: "other/x" });
  await row(6, { rerun: 4 });
  await row(7, { hook: 5 });
  await row(8, { rerun: 1 });
  await row(9, { parent: 2 });
});

const brief = (rows: unknown) => (rows as Body[]).map(({ execution_id, by, of }) => `${execution_id} ${by} ${of}`);
async function lineage(id: number | string, query = "") {
  const { status, body } = await work.get(`/api/executions/${id}/lineage?${query}`);
  assert.equal(status, 200, JSON.stringify(body));
  return { up: brief(body["ancestors"]), down: brief(body["descendants"]), next: body["next_cursor"], body };
}

const BELOW_1 = [
  ...["2 parent 1", "3 parent 2", "4 rerun 3", "6 rerun 4", "9 parent 2", "5 parent 1", "7 hook 5", "8 rerun 1"],
];

test("descendants are a tree, siblings by age; ancestors are told from the nearest to the first", async () => {
  const { up, down, next } = await lineage(1);
  assert.deepEqual([up, down, next], [[], BELOW_1, null]);
  const six = await lineage(6);
  assert.deepEqual([six.up, six.down], [["4 rerun 3", "3 rerun 2", "2 parent 1", "1 parent null"], []]);
  assert.deepEqual((await lineage(7)).up, ["5 hook 1", "1 parent null"]);
  const { body } = await lineage(2);
  const [three = {}, four = {}] = body["descendants"] as Body[];
  assert.deepEqual([three["status"], three["version"], three["started_at"]], ["FAILED", 2, null]);
  assert.match(String(three["deleted_at"]), /^\d{4}-/);
  assert.deepEqual([four["changed"], "deleted_at" in four], [{ from: ["load"] }, false]);
  assert.deepEqual(six.body["changed"], { from: ["load"] });
  assert.equal("changed" in body, false);
});

test("pages of every size give the same descendants, and ancestors with the first", async () => {
  for (let limit = 1; limit <= BELOW_1.length + 1; limit += 1) {
    const all: string[] = [];
    let cursor = "";
    for (;;) {
      const { up, down, next } = await lineage(1, `limit=${limit}${cursor}`);
      assert.ok(down.length <= limit);
      assert.deepEqual(up, []);
      all.push(...down);
      if (next === null) break;
      cursor = `&cursor=${next}`;
    }
    assert.deepEqual(all, BELOW_1, `pages of ${limit}`);
  }
  const { next } = await lineage(2, "limit=1");
  const second = await lineage(2, `limit=1&cursor=${next}`);
  assert.deepEqual([second.up, second.down], [[], ["4 rerun 3"]]);
});

test("lists say of a rerun and of a hook what they came from, deleted or not", async () => {
  const startedBy = async (query: string) =>
    ((await work.get(`/api/executions?${query}`)).body["executions"] as Body[]).map(({ started_by }) => started_by);
  assert.deepEqual(await startedBy("started_by=rerun"), [
    { kind: "rerun", id: "1", name: "shop/a" },
    { kind: "rerun", id: "4", name: "shop/a" },
    { kind: "rerun", id: "3", name: "shop/a" },
  ]);
  assert.deepEqual(await startedBy("q=by:execution+by_id:5"), [{ kind: "execution", id: "5", name: "other/x" }]);
});

test("an execution that is not there, or only its rest, has no lineage; a cursor of another one is refused", async () => {
  assert.equal((await work.get("/api/executions/999/lineage")).status, 404);
  assert.equal((await work.get("/api/executions/3/lineage")).status, 404);
  const { next } = await lineage(1, "limit=1");
  assert.equal((await work.get(`/api/executions/5/lineage?cursor=${next}`)).status, 422);
  assert.equal((await work.get("/api/executions/1/lineage?cursor=x")).status, 422);
});

test("a user sees of a lineage what they may view", async () => {
  const user = await addUser(api.database);
  await allow(api.database, user, [{ allow: "shop/**", deny: "shop/b", can: ["view"] }]);
  const headers = { authorization: `Bearer ${TOKENS.operator}`, "x-flow-session": user.tokenSha256 };
  const seen = async (id: number) => {
    const response = await api.guarded.request(`/api/executions/${id}/lineage`, { headers });
    const body = response.status === 200 ? ((await response.json()) as Body) : {};
    return { status: response.status, up: brief(body["ancestors"] ?? []), down: brief(body["descendants"] ?? []) };
  };
  const { down } = await seen(1);
  assert.deepEqual(down, ["3 parent 2", "4 rerun 3", "6 rerun 4", "9 parent 2", "7 hook 5", "8 rerun 1"]);
  assert.deepEqual((await seen(6)).up, ["4 rerun 3", "3 rerun 2", "1 parent null"]);
  assert.equal((await seen(2)).status, 403);
});

test("a child that was called has its caller as its ancestor; many children are read a page at a time", async () => {
  await work.register("real", ONE_STEP);
  const parent = await work.execute("real");
  const child = await work.execute("real", { parent_execution_id: parent });
  assert.deepEqual((await lineage(child)).up, [`${parent} parent null`]);
  assert.deepEqual((await lineage(parent)).down, [`${child} parent ${parent}`]);
  await sql`insert into flow.execution (execution_id, catalog_id, path, version, status, last_event_id, parent_execution_id, root_execution_id)
    select n, 1, 'shop/many', 1, 'RUNNING', n, 1000, 1000 from generate_series(1001, 3000) as n
    union all select 1000, 1, 'shop/many', 1, 'RUNNING', 1000, null, 1000`;
  // A chain of reruns, each of the one before.
  await sql`insert into flow.execution (execution_id, catalog_id, path, version, status, last_event_id, root_execution_id, rerun_of)
    select n, 1, 'shop/line', 1, 'RUNNING', n, n, nullif(n - 1, 4000) from generate_series(4001, 5500) as n`;
  const many = await lineage(1000, "limit=500");
  assert.deepEqual([many.down.length, many.down[499]], [500, "1500 parent 1000"]);
  const line = await lineage(4001, "limit=500");
  assert.deepEqual([line.down.length, line.down[499]], [500, "4501 rerun 4500"]);
  const rest = await lineage(4001, `limit=500&cursor=${line.next}`);
  assert.deepEqual([rest.down[0], rest.down[499]], ["4502 rerun 4501", "5001 rerun 5000"]);
  const { up } = await lineage(5500);
  assert.deepEqual([up.length, up[0], up[999]], [1_000, "5499 rerun 5498", "4500 rerun 4499"]);
});
