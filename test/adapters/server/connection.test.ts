import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { connectServer } from "../../../src/adapters/server/connection.ts";

/** Answers with the way on which a call came; each answer is the last one of its connection. */
function opened(t: TestContext, at: string | number): Promise<Server> {
  const server = createServer({ keepAlive: false }, (incoming, outgoing) => {
    outgoing.shouldKeepAlive = false;
    const way = typeof at === "string" ? "socket" : "port";
    outgoing.end(JSON.stringify({ way, host: incoming.headers.host, path: incoming.url }));
  });
  t.after(() => server.close());
  return new Promise((resolve) => {
    if (typeof at === "string") server.listen(at, () => resolve(server));
    else server.listen(at, "127.0.0.1", () => resolve(server));
  });
}

async function stand(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), "flow-connection-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const port = ((await opened(t, 0)).address() as AddressInfo).port;
  const socket = join(folder, "flow.sock");
  const connect = (more: { socket?: string; url?: string }) => {
    const url = `http://127.0.0.1:${port}/base`;
    const connection = connectServer({ url, token: undefined, connections: 1, ...more });
    t.after(() => connection.close());
    const { signal } = new AbortController();
    return () => connection.call({ method: "GET", path: "/api", timeoutMs: 5_000, signal });
  };
  return { socket, port, connect };
}

test("a server's socket is tried before its address, with the same Host and path", async (t) => {
  const { socket, port, connect } = await stand(t);
  await opened(t, socket);
  const expected = { host: `127.0.0.1:${port}`, path: "/base/api" };
  assert.deepEqual((await connect({ socket })()).body, { way: "socket", ...expected });
  assert.deepEqual((await connect({})()).body, { way: "port", ...expected });
});

test("a socket that is not there yet, goes, and comes again is no obstacle", async (t) => {
  const { socket, connect } = await stand(t);
  const call = connect({ socket });
  const way = async () => ((await call()).body as { way: string }).way;
  assert.equal(await way(), "port");
  const first = await opened(t, socket);
  assert.equal(await way(), "socket");
  await new Promise((resolve) => first.close(resolve));
  assert.equal(await way(), "port");
  await opened(t, socket);
  assert.equal(await way(), "socket");
});

test("a socket is not used for an address with https: what listens on it speaks plain http", async (t) => {
  const { socket, port, connect } = await stand(t);
  await opened(t, socket);
  const call = connect({ socket, url: `https://127.0.0.1:${port}` });
  await assert.rejects(call(), { code: "SERVER_UNREACHABLE" });
});

test("without a socket and without a server the error is that of the address", async (t) => {
  const { socket, connect } = await stand(t);
  const call = connect({ socket, url: "http://127.0.0.1:1" });
  await assert.rejects(call(), {
    code: "SERVER_UNREACHABLE",
    message: /127\.0\.0\.1:1 did not answer: .*ECONNREFUSED/,
  });
});
