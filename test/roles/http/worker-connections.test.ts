import assert from "node:assert/strict";
import { once } from "node:events";
import { request } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { createMetrics } from "../../../src/platform/telemetry/metrics.ts";
import type { ListenerEnvironment } from "../../../src/roles/http/answers.ts";
import { type Listener, listen } from "../../../src/roles/http/listen.ts";
import { createWorkerConnections } from "../../../src/roles/http/worker-connections.ts";
import type { MessageAnswer, MessageCall } from "../../../src/routes/workers/connection.ts";
import { CONNECTION_PROTOCOL, CONNECTION_ROUTES } from "../../../src/schema/routes/messages.ts";
import {
  bytesOf,
  KIND,
  type MessageClient,
  openedMessages,
  openMessages,
} from "../../support/servers/message-client.ts";

const MIB = 1024 ** 2;
const BODY_BYTES_MAX = 2 * MIB;
/** Calls that a connection holds at a time. */
const CALLS_MAX = 32;

/** A call that waits for the test to answer it. */
interface Held {
  body: string;
  bytes: number;
  signal: AbortSignal;
  answer(text: string, status?: number): void;
}

/** A listener whose calls the test answers; `look` as short as a test needs it. */
async function stand(t: TestContext, lookMs = 60_000) {
  const metrics = createMetrics();
  const held: Held[] = [];
  let came = () => {};
  const answer = ({ body, bytes, signal }: MessageCall) => {
    if (body.toString() === "malformed") return undefined;
    return new Promise<MessageAnswer>((resolve) => {
      const give = (text: string, status = 200) => resolve({ status, fields: "", text });
      held.push({ body: body.toString(), bytes, signal: signal(), answer: give });
      came();
    });
  };
  const connections = createWorkerConnections({
    answer,
    limits: { bodyBytesMax: BODY_BYTES_MAX, lookMs, silentLooks: 3, slowLooks: 2 },
    metrics,
    closed: () => undefined,
  });
  const upgrades = { protocol: CONNECTION_PROTOCOL, path: CONNECTION_ROUTES.open.path, ...connections };
  const fetch = async (request: Request, { upgrade }: ListenerEnvironment) => {
    if (upgrade === undefined) return new Response(`${request.method} ${await request.text()}`);
    if (upgrade.isLeaving || request.headers.get("authorization") !== "Bearer good") {
      return new Response("refused", { status: upgrade.isLeaving ? 503 : 401 });
    }
    upgrade.isAccepted = true;
    return new Response(null, { status: 204 });
  };
  const listener: Listener = await listen(
    { fetch, malformed: () => new Response("malformed", { status: 400 }), upgrades },
    { host: "127.0.0.1", port: 0 },
  );
  t.after(() => listener.close());
  const port = Number(new URL(listener.url).port);
  const at = { port, headers: { authorization: "Bearer good" } };
  return {
    ...{ listener, port, held, at },
    open: () => openedMessages(at),
    /** The calls, once there are so many. */
    async calls(count: number): Promise<Held[]> {
      while (held.length < count) {
        await new Promise<void>((resolve) => {
          came = resolve;
        });
      }
      return held;
    },
    series: async (name: string) =>
      (await metrics.expose()).text
        .split("\n")
        .find((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`)),
    /** Resolves when one connection was counted as closed for this reason. */
    async closedBy(reason: string): Promise<void> {
      const line = `flow_worker_connections_closed_total{reason="${reason}"} 1\n`;
      while (!(await metrics.expose()).text.includes(line)) await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

test("without a token, or with another path, nothing of what follows is read", async (t) => {
  const { port, held, at } = await stand(t);
  const refused = await openMessages({ port });
  assert.deepEqual([refused.status, refused.client === undefined && refused.body], [401, "refused"]);
  const elsewhere = await openMessages({ ...at, path: "/api/health" });
  assert.deepEqual([elsewhere.status, elsewhere.client === undefined && elsewhere.body], [200, "GET "]);
  const other = await openMessages({ ...at, headers: { ...at.headers, upgrade: "flow-worker/2" } });
  assert.deepEqual([other.status, other.client === undefined && other.body], [200, "GET "]);
  assert.deepEqual(held, []);
});

test("a request that asks for another protocol is answered as any other, with its body", async (t) => {
  const { listener } = await stand(t);
  const headers = { connection: "Upgrade, HTTP2-Settings", upgrade: "h2c", "http2-settings": "AAMAAABkAAQ" };
  for (const [method, body, length] of [
    ["POST", "a body", { "content-length": "6" }],
    ["POST", "x".repeat(300_000), { "transfer-encoding": "chunked" }],
    ["GET", "", {}],
  ] as const) {
    const sent = request(listener.url, { method, headers: { ...headers, ...length }, agent: false });
    sent.end(body);
    const [answer] = await once(sent, "response");
    assert.equal(await text(answer), `${method} ${body}`);
  }
});

test("what comes right behind the request, before its answer, is read when it is allowed and thrown away when not", async (t) => {
  const { port, calls, held } = await stand(t);
  const ask = (token: string) => {
    const socket = connect(port, "127.0.0.1");
    t.after(() => socket.destroy());
    const head = `GET ${CONNECTION_ROUTES.open.path} HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: flow-worker/1\r\nauthorization: Bearer ${token}\r\n\r\n`;
    socket.write(Buffer.concat([Buffer.from(head), bytesOf(KIND.claim, 1, token)]));
    return socket;
  };
  const refused = ask("bad");
  const [first] = await once(refused, "data");
  assert.match(String(first), /^HTTP\/1\.1 401 Refused\r\nconnection: close\r\n/);
  await once(refused, "close");
  ask("good");
  assert.equal((await calls(1))[0]?.body, "good");
  assert.equal(held.length, 1);
});

test("calls are answered by their ids in the order in which their answers come", async (t) => {
  const { open, calls } = await stand(t);
  const client = await open();
  const [one, two] = [client.call(KIND.claim, "one", undefined, 7), client.call(KIND.report, "two", undefined, 9)];
  const [first, second] = await calls(2);
  second?.answer("second");
  assert.deepEqual([(await two).body, (await two).id], ["second", 9]);
  first?.answer("first", 404);
  assert.deepEqual([(await one).body, (await one).status], ["first", 404]);
});

test("a call that is not waited for any more is told so, and so is every one whose connection is cut", async (t) => {
  const { open, calls, series } = await stand(t);
  const client = await open();
  assert.equal(await series("flow_worker_connections"), "flow_worker_connections 1");
  void client.call(KIND.claim, "a", undefined, 1);
  void client.call(KIND.claim, "b", undefined, 2);
  const [a, b] = await calls(2);
  assert.ok(a && b);
  client.socket.write(bytesOf(KIND.cancel, 1));
  await once(a.signal, "abort");
  assert.equal(b.signal.aborted, false);
  // In the middle of a message, too.
  client.socket.end(bytesOf(KIND.report, 3, "x".repeat(1_000)).subarray(0, 500));
  await once(b.signal, "abort");
  await client.closed;
});

for (const [what, bytes, reason] of [
  ["a length that cannot be", bytesOf(KIND.claim, 1, "", undefined, 3), "malformed"],
  ["fields longer than the message", Buffer.from("00000009010000000100000001", "hex"), "malformed"],
  ["a call whose fields are no texts", bytesOf(KIND.claim, 1, "malformed"), "malformed"],
  ["a length of four gigabytes", bytesOf(KIND.claim, 1, "", undefined, 0xffff_ffff), "too_long"],
  ["an unknown kind", bytesOf(99, 1), "unknown_kind"],
  ["an unknown kind that is too long", bytesOf(99, 1, "", undefined, 3 * MIB), "unknown_kind"],
  ["an answer", bytesOf(KIND.answer, 1), "unknown_kind"],
  ["another request", Buffer.from("GET /api/health HTTP/1.1\r\n\r\n"), "too_long"],
  ["an id that is in use", Buffer.concat([bytesOf(KIND.claim, 1), bytesOf(KIND.claim, 1)]), "id_in_use"],
] as const) {
  test(`${what} closes the connection, with the reason: ${reason}`, async (t) => {
    const { open, closedBy } = await stand(t);
    const client = await open();
    client.socket.write(bytes);
    assert.equal(await client.closed, reason);
    await closedBy(reason);
  });
}

test("of calls no more are read at a time than a connection holds; the rest waits, and is read when there is room", async (t) => {
  const { open, held, calls } = await stand(t);
  const client = await open();
  const all = Array.from({ length: 2_000 }, (_, index) => client.call(KIND.claim, String(index)));
  await calls(CALLS_MAX);
  // A further listener's turn: if more were read at once, they would be here.
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(held.length, CALLS_MAX);
  for (let index = 0; index < all.length; index += 1) {
    const call = (await calls(index + 1))[index];
    call?.answer(`answer ${call.body}`);
  }
  const bodies = (await Promise.all(all)).map(({ body }) => body);
  assert.deepEqual(
    bodies,
    Array.from({ length: 2_000 }, (_, index) => `answer ${index}`),
  );
});

test("of bodies no more is held than four of the longest, and a message that is too long is not held at all", async (t) => {
  const { open, held, calls } = await stand(t);
  const client = await open();
  const long = "x".repeat(BODY_BYTES_MAX);
  const first = Array.from({ length: 6 }, () => client.call(KIND.report, long));
  await calls(4);
  for (let turn = 0; turn < 200; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(held.length, 4);
  for (let index = 0; index < 6; index += 1) (await calls(index + 1))[index]?.answer("");
  await Promise.all(first);
  const tooLong = client.call(KIND.report, "y".repeat(60 * MIB));
  const [refused] = (await calls(7)).slice(6);
  assert.deepEqual([refused?.body, refused?.bytes], ["", 60 * MIB]);
  refused?.answer("too long", 413);
  assert.equal((await tooLong).status, 413);
  const next = client.call(KIND.claim, "next");
  (await calls(8))[7]?.answer("");
  await next;
});

test("a worker that does not read its answers is given no more to answer, and closed", async (t) => {
  const { open, held, calls, closedBy } = await stand(t, 50);
  const client = await open();
  client.socket.pause();
  for (let index = 0; index < CALLS_MAX; index += 1) client.socket.write(bytesOf(KIND.claim, index + 1));
  for (const call of await calls(CALLS_MAX)) call.answer("x".repeat(MIB));
  client.socket.write(bytesOf(KIND.claim, 99));
  await closedBy("slow");
  assert.equal(held.length, CALLS_MAX);
});

test("a message that does not come to its end closes the connection, however slowly its bytes come", async (t) => {
  const { open } = await stand(t, 50);
  const client = await open();
  const message = bytesOf(KIND.claim, 1, "x".repeat(100_000));
  let at = 0;
  const drip = setInterval(() => {
    client.socket.write(message.subarray(at, at + 1));
    at += 1;
  }, 10);
  t.after(() => clearInterval(drip));
  assert.equal(await client.closed, "slow");
});

test("silence closes the connection; a worker that pings is answered and stays", async (t) => {
  const { open } = await stand(t, 100);
  const [silent, lively] = [await open(), await open()];
  const pings = setInterval(() => lively.socket.write(bytesOf(KIND.ping, 5)), 50);
  t.after(() => clearInterval(pings));
  assert.equal(await silent.closed, "idle");
  assert.deepEqual([(await lively.next()).kind, lively.socket.destroyed], [KIND.pong, false]);
});

test("a token that is not taken any more ends its connection with that answer", async (t) => {
  const { open, calls } = await stand(t);
  const client = await open();
  const answer = client.call(KIND.claim, "a");
  (await calls(1))[0]?.answer("{}", 401);
  assert.equal((await answer).status, 401);
  assert.equal(await client.closed, "unauthenticated");
});

async function leaving(client: MessageClient): Promise<void> {
  assert.equal((await client.next()).kind, KIND.leave);
}

test("a server that stops says so, takes no new connection, and answers what is under way", async (t) => {
  const { open, at, listener, calls } = await stand(t);
  const [busy, idle] = [await open(), await open()];
  const answer = busy.call(KIND.claim, "a");
  await calls(1);
  listener.leave();
  await Promise.all([leaving(busy), leaving(idle)]);
  assert.equal((await openMessages(at)).status, 503);
  // A call that was on its way is answered too.
  const late = busy.call(KIND.report, "late");
  await calls(2);
  const closed = listener.close();
  assert.equal(await idle.closed, "stopping");
  for (const call of await calls(2)) call.answer("done");
  assert.deepEqual([(await answer).body, (await late).body], ["done", "done"]);
  assert.equal(await busy.closed, "stopping");
  await closed;
});
