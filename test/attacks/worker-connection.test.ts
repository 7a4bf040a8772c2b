import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { request } from "node:http";
import type { Socket } from "node:net";
import { before, test } from "node:test";
import { createServedDatabase } from "../support/database/postgres.ts";
import { ownDatabase } from "../support/engine/key-ring.ts";
import { bytesOf, KIND, type MessageClient, openedMessages, openMessages } from "../support/servers/message-client.ts";
import { folderWith } from "../support/service/cli-process.ts";
import { type Serving, startServe } from "../support/service/serve.ts";
import { answerOf, sendTo } from "../support/service/server-calls.ts";

/*
 * The connection on which workers' calls are messages is one more way in. It takes a worker's token, nothing that is sent on it
 * says who calls, a token that ends takes it along, and bytes of any kind hurt no other caller. At a server in a process of its own.
 */

const OPERATOR = "operator-token-of-the-attacks-1";
const WORKER = "worker-token-of-the-attacks-22";
const PATH = "/api/worker/connection";
const MIB = 1024 ** 2;

let server: Serving;
let port = 0;
const atEnd: (() => unknown)[] = [];

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const open = (token = WORKER): Promise<MessageClient> => openedMessages({ port, headers: bearer(token) });

before(async () => {
  const context = { after: (end: () => unknown) => void atEnd.push(end) } as never;
  const { url } = await createServedDatabase();
  const tokens = { FLOW_SERVER_TOKEN: OPERATOR, FLOW_WORKER_TOKEN: WORKER };
  server = await startServe(context, await folderWith(context, {}), { ...ownDatabase(url), ...tokens });
  port = Number(new URL(server.url).port);
});
test.after(async () => {
  for (const end of atEnd.toReversed()) await end();
});

async function assertLively(): Promise<void> {
  const began = performance.now();
  assert.equal((await fetch(`${server.url}/api/health`)).status, 200);
  assert.ok(performance.now() - began < 5_000);
}

async function residentMib(): Promise<number> {
  const [, kib] = /VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${server.process.pid}/status`, "utf8")) ?? [];
  return Number(kib) / 1_024;
}

async function registered(name: string, token: string): Promise<Record<string, string>> {
  const { body } = await sendTo(server.url, token, "POST", "/api/worker/pool/register", { name, capacity: 1 });
  return { "x-flow-worker": String(body["worker_secret"]) };
}

test("no connection without a token, with a wrong one, in a user's name, or for a page or a name from elsewhere", async () => {
  for (const [status, headers] of [
    [401, {}],
    [401, { authorization: "Bearer guessed-token-of-the-attacks-3" }],
    [401, { authorization: `Basic ${WORKER}` }],
    [403, { ...bearer(WORKER), "x-flow-session": "a".repeat(64) }],
    [401, { ...bearer(OPERATOR), "x-flow-session": "a".repeat(64) }],
    [403, { ...bearer(WORKER), origin: "https://elsewhere.example" }],
    [403, { ...bearer(WORKER), host: "elsewhere.example" }],
  ] as const) {
    const opened = await openMessages({ port, headers });
    assert.equal(opened.status, status, JSON.stringify(headers));
    assert.match(opened.client === undefined ? opened.body : "", /"code":"(UNAUTHENTICATED|FORBIDDEN)"/);
  }
});

test("what is sent behind a request that is refused is not read, not as messages and not as requests", async () => {
  const sent = request({ host: "127.0.0.1", port, path: PATH, agent: false });
  const socket = await new Promise<Socket>((resolve) => sent.on("socket", resolve));
  await once(socket, "connect");
  const head = `GET ${PATH} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: upgrade\r\nupgrade: flow-worker/1\r\n\r\n`;
  const behind = `GET /api/executions HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${OPERATOR}\r\n\r\n`;
  let answer = "";
  socket.removeAllListeners("data").on("data", (bytes: Buffer) => {
    answer += bytes.toString("latin1");
  });
  sent.on("error", () => undefined);
  socket.write(Buffer.concat([Buffer.from(head + behind), bytesOf(KIND.claim, 1, "{}")]));
  await once(socket, "close");
  assert.equal(answer.split("HTTP/1.1 ").length - 1, 1, answer);
  assert.match(answer, /^HTTP\/1\.1 401 /);
});

test("the fields of a message do not say who calls", async () => {
  const client = await open();
  const claim = JSON.stringify({ worker: "somebody", limit: 1 });
  for (const fields of [
    { ...bearer(OPERATOR) },
    { Authorization: `Bearer ${OPERATOR}` },
    { "x-flow-session": "a".repeat(64), "x-flow-address": "10.0.0.1", host: "elsewhere.example", origin: "https://x" },
    { "content-length": "1" },
  ]) {
    const { status, body } = await client.call(KIND.claim, claim, fields);
    // An operator needs no secret of a worker, and a session would not be a worker.
    assert.deepEqual([status, (JSON.parse(body) as { code: string }).code], [403, "claim_required"]);
  }
  client.socket.destroy();
});

test("a pool's token that is revoked or replaced ends with the next message, also while a claim waits", async () => {
  const operate = (method: string, path: string, body?: unknown) => answerOf(server.url, OPERATOR, method, path, body);
  for (const end of ["rotate", "revoke"]) {
    const name = `pool-${end}`;
    const token = String((await operate("POST", "/api/pools", { name, paths: [`${name}/**`], labels: {} }))["token"]);
    const own = await registered(name, token);
    const client = await open(token);
    const beat = () => client.call(KIND.heartbeat, JSON.stringify({ name, running: [] }), own);
    assert.equal((await beat()).status, 200);
    const ask = JSON.stringify({ worker: name, limit: 1, wait_ms: 30_000 });
    const waiting = client.call(KIND.claim, ask, own);
    // A call behind it has been answered: so the claim was let in, and waits.
    assert.equal((await beat()).status, 200);
    await operate("POST", `/api/pools/${name}/${end}`);
    assert.equal((await beat()).status, 401);
    assert.equal(await client.closed, "unauthenticated");
    assert.equal((await openMessages({ port, headers: bearer(token) })).status, 401);
    void waiting;
  }
});

test("a worker cannot claim or report in another's name over its connection", async () => {
  const own = await registered("mallory", WORKER);
  await registered("alice", WORKER);
  const client = await open();
  const claim = await client.call(KIND.claim, JSON.stringify({ worker: "alice", limit: 1 }), own);
  const beat = await client.call(KIND.heartbeat, JSON.stringify({ name: "alice", running: [] }), own);
  assert.deepEqual([claim.status, beat.status], [403, 403]);
  client.socket.destroy();
});

test("lengths beyond everything, garbage and unknown kinds close the one connection, and nothing else", async () => {
  const bystander = await open();
  for (const bytes of [
    bytesOf(KIND.report, 1, "", undefined, 0xffff_ffff),
    bytesOf(KIND.report, 1, "", undefined, 0),
    bytesOf(200, 1),
    ...Array.from({ length: 50 }, () => Buffer.concat([Buffer.of(0xff), randomBytes(4_000)])),
  ]) {
    const client = await open();
    client.socket.write(bytes);
    assert.ok(["malformed", "too_long", "unknown_kind"].includes((await client.closed) ?? ""));
  }
  bystander.socket.write(bytesOf(KIND.ping, 9));
  assert.equal((await bystander.next()).kind, 129);
  bystander.socket.destroy();
  await assertLively();
});

test("thousands of calls that wait, slow bytes on many connections, and long messages take no memory to speak of", async () => {
  const own = await registered("many", WORKER);
  await assertLively();
  const beforeMib = await residentMib();
  const clients: MessageClient[] = [];
  const claim = JSON.stringify({ worker: "many", limit: 1, wait_ms: 30_000, kinds: ["none"] });
  const flooding = await open();
  for (let id = 1; id <= 20_000; id += 1) flooding.socket.write(bytesOf(KIND.claim, id, claim, own));
  clients.push(flooding);
  // 2 MiB are announced on each, and a hundred bytes come.
  for (let count = 0; count < 300; count += 1) {
    const client = await open();
    client.socket.write(bytesOf(KIND.report, 1, "x".repeat(100), undefined, 2 * MIB));
    clients.push(client);
  }
  const long = await open();
  const refused = await long.call(KIND.report, "x".repeat(50 * MIB), own);
  assert.equal(refused.status, 413);
  clients.push(long);
  await assertLively();
  const grownMib = (await residentMib()) - beforeMib;
  assert.ok(grownMib < 150, `${grownMib} MiB`);
  for (const client of clients) client.socket.destroy();
  await assertLively();
});
