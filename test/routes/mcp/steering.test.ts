import assert from "node:assert/strict";
import { before, test } from "node:test";
import { connectMcpClient } from "../../support/servers/mcp-client.ts";
import { type Body, openApi, TOKENS } from "../../support/service/api.ts";
import { TWO_STEPS, workWith } from "../../support/service/api-work.ts";
import { addUser } from "../../support/service/users.ts";

/* Tools about executions: what one does now and why, pause and resume, with the rights of the API's calls. */

const api = await openApi();
const work = workWith(api);
before(() => work.register("etl/load", TWO_STEPS));

type Told = { content: { text: string }[]; structuredContent?: Body; isError?: boolean };
const client = await connectMcpClient(api.open);
const call = async (name: string, execution_id: string, more: Body = {}, by = client) =>
  (await by.callTool({ name: `flow___${name}`, arguments: { execution_id, ...more } })) as Told;
const textOf = ({ content }: Told) => content[0]?.text ?? "";

test("status and explain say what it does now; pause and resume change it, and say who and why", async () => {
  const { tools } = await client.listTools();
  const names = tools.map(({ name }) => name).filter((name) => name.startsWith("flow___"));
  assert.deepEqual(names, [
    ...["flow___status", "flow___explain", "flow___pause", "flow___resume", "flow___signal", "flow___rerun"],
  ]);
  const id = await work.execute("etl/load");
  assert.match(textOf(await call("explain", id)), /is RUNNING, 0 % .*\nStep 'start' waits for a worker since/);
  const status = await call("status", id);
  assert.deepEqual(
    [status.structuredContent?.["status"], (status.structuredContent?.["steps"] as Body[] | undefined)?.length],
    ["RUNNING", 2],
  );
  const paused = await call("pause", id, { reason: "quota" });
  assert.deepEqual(paused.structuredContent, { execution_id: id, status: "PAUSED", children: 0 });
  assert.match(
    textOf(await call("explain", id)),
    /paused at .* by operator: quota.*\nStep 'start' waits for the resumption/,
  );
  assert.equal((await call("resume", id)).structuredContent?.["status"], "RUNNING");
  const [command] = await work.claim("w");
  assert.ok(command);
  assert.match(textOf(await call("explain", id)), /Step 'start' is with worker w since/);
  await work.post(`/api/executions/${id}/cancel`, { reason: "wrong day" });
  assert.match(textOf(await call("explain", id)), /CANCELLED.*\nIt ended at .*\nIt was cancelled: wrong day/);
  const rows = await api.database.sql<{ action: string }[]>`
    select action from auth.audit_log where resource = ${`execution/${id}`} and action like 'execution.%' order by audit_id`;
  assert.deepEqual(
    rows.map(({ action }) => action),
    ["execution.pause", "execution.resume"],
  );
});

test("an unknown execution, an ended one, arguments that do not fit: errors that a model can read", async () => {
  await assert.rejects(call("status", "1"), /1/);
  const id = await work.execute("etl/load");
  await work.post(`/api/executions/${id}/cancel`);
  const ended = await call("pause", id);
  assert.deepEqual([ended.isError, /has ended/.test(textOf(ended))], [true, true]);
  assert.equal((await call("status", "x")).isError, true);
});

test("a user needs to view for the one and to execute for the other; without roles nothing is listed", async () => {
  const id = await work.execute("etl/load");
  const connect = (token: string) =>
    connectMcpClient(api.guarded, {
      headers: { authorization: `Bearer ${TOKENS.operator}`, "x-flow-session": token },
    });
  const viewer = await connect((await addUser(api.database, { roles: ["viewer"] })).tokenSha256);
  assert.equal((await call("status", id, {}, viewer)).structuredContent?.["status"], "RUNNING");
  const refused = await call("pause", id, {}, viewer);
  assert.deepEqual([refused.isError, /may not execute/.test(textOf(refused))], [true, true]);
  assert.deepEqual((await viewer.listTools()).tools, []);
  const nothing = await connect((await addUser(api.database, { roles: [] })).tokenSha256);
  assert.equal((await call("status", id, {}, nothing)).isError, true);
  assert.equal((await work.get(`/api/executions/${id}`)).body["status"], "RUNNING");
});

test("a signal to one execution and to everyone: what it reached, who sent it, and with which rights", async () => {
  await work.register("etl/asked", "  - { step: asked, tool: { kind: wait, signal: go, key: k } }\n");
  const startParked = async () => {
    const id = await work.execute("etl/asked");
    const command = (await work.claim("w", 50)).find(({ execution_id }) => execution_id === id);
    assert.ok(command);
    const { command_id, attempt, step } = command;
    const resume = { task: "asked", run: 1, serial: 0, started_at: new Date().toISOString() };
    const wait = { kind: "signal", name: "go", key: "k" };
    const parked = {
      event_type: "command.parked",
      execution_id: id,
      command_id,
      attempt,
      step,
      task: "asked",
      meta: { wait, resume },
    };
    const { status, body } = await work.post("/api/events/batch", { worker: "w", events: [parked] });
    assert.equal(status, 202, JSON.stringify(body));
    return id;
  };
  const signalled = async (args: Body, by = client) =>
    (await by.callTool({ name: "flow___signal", arguments: args })) as Told;
  const id = await startParked();
  const kept = await signalled({ execution_id: id, name: "go", data: 1, id: "e" });
  assert.deepEqual(kept.structuredContent, { reached: 0, kept: true, duplicate: false });
  assert.match(textOf(await signalled({ execution_id: id, name: "go", id: "e" })), /sent before/);
  const reached = await signalled({ execution_id: id, name: "go", key: "k" });
  assert.deepEqual(reached.structuredContent, { reached: 1, kept: false, duplicate: false });
  const other = await startParked();
  assert.match(textOf(await signalled({ name: "go", key: "k", data: { n: 1 } })), /waits that ended with it: 1/);
  assert.equal((await signalled({ name: "go", retain: "2d" })).isError, true);
  const third = await startParked();
  await call("pause", third);
  const told = textOf(await call("explain", third));
  assert.match(told, /It was paused at .*\nStep 'asked' waits for signal 'go' with key 'k' to be sent by itself/);
  assert.doesNotMatch(told, /waits for the resumption/);
  await call("resume", third);
  const viewer = await connectMcpClient(api.guarded, {
    headers: {
      authorization: `Bearer ${TOKENS.operator}`,
      "x-flow-session": (await addUser(api.database, { roles: ["viewer"] })).tokenSha256,
    },
  });
  const refused = await signalled({ execution_id: third, name: "go", key: "k" }, viewer);
  assert.deepEqual([refused.isError, /may not execute/.test(textOf(refused))], [true, true]);
  const unreached = await signalled({ name: "go", key: "k", retain: 0 }, viewer);
  assert.deepEqual(unreached.structuredContent, { reached: 0, kept: false, duplicate: false });
  const rows = await api.database.sql<{ action: string }[]>`
    select action from auth.audit_log where action like '%signal%' and resource in (${`execution/${id}`}, 'signal/go') order by audit_id`;
  assert.deepEqual(rows.map(({ action }) => action).slice(0, 4), [
    ...["execution.signal", "execution.signal", "execution.signal", "signal.send"],
  ]);
  for (const one of [id, other, third]) await work.post(`/api/executions/${one}/cancel`);
});
