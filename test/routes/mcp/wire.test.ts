import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import type { App } from "../../support/servers/mcp-client.ts";
import { readEvents } from "../../support/servers/sse.ts";
import { type Body, buildApi, openApi, posted, TOKENS } from "../../support/service/api.ts";
import { ONE_STEP, workWith } from "../../support/service/api-work.ts";
import { addUser, allow, type TestUser } from "../../support/service/users.ts";

/* `/mcp` as it is on the wire: what clients of the official library never send, who may call, and servers that stop. */

const api = await openApi();
const work = workWith(api);

before(async () => {
  for (const path of ["team/a", "other/a"]) await work.register(path, ONE_STEP, ", agent: true");
});

const ACCEPT = { accept: "application/json, text/event-stream" };
const RESUMABLE = { "mcp-protocol-version": "2025-11-25" };

function call(id: number | string, name: string, more: Body = {}): Body {
  return { jsonrpc: "2.0", id, method: "tools/call", params: { name, ...more } };
}

async function send(body: unknown, headers: Record<string, string> = {}, app: App = api.open): Promise<Response> {
  return await app.request("/mcp", posted(body, { ...ACCEPT, ...headers }));
}

/** The answer to a request: the last message of the stream. */
async function rpc(body: unknown, headers: Record<string, string> = {}, app: App = api.open): Promise<Body> {
  const response = await send(body, headers, app);
  assert.equal(response.status, 200, await (response.ok ? "" : response.text()));
  return ((await readEvents(response).rest()).at(-1)?.data ?? {}) as Body;
}

function resultOf(answer: Body): Body {
  assert.ok(answer["result"] !== undefined, JSON.stringify(answer));
  return answer["result"] as Body;
}

const idOf = (answer: Body) => (resultOf(answer)["structuredContent"] as Body)["execution_id"];

async function finishNext(): Promise<string> {
  const [command] = await work.claim("w");
  assert.ok(command !== undefined);
  assert.equal((await work.finish("w", command)).status, 202);
  return command.execution_id;
}

async function countOf(path: string): Promise<number> {
  const { body } = await work.get(`/api/executions?path=${encodeURIComponent(path)}`);
  return (body["executions"] as Body[]).length;
}

test("a session's id is given out with the first message, and needs to be one", async () => {
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "t", version: "1" } };
  const response = await send({ jsonrpc: "2.0", id: 0, method: "initialize", params });
  const session = response.headers.get("mcp-session-id") ?? "";
  assert.match(session, /^[0-9a-f-]{36}$/);
  assert.ok(response.headers.has("x-request-id"));
  await readEvents(response).rest();
  const list = { jsonrpc: "2.0", id: 1, method: "tools/list" };
  assert.ok(resultOf(await rpc(list, { "mcp-session-id": session }))["tools"]);
  for (const other of ["x", `${session}x`, "../../etc"]) {
    assert.equal((await send(list, { "mcp-session-id": other })).status, 404, other);
  }
  const ended = await api.open.request("/mcp", { method: "DELETE", headers: { "mcp-session-id": session } });
  assert.equal(ended.status, 200);
});

test("a call that is sent again under its id starts nothing new, and gets the same answer", async () => {
  const headers = { "mcp-session-id": randomUUID() };
  const before = await countOf("team/a");
  const [first, second] = [rpc(call("c1", "team__a"), headers), rpc(call("c1", "team__a"), headers)];
  const id = await finishNext();
  assert.deepEqual([idOf(await first), idOf(await second)], [id, id]);
  assert.equal(idOf(await rpc(call("c1", "team__a"), headers)), id);
  assert.equal(await countOf("team/a"), before + 1);
  const other = resultOf(await rpc(call("c1", "team__a", { arguments: { other: 1 } }), headers));
  assert.equal(other["isError"], true);
  assert.match(JSON.stringify(other), /used with another body before/);
});

test("several calls in one request are refused, since each start is a decision of its own; one beside other messages runs", async () => {
  const before = await countOf("team/a");
  const list = { jsonrpc: "2.0", id: 3, method: "tools/list" };
  const refused = await send([call(1, "team__a"), list, call(2, "team__a")]);
  assert.equal(refused.status, 400);
  assert.match(await refused.text(), /calls one tool/);
  assert.equal(await countOf("team/a"), before);
  const answer = send([list, call(1, "team__a")]);
  const id = await finishNext();
  assert.match(await (await answer).text(), new RegExp(id));
});

test("a call without a session runs, too", async () => {
  const answer = rpc(call(1, "team__a"));
  assert.equal(await finishNext(), idOf(await answer));
});

test("arguments reach no prototype", async () => {
  const raw = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"team__a","arguments":{"__proto__":{"x":1},"constructor":2}}}`;
  const headers = { ...ACCEPT, "content-type": "application/json" };
  const response = api.open.request("/mcp", { method: "POST", headers, body: raw });
  const id = await finishNext();
  await readEvents(await response).rest();
  assert.equal(({} as Body)["x"], undefined);
  const { body } = await work.get(`/api/executions/${id}`);
  assert.equal((body["workload"] as Body)["constructor"], 2);
  assert.equal((body["workload"] as Body)["x"], undefined);
});

test("what is no message is refused in the protocol's words, what is too long or of another type by its status", async () => {
  for (const [body, status, code] of [
    ["{", 400, -32_700],
    ["", 400, -32_700],
    ['{"a":1}', 400, -32_700],
    [`${"[".repeat(1_000)}${"]".repeat(1_000)}`, 400, -32_700],
  ] as const) {
    const headers = { ...ACCEPT, "content-type": "application/json" };
    const response = await api.open.request("/mcp", { method: "POST", headers, body });
    assert.equal(response.status, status, body.slice(0, 20));
    assert.equal(((await response.json()) as { error: { code: number } }).error.code, code);
  }
  const long = JSON.stringify(call(1, "team__a", { arguments: { text: "x".repeat(3 << 20) } }));
  const tooLong = { method: "POST", headers: { ...ACCEPT, "content-type": "application/json" }, body: long };
  assert.equal((await api.open.request("/mcp", tooLong)).status, 413);
  assert.equal((await send(call(1, "team__a"), { accept: "application/json" })).status, 406);
  assert.equal((await send(call(1, "team__a"), { "content-type": "text/plain" })).status, 415);
  assert.equal((await send(call(1, "team__a"), { "mcp-protocol-version": "1999-01-01" })).status, 400);
  assert.equal((await api.open.request("/mcp")).status, 406);
  assert.equal((await api.open.request("/mcp", { method: "PUT" })).status, 405);
  const unknown = await rpc({ jsonrpc: "2.0", id: 1, method: "no/such" });
  assert.equal((unknown["error"] as Body)["code"], -32_601);
  const task = await rpc(call(1, "team__a", { task: { ttl: 1_000 } }));
  assert.match(JSON.stringify(task["error"]), /does not support task creation/);
});

test("a page of a browser is refused by its Origin, wherever the server listens", async () => {
  const operator = { authorization: `Bearer ${TOKENS.operator}` };
  for (const origin of ["https://evil.example", "null", "http://127.0.0.1.evil.example"]) {
    for (const [app, headers] of [
      [api.open, { origin }],
      [api.guarded, { origin, ...operator }],
    ] as const) {
      assert.equal((await send(call(1, "team__a"), headers, app)).status, 403, origin);
      const get = { headers: { ...headers, accept: "text/event-stream" } };
      assert.equal((await app.request("/mcp", get)).status, 403, origin);
    }
  }
  const rebound = { ...ACCEPT, host: "evil.example" };
  assert.equal((await api.open.request("/mcp", posted(call(1, "team__a"), rebound))).status, 403);
  const list = { jsonrpc: "2.0", id: 1, method: "tools/list" };
  assert.ok(resultOf(await rpc(list, { origin: "http://localhost:3000" }))["tools"]);
});

/** The id of an event, as servers make it. */
const eventId = (point: unknown) => Buffer.from(JSON.stringify(point)).toString("base64url");

test("an id of an event that no server has made is refused", async () => {
  const headers = { accept: "text/event-stream", "mcp-session-id": randomUUID() };
  const points = [{}, [1], [1, null, -1], [null, null, 0], [[], 1, 1], [1, null, 1, 1]];
  for (const nonsense of ["7", "{}", ...points.map(eventId)]) {
    const response = await api.open.request("/mcp", { headers: { ...headers, "last-event-id": nonsense } });
    assert.equal(response.status, 400, nonsense);
  }
});

test("a call outlives its server: a client that can resume continues at another one, others get its id", async () => {
  const [first, second] = [await buildApi(api.database), await buildApi(api.database)];
  after(() => Promise.all([first.service.orchestrator.close(), second.service.orchestrator.close()]));
  const headers = { "mcp-session-id": randomUUID() };
  const resumable = await send(call(1, "team__a"), { ...headers, ...RESUMABLE }, first.open);
  const old = readEvents(await send(call(2, "team__a"), headers, first.open));
  const begun = await Promise.all([workWith(first).claim("w"), workWith(first).claim("w")]);
  first.stopping.abort();
  const told = (await old.rest()).at(-1)?.data as Body;
  assert.match(JSON.stringify(told), /The server stops\. Execution \d+ of 'team\/a' goes on/);
  // The event before any message says from where to go on.
  const left = await resumable.text();
  assert.doesNotMatch(left, /data: ./);
  const lastEventId = /^id: (.+)$/m.exec(left)?.[1] ?? "";
  const again = { ...headers, ...RESUMABLE, accept: "text/event-stream", "last-event-id": lastEventId };
  const rest = readEvents(await second.open.request("/mcp", { headers: again })).rest();
  for (const command of begun.flat()) assert.equal((await workWith(second).finish("w", command)).status, 202);
  const answer = (await rest).at(-1)?.data as Body;
  assert.equal(answer["id"], 1);
  assert.ok(begun.flat().some(({ execution_id }) => execution_id === idOf(answer)));
});

/** What a gateway sends for a user. */
function as(user: TestUser): Record<string, string> {
  return { authorization: `Bearer ${TOKENS.operator}`, "x-flow-session": user.tokenSha256 };
}

async function member(...can: ("execute" | "view")[]): Promise<TestUser> {
  const user = await addUser(api.database);
  await allow(api.database, user, [{ allow: "team/**", can }]);
  return user;
}

const LIST = { jsonrpc: "2.0", id: 1, method: "tools/list" };
/** Names of agents: the tools about executions are tried in a file of their own. */
const namesOf = (answer: Body) =>
  (resultOf(answer)["tools"] as Body[]).map(({ name }) => String(name)).filter((name) => !name.startsWith("flow___"));

test("a user has the tools that their roles allow to execute, and no other can be called", async () => {
  const user = as(await member("execute", "view"));
  assert.deepEqual(namesOf(await rpc(LIST, user, api.guarded)), ["team__a"]);
  for (const name of ["other__a", "no__such"]) {
    const refused = resultOf(await rpc(call(1, name), user, api.guarded));
    assert.equal(refused["isError"], true, name);
    assert.match(JSON.stringify(refused), /may not execute.*FORBIDDEN/);
  }
  assert.equal(await countOf("other/a"), 0);
  const answer = rpc(call(2, "team__a"), user, api.guarded);
  const id = await finishNext();
  assert.equal(idOf(await answer), id);
});

test("what a role takes away counts from the next message on", async () => {
  const member1 = await member("execute", "view");
  const { sql } = api.database;
  await sql`update auth.user_roles set is_active = false where user_id = ${member1.userId}`;
  assert.deepEqual(namesOf(await rpc(LIST, as(member1), api.guarded)), []);
  await sql`update auth.sessions set revoked_at = now() where token_sha256 = ${member1.tokenSha256}`;
  assert.equal((await send(LIST, as(member1), api.guarded)).status, 401);
});

test("a user who may execute but not view gets the end without the result", async () => {
  const user = as(await member("execute"));
  const more = { _meta: { progressToken: 1 } };
  const response = send(call(1, "team__a", more), user, api.guarded);
  const id = await finishNext();
  const events = await readEvents(await response).rest();
  assert.equal(events.length, 1);
  assert.deepEqual(resultOf(events[0]?.data as Body)["structuredContent"], { execution_id: id, status: "COMPLETED" });
  const read = { jsonrpc: "2.0", id: 2, method: "resources/read", params: { uri: `flow://executions/${id}` } };
  assert.match(JSON.stringify((await rpc(read, user, api.guarded))["error"]), /may not view/);
});

test("a call that goes on while a role is taken away, or the session ends, does not show what it gave", async () => {
  const { sql } = api.database;
  const [changed, revoked] = [await member("execute", "view"), await member("execute", "view")];
  const answers = [changed, revoked].map((user) => rpc(call(1, "team__a"), as(user), api.guarded));
  const commands = [...(await work.claim("w")), ...(await work.claim("w"))];
  assert.equal(commands.length, 2);
  await sql`update auth.user_roles set is_active = false where user_id = ${changed.userId}`;
  await sql`update auth.sessions set revoked_at = now() where token_sha256 = ${revoked.tokenSha256}`;
  for (const command of commands) assert.equal((await work.finish("w", command, { secret: 1 })).status, 202);
  const [withoutRole, withoutSession] = await Promise.all(answers);
  assert.match(JSON.stringify(resultOf(withoutRole ?? {})), /Your roles do not allow to view/);
  assert.match(JSON.stringify(withoutSession?.["error"]), /There is no such session/);
  assert.doesNotMatch(JSON.stringify([withoutRole, withoutSession]), /"secret"/);
});

test("a user is notified of changed tools when their roles change; an ended session gets nothing more", async () => {
  const user = await member("execute");
  const headers = { ...as(user), accept: "text/event-stream" };
  const reader = readEvents(await api.guarded.request("/mcp", { headers }));
  const heard = reader.next();
  await allow(api.database, user, [{ path: "other/a", can: ["execute"] }]);
  // As the database reports it.
  api.service.sessionChanges.changed("all");
  assert.deepEqual((await heard)?.data, { jsonrpc: "2.0", method: "notifications/tools/list_changed" });
  assert.deepEqual(namesOf(await rpc(LIST, as(user), api.guarded)), ["other__a", "team__a"]);
  await api.database.sql`update auth.sessions set revoked_at = now() where token_sha256 = ${user.tokenSha256}`;
  api.service.sessionChanges.changed("all");
  assert.deepEqual(
    (await reader.rest()).map(({ event }) => event),
    ["error"],
  );
});

test("one user's session id gives another nothing: neither the answer nor the cancellation of a call", async () => {
  const [owner, thief] = [as(await member("execute", "view")), as(await member("execute", "view"))];
  const session = { "mcp-session-id": randomUUID() };
  const answer = rpc(call(1, "team__a"), { ...owner, ...session }, api.guarded);
  const [command] = await work.claim("w");
  const cancel = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } };
  assert.equal((await send(cancel, { ...thief, ...session }, api.guarded)).status, 202);
  const resume = { accept: "text/event-stream", "last-event-id": eventId([1, null, 0]) };
  const stolen = [
    { ...thief, ...session, ...resume },
    { ...owner, ...resume, "mcp-session-id": randomUUID() },
  ].map(async (headers) => await readEvents(await api.guarded.request("/mcp", { headers })).rest());
  for (const events of await Promise.all(stolen)) {
    assert.match(JSON.stringify(events.at(-1)?.data), /"error":.*never begun/);
  }
  assert.ok(command !== undefined);
  assert.equal((await work.finish("w", command)).status, 202);
  assert.equal(idOf(await answer), command.execution_id);
});

test("a worker, and a caller without a token, cannot call", async () => {
  assert.equal((await send(LIST, {}, api.guarded)).status, 401);
  assert.equal((await send(LIST, { authorization: `Bearer ${TOKENS.worker}` }, api.guarded)).status, 403);
});

test("calls of users are in the audit log, allowed and refused ones", async () => {
  const user = await member("execute", "view");
  const answer = rpc(call(1, "team__a"), as(user), api.guarded);
  await finishNext();
  await answer;
  const { sql } = api.database;
  const rows = await sql<{ resource: string; result: string }[]>`
    select resource, result from auth.audit_log where user_id = ${user.userId} and action = 'playbook.execute'`;
  assert.deepEqual([...rows], [{ resource: "playbook/team/a", result: "allow" }]);
});
