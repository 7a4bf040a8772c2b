import assert from "node:assert/strict";
import { test } from "node:test";
import { ownDatabase } from "../support/engine/key-ring.ts";
import { startTcpProxy } from "../support/servers/tcp-proxy.ts";
import { folderWith } from "../support/service/cli-process.ts";
import { startServerProcess } from "../support/service/service-process.ts";
import { startOwnPostgres } from "./support/own-postgres.ts";
import { WORK_DONE } from "./support/playbooks.ts";
import { LONG, openStand } from "./support/stand.ts";
import { until } from "./support/until.ts";

/* The database goes away silently, or is away before a start; and what a server reports meanwhile. */

const postgres = await startOwnPostgres();

test("the database is unreachable: callers get an error within 5 s, health says so, and work continues afterwards", async (t) => {
  const { port } = new URL(postgres.url);
  const proxy = await startTcpProxy(Number(port));
  const stand = await openStand(t, LONG, postgres.url);
  const server = await stand.server({ FLOW_DATABASE_URL: postgres.url.replace(`:${port}/`, `:${proxy.port}/`) });
  const client = await stand.client(server);
  await stand.worker(server, "one");
  const held = stand.effects.hold("first");
  const ids = await stand.start(client, "work", 4);
  await held.arrived(4);
  proxy.swallow();
  held.release();
  const calls = [
    ["GET", `/api/executions/${ids[0]}`],
    ["GET", "/api/catalog"],
    ["POST", "/api/execute", { path: "work" }],
    ...Array.from({ length: 30 }, () => ["GET", `/api/executions/${ids[1]}/events`] as const),
  ] as const;
  await Promise.all(
    calls.map(async ([method, path, body]) => {
      const began = performance.now();
      const answer = await client.call(method, path, body);
      const tookMs = performance.now() - began;
      assert.deepEqual([answer.status, answer.body.code, answer.headers.get("retry-after")], [503, "UNAVAILABLE", "1"]);
      assert.ok(tookMs < 5_000, `${method} ${path} was answered after ${tookMs} ms`);
    }),
  );
  const health = await client.call("GET", "/api/health");
  assert.deepEqual([health.status, health.body.status], [200, "degraded"]);
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  // One line for each kind of work, whatever the number of calls, and no stack.
  const lines = server
    .log()
    .split("\n")
    .filter((line) => line.includes("cannot be reached"));
  const kinds = lines.map((line) => JSON.parse(line) as { msg: string; work?: string; code?: string });
  const told = kinds.map(({ msg, work, code }) => `${msg} ${work} ${code}`);
  assert.equal(new Set(told).size, told.length, `Lines: ${told.join("; ")}`);
  assert.doesNotMatch(lines.join("\n"), /"stack"/);
  const began = performance.now();
  proxy.mend();
  await until(
    "a new run is taken",
    async () => (await client.call("POST", "/api/execute", { path: "none" })).status === 404,
  );
  await stand.finish(client, ids, WORK_DONE);
  const tookMs = performance.now() - began;
  assert.ok(tookMs < 10_000, `The work was done ${tookMs} ms after the database was back`);
  assert.equal((await client.call("GET", "/api/health")).body.status, "ok");
});

test("a server that starts while the database is unavailable waits for it, and ends at once when it is stopped", async (t) => {
  await postgres.crash();
  const folder = await folderWith(t, {});
  const environment = ownDatabase(postgres.url);
  const starting = startServerProcess(t, { folder, environment });
  const stopped = startServerProcess(t, { folder, environment });
  const [waiting, ended] = [starting, stopped].map((start) => start.process);
  await Promise.all([waiting?.untilLog("waiting for the database at"), ended?.untilLog("waiting for the database at")]);
  const { code, stderr } = (await ended?.end("SIGTERM")) ?? {};
  await assert.rejects(stopped);
  assert.equal(code, 0);
  assert.doesNotMatch(stderr ?? "", /fault of flow|"stack"/);
  await postgres.start();
  const server = await starting;
  assert.equal((await fetch(`${server.url}/api/health`)).status, 200);
});

test("a wrong password or a missing database: the start ends with an error that says which", async (t) => {
  const folder = await folderWith(t, {});
  for (const [url, what] of [
    [postgres.url.replace(/:[0-9a-f]+@/, ":wrong@"), /password authentication failed/],
    [postgres.url.replace(/\/flow$/, "/elsewhere"), /database "elsewhere" does not exist|no pg_hba.conf entry/],
  ] as const) {
    await assert.rejects(startServerProcess(t, { folder, environment: ownDatabase(url) }), (error: Error) => {
      assert.match(error.message, what);
      assert.doesNotMatch(error.message, /fault of flow|wrong@/);
      return true;
    });
  }
});
