import assert from "node:assert/strict";
import { before, test } from "node:test";
import { type Body, openApi, playbook, posted } from "../../support/service/api.ts";
import { type Claimed, claimOf, ONE_STEP, TWO_STEPS, workWith } from "../../support/service/api-work.ts";

const api = await openApi();
const work = workWith(api);

before(async () => {
  await work.register("runs/one", ONE_STEP);
  await work.register("runs/two", TWO_STEPS);
  const agent = playbook("runs/agent", "a", ", agent: true");
  assert.equal((await work.post("/api/catalog/register", { content: agent })).status, 200);
});

/** The number of executions that there are. */
async function count(): Promise<number> {
  const [row] = await api.database.sql<{ n: number }[]>`select count(*)::int as n from flow.execution`;
  return row?.n ?? 0;
}

/** As a worker that has claimed a command of this execution. */
async function asWorker(of: string, path: string, body: Body) {
  const response = await api.guarded.request(path, posted(body, await claimOf(api, of)));
  return { status: response.status, body: (await response.json()) as Body };
}

test("the newest version runs unless another is asked for, by path or by catalog id", async () => {
  const { body: first } = await work.post("/api/execute", { path: "runs/one" });
  await work.register("runs/one", ONE_STEP);
  assert.equal((await work.post("/api/execute", { path: "runs/one" })).body["version"], 2);
  assert.equal((await work.post("/api/execute", { path: "runs/one", version: "latest" })).body["version"], 2);
  for (const asked of [
    { path: "runs/one", version: 1 },
    { path: "runs/one", version: "1" },
    { catalog_id: first["catalog_id"] },
    { catalog_id: Number(first["catalog_id"]) },
    { catalog_id: first["catalog_id"], path: "runs/one", version: 1 },
  ]) {
    const { status, body } = await work.post("/api/execute", asked);
    assert.deepEqual([status, body["version"], body["catalog_id"]], [200, 1, first["catalog_id"]]);
  }
});

test("what is not registered, or of another kind, is 404 with the text of the specification, and starts nothing", async () => {
  const { body: first } = await work.post("/api/execute", { path: "runs/one", version: 1 });
  const before = await count();
  for (const asked of [
    { path: "runs/none" },
    { path: "runs/one", version: 99 },
    { catalog_id: "4711" },
    { catalog_id: first["catalog_id"], path: "runs/two" },
    { catalog_id: first["catalog_id"], version: 2 },
    { path: "runs/one", resource_kind: "agent" },
    { path: "runs/agent", resource_kind: "playbook" },
  ]) {
    const { status, body } = await work.post("/api/execute", asked);
    assert.deepEqual([status, body["error"]], [404, "Executable catalog entry not found"], JSON.stringify(asked));
  }
  assert.equal(await count(), before);
});

test("a run that would certainly call a missing playbook is refused; one that only may call it starts", async () => {
  const calling = (path: string, more = "") =>
    `  - { step: a, ${more}tool: { kind: playbook, path: ${path} } }\n  - { step: b, tool: { kind: noop } }\n`;
  await work.register("runs/calls", calling("runs/nowhere"));
  await work.register("runs/may-call", calling("runs/nowhere", "when: no, "));
  await work.register("runs/calls-one", calling("/runs/one"));
  const before = await count();
  const { status, body } = await work.post("/api/execute", { path: "runs/calls" });
  assert.equal(status, 404);
  const why = "'runs/nowhere', which its step 'a' calls, is not in the catalog. Register it, or correct the path";
  assert.equal(body["error"], `'runs/calls' was not started: ${why}`);
  assert.equal(await count(), before);
  for (const path of ["runs/may-call", "runs/calls-one", "/runs/one"]) {
    assert.equal((await work.post("/api/execute", { path })).status, 200, path);
  }
});

test("inputs that nothing reads are taken, with a warning that names what was meant", async () => {
  await work.register("runs/inputs", ONE_STEP);
  const { status, body } = await work.post("/api/execute", { path: "runs/inputs", workload: { woh: 1 } });
  assert.equal(status, 200);
  assert.deepEqual(body["warnings"], [
    "The workload of 'runs/inputs' has no 'woh', and nothing reads it; did you mean 'who'?",
  ]);
  const known = await work.post("/api/execute", { path: "runs/inputs", workload: { who: 1 } });
  assert.equal(known.body["warnings"], undefined);
});

test("an agent runs when it is called one, and is 422 when it is not", async () => {
  const refused = await work.post("/api/execute", { path: "runs/agent" });
  assert.deepEqual([refused.status, refused.body["code"]], [422, "INVALID_INPUT"]);
  assert.match(String(refused.body["error"]), /'resource_kind': 'agent'/);
  assert.equal((await work.post("/api/execute", { path: "runs/agent", resource_kind: "Agent" })).status, 200);
});

test("malformed requests are 422 and start nothing", async () => {
  const before = await count();
  for (const asked of [
    {},
    [],
    null,
    "runs/one",
    { path: 1 },
    { path: "" },
    { path: "runs/one\u0000" },
    { catalog_id: "abc" },
    { catalog_id: -1 },
    { path: "runs/one", version: 0 },
    { path: "runs/one", version: 1.5 },
    { path: "runs/one", resource_kind: "mcp" },
    { path: "runs/one", workload: [] },
    { path: "runs/one", workload: "x" },
    { path: "runs/one", wait_ms: -1 },
    { path: "runs/one", wait_ms: 30_001 },
    { path: "runs/one", wait_ms: "1" },
    { path: "runs/one", parent_step: "start" },
    { path: "runs/one", parent_execution_id: "1", parent_step: "" },
    { path: "runs/one", parent_execution_id: "1", parent_step: null },
    { path: "runs/one", parent_execution_id: "x", parent_step: "start" },
  ]) {
    const { status, body } = await work.post("/api/execute", asked);
    assert.deepEqual([status, body["code"]], [422, "INVALID_INPUT"], JSON.stringify(asked));
  }
  const deep = `{"path":"runs/one","workload":{"a":${"[".repeat(5_000)}${"]".repeat(5_000)}}}`;
  assert.equal((await work.send("POST", "/api/execute", deep)).status, 422);
  for (const [number, place] of [
    ["1e400", "workload\\.n"],
    ["-1E+999", "workload\\.n"],
    [`1${"0".repeat(400)}`, "workload\\.n"],
    ['[0, {"m": 1e309}]', "workload\\.n\\[1\\]\\.m"],
  ]) {
    const { status, body } = await work.send("POST", "/api/execute", `{"path":"runs/one","workload":{"n":${number}}}`);
    assert.deepEqual([status, body["code"]], [422, "INVALID_INPUT"], number);
    assert.match(String(body["error"]), new RegExp(`beyond ±1\\.8e308 at '${place}'`));
  }
  const noStep = await work.post("/api/execute", { path: "runs/one", target: "none" });
  assert.deepEqual([noStep.status, noStep.body["code"]], [404, "NOT_FOUND"]);
  const noResult = await work.post("/api/execute", { path: "runs/one", return_step: "none" });
  assert.deepEqual([noResult.status, noResult.body["code"]], [404, "NOT_FOUND"]);
  assert.match(String(noResult.body["error"]), /^return_step: playbook 'runs\/one' has no step 'none'; it has: \w+/);
  assert.equal(await count(), before);
});

test("numbers that only look large are taken: in texts, and those that are finite", async () => {
  const workload = '{"n":1e308,"small":1e-400,"text":"1e400","id":"e999"}';
  const { status } = await work.send("POST", "/api/execute", `{"path":"runs/one","workload":${workload}}`);
  assert.equal(status, 200);
});

test("inputs are kept as they are sent: order of keys, odd names and odd texts", async () => {
  const workload = JSON.parse(
    '{"z": 1, "a": {"constructor": 2, "b": "\\u0000\\ud800", "__proto__": 3}, "constructor": 4}',
  );
  const id = await work.execute("runs/one", { workload });
  const { body } = await work.get(`/api/executions/${id}`);
  const { who: _who, ...given } = body["workload"] as Body;
  assert.equal(JSON.stringify(given), JSON.stringify(workload));
});

test("the caller's trace is kept with the execution; an invalid one is left out", async () => {
  const traceparent = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;
  for (const [header, trace] of [
    [traceparent, { context: traceparent }],
    ["nonsense", undefined],
  ] as const) {
    const { body } = await work.post("/api/execute", { path: "runs/one" }, { traceparent: header });
    const { body: log } = await work.get(`/api/executions/${String(body["execution_id"])}/events?limit=1`);
    const [first] = log["events"] as Body[];
    const meta = first?.["meta"] as Body | undefined;
    assert.deepEqual(meta?.["trace"], trace);
  }
});

test("one idempotency key starts one execution, whatever is registered meanwhile", async () => {
  const headers = { "idempotency-key": "start-1" };
  const first = await work.post("/api/execute", { path: "runs/two", workload: { a: 1 } }, headers);
  await work.register("runs/two", TWO_STEPS);
  const again = await work.post("/api/execute", { path: "runs/two", workload: { a: 1 } }, headers);
  assert.deepEqual(again.body, { ...first.body, duplicate: true });
  const other = await work.post("/api/execute", { path: "runs/two", workload: { a: 2 } }, headers);
  assert.deepEqual([other.status, other.body["code"]], [422, "INVALID_INPUT"]);
  const both = await Promise.all(
    Array.from({ length: 5 }, () => work.post("/api/execute", { path: "runs/two" }, { "idempotency-key": "start-2" })),
  );
  assert.equal(new Set(both.map(({ body }) => body["execution_id"])).size, 1);
  assert.equal(both.filter(({ body }) => body["duplicate"] === undefined).length, 1);
});

test("an idempotency key that is too long is 422", async () => {
  const headers = { "idempotency-key": "k".repeat(256) };
  assert.equal((await work.post("/api/execute", { path: "runs/one" }, headers)).status, 422);
});

test("a child knows its parent, and the list finds it by it", async () => {
  const parent = await work.execute("runs/two");
  const child = await work.execute("runs/one", {
    parent_execution_id: parent,
    parent_step: "start",
    parent_iter: { item: 3 },
  });
  assert.equal((await work.get(`/api/executions/${child}`)).body["parent_execution_id"], parent);
  const { body } = await work.get(`/api/executions?parent_execution_id=${parent}`);
  assert.deepEqual(
    (body["executions"] as Body[]).map(({ execution_id }) => execution_id),
    [child],
  );
  const [row] = await api.database.sql`
    select parent_step, root_execution_id from flow.execution where execution_id = ${child}`;
  assert.deepEqual({ ...row }, { parent_step: "start", root_execution_id: parent });
});

test("a child may leave out which step of its parent called it", async () => {
  const parent = await work.execute("runs/two");
  const child = await work.execute("runs/one", { parent_execution_id: parent, parent_iter: { item: 3 } });
  assert.equal((await work.get(`/api/executions/${child}`)).body["parent_execution_id"], parent);
  const [row] = await api.database.sql`
    select parent_step, root_execution_id from flow.execution where execution_id = ${child}`;
  assert.deepEqual({ ...row }, { parent_step: null, root_execution_id: parent });
  const {
    body: { events },
  } = await work.get(`/api/executions/${child}/events?event_type=playbook.initialized`);
  assert.equal((events as Body[])[0]?.["parent_execution_id"], parent);
  const byWorker = await asWorker(parent, "/api/execute", { path: "runs/one", parent_execution_id: parent });
  assert.equal(byWorker.status, 200);
  const cancelled = await work.post(`/api/executions/${parent}/cancel`);
  assert.equal(cancelled.body["children_cancelled"], 2);
});

test("an unknown parent is 404, one that has ended 409, and nothing is started", async () => {
  const parent = await work.execute("runs/one");
  await work.post(`/api/executions/${parent}/cancel`);
  const before = await count();
  for (const [id, status] of [
    ["4711", 404],
    [parent, 409],
  ] as const) {
    const child = { path: "runs/one", parent_execution_id: id, parent_step: "start" };
    assert.equal((await work.post("/api/execute", child)).status, status);
  }
  assert.equal(await count(), before);
});

test("playbooks call each other 64 deep, and no deeper", async () => {
  let parent = await work.execute("runs/one");
  for (let depth = 1; depth <= 64; depth += 1) {
    parent = await work.execute("runs/one", { parent_execution_id: parent, parent_step: "start" });
  }
  const { status, body } = await work.post("/api/execute", {
    path: "runs/one",
    parent_execution_id: parent,
    parent_step: "start",
  });
  assert.equal(status, 422);
  assert.match(String(body["error"]), /more than 64 deep/);
});

test("a worker starts and cancels children, and nothing else", async () => {
  const parent = await work.execute("runs/one");
  const own = await asWorker(parent, "/api/execute", { path: "runs/one" });
  assert.deepEqual([own.status, own.body["code"]], [403, "FORBIDDEN"]);
  const child = await asWorker(parent, "/api/execute", {
    path: "runs/one",
    parent_execution_id: parent,
    parent_step: "start",
  });
  assert.equal(child.status, 200);
  assert.equal((await asWorker(parent, `/api/executions/${parent}/cancel`, {})).status, 403);
  const cancelled = await asWorker(parent, `/api/executions/${child.body["execution_id"]}/cancel`, {});
  assert.deepEqual([cancelled.status, cancelled.body["status"]], [200, "CANCELLED"]);
  assert.equal((await work.get(`/api/executions/${parent}`)).body["status"], "RUNNING");
});

test("a worker cancels a child of a command that has ended, with the claim under which it ran, and does no more with it", async () => {
  const parent = await work.execute("runs/one");
  const stranger = await work.execute("runs/one");
  const called = async (by: string) => work.execute("runs/one", { parent_execution_id: by, parent_step: "start" });
  const [own, others] = [await called(parent), await called(stranger)];
  let command: Claimed | undefined;
  while (command?.execution_id !== parent) [command] = await work.claim("w-ends");
  const headers = await claimOf(api, parent);
  assert.equal((await work.finish("w-ends", command)).status, 202);
  assert.equal((await api.database.sql`select from flow.command where execution_id = ${parent}`).length, 0);
  const asEnded = async (path: string, body: Body) => {
    const response = await api.guarded.request(path, posted(body, headers));
    return [response.status, ((await response.json()) as Body)["code"]];
  };
  assert.deepEqual(await asEnded(`/api/executions/${others}/cancel`, {}), [403, "claim_required"]);
  const again = { path: "runs/one", parent_execution_id: parent, parent_step: "start" };
  assert.deepEqual(await asEnded("/api/execute", again), [403, "claim_required"]);
  const second = api.service.claimSecrets.ofClaim({ commandId: command.command_id, attempt: 2 });
  const forged = posted({}, { ...headers, "x-flow-claim": second });
  assert.equal((await api.guarded.request(`/api/executions/${own}/cancel`, forged)).status, 403);
  assert.equal((await asEnded(`/api/executions/${own}/cancel`, {}))[0], 200);
  assert.equal((await work.get(`/api/executions/${own}`)).body["status"], "CANCELLED");
});
