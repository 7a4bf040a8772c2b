import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { connectServer } from "../../../src/adapters/server/connection.ts";
import { createServerResults } from "../../../src/adapters/server/results.ts";
import { systemClock } from "../../../src/adapters/system-clock.ts";
import { startHttpServer } from "../../support/servers/http-server.ts";

const SAVED = {
  ...{ status: "ok", ref: "noetl://execution/1/x", store: "s3", bytes: 3, sha256: "a".repeat(64) },
  ...{ content_type: "application/json", compression: "gzip", expires_at: "2026-01-31T12:00:00.000Z" },
  meta: { bucket: "b", key: "k", etag: "e" },
};

/** A claim's results over a server that gives these answers, one after the other; the last one again and again. */
async function setup(t: TestContext, ...answers: [status: number, body: unknown][]) {
  const server = await startHttpServer((_request, response) => {
    const [status, body] = answers.length > 1 ? (answers.shift() ?? assert.fail()) : (answers[0] ?? assert.fail());
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  });
  t.after(() => server.close());
  const connection = connectServer({ url: server.origin, token: undefined, connections: 1 });
  t.after(() => connection.close());
  const givenUp: string[] = [];
  const claim = {
    work: { command: { command_id: "7" }, attempt: 2 },
    signal: AbortSignal.timeout(300_000),
    giveUp: (why: string) => void givenUp.push(why),
    attachments: new Map(),
  };
  const results = createServerResults({ connection, clock: systemClock, random: () => 1 }, claim, "w");
  return { server, results, givenUp };
}

const away = (code: string, error = "later") => ({ error, code, request_id: "1" });

test("a payload is sent with all of its author's settings, and its reference comes back", async (t) => {
  const { server, results } = await setup(t, [200, SAVED]);
  const keeping = {
    scope: "step",
    ttl: "1h",
    store: "s3",
    compression: "gzip",
    contentType: "a/b",
    sensitive: true,
  } as const;
  const saved = await results.save("noetl://execution/1/x", "[1]", keeping);
  const { bytes, sha256, store, meta } = SAVED;
  assert.deepEqual(saved, { bytes, sha256, store, meta, compression: "gzip", expiresAt: SAVED.expires_at });
  const { method, url, body } = server.requests[0] ?? assert.fail();
  assert.deepEqual([method, body], ["PUT", "[1]"]);
  assert.deepEqual(Object.fromEntries(new URL(url, "http://x").searchParams), {
    ...{
      ref: "noetl://execution/1/x",
      worker: "w",
      command_id: "7",
      attempt: "2",
      scope: "step",
      ttl: "1h",
      store: "s3",
    },
    ...{ compression: "gzip", content_type: "a/b" },
  });
});

test("while a store is away the same is sent and asked again", async (t) => {
  const saving = await setup(t, [503, away("UNAVAILABLE")], [503, away("UNAVAILABLE")], [200, SAVED]);
  await saving.results.save("noetl://execution/1/x", "[1]");
  assert.deepEqual(
    saving.server.requests.map(({ body }) => body),
    ["[1]", "[1]", "[1]"],
  );
  const loading = await setup(t, [503, away("UNAVAILABLE")], [200, [1]]);
  assert.deepEqual(await loading.results.load("noetl://execution/1/x"), [1]);
});

test("an error that an operator must fix is thrown at once, with the server's message", async (t) => {
  const { server, results, givenUp } = await setup(t, [
    507,
    away("NOT_STORED", "the store 's3' is not configured here"),
  ]);
  await assert.rejects(results.save("noetl://execution/1/x", "1"), {
    code: "NOT_STORED",
    message: /'s3' is not configured/,
  });
  assert.equal(server.requests.length, 1);
  assert.deepEqual(givenUp, []);
});

test("a claim that was lost is given up", async (t) => {
  const { results, givenUp } = await setup(t, [409, away("CONFLICT", "somebody else has it")]);
  await assert.rejects(results.save("noetl://execution/1/x", "1"), { code: "CONFLICT" });
  assert.equal(givenUp.length, 1);
});

test("a reference that leads nowhere is not asked for again", async (t) => {
  const { server, results } = await setup(t, [404, away("REFERENCE_NOT_AVAILABLE", "its time is over")]);
  await assert.rejects(results.load("noetl://execution/1/x"), {
    code: "REFERENCE_NOT_AVAILABLE",
    message: /its time is over/,
  });
  assert.equal(server.requests.length, 1);
});
