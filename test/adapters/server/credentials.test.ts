import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { type TestContext, test } from "node:test";
import { connectServer } from "../../../src/adapters/server/connection.ts";
import { createServerCredentials } from "../../../src/adapters/server/credentials.ts";
import { createSecret } from "../../../src/platform/crypto/secret.ts";
import { type RecordedRequest, startHttpServer } from "../../support/servers/http-server.ts";

const AT = "2026-06-01T12:00:00.000Z";
const RECORD = { id: "7", name: "pg demo", type: "sqldb", description: null, tags: [], schema: null, meta: null };
const STORED = { ...RECORD, created_at: AT, updated_at: AT, data: { host: "db" } };

type Answer = (request: RecordedRequest, response: ServerResponse, calls: number) => void;

async function setup(t: TestContext, answer: Answer, signal = new AbortController().signal) {
  let calls = 0;
  const server = await startHttpServer((request, response) => answer(request, response, ++calls));
  const connection = connectServer({ url: server.origin, token: createSecret("worker-token"), connections: 4 });
  t.after(() => connection.close());
  t.after(() => server.close());
  const clock = { now: () => 0, sleep: () => Promise.resolve() };
  const source = createServerCredentials({ connection, clock, random: () => 0.5 }, signal);
  return { source, calls: () => calls };
}

const sent =
  (status: number, body: unknown): Answer =>
  (_request, response) =>
    void response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));

test("a credential is asked for by its name, with its data and the worker's token, each time anew", async (t) => {
  const { source, calls } = await setup(t, (request, response, calls) => {
    assert.equal(request.url, "/api/credentials/team%2Fpg%20demo?include_data=true");
    assert.equal(request.headers["authorization"], "Bearer worker-token");
    sent(200, STORED)(request, response, calls);
  });
  for (let time = 1; time <= 2; time += 1) {
    assert.deepEqual(await source.find("team/pg demo"), { name: "pg demo", type: "sqldb", data: { host: "db" } });
    assert.equal(calls(), time);
  }
});

test("an unknown credential is undefined, and so are names that no address can contain", async (t) => {
  const { source, calls } = await setup(t, sent(404, { error: "There is none", code: "NOT_FOUND", request_id: "1" }));
  assert.equal(await source.find("nobody"), undefined);
  assert.equal(await source.find("\ud800"), undefined);
  for (const name of ["", ".", ".."]) assert.equal(await source.find(name), undefined);
  assert.equal(calls(), 2);
});

test("a server that cannot answer is asked again: away, overloaded, a token that is not accepted yet", async (t) => {
  const { source, calls } = await setup(t, (request, response, calls) => {
    if (calls === 1) response.destroy();
    else if (calls === 2) sent(503, { error: "away", code: "UNAVAILABLE", request_id: "1" })(request, response, calls);
    else if (calls === 3)
      sent(401, { error: "no", code: "UNAUTHENTICATED", request_id: "1" })(request, response, calls);
    else sent(200, STORED)(request, response, calls);
  });
  assert.equal((await source.find("pg"))?.type, "sqldb");
  assert.equal(calls(), 4);
});

test("an error for a key that the server lacks is thrown at once", async (t) => {
  const error = "Cannot read the credential 'pg': the key 'k1' …";
  const { source, calls } = await setup(t, sent(500, { error, code: "ENCRYPTION", request_id: "1" }));
  await assert.rejects(source.find("pg"), { code: "ENCRYPTION", message: error });
  assert.equal(calls(), 1);
});

test("an answer without data is no credential", async (t) => {
  const { data: _, ...record } = STORED;
  const { source } = await setup(t, sent(200, record));
  await assert.rejects(source.find("pg"), { code: "INVALID_INPUT", message: /has no data/ });
});

test("a worker that stops asks no more", async (t) => {
  const stopping = new AbortController();
  const { source } = await setup(t, () => stopping.abort(new Error("The worker stops")), stopping.signal);
  await assert.rejects(source.find("pg"), /The worker stops/);
});

test("a worker says which execution needs the credential, and takes a refusal for its playbook as one", async (t) => {
  const detail = { path: "team/report" };
  const { source, calls } = await setup(t, (request, response, calls) => {
    assert.equal(request.url, "/api/credentials/pg_auth?include_data=true&execution_id=7");
    sent(403, { error: "not for this playbook", code: "FORBIDDEN", detail, request_id: "1" })(request, response, calls);
  });
  await assert.rejects(source.find("pg_auth", "7"), { code: "FORBIDDEN", message: "not for this playbook" });
  assert.equal(calls(), 1);
});
