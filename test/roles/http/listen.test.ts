import assert from "node:assert/strict";
import { link, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { Agent, request } from "node:http";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { listen } from "../../../src/roles/http/listen.ts";

/** A request over the agent's connection; `connection` is what the answer says of it. */
function get(url: string, agent: Agent): Promise<{ body: string; connection: string | undefined }> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { agent }, (response) => {
      text(response).then((body) => resolve({ body, connection: response.headers.connection }), reject);
    });
    sent.on("error", reject);
    sent.end();
  });
}

/** How long closing may take here. Without care it takes until the connections are cut, 8 s, or time out by themselves, 5 s. */
const CLOSE_MS = 4_000;
const AT = { host: "127.0.0.1", port: 0 };
const malformed = () => new Response("malformed");

test("a client that asks without a pause on an open connection does not keep a server that closes", async (t) => {
  let answers = 0;
  let close = () => {};
  const closing = new Promise<void>((resolve) => {
    close = resolve;
  });
  const fetch = () => {
    answers += 1;
    // In the middle of a request: the connection is not idle.
    if (answers === 20) close();
    return new Response("answered");
  };
  const listener = await listen({ fetch, malformed }, AT);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.after(() => agent.destroy());
  const asking = (async () => {
    let last: { body: string; connection: string | undefined } | undefined;
    for (;;) {
      const answer = await get(listener.url, agent).catch(() => undefined);
      if (answer === undefined) return last;
      last = answer;
    }
  })();
  await closing;
  const began = performance.now();
  await listener.close();
  assert.ok(performance.now() - began < CLOSE_MS);
  assert.equal((await asking)?.body, "answered");
});

test("an answer that is under way is waited for, and its connection then closed", async (t) => {
  let answer = (_: Response) => {};
  let begin = () => {};
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const fetch = () =>
    new Promise<Response>((resolve) => {
      answer = resolve;
      begin();
    });
  const listener = await listen({ fetch, malformed }, AT);
  const agent = new Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  const asked = get(listener.url, agent);
  await begun;
  const began = performance.now();
  const closed = listener.close();
  answer(new Response("late"));
  assert.equal((await asked).body, "late");
  await closed;
  assert.ok(performance.now() - began < CLOSE_MS);
});

for (const [what, sent] of [
  ["headers that do not end", "GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow: "],
  ["a body that does not come", "POST / HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 100\r\n\r\nx"],
]) {
  test(`a client whose time is over is answered 408, and its connection closed: ${what}`, async (t) => {
    const slowest = { headersMs: 100, requestMs: 200, lookMs: 20 };
    const listener = await listen(
      { fetch: async (asked) => new Response(await asked.text()), malformed },
      { ...AT, slowest },
    );
    t.after(() => listener.close());
    const socket = connect(Number(new URL(listener.url).port), "127.0.0.1");
    t.after(() => socket.destroy());
    socket.write(sent ?? "");
    // Ends with the connection.
    assert.match(await text(socket), /^HTTP\/1\.1 408 /);
  });
}

async function folderOf(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "flow-listen-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** A request through a unix socket. */
function ask(socketPath: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const sent = request({ socketPath, path: "/", agent: false }, (answer) => {
      text(answer).then(resolve, reject);
    });
    sent.on("error", reject).end();
  });
}

/** Answers with where a call comes from. */
function listenBeside(t: TestContext, path: string) {
  const fetch = (_: Request, { incoming }: { incoming: { socket: { remoteAddress?: string | undefined } } }) =>
    new Response(incoming.socket.remoteAddress);
  return listen({ fetch, malformed }, { ...AT, socket: () => path }).then((listener) => {
    t.after(() => listener.close());
    return listener;
  });
}

test("beside its port it answers on a unix socket that its own user alone can open, as to a caller on loopback", async (t) => {
  const path = join(await folderOf(t), "flow.sock");
  const listener = await listenBeside(t, path);
  assert.deepEqual([listener.socket, listener.socketTrouble], [path, undefined]);
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  assert.equal(await ask(path), "127.0.0.1");
  assert.equal((await get(listener.url, new Agent())).body, "127.0.0.1");
  await listener.close();
  await assert.rejects(stat(path), { code: "ENOENT" });
});

test("a socket that a killed process left is replaced", async (t) => {
  const path = join(await folderOf(t), "flow.sock");
  // A hard link is still there when the server that made the socket has removed its own name of it.
  const left = createServer();
  await new Promise<void>((resolve) => left.listen(`${path}.left`, resolve));
  await link(`${path}.left`, path);
  await new Promise((resolve) => left.close(resolve));
  assert.ok((await stat(path)).isSocket());
  const listener = await listenBeside(t, path);
  assert.equal(listener.socketTrouble, undefined);
  assert.equal(await ask(path), "127.0.0.1");
});

for (const [what, prepare, trouble] of [
  [
    "something listens on it",
    async (t: TestContext, path: string) => {
      const other = createServer((socket) => socket.end());
      t.after(() => other.close());
      await new Promise<void>((resolve) => other.listen(path, resolve));
    },
    /something listens there already/,
  ],
  ["it is a file", (_: TestContext, path: string) => writeFile(path, "kept"), /which is no socket/],
  [
    "its folder is missing",
    (_: TestContext, path: string) => rm(join(path, ".."), { recursive: true }),
    /EACCES|ENOENT/,
  ],
] as const) {
  test(`without its socket it goes on, and says why: ${what}`, async (t) => {
    const path = join(await folderOf(t), "flow.sock");
    await prepare(t, path);
    const before = await stat(path).catch(() => undefined);
    const listener = await listenBeside(t, path);
    assert.equal(listener.socket, undefined);
    assert.match(listener.socketTrouble ?? "", trouble);
    assert.equal((await get(listener.url, new Agent())).body, "127.0.0.1");
    assert.equal((await stat(path).catch(() => undefined))?.ino, before?.ino);
  });
}

test("a socket's path may have 103 bytes and no more", async (t) => {
  const folder = await folderOf(t);
  const path = (bytes: number) => join(folder, "x".repeat(bytes - folder.length - 1));
  assert.equal((await listenBeside(t, path(103))).socketTrouble, undefined);
  assert.match((await listenBeside(t, path(104))).socketTrouble ?? "", /too long/);
});
