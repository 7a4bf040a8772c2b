import assert from "node:assert/strict";
import { before, test } from "node:test";
import { connectMcpClient } from "../../support/servers/mcp-client.ts";
import { type Body, openApi, posted } from "../../support/service/api.ts";
import { claimOf, workWith } from "../../support/service/api-work.ts";

/* Declared inputs on every way to a start (docs/playbooks.md, Declared inputs). */

const api = await openApi();
const work = workWith(api);
const { sql } = api.database;

const SECRET = "pa55 of the supplier";
const DECLARED = `  day: { type: string, format: date, required: true, description: The day to load. }
  mode: { enum: [full, delta], default: delta }
  password: { type: string, secret: true }
`;
const STEPS = `  - step: one
    tool: { kind: noop }
    next: { arcs: [{ step: right, when: "{{ password == '${SECRET}' and mode == 'delta' }}" }] }
  - step: right
    tool: { kind: noop }
`;

async function register(path: string, more: { metadata?: string; steps?: string; rest?: string; kind?: string } = {}) {
  const { metadata = "", steps = STEPS, rest = "", kind = "Playbook" } = more;
  const head = `apiVersion: flow/v2\nkind: ${kind}\nmetadata: { name: ${path.split("/").at(-1)}, path: ${path}${metadata} }`;
  const content = `${head}\ninputs:\n${DECLARED}workflow:\n${steps}${rest}`;
  const { status, body } = await work.post("/api/catalog/register", { content });
  assert.equal(status, 200, JSON.stringify(body));
}

before(async () => {
  await register("in/load");
});

const count = async () => (await sql<{ n: number }[]>`select count(*)::int as n from flow.execution`)[0]?.n;
/** Runs it to its end. */
const run = async (workload: Body): Promise<string> => {
  const id = await work.execute("in/load", { workload });
  assert.equal((await work.runToEnd(id))["status"], "COMPLETED");
  return id;
};
const detailOf = async (id: unknown) => (await work.get(`/api/executions/${String(id)}`)).body;

test("a start with inputs that do not fit is 422 with the field, and starts nothing", async () => {
  const earlier = await count();
  const { status, body } = await work.post("/api/execute", { path: "in/load", workload: { day: "tomorrow", moed: 1 } });
  assert.equal(status, 422);
  assert.deepEqual((body["detail"] as Body)["errors"], [
    { path: "moed", message: "is no input of it; did you mean 'mode'?" },
    { path: "day", message: "must be a date such as 2026-01-31" },
  ]);
  assert.match(String(body["error"]), /^'in\/load' was not started: its inputs are not valid: moed: is no input/);
  assert.equal((await work.post("/api/execute", { path: "in/load" })).status, 422);
  assert.equal(await count(), earlier);
});

test("defaults are filled in; a secret is sealed in the log, masked in answers, and readable for templates", async () => {
  const id = await run({ day: "2026-01-31", password: SECRET });
  const detail = await detailOf(id);
  assert.deepEqual(detail["workload"], { day: "2026-01-31", mode: "delta", password: "[secret]" });
  assert.deepEqual(detail["result"], { step: "right" });
  const everything = await sql<{ text: string }[]>`
    select l::text as text from flow.event_log l where execution_id = ${id}
    union all select e::text from flow.execution e where execution_id = ${id}`;
  assert.ok(everything.length > 1);
  for (const { text } of everything) assert.ok(!text.includes("pa55"), text);
  for (const path of [`/api/executions/${id}`, `/api/executions/${id}/events`, "/api/executions"]) {
    assert.doesNotMatch(JSON.stringify((await work.get(path)).body), /pa55/);
  }
});

test("a short secret is sealed too, and one that only looks sealed is one", async () => {
  for (const password of ["pin7", "[sealed:k1:Zm9vYmFy]"]) {
    const id = await run({ day: "2026-01-31", password });
    const [row] = await sql<
      { text: string }[]
    >`select string_agg(l::text, '') as text from flow.event_log l where execution_id = ${id}`;
    assert.ok(row !== undefined && !row.text.includes(password), row?.text);
  }
});

test("a rerun with edited inputs is checked, and seals what it was given", async () => {
  const id = await run({ day: "2026-01-31", password: "first password" });
  const rerun = (body: Body) => work.post(`/api/executions/${id}/rerun`, body);
  const refused = await rerun({ from: "start", input: { day: 7 } });
  assert.equal(refused.status, 422);
  assert.deepEqual((refused.body["detail"] as Body)["errors"], [{ path: "day", message: "must be string" }]);
  for (const from of ["start", ["one"]]) {
    const { status, body } = await rerun({ from, input: { password: SECRET, mode: "full" } });
    assert.equal(status, 202, JSON.stringify(body));
    const again = String(body["execution_id"]);
    assert.deepEqual((await detailOf(again))["workload"], { day: "2026-01-31", mode: "full", password: "[secret]" });
    const [row] = await sql<
      { text: string }[]
    >`select string_agg(l::text, '') as text from flow.event_log l where execution_id = ${again}`;
    assert.ok(row !== undefined && !/pa55|first password/.test(row.text), row?.text);
  }
});

/** All that is kept of an execution, of bulk operations, and in the audit log, as the database has it. */
const keptOf = async (id: string) => {
  const rows = await sql<{ text: string }[]>`
    select l::text as text from flow.event_log l where execution_id = ${id}
    union all select e::text from flow.execution e where execution_id = ${id}
    union all select s::text from flow.execution_snapshot s where execution_id = ${id}
    union all select b::text from flow.bulk b
    union all select a::text from auth.audit_log a`;
  return rows.map(({ text }) => text).join("\n");
};

test("a secret that a rerun is given, however short, is nowhere in clear: log, plan, lineage, bulk, audit", async () => {
  const id = await run({ day: "2026-01-31", password: "first password" });
  const edits = { input: { password: "qz7" }, step_input: { one: { password: "xj9", access_token: "wv8" } } };
  const shown: unknown[] = [];
  for (const from of ["start", ["one"]]) {
    const plan = await work.post(`/api/executions/${id}/rerun`, { from, ...edits, dry_run: true });
    const { status, body } = await work.post(`/api/executions/${id}/rerun`, { from, ...edits, reason: "again" });
    assert.equal(status, 202, JSON.stringify(body));
    const again = String(body["execution_id"]);
    await work.runToEnd(again);
    for (const path of ["", "/events?limit=500", "/lineage", "/state"])
      shown.push((await work.get(`/api/executions/${again}${path}`)).body);
    shown.push(plan.body, body, await keptOf(again));
  }
  const filter = { execution_ids: [id] };
  const bulk = await work.post("/api/executions/bulk", {
    action: "rerun",
    filter,
    options: { from: ["one"], variables: { v: "qz7" }, ...edits },
  });
  assert.equal(bulk.status, 202, JSON.stringify(bulk.body));
  const operation = `/api/executions/bulk/${String(bulk.body["bulk_id"])}`;
  while (await api.service.bulk.workOff());
  const { body: told } = await work.get(operation);
  const [{ new_execution_id: begun }] = told["started"] as [{ new_execution_id: string }];
  await work.runToEnd(begun);
  const [row] = await sql<{ text: string }[]>`select b::text as text from flow.bulk b`;
  shown.push(told, row?.text, (await work.get(`/api/executions/${begun}/events?limit=500`)).body);
  const all = JSON.stringify(shown);
  assert.match(all, /\[secret\]/);
  assert.doesNotMatch(all, /first password|xj9|wv8/);
  assert.doesNotMatch(JSON.stringify(shown.slice(0, -1)), /qz7/);
});

test("a call by another playbook is checked: the step that calls fails with what is wrong", async () => {
  await work.register("in/calls", `  - { step: call, tool: { kind: playbook, path: in/load, input: { day: 3 } } }\n`);
  const parent = await work.execute("in/calls");
  const claim = await claimOf(api, parent);
  const ask = async (workload: Body) => {
    const body = { path: "in/load", workload, parent_execution_id: parent, parent_step: "call" };
    const response = await api.guarded.request("/api/execute", posted(body, claim));
    return { status: response.status, body: (await response.json()) as Body };
  };
  const refused = await ask({ day: 3 });
  assert.equal(refused.status, 422);
  assert.match(String(refused.body["error"]), /day: must be string/);
  assert.equal((await ask({ day: "2026-01-31" })).status, 200);
});

test("a trigger whose input does not fit has a failed fire that says why", async () => {
  await register("in/asked", {
    rest: "triggers:\n  - { name: asked, signal: { name: in_go }, input: { day: '{{ signal.data.day }}' } }\n",
  });
  const listed = await work.get("/api/triggers?path=in/asked");
  const [trigger] = listed.body["triggers"] as Body[];
  const fires = async (data: Body) => {
    const { status } = await work.post("/api/signals/in_go", { data });
    assert.equal(status, 202);
    const { body } = await work.get(`/api/triggers/${String(trigger?.["trigger_id"])}/fires`);
    return (body["fires"] as Body[])[0];
  };
  const failed = await fires({ day: "soon" });
  assert.equal(failed?.["status"], "failed");
  assert.match(String(failed?.["reason"]), /day: must be a date such as 2026-01-31/);
  assert.equal((await fires({ day: "2026-01-31" }))?.["status"], "started");
});

test("the catalog shows the inputs as a JSON Schema, and nothing of a playbook that declares none", async () => {
  const { body } = await work.get("/api/catalog/resource/in/load");
  assert.deepEqual(body["input_schema"], {
    type: "object",
    properties: {
      day: { type: "string", format: "date", description: "The day to load." },
      mode: { enum: ["full", "delta"], default: "delta" },
      password: { type: "string", writeOnly: true },
    },
    required: ["day"],
    additionalProperties: false,
  });
  await work.register("in/none", STEPS);
  assert.equal((await work.get("/api/catalog/resource/in/none")).body["input_schema"], undefined);
});

test("an agent's tool has the schema of its inputs, and a call is held to it", async () => {
  await register("in/agent", { metadata: ", agent: true, exposes_as_mcp: true" });
  const client = await connectMcpClient(api.open);
  const tool = (await client.listTools()).tools.find(({ name }) => name === "in__agent");
  assert.deepEqual(tool?.inputSchema["required"], ["day"]);
  assert.deepEqual(Object.keys(tool?.inputSchema["properties"] ?? {}), ["day", "mode", "password"]);
  const refused = client.callTool({ name: "in__agent", arguments: { day: "soon" } });
  const told = await refused.then(
    (answer) => JSON.stringify(answer),
    (error: Error) => error.message,
  );
  assert.match(told, /its inputs are not valid: day: must be a date/);
});

test("a secret stands in no refusal: of what does not fit, of a key that was used for other inputs, of a draft", async () => {
  const content = (path: string, of: string) =>
    `apiVersion: flow/v2\nkind: Playbook\nmetadata: { name: x, path: ${path} }\ninputs:\n  password: { type: string, secret: true, ${of} }\nworkflow:\n${STEPS}`;
  const refusals: unknown[] = [];
  for (const [index, of] of ["minLength: 40", "maxLength: 3", "format: date", "enum: [a, b]", "const: a"].entries()) {
    const path = `in/strict${index}`;
    const registered = await work.post("/api/catalog/register", { content: content(path, of) });
    assert.equal(registered.status, 200, JSON.stringify(registered.body));
    const { status, body } = await work.post("/api/execute", { path, workload: { password: SECRET } });
    assert.equal(status, 422, of);
    refusals.push(body);
    const draft = await work.post("/api/execute/draft", { content: content(path, of), workload: { password: SECRET } });
    assert.equal(draft.status, 422, of);
    refusals.push(draft.body);
  }
  const key = { "idempotency-key": "inputs/secret" };
  const ask = (password: string) =>
    work.post("/api/execute", { path: "in/load", workload: { day: "2026-01-31", password } }, key);
  const first = await ask(SECRET);
  assert.equal(first.status, 200);
  const other = await ask(`${SECRET} too`);
  refusals.push(first.body, other.body, (await ask(SECRET)).body);
  assert.doesNotMatch(JSON.stringify(refusals), /pa55/);
  const [row] = await sql<{ text: string }[]>`
    select string_agg(e::text, '') as text from flow.execution e where execution_id = ${String(first.body["execution_id"])}`;
  assert.doesNotMatch(row?.text ?? "", /pa55/);
});

test("a secret that a trigger gives is in none of its fires, and in nothing of what it starts", async () => {
  await register("in/given", {
    rest: `triggers:\n  - { name: given, signal: { name: in_given }, input: { day: "2026-01-31", password: "${SECRET}, {{ signal.data.n }}" } }\n`,
  });
  const listed = await work.get("/api/triggers?path=in/given");
  const [trigger] = listed.body["triggers"] as Body[];
  assert.equal((await work.post("/api/signals/in_given", { data: { n: 7 } })).status, 202);
  const { body } = await work.get(`/api/triggers/${String(trigger?.["trigger_id"])}/fires`);
  const [fire] = body["fires"] as Body[];
  assert.equal(fire?.["status"], "started");
  const id = String(fire?.["execution_id"]);
  await work.runToEnd(id);
  const kept = await sql<{ text: string }[]>`
    select f::text as text from flow.trigger_fire f
    union all select l::text from flow.event_log l where execution_id = ${id}
    union all select e::text from flow.execution e where execution_id = ${id}`;
  for (const { text } of kept) assert.doesNotMatch(text, /pa55/);
  assert.doesNotMatch(JSON.stringify([body, await detailOf(id), (await work.get("/api/stats")).body]), /pa55/);
});
