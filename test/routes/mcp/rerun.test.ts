import assert from "node:assert/strict";
import { before, test } from "node:test";
import { connectMcpClient } from "../../support/servers/mcp-client.ts";
import { type Body, openApi, TOKENS } from "../../support/service/api.ts";
import { endOf, workWith } from "../../support/service/api-work.ts";
import { addUser } from "../../support/service/users.ts";

/* `flow___rerun`: the plan first, then the rerun, with the rights and the audit of the API's call. */

const api = await openApi();
const work = workWith(api);
before(() =>
  work.register(
    "r/chain",
    `  - step: fetch
    tool: { kind: http, url: "https://example.org/" }
    next: { arcs: [{ step: load }] }
  - step: load
    tool: { kind: http, method: POST, url: "https://example.org/", json: { day: "{{ workload.who }}" } }
    next: { arcs: [{ step: note }] }
  - step: note
    tool: { kind: noop }
`,
  ),
);

type Told = { content: { text: string }[]; structuredContent?: Body; isError?: boolean };
const client = await connectMcpClient(api.open);
const rerun = async (execution_id: string, more: Body = {}, by = client) =>
  (await by.callTool({ name: "flow___rerun", arguments: { execution_id, ...more } })) as Told;
const textOf = ({ content }: Told) => content[0]?.text ?? "";

/** An execution of which `load` failed. */
async function failed(): Promise<string> {
  const id = await work.execute("r/chain");
  const [fetch] = await work.claim("w");
  assert.ok(fetch);
  await work.finish("w", fetch, { day: "monday" });
  const [load] = await work.claim("w");
  assert.ok(load);
  const error = { kind: "unknown", code: "X", message: "no", retryable: false };
  const events = endOf(load).filter(({ event_type: type }) => type === "command.completed");
  await work.post("/api/events/batch", {
    worker: "w",
    events: events.map((event) => ({ ...event, event_type: "command.failed", error })),
  });
  await work.runToEnd(id);
  return id;
}

const count = async () => Number((await api.database.sql`select count(*) as n from flow.execution`)[0]?.["n"]);

test("without dry_run: false it answers the plan, with effects, and begins nothing", async () => {
  const id = await failed();
  const before = await count();
  for (const plan of [await rerun(id), await rerun(id, { dry_run: true })]) {
    assert.equal(plan.isError, undefined, textOf(plan));
    assert.match(
      textOf(plan),
      /Nothing was begun\.\nReused, 1 in number: 'fetch'\.\nRuns: step 'load' \(http\), which sends POST/,
    );
    assert.match(textOf(plan), /Runs: step 'note' .* does nothing outside.*\nShow this to the person/s);
    const { execution_id: begun, ...told } = plan.structuredContent ?? {};
    assert.deepEqual([begun, told["rerun_of"], told["will_run"]], [undefined, id, ["load", "note"]]);
  }
  assert.equal(await count(), before);
  const { tools } = await client.listTools();
  const shown = tools.find(({ name }) => name === "flow___rerun");
  assert.match(shown?.description ?? "", /Show the plan to the person/);
  assert.ok(shown);
  const { properties = {}, required, additionalProperties } = shown.inputSchema as Body;
  const names = ["execution_id", "from", "only", "input", "variables", "step_input", "version"];
  assert.deepEqual(Object.keys(properties as Body), [
    ...names,
    "reuse_iterations",
    "reuse_children",
    "reason",
    "dry_run",
  ]);
  assert.deepEqual([required, additionalProperties], [["execution_id"], false]);
});

test("with dry_run: false it begins one that names its original, the client and the reason", async () => {
  const id = await failed();
  const begun = await rerun(id, { dry_run: false, input: { who: "you" }, reason: "the server is up" });
  const { execution_id: again, ...told } = begun.structuredContent ?? {};
  assert.match(textOf(begun), new RegExp(`^Execution ${again} has begun. It repeats ${id}: 1 of its steps`));
  assert.deepEqual([told["rerun_of"], told["reused"], told["will_run"]], [id, 1, ["load", "note"]]);
  const { body } = await work.get(`/api/executions/${again}`);
  assert.deepEqual(
    [body["started_by"], body["rerun_of"], (body["workload"] as Body)["who"]],
    [{ kind: "mcp", id: null, name: "operator" }, id, "you"],
  );
  const { body: line } = await work.get(`/api/executions/${again}/lineage`);
  assert.deepEqual(
    (line["ancestors"] as Body[]).map(({ execution_id, by }) => [execution_id, by]),
    [[id, "rerun"]],
  );
  const { body: listed } = await work.get("/api/executions?started_by=mcp");
  assert.deepEqual(
    (listed["executions"] as Body[]).map(({ execution_id }) => execution_id),
    [again],
  );
  const rows = await api.database.sql<{ action: string; detail: Body }[]>`
    select action, detail from auth.audit_log where resource = ${`execution/${id}`} and action = 'execution.rerun'`;
  assert.deepEqual(
    [...rows],
    [{ action: "execution.rerun", detail: { execution_id: again, reason: "the server is up" } }],
  );
  await work.runToEnd(String(again));
});

test("what cannot be repeated, and arguments that do not fit: errors that a model can read and mend", async () => {
  const failedOne = await failed();
  const open = await work.execute("r/chain");
  const before = await count();
  for (const [id, more, pattern] of [
    [open, {}, /has not ended \(RUNNING\)\. Wait for its end/],
    [failedOne, { from: ["nowhere"] }, /nowhere/],
    [failedOne, { from: "load" }, /from/],
    [failedOne, { unknown: 1 }, /unknown/],
    [failedOne, { dry_run: "no" }, /dry_run/],
    [failedOne, { version: 99, dry_run: false }, /no version 99/],
    ["x", {}, /execution_id/],
  ] as const) {
    const refused = await rerun(id, more as Body);
    assert.deepEqual([refused.isError, pattern.test(textOf(refused))], [true, true], textOf(refused));
  }
  await assert.rejects(rerun("12345"), /12345/);
  assert.equal(await count(), before);
  await work.post(`/api/executions/${open}/cancel`);
});

test("a user needs to execute its path, for the plan too; who may is named as the one who asked", async () => {
  const id = await failed();
  const connect = (token: string) =>
    connectMcpClient(api.guarded, {
      headers: { authorization: `Bearer ${TOKENS.operator}`, "x-flow-session": token },
    });
  const viewer = await connect((await addUser(api.database, { roles: ["viewer"] })).tokenSha256);
  const before = await count();
  for (const dry_run of [true, false]) {
    const refused = await rerun(id, { dry_run }, viewer);
    assert.deepEqual([refused.isError, /may not execute/.test(textOf(refused))], [true, true], textOf(refused));
  }
  const open = await work.execute("r/chain");
  // Not even whether it has ended.
  assert.match(textOf(await rerun(open, {}, viewer)), /may not execute/);
  await work.post(`/api/executions/${open}/cancel`);
  assert.equal(await count(), before + 1);
  const user = await addUser(api.database, { roles: ["admin"] });
  const begun = await rerun(id, { dry_run: false }, await connect(user.tokenSha256));
  assert.equal(begun.isError, undefined, textOf(begun));
  const { body } = await work.get(`/api/executions/${begun.structuredContent?.["execution_id"]}`);
  assert.deepEqual(body["started_by"], { kind: "mcp", id: String(user.userId), name: user.email });
  const { body: listed } = await work.get(`/api/executions?started_by=mcp&started_by_id=${user.userId}`);
  assert.equal((listed["executions"] as Body[]).length, 1);
});
