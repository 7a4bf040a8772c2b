import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type RequestListener } from "node:http";
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { openChannel } from "../../../src/adapters/server/message-channel.ts";
import { type ConnectionChange, connectWorker } from "../../../src/adapters/server/worker-connection.ts";
import { createMetrics } from "../../../src/platform/telemetry/metrics.ts";
import type { ListenerEnvironment } from "../../../src/roles/http/answers.ts";
import { listen } from "../../../src/roles/http/listen.ts";
import { CONNECTION_TIMES, createWorkerConnections } from "../../../src/roles/http/worker-connections.ts";
import { CONNECTION_PROTOCOL, CONNECTION_ROUTES, MESSAGE } from "../../../src/schema/routes/messages.ts";
import { bytesOf } from "../../support/servers/message-client.ts";
import { startTcpProxy } from "../../support/servers/tcp-proxy.ts";

const PATH = "/api/commands/claim";

/** A server with worker connections, which says on which way a call came, and holds those whose body is "hold". */
async function serverWith(t: TestContext, more: { socket?: string; port?: number } = {}) {
  const held: ((body: string) => void)[] = [];
  const cancelled: string[] = [];
  let came = () => {};
  const connections = createWorkerConnections({
    answer: ({ body: bytes, fields, signal }) => {
      const body = bytes.toString();
      const given = JSON.stringify({ way: "message", body, fields: JSON.parse(fields.toString()) as unknown });
      signal().addEventListener("abort", () => cancelled.push(body));
      if (!body.startsWith("hold")) return Promise.resolve({ status: 200, fields: "", text: given });
      return new Promise((resolve) => {
        held.push((sent) => resolve({ status: 503, fields: '{"retry-after":"3"}', text: sent }));
        came();
      });
    },
    limits: { ...CONNECTION_TIMES, bodyBytesMax: 2 * 1024 ** 2 },
    metrics: createMetrics(),
    closed: () => undefined,
  });
  const upgrades = { protocol: CONNECTION_PROTOCOL, path: CONNECTION_ROUTES.open.path, ...connections };
  const fetch = (request: Request, { upgrade }: ListenerEnvironment) => {
    if (upgrade === undefined) return Response.json({ way: "http", path: new URL(request.url).pathname });
    if (upgrade.isLeaving || request.headers.get("authorization") === "Bearer bad")
      return new Response(null, { status: 503 });
    upgrade.isAccepted = true;
    return new Response(null, { status: 204 });
  };
  const { socket, port = 0 } = more;
  const listener = await listen(
    { fetch, malformed: () => new Response("malformed"), upgrades },
    { host: "127.0.0.1", port, ...(socket !== undefined && { socket: () => socket }) },
  );
  t.after(() => listener.close());
  return {
    ...{ listener, cancelled, url: listener.url, port: Number(new URL(listener.url).port) },
    async held(count: number) {
      while (held.length < count) {
        await new Promise<void>((resolve) => {
          came = resolve;
        });
      }
      return held;
    },
  };
}

/** A worker's connection, and what became of it. */
function worker(t: TestContext, url: string, more: { socket?: string } = {}) {
  const changes: ConnectionChange[] = [];
  let changed = () => {};
  const connection = connectWorker({
    ...{ url, token: undefined, connections: 4, ...more },
    workerSecret: () => "secret",
    onChange(change) {
      changes.push(change);
      changed();
    },
  });
  t.after(() => connection.close());
  const call = async (body = "{}", path = PATH, signal = new AbortController().signal) => {
    const method = "POST" as const;
    const reply = await connection.call({ method, path, body, idempotencyKey: "k", timeoutMs: 60_000, signal });
    return reply as { status: number; retryAfterMs?: number; body: { way: string; fields?: unknown; path?: string } };
  };
  return {
    ...{ connection, changes, call },
    /** The change at this place. */
    async change(index: number): Promise<ConnectionChange> {
      while (changes.length <= index) {
        await new Promise<void>((resolve) => {
          changed = resolve;
        });
      }
      return changes[index] as ConnectionChange;
    },
    /** Opens the connection by a first call. */
    async opened() {
      await call();
      assert.deepEqual(await this.change(0), { type: "opened" });
    },
  };
}

test("the first call goes by HTTP, the next ones over the connection, and what is no message by HTTP always", async (t) => {
  const { url } = await serverWith(t);
  const { call, change } = worker(t, url);
  assert.equal((await call()).body.way, "http");
  assert.deepEqual(await change(0), { type: "opened" });
  const { body } = await call();
  assert.deepEqual(body, { way: "message", body: "{}", fields: { "idempotency-key": "k", "x-flow-worker": "secret" } });
  assert.equal((await call("{}", "/api/worker/pool/register")).body.way, "http");
});

test("refusals and their times come through; answers in any order belong to their calls", async (t) => {
  const { url, held } = await serverWith(t);
  const own = worker(t, url);
  await own.opened();
  const [first, second] = [own.call("hold 1"), own.call("hold 2")];
  const [one, two] = await held(2);
  two?.('{"n":2}');
  one?.("{");
  assert.deepEqual(await second, { status: 503, body: { n: 2 }, retryAfterMs: 3_000 });
  assert.deepEqual(await first, { status: 503, body: undefined, retryAfterMs: 3_000 });
});

for (const [what, status] of [
  ["a server of the version before", 404],
  ["a server that wants another protocol", 426],
  ["a proxy that knows no upgrades", 400],
  ["a proxy that takes the headers away and answers", 200],
] as const) {
  test(`${what} (${status}) gets its calls by HTTP, and is asked again in a minute`, async (t) => {
    const answer: RequestListener = ({ url }, outgoing) => {
      const isAsked = url === CONNECTION_ROUTES.open.path;
      outgoing.writeHead(isAsked ? status : 200).end(JSON.stringify({ way: "http" }));
    };
    const old = createServer(answer).listen(0, "127.0.0.1");
    await once(old, "listening");
    t.after(() => old.close());
    const { call, change, changes } = worker(t, `http://127.0.0.1:${(old.address() as AddressInfo).port}`);
    for (let count = 0; count < 3; count += 1) assert.equal((await call()).body.way, "http");
    const refused = await change(0);
    assert.deepEqual(refused, { type: "refused", message: `it was answered with status ${status}`, retryMs: 60_000 });
    await call();
    assert.equal(changes.length, 1);
  });
}

test("a server that refuses for now is asked again soon, then later and later", async (t) => {
  const { listener, url } = await serverWith(t);
  const own = worker(t, url);
  listener.leave();
  await own.call();
  assert.deepEqual(await own.change(0), {
    ...{ type: "refused", message: "it was answered with status 503", retryMs: 500 },
  });
  while (own.changes.length < 2) await own.call();
  assert.equal((own.changes[1] as { retryMs: number }).retryMs, 1_000);
});

test("what was under way on a connection that is cut ends without an answer, as by HTTP; then calls go by HTTP", async (t) => {
  const { port, held } = await serverWith(t);
  const proxy = await startTcpProxy(port);
  const own = worker(t, `http://127.0.0.1:${proxy.port}`);
  await own.opened();
  const under = [own.call("hold 1"), own.call("hold 2")];
  await held(2);
  const refused = Promise.all(under.map((call) => assert.rejects(call, { code: "SERVER_UNREACHABLE" })));
  proxy.cut();
  await refused;
  assert.equal((await own.change(1)).type, "ended");
  proxy.mend();
  assert.equal((await own.call()).body.way, "http");
  // And it comes back.
  while (own.changes.length < 3) await own.call();
  assert.equal((await own.call()).body.way, "message");
});

/** A server that upgrades every connection and then sends what the test says. */
async function upgrading(t: TestContext, sent: (socket: Socket) => void) {
  const server = createTcpServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => {
      socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: flow-worker/1\r\n\r\n");
      sent(socket);
    });
    t.after(() => socket.destroy());
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return connect((server.address() as AddressInfo).port, "127.0.0.1");
}

/** The worker's side of a connection to it, with short looks. */
async function channelTo(t: TestContext, sent: (socket: Socket) => void, lookMs = 60_000) {
  const socket = await upgrading(t, sent);
  socket.write("GET");
  const [head] = (await once(socket, "data")) as [Buffer];
  const rest = head.subarray(head.indexOf("\r\n\r\n") + 4);
  const seen = { left: 0 };
  let ended = (_: string) => {};
  const end = new Promise<string>((resolve) => {
    ended = resolve;
  });
  const channel = openChannel({ socket, head: rest, left: () => (seen.left += 1), ended, lookMs });
  t.after(() => channel.close());
  const { signal } = new AbortController();
  const call = (timeoutMs = 60_000) => channel.call({ kind: MESSAGE.claim, fields: "", body: "", timeoutMs, signal });
  return { channel, end, seen, call };
}

for (const [what, bytes, why] of [
  [
    "an answer that breaks off",
    bytesOf(MESSAGE.answer, 1, "x".repeat(99)).subarray(0, 40),
    /the server closed the conn/,
  ],
  ["a length that cannot be", bytesOf(MESSAGE.answer, 1, "", undefined, 1), /what is no message/],
  ["an answer that is too long", bytesOf(MESSAGE.answer, 1, "", undefined, 0xffff_ffff), /what is no message/],
  ["a reason", bytesOf(MESSAGE.close, 0, '{"code":"idle","error":"nothing came"}'), /nothing came/],
  ["a reason that is none", bytesOf(MESSAGE.close, 0, "["), /it did not say why/],
] as const) {
  test(`${what} ends the connection and the call under way`, async (t) => {
    const { call, end } = await channelTo(t, (socket) => socket.once("data", () => socket.end(bytes)));
    await assert.rejects(call(), why);
    assert.match(await end, why);
    await assert.rejects(call(), /.*/);
  });
}

test("answers that no call waits for, and kinds that are not known, are left out", async (t) => {
  const noise = [bytesOf(MESSAGE.answer, 4711), bytesOf(200, 0), bytesOf(MESSAGE.pong, 0)];
  const sent = (socket: Socket) =>
    socket.once("data", () => socket.write(Buffer.concat([...noise, bytesOf(MESSAGE.answer, 1, "1")])));
  const { call } = await channelTo(t, sent);
  assert.equal((await call()).body.toString(), "1");
});

test("a server that is not there any more, without its connection being closed, is noticed", async (t) => {
  let pings = 0;
  const sent = (socket: Socket) => socket.on("data", (bytes: Buffer) => (pings += bytes[4] === MESSAGE.ping ? 1 : 0));
  const { call, end } = await channelTo(t, sent, 10);
  await assert.rejects(call(), /silent for too long/);
  assert.match(await end, /silent for too long/);
  assert.equal(pings, 1);
});

test("a call that is not answered in its time ends; the connection, whose server lives, stays", async (t) => {
  const cancelled: number[] = [];
  const sent = (socket: Socket) =>
    socket.on("data", (bytes: Buffer) => {
      // A ping and the end of the call may come at once.
      for (let at = 0; at < bytes.length; at += 4 + bytes.readUInt32BE(at)) {
        if (bytes[at + 4] === MESSAGE.ping) socket.write(bytesOf(MESSAGE.pong, 0));
        if (bytes[at + 4] === MESSAGE.cancel) cancelled.push(bytes.readUInt32BE(at + 5));
      }
    });
  const { call, channel } = await channelTo(t, sent, 10);
  await assert.rejects(call(300), /no answer in time/);
  assert.equal(channel.isReady(), true);
  while (cancelled.length === 0) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(cancelled, [1]);
});

test("a call that is aborted rejects with the signal's reason, and the server learns of it", async (t) => {
  const { url, held, cancelled } = await serverWith(t);
  const own = worker(t, url);
  await own.opened();
  const abort = new AbortController();
  const call = own.call("hold this", PATH, abort.signal);
  await held(1);
  const reason = new Error("not any more");
  abort.abort(reason);
  await assert.rejects(call, reason);
  while (cancelled.length === 0) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(cancelled, ["hold this"]);
  await assert.rejects(own.call("x", PATH, abort.signal), reason);
  assert.equal((await own.call()).body.way, "message");
});

test("more calls than a connection takes go by HTTP", async (t) => {
  const { url, held } = await serverWith(t);
  const own = worker(t, url);
  await own.opened();
  const under = Array.from({ length: 30 }, () => own.call("hold"));
  await held(30);
  assert.equal((await own.call()).body.way, "http");
  for (const answer of await held(30)) answer("{}");
  await Promise.all(under);
  assert.equal((await own.call()).body.way, "message");
});

test("a server that leaves answers what is under way, and gets nothing more", async (t) => {
  const { url, listener, held } = await serverWith(t);
  const own = worker(t, url);
  await own.opened();
  const under = own.call("hold");
  await held(1);
  listener.leave();
  while ((await own.call()).body.way === "message");
  (await held(1))[0]?.('{"way":"message"}');
  assert.equal((await under).body.way, "message");
  assert.equal((await own.change(1)).type, "ended");
  await listener.close();
});

test("the server's unix socket comes first, and a socket that is gone is no obstacle", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "flow-messages-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const socket = join(folder, "flow.sock");
  const beside = await serverWith(t, { socket });
  const own = worker(t, "http://127.0.0.1:9", { socket });
  await own.opened();
  assert.equal((await own.call()).body.way, "message");
  const without = worker(t, beside.url, { socket: join(folder, "none.sock") });
  await without.opened();
});

test("closing ends calls under way, and opens nothing again", async (t) => {
  const { url, held } = await serverWith(t);
  const own = worker(t, url);
  await own.opened();
  const under = assert.rejects(own.call("hold"), { code: "SERVER_UNREACHABLE" });
  await held(1);
  await own.connection.close();
  await under;
  await assert.rejects(own.call());
  assert.equal(own.changes.length, 1);
});
