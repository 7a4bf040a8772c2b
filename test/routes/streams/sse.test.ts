import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { mock, test } from "node:test";
import { Hono } from "hono";
import type { RouteEnvironment } from "../../../src/routes/http/request-context.ts";
import { eventStream } from "../../../src/routes/streams/sse.ts";
import { FlowError } from "../../../src/schema/words/errors.ts";
import { readEvents } from "../../support/servers/sse.ts";

/** The answer of a route that streams what `source` gives. */
async function streaming(
  source: () => AsyncGenerator<number | "idle">,
  stopping = new AbortController().signal,
  client = new AbortController().signal,
) {
  const app = new Hono<RouteEnvironment>().get("/", (c) =>
    eventStream(
      c,
      { stopping, places: undefined },
      async () => source(),
      (item: number) => ({ id: String(item), event: "n", data: { item, text: "a\nb" } }),
      () => ({ event: "end", data: null }),
    ),
  );
  return await app.request("/", { signal: client });
}

test("items become events with id, name and data on one line each", async () => {
  const response = await streaming(async function* () {
    yield 1;
    yield 2;
  });
  const text = await response.text();
  assert.equal(
    text,
    'retry: 1000\n\nevent: n\nid: 1\ndata: {"item":1,"text":"a\\nb"}\n\nevent: n\nid: 2\ndata: {"item":2,"text":"a\\nb"}\n\nevent: end\ndata: null\n\n',
  );
});

test("the next item is requested after the last was sent: a slow reader costs no memory", async () => {
  let given = 0;
  const response = await streaming(async function* () {
    for (;;) {
      given += 1;
      yield given;
    }
  });
  const reader = readEvents(response);
  await reader.next();
  await new Promise((resolve) => setImmediate(resolve));
  assert.ok(given <= 2, `${given} items were asked for`);
  await reader.leave();
});

test("a silent stream sends a heartbeat now and then", async () => {
  let now = 0;
  mock.method(performance, "now", () => now);
  try {
    const response = await streaming(async function* () {
      for (let at = 0; at < 4; at += 1) {
        now += 8_000;
        yield "idle";
      }
      yield 5;
    });
    const text = await response.text();
    assert.equal(text.match(/^: still here$/gm)?.length, 2);
  } finally {
    mock.restoreAll();
  }
});

test("an internal error ends the stream without its message, a refusal with it", async () => {
  for (const [error, told] of [
    [new Error("select * from secret"), { error: "The server could not go on; connect again", code: "UNAVAILABLE" }],
    [new FlowError("NOT_FOUND", "gone"), { error: "gone", code: "NOT_FOUND" }],
  ] as const) {
    const response = await streaming(async function* () {
      yield 1;
      throw error;
    });
    const events = await readEvents(response).rest();
    assert.deepEqual(
      events.map(({ event }) => event),
      ["n", "error"],
    );
    assert.deepEqual(events[1]?.data, told);
  }
});

test("a client that leaves ends the source, and leaves no listener behind, whether or not it had read anything", async () => {
  for (const reads of [0, 2]) {
    const stopping = new AbortController().signal;
    const client = new AbortController();
    let isEnded = false;
    const response = await streaming(
      async function* () {
        try {
          for (;;) yield 1;
        } finally {
          isEnded = true;
        }
      },
      stopping,
      client.signal,
    );
    const reader = response.body?.getReader();
    for (let at = 0; at < reads; at += 1) await reader?.read();
    client.abort();
    await reader?.cancel();
    assert.equal(isEnded, reads > 0);
    assert.deepEqual(getEventListeners(stopping, "abort"), []);
  }
});
