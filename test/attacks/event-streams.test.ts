import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import type { Database } from "../../src/repositories/database/database.ts";
import { open } from "../repositories/service-database.ts";
import { createServedDatabase } from "../support/database/postgres.ts";
import { ownDatabase } from "../support/engine/key-ring.ts";
import { readEvents } from "../support/servers/sse.ts";
import { playbook } from "../support/service/api.ts";
import { folderWith } from "../support/service/cli-process.ts";
import { startTestGateway } from "../support/service/gateway-process.ts";
import { type Serving, startServe } from "../support/service/serve.ts";
import { answerOf } from "../support/service/server-calls.ts";
import { addUser, allow, type TestUser } from "../support/service/users.ts";

/*
 * Event streams that one caller opens without end: at a server in a process of its own, directly, through a gateway, and by every
 * route that answers with a stream. A place that is given back must be there again, however the stream ended.
 */

const OPERATOR = "operator-token-of-the-event-stream-attacks";
const PER_USER = 2;
const IN_ALL = 5;

const closers: (() => unknown)[] = [];
const context = { after: (close: () => unknown) => void closers.push(close) } as never;
after(async () => {
  for (const close of closers.reverse()) await close();
});

let server: Serving;
let database: Database;
let execution: string;
let agent: string;

before(async () => {
  const { url } = await createServedDatabase();
  database = open(url);
  server = await startServe(context, await folderWith(context, {}), {
    ...ownDatabase(url),
    FLOW_SERVER_TOKEN: OPERATOR,
    FLOW_WORKER_TOKEN: `worker-${randomUUID()}`,
    FLOW_EVENT_STREAMS_PER_USER: String(PER_USER),
    FLOW_EVENT_STREAMS: String(IN_ALL),
    FLOW_PURE_STEPS: "workers",
  });
  const operate = (path: string, body: unknown) => answerOf(server.url, OPERATOR, "POST", path, body);
  await operate("/api/catalog/register", { content: playbook("team/one") });
  // No worker runs it: it stays open.
  execution = String((await operate("/api/execute", { path: "team/one" }))["execution_id"]);
  agent = playbook("team/agent", "a", ", agent: true");
});

/** An open stream, or the error. */
interface Opened {
  status: number;
  retryAfter: string | null;
  text(): Promise<string>;
  /** Reads its first event, which proves that it runs. */
  began(): Promise<void>;
  /** Cuts the connection. */
  cut(): void;
}

const opened: Opened[] = [];

async function openAt(url: string, headers: Record<string, string>, init: RequestInit = {}): Promise<Opened> {
  const controller = new AbortController();
  const response = await fetch(url, { headers, signal: controller.signal, ...init });
  const stream: Opened = {
    status: response.status,
    retryAfter: response.headers.get("retry-after"),
    text: () => response.text(),
    began: async () => void (await readEvents(response).next()),
    cut: () => controller.abort(),
  };
  opened.push(stream);
  return stream;
}

const headersOf = (user?: TestUser) => ({
  authorization: `Bearer ${OPERATOR}`,
  ...(user !== undefined && { "x-flow-session": user.tokenSha256 }),
});

const follow = (user?: TestUser, init: RequestInit = {}) =>
  openAt(`${server.url}/api/executions/${execution}/stream`, headersOf(user), init);

const viewer = async () => {
  const user = await addUser(database);
  await allow(database, user, [{ allow: "team/**", can: ["view", "execute"] }]);
  return user;
};

async function refused(stream: Opened, setting: string): Promise<void> {
  assert.equal(stream.status, 429);
  assert.ok(Number(stream.retryAfter) >= 1, `Retry-After: ${stream.retryAfter}`);
  const body = JSON.parse(await stream.text()) as Record<string, unknown>;
  assert.equal(body["code"], "RATE_LIMITED");
  assert.match(String(body["error"]), new RegExp(`${setting}\\b.*Close one`));
}

/** Asks until a place that is on its way back has come back. */
async function untilOpen(ask: () => Promise<Opened>): Promise<Opened> {
  for (;;) {
    const stream = await ask();
    if (stream.status === 200) return stream;
    assert.equal(stream.status, 429);
    await stream.text();
  }
}

/** Ends all streams of a test, and waits until every place is free again. */
async function endAll(): Promise<void> {
  for (const stream of opened.splice(0)) stream.cut();
  const free: Opened[] = [];
  for (let count = 0; count < IN_ALL; count += 1) free.push(await untilOpen(() => follow()));
  for (const stream of opened.splice(0)) stream.cut();
  // The last ones are on their way back; the next test waits where it needs them.
  const last = await untilOpen(() => follow());
  last.cut();
}

test("one user has so many streams and no more; others, and the operator, have theirs", async () => {
  const [ada, ben] = [await viewer(), await viewer()];
  for (let count = 1; count <= PER_USER; count += 1) {
    const stream = await untilOpen(() => follow(ada));
    await stream.began();
  }
  await refused(await follow(ada), "FLOW_EVENT_STREAMS_PER_USER");
  assert.equal((await untilOpen(() => follow(ben))).status, 200, "another user");
  const last = await untilOpen(() => follow());
  assert.equal(last.status, 200, "the operator");
  await last.began();
  await refused(await follow(ada), "FLOW_EVENT_STREAMS_PER_USER");
  await endAll();
});

test("all together have so many and no more: the operator too", async () => {
  const [ada, ben] = [await viewer(), await viewer()];
  const users = [ada, ada, ben, ben, undefined];
  assert.equal(users.length, IN_ALL);
  for (const user of users) await (await untilOpen(() => follow(user))).began();
  await refused(await follow(), "FLOW_EVENT_STREAMS");
  await refused(await follow(await viewer()), "FLOW_EVENT_STREAMS");
  await endAll();
});

for (const [how, leave] of [
  ["is cut", (stream: Opened) => stream.cut()],
  [
    "is cut after it was read",
    async (stream: Opened) => {
      await stream.began();
      stream.cut();
    },
  ],
] as const) {
  test(`a stream whose connection ${how} gives its place back`, async () => {
    const ada = await viewer();
    for (let round = 0; round < 3; round += 1) {
      const streams: Opened[] = [];
      for (let count = 0; count < PER_USER; count += 1) streams.push(await untilOpen(() => follow(ada)));
      await refused(await follow(ada), "FLOW_EVENT_STREAMS_PER_USER");
      for (const stream of streams) await leave(stream);
    }
    await endAll();
  });
}

test("a stream that is refused, asked for by HEAD, or ends by itself holds no place", async () => {
  const ada = await viewer();
  for (let count = 0; count < 2 * IN_ALL; count += 1) {
    assert.equal((await follow(ada, { method: "HEAD" })).status, 200);
    const unknown = await openAt(`${server.url}/api/executions/4711/stream`, headersOf(ada));
    assert.equal(unknown.status, 404);
    await unknown.text();
    const wrong = await openAt(`${server.url}/api/executions/${execution}/stream`, {
      ...headersOf(ada),
      "last-event-id": "x",
    });
    assert.equal(wrong.status, 422);
    await wrong.text();
  }
  await answerOf(server.url, OPERATOR, "POST", "/api/catalog/register", { content: playbook("team/ended") });
  const { execution_id: id } = await answerOf(server.url, OPERATOR, "POST", "/api/execute", { path: "team/ended" });
  await answerOf(server.url, OPERATOR, "POST", `/api/executions/${String(id)}/cancel`, {});
  for (let count = 0; count < 2 * IN_ALL; count += 1) {
    const ended = await untilOpen(() => openAt(`${server.url}/api/executions/${String(id)}/stream`, headersOf(ada)));
    assert.match(await ended.text(), /event: end/);
  }
  await endAll();
});

test("a user's MCP streams count as their others do: the notices of a session, and calls of tools", async () => {
  await answerOf(server.url, OPERATOR, "POST", "/api/catalog/register", { content: agent });
  const ada = await viewer();
  const accept = { ...headersOf(ada), accept: "application/json, text/event-stream" };
  const notices = () => openAt(`${server.url}/mcp`, accept);
  const call = () =>
    openAt(
      `${server.url}/mcp`,
      { ...accept, "content-type": "application/json" },
      {
        method: "POST",
        body: JSON.stringify({
          jsonrpc: "2.0",
          id: 1,
          method: "tools/call",
          params: { name: "team__agent", arguments: {} },
        }),
      },
    );
  await untilOpen(notices);
  await untilOpen(call);
  await refused(await notices(), "FLOW_EVENT_STREAMS_PER_USER");
  await refused(await call(), "FLOW_EVENT_STREAMS_PER_USER");
  await refused(await follow(ada), "FLOW_EVENT_STREAMS_PER_USER");
  await endAll();
  // An unknown tool is answered at once, and its place is free again.
  for (let count = 0; count < 2 * PER_USER; count += 1) {
    const unknown = await untilOpen(() =>
      openAt(
        `${server.url}/mcp`,
        { ...accept, "content-type": "application/json" },
        {
          method: "POST",
          body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "nothing" } }),
        },
      ),
    );
    assert.match(await unknown.text(), /isError/);
  }
});

test("through a gateway each user has their own places, and a connection that is cut there gives its place back here", async (t) => {
  const gateway = await startTestGateway(t, { FLOW_SERVER_TOKEN: OPERATOR, FLOW_BASE_URL: server.url });
  const [ada, ben] = [await viewer(), await viewer()];
  const through = (user: TestUser) =>
    openAt(`${gateway.url}/flow/executions/${execution}/stream`, { authorization: `Bearer ${user.token}` });
  for (let round = 0; round < 2; round += 1) {
    const streams: Opened[] = [];
    for (let count = 0; count < PER_USER; count += 1) streams.push(await untilOpen(() => through(ada)));
    for (const stream of streams) await stream.began();
    await refused(await through(ada), "FLOW_EVENT_STREAMS_PER_USER");
    await refused(await follow(ada), "FLOW_EVENT_STREAMS_PER_USER");
    const other = await untilOpen(() => through(ben));
    for (const stream of [...streams, other]) stream.cut();
  }
  await endAll();
});
