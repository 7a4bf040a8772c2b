import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import type { ServerResponse } from "node:http";
import { type TestContext, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { connectServer } from "../../../src/adapters/server/connection.ts";
import { createServerSealing } from "../../../src/adapters/server/sealing.ts";
import { createSealer } from "../../../src/platform/crypto/sealing.ts";
import { createSecret } from "../../../src/platform/crypto/secret.ts";
import { startHttpServer } from "../../support/servers/http-server.ts";

const KEYS = ["k2", "k1"].map((id) => ({ id, key: randomBytes(32) }));
const ANSWER = { root_execution_id: "7", keys: KEYS.map(({ id, key }) => ({ id, key: key.toString("base64") })) };

type Answer = (response: ServerResponse, calls: number) => void;

const sent =
  (status: number, body: unknown): Answer =>
  (response) =>
    void response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));

async function setup(t: TestContext, answer: Answer) {
  const server = await startHttpServer((_request, response) => answer(response, server.requests.length));
  const connection = connectServer({ url: server.origin, token: createSecret("worker-token"), connections: 4 });
  const stopping = new AbortController();
  // A caller that still retries when a test has failed is stopped: its clock does not wait, so it would retry for ever.
  t.after(() => stopping.abort(new Error("The test is over")));
  t.after(() => connection.close());
  t.after(() => server.close());
  const sleep = async (_ms: number, signal: AbortSignal) => {
    // A turn of the event loop, so that timers and sockets have theirs.
    await setImmediate();
    signal.throwIfAborted();
  };
  const clock = { now: () => 0, sleep };
  const source = createServerSealing({ connection, clock, random: () => 0.5 }, stopping.signal)({});
  return { source, stopping, urls: () => server.requests.map(({ url }) => url) };
}

test("the keys of a tree are asked for once, however many of its commands ask at a time", async (t) => {
  const { source, urls } = await setup(t, sent(200, ANSWER));
  const places = ["7", "8", "9"].map((executionId) => ({ executionId, rootExecutionId: "7" }));
  const sealers = await Promise.all(places.map((place) => source.sealerOf(place)));
  const [first, ...others] = KEYS;
  assert.ok(first);
  const sealed = createSealer([first, ...others]).seal("hunter22");
  for (const sealer of sealers) assert.equal(sealer.seal("hunter22"), sealed);
  assert.deepEqual(urls(), ["/api/executions/7/sealing-key"]);
  await source.sealerOf({ executionId: "11", rootExecutionId: "10" });
  assert.equal(urls().length, 2, "another tree has other keys");
});

test("a server that is away is asked again; an execution that is gone is an error, and the next call asks anew", async (t) => {
  const { source, urls } = await setup(t, (response, calls) => {
    if (calls === 1) response.destroy();
    else if (calls === 2) sent(503, { error: "away", code: "UNAVAILABLE" })(response, calls);
    else if (calls === 3) sent(404, { error: "There is no execution 7", code: "NOT_FOUND" })(response, calls);
    else sent(200, ANSWER)(response, calls);
  });
  const place = { executionId: "7", rootExecutionId: "7" };
  await assert.rejects(source.sealerOf(place), { code: "NOT_FOUND", message: "There is no execution 7" });
  assert.match((await source.sealerOf(place)).seal("x"), /^\[sealed:k2:/);
  assert.equal(urls().length, 4);
});

test("a command that is cancelled waits no longer, and the others of its tree get their keys", async (t) => {
  let tellAsked: (answer: () => void) => void = () => undefined;
  const asked = new Promise<() => void>((resolve) => {
    tellAsked = resolve;
  });
  const { source } = await setup(t, (response, calls) => tellAsked(() => sent(200, ANSWER)(response, calls)));
  const cancelled = new AbortController();
  const place = { executionId: "7", rootExecutionId: "7" };
  const one = source.sealerOf(place, cancelled.signal);
  const other = source.sealerOf(place, new AbortController().signal);
  cancelled.abort(new Error("cancelled"));
  await assert.rejects(one, /cancelled/);
  const answer = await asked;
  answer();
  await other;
  await assert.rejects(source.sealerOf(place, cancelled.signal), /cancelled/);
});

test("an answer that holds no key is an error", async (t) => {
  const { source } = await setup(t, sent(200, { root_execution_id: "7", keys: [] }));
  await assert.rejects(source.sealerOf({ executionId: "7", rootExecutionId: "7" }), /not as a flow server answers/);
});
