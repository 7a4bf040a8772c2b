import assert from "node:assert/strict";
import { test } from "node:test";
import { createTestDatabase } from "../support/database/postgres.ts";
import { ownDatabase } from "../support/engine/key-ring.ts";
import { endOf } from "../support/service/api-work.ts";
import { startServerProcess } from "../support/service/service-process.ts";
import { createClient } from "./support/client.ts";
import { startManualWorker } from "./support/manual-worker.ts";
import { PAIR_DONE, PARENT_DONE, WORK_DONE } from "./support/playbooks.ts";
import { LONG, openStand, ownedByFile } from "./support/stand.ts";
import { until } from "./support/until.ts";

/* Several servers on one database (the fault matrix in the design), without a broker: they meet in the database alone. */

const shared = await openStand(ownedByFile(), LONG);
/** Of the tests that stop none of them. */
const [one, two] = await Promise.all([shared.server(), shared.server()]);

test("two servers with a worker each share all executions: both servers work on each, and nothing is done twice", async (t) => {
  const stand = shared.during(t);
  const [first, second] = [await stand.client(one), await stand.client(two)];
  await Promise.all([stand.worker(one, "one"), stand.worker(two, "two")]);
  const [left, right, parents] = await Promise.all([
    stand.start(first, "work", 8),
    stand.start(second, "work", 8),
    stand.start(first, "parent", 2),
  ]);
  // Each is watched through the server that did not start it.
  await stand.finish(second, left, { ...WORK_DONE, once: true });
  await stand.finish(first, right, { ...WORK_DONE, once: true });
  await stand.finish(second, parents, { ...PARENT_DONE, once: true });
});

test("a duplicate batch, sent to both servers at once and again later, is accepted once", async (t) => {
  const stand = shared.during(t);
  const clients = [await stand.client(one), await stand.client(two)] as const;
  const worker = await startManualWorker(clients[0], "manual");
  const ids = await stand.start(clients[0], "pair", 5);
  for (const id of ids) {
    const command = await worker.claim(id);
    const events = endOf(command, { step: command.step });
    const send = (to: 0 | 1, key: string) => clients[to].report("manual", events, {}, key);
    const answers = await Promise.all([send(0, id), send(1, id), send(0, id), send(1, `${id}-other`)]);
    const accepted = answers.filter(({ status, body }) => status === 202 && !body.duplicate);
    assert.equal(accepted.length, 1, JSON.stringify(answers.map(({ status, body }) => [status, body])));
    const [first] = accepted;
    for (const answer of answers) {
      if (answer.status === 202) assert.deepEqual(answer.body.event_ids, first?.body.event_ids);
      else assert.deepEqual([answer.status, answer.body.code], [409, "CONFLICT"], JSON.stringify(answer.body));
    }
    const late = await send(1, `${id}-late`);
    assert.deepEqual([late.status, late.body.detail.events[0]?.reason], [409, "unknown"]);
  }
  for (const id of ids) await worker.end(await worker.claim(id));
  await stand.finish(clients[1], ids, { ...PAIR_DONE, once: true });
});

test("servers that start at the same moment on an empty database: one migrates, the others wait, all serve", async (t) => {
  const { url } = await createTestDatabase();
  const stand = await openStand(t, LONG, url);
  const servers = await Promise.all([stand.server(), stand.server(), stand.server()]);
  const applied = await until("the log says what was applied", () => {
    const lines = servers.flatMap((server) => server.log().split("\n")).filter((line) => line.includes('"applied":'));
    const names = lines.flatMap((line) => (JSON.parse(line) as { applied: string[] }).applied);
    return names.length > 0 && names;
  });
  assert.deepEqual(applied.sort(), [...new Set(applied)].sort(), "A migration was applied twice");
  const client = await stand.client(...servers);
  await stand.worker(servers[0], "one");
  const ids = await stand.start(client, "work", 6);
  // And one more comes, and looks at the schema, under load.
  await stand.server();
  await stand.finish(client, ids, { ...WORK_DONE, once: true });
});

test("SIGTERM of the role `all` under load, and its restart: nothing is lost, nothing is done twice", async (t) => {
  const stand = await openStand(t, LONG);
  const environment = {
    ...LONG,
    ...ownDatabase(stand.databaseUrl),
    FLOW_WORKER_TOOLS: "all",
    FLOW_HTTP_ALLOW_PRIVATE: "all",
  };
  const all = (port = 0) => startServerProcess(t, { folder: stand.folder, environment }, port, "all");
  let service = await all();
  const { port } = service;
  const client = await stand.client(service);
  const before = stand.effects.counts.size;
  const ids = await stand.start(client, "work", 8);
  await until("work goes on", () => stand.effects.counts.size >= before + 8);
  const { code, stderr } = await service.end("SIGTERM");
  assert.equal(code, 0, stderr);
  service = await all(port);
  await stand.finish(createClient(service.url), ids, { ...WORK_DONE, once: true });
});

test("commands that a stopped worker gives back are claimed at once by a worker of the other server", async (t) => {
  const stand = shared.during(t);
  const client = await stand.client(one);
  const first = await stand.worker(one, "first", { FLOW_WORKER_DRAIN_SECONDS: "2" });
  const held = stand.effects.hold("first");
  const ids = await stand.start(client, "work", 3);
  await held.arrived(3);
  await stand.worker(two, "second");
  const began = performance.now();
  const { code } = await first.end("SIGTERM");
  const drained = performance.now();
  await held.arrived(6);
  const takenMs = performance.now() - drained;
  t.diagnostic(`it drained for ${Math.round(drained - began)} ms; taken ${Math.round(takenMs)} ms after its end`);
  assert.equal(code, 0);
  assert.ok(drained - began >= 1_900, "a task that lasts has the time that was set");
  // Without a notice and without polling it would take a minute until a server looks.
  assert.ok(takenMs < 10_000, `${takenMs} ms`);
  held.release();
  await stand.finish(client, ids, WORK_DONE);
});
