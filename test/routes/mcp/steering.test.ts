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
  assert.deepEqual(names, ["flow___status", "flow___explain", "flow___pause", "flow___resume", "flow___rerun"]);
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
  assert.match(textOf(await call("explain", id)), /CANCELLED.*\nIt ended at .*\nIt failed: wrong day/);
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
