import assert from "node:assert/strict";
import { Agent, request } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { test } from "node:test";
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
