import assert from "node:assert/strict";
import { before, test } from "node:test";
import { type Body, openApi, posted, TOKENS } from "../../support/service/api.ts";
import { ONE_STEP, TWO_STEPS, workWith } from "../../support/service/api-work.ts";
import { addUser, allow } from "../../support/service/users.ts";

/* Which executions a list shows, by parameters and by what people type; and what started each. */

const api = await openApi();
const work = workWith(api);
before(async () => {
  for (const path of ["etl/a", "etl/deep/b", "other/c"]) await work.register(path, ONE_STEP);
  await work.register("two", TWO_STEPS);
});

const idsOf = (answer: Body) => (answer["executions"] as Body[]).map(({ execution_id }) => execution_id);
async function listed(query: string | Record<string, string>): Promise<unknown[]> {
  const { status, body } = await work.get(`/api/executions?${new URLSearchParams(query)}`);
  assert.equal(status, 200, JSON.stringify([query, body]));
  return idsOf(body);
}

test("parameters and the query language mean the same", async () => {
  const a = await work.execute("etl/a", { labels: { team: "data", tier: "gold" }, workload: { day: "2026-01-31" } });
  const b = await work.execute("etl/deep/b", { labels: { team: "data" } });
  const c = await work.execute("other/c", { workload: { day: "2026-01-31", deep: { n: 7 } } });
  const same = async (expected: string[], ...queries: Record<string, string>[]) => {
    for (const query of queries) assert.deepEqual(await listed(query), expected, JSON.stringify(query));
  };
  await same(
    [a],
    { path: "etl/*" },
    { q: "path:etl/*" },
    { q: "etl/*" },
    { labels: "tier=gold" },
    { q: "label.tier:gold" },
  );
  await same(
    [b, a],
    { path: "etl/**" },
    { labels: "team=data" },
    { "label.team": "data" },
    { q: "label.team:data status:running" },
  );
  await same([a], { labels: "team=data,tier:gold" }, { "label.team": "data", "label.tier": "gold" });
  await same([c, a], { input: "day=2026-01-31" }, { "input.day": "2026-01-31" }, { q: "input.day:2026-01-31" });
  await same([c], { "input.deep.n": "7" }, { q: "input.deep.n:7" }, { q: 'input.deep:"{\\"n\\":7}"' });
  await same([b], { q: b }, { q: `id:${b}`, path_contains: "DEEP" });
  await same([], { "label.team": "Data" }, { q: "label.team:dat" }, { version: "2", path: "etl/a" });
  await same(
    [c, b, a],
    { q: "started:>1h is:root by:user version:1" },
    { roots_only: "true", roots: "x", since: "2026-01-01" },
  );
  const [, shown = {}] = (await work.get("/api/executions?labels=team=data")).body["executions"] as Body[];
  assert.deepEqual(shown["labels"], { team: "data", tier: "gold" });
  assert.deepEqual((await work.get(`/api/executions/${c}`)).body["labels"], {});
});

test("an execution is found by the code of its error, and by the step at which it failed or works", async () => {
  const failed = await work.execute("two");
  for (const command of await work.claim("w", 100)) {
    const { command_id, attempt, step, execution_id } = command;
    if (execution_id !== failed) continue;
    const error = { kind: "server_error", code: "HTTP_500", message: "it broke", retryable: true };
    await work.post("/api/events/batch", {
      worker: "w",
      events: [{ command_id, attempt, step, event_type: "command.failed", error }],
    });
  }
  await work.get(`/api/executions/${failed}/result?wait_ms=5000`);
  const open = await work.execute("two");
  assert.deepEqual(await listed({ q: "error:HTTP_500" }), [failed]);
  assert.deepEqual(await listed({ q: "error:HTTP_500 status:running" }), []);
  assert.deepEqual(await listed({ error_code: "HTTP_500", path: "two" }), [failed]);
  assert.deepEqual(await listed({ q: "step:start path:two" }), [open, failed]);
  assert.deepEqual(await listed({ q: "step:end path:two" }), []);
});

test("what cannot be read is refused with its place; nothing is said twice", async () => {
  const refused = async (query: string) => {
    const { status, body } = await work.get(`/api/executions?${query}`);
    assert.equal(status, 422, query);
    return body;
  };
  const body = await refused(`q=${encodeURIComponent("path:x stat:y")}`);
  assert.deepEqual(
    (body["detail"] as { errors: Body[] }).errors.map(({ path, from, to }) => [path, from, to]),
    [["q", 7, 11]],
  );
  assert.match(
    String(body["error"]),
    /there is no key 'stat': the keys are status, path, .*\n {2}path:x stat:y\n {9}\^{4}$/,
  );
  assert.match(String((await refused("q=status:failed&status=RUNNING"))["error"]), /status: stands in 'q' too/);
  for (const query of [
    "version=x",
    "started_by=me",
    "labels=team",
    "labels=",
    "roots_only=1",
    "since=yesterday",
    "label.-=x",
    "started_by_id=0",
  ]) {
    await refused(query);
  }
});

test("an execution says what started it: an operator, a user, its parent, an agent's client", async () => {
  const user = await addUser(api.database, { email: "ada@example.com" });
  await allow(api.database, user, [{ allow: "etl/**", can: ["execute", "view"] }]);
  const headers = { authorization: `Bearer ${TOKENS.operator}`, "x-flow-session": user.tokenSha256 };
  const as = async (path: string, init: RequestInit = { headers }) =>
    (await (await api.guarded.request(path, init)).json()) as Body;
  const originOf = async (id: unknown) => (await work.get(`/api/executions/${id}`)).body["started_by"];
  const byOperator = await work.execute("etl/a");
  assert.deepEqual(await originOf(byOperator), { kind: "user", id: null, name: "operator" });
  const byUser = String((await as("/api/execute", posted({ path: "etl/a" }, headers)))["execution_id"]);
  const origin = { kind: "user", id: String(user.userId), name: "ada@example.com" };
  assert.deepEqual(await originOf(byUser), origin);
  assert.deepEqual(await listed({ started_by_id: String(user.userId) }), [byUser]);
  const parent = await work.execute("other/c");
  const child = await work.execute("etl/a", { parent_execution_id: parent });
  assert.deepEqual(await originOf(child), { kind: "execution", id: parent, name: "other/c" });
  assert.deepEqual(await listed({ started_by: "execution", started_by_id: parent }), [child]);
  assert.deepEqual(await listed({ started_by: "user", started_by_id: parent }), []);
  assert.deepEqual((await listed({ q: "is:root" })).includes(child), false);
  // The user may not see the parent: neither its path.
  assert.deepEqual((await as(`/api/executions/${child}`))["started_by"], { kind: "execution", id: parent, name: null });
  const rows = (await as("/api/executions?started_by=execution"))["executions"] as Body[];
  assert.deepEqual(
    rows.map(({ started_by }) => started_by),
    [{ kind: "execution", id: parent, name: null }],
  );
  const byName = await as(`/api/executions?path=${encodeURIComponent("**")}&started_by=user`);
  assert.ok(idsOf(byName).includes(byUser) && !idsOf(byName).includes(parent));
});

test("a playbook gives its executions labels, and a start gives others over them", async () => {
  const labels =
    '{ team: data, who: "{{ workload.who }}", day: "{{ who | upper }}-1", none: "{{ workload.no | default(null) }}", tier: 1 }';
  await work.register("labelled", `${ONE_STEP}executor: { spec: { labels: ${labels} } }\n`);
  const labelsOf = async (id: string) => (await work.get(`/api/executions/${id}`)).body["labels"];
  const id = await work.execute("labelled", { labels: { team: "ops", extra: "x" } });
  assert.deepEqual(await labelsOf(id), { team: "ops", who: "world", day: "WORLD-1", tier: "1", extra: "x" });
  assert.deepEqual(await listed({ q: "label.who:world label.tier:1 label.extra:x" }), [id]);
  const many = Object.fromEntries(Array.from({ length: 29 }, (_, n) => [`l${n}`, "x"]));
  const refused = async (body: Body, why: RegExp) => {
    const { status, body: answer } = await work.post("/api/execute", { path: "labelled", ...body });
    assert.equal(status, 422);
    assert.match(String(answer["error"]), why);
  };
  await refused({ labels: many }, /'labelled' was not started: it has 33 labels; 32 are allowed/);
  await refused({ workload: { who: "x".repeat(257) } }, /The label 'who' of 'labelled' is "x+/);
  await refused({ workload: { who: ["a"] } }, /The label 'who' of 'labelled' is \["a"\]: it must be one line/);
  const again = await work.execute("labelled", { workload: { who: "eve" } });
  assert.equal(((await labelsOf(again)) as Body)["who"], "eve");
  await work.post(`/api/executions/${again}/cancel`);
  assert.equal((await api.open.request(`/api/executions/${again}`, { method: "DELETE" })).status, 200);
  assert.deepEqual(await listed({ q: "label.who:eve" }), []);
  const [{ left } = { left: 0 }] = await api.database.sql<{ left: number }[]>`
    select count(*)::int as left from flow.execution_label where execution_id = ${again}`;
  assert.equal(left, 0, "labels go with their execution");
});

test("labels are refused where there are too many, or one of them is none", async () => {
  const start = async (labels: unknown) => await work.post("/api/execute", { path: "etl/a", labels });
  const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`l${n}`, "x"]));
  assert.equal((await start(many(32))).status, 200);
  const { status, body } = await start(many(33));
  assert.equal(status, 422);
  assert.match(String(body["error"]), /labels: has 33 labels; 32 are allowed/);
  for (const labels of [
    { a: 1 },
    { a: "" },
    { "-a": "x" },
    { ["a".repeat(64)]: "x" },
    { a: "x".repeat(257) },
    { a: "x\ny" },
    [],
    "a=b",
  ]) {
    assert.equal((await start(labels)).status, 422, JSON.stringify(labels));
  }
  assert.equal((await start({ ["a".repeat(63)]: "x".repeat(256), "a/b.c-d_e": "ä b, c=d" })).status, 200);
});

test("a list says what an open execution does now: it waits for a worker, or one has it", async () => {
  await work.register("now/one", ONE_STEP);
  const id = await work.execute("now/one");
  const now = async () => ((await work.get("/api/executions?path=now/one")).body["executions"] as Body[])[0]?.["now"];
  const [{ step, does } = {}] = [(await now()) as Body];
  assert.deepEqual([typeof step, does], ["string", "queues"]);
  const [command] = (await work.claim("w", 100)).filter(({ execution_id }) => execution_id === id);
  assert.ok(command !== undefined);
  assert.deepEqual(await now(), { step, does: "runs" });
  await work.finish("w", command);
  assert.equal(await now(), undefined, "it has ended");
});

test("executions are counted by state, as the same filter lists them", async () => {
  await work.register("counted/one", ONE_STEP);
  const countsOf = async (query: string) => (await work.get(`/api/executions/counts?${query}`)).body["counts"] as Body;
  const none = { count: 0, more: false };
  assert.deepEqual((await countsOf("path=counted/*"))["RUNNING"], none);
  const first = await work.execute("counted/one");
  await work.execute("counted/one");
  await work.post(`/api/executions/${first}/cancel`);
  const counts = await countsOf("q=path:counted/*");
  assert.deepEqual(counts["CANCELLED"], { count: 1, more: false });
  const all = Object.values(counts) as { count: number }[];
  assert.equal(
    all.reduce((sum, { count }) => sum + count, 0),
    2,
  );
  assert.deepEqual(await countsOf("path=counted/*&status=CANCELLED"), { CANCELLED: { count: 1, more: false } });
  assert.equal((await work.get("/api/executions/counts?q=stat:x")).status, 422);
});
