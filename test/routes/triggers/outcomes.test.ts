import assert from "node:assert/strict";
import { once } from "node:events";
import { before, test } from "node:test";
import { findTriggers } from "../../../src/repositories/triggers/triggers.ts";
import { createFireStarts } from "../../../src/services/triggers/start-fires.ts";
import { type Body, buildApi, openApi } from "../../support/service/api.ts";
import { workWith } from "../../support/service/api-work.ts";

/* What became of a fire, and its execution: in one transaction, and once, whatever others write meanwhile. */

const api = await openApi({ FLOW_PURE_STEPS: "server" });
const work = workWith(api);
const { sql } = api.database;
let id = "";

before(async () => {
  const content = `apiVersion: flow/v2
kind: Playbook
metadata: { name: fired, path: t/fired }
workflow: [{ step: start, tool: { kind: noop } }]
triggers: [{ name: asked, signal: { name: never } }]
`;
  assert.equal((await work.post("/api/catalog/register", { content })).status, 200);
  const { body } = await work.get("/api/triggers?path=t/fired");
  id = String((body["triggers"] as Body[])[0]?.["trigger_id"]);
});

test("what became of a fire is written with its execution: neither is there without the other", async () => {
  const fired = (await work.post(`/api/triggers/${id}/fire`, {})).body;
  const rows = await sql<{ status: string; together: boolean; wakes: boolean }[]>`
    select f.status, f.xmin = s.xmin as together, f.wake_at is not null as wakes from flow.trigger_fire as f
    join flow.event_log as s on s.execution_id = f.execution_id where f.fire_id = ${String(fired["fire_id"])}
    order by s.event_id limit 1`;
  assert.deepEqual([...rows], [{ status: "started", together: true, wakes: false }]);
});

test("a fire that another server has decided about meanwhile keeps what that wrote", async () => {
  const [row] = await sql<{ id: string }[]>`
    insert into flow.trigger_fire (fire_id, trigger_id, key, due_at, status, reason)
    values ((select last_id + 1 from flow.id_source), ${id}, 'other', now(), 'skipped', 'paused') returning fire_id as id`;
  const started = await api.service.executions.start({
    ...{ path: "t/fired", input: {}, fireId: row?.id ?? "" },
    idempotency: { caller: "trigger", key: `${id}/other`, bodySha256: "0".repeat(64), isNew: true },
  });
  assert.equal(started.duplicate, false);
  const [fire] = (await work.get(`/api/triggers/${id}/fires?status=skipped`)).body["fires"] as Body[];
  assert.deepEqual([fire?.["status"], fire?.["reason"], fire?.["execution_id"]], ["skipped", "paused", undefined]);
});

test("a fire that starts at once is written with its execution, in one commit; a repeat answers what the first came to", async () => {
  const key = { "idempotency-key": "at once" };
  const first = (await work.post(`/api/triggers/${id}/fire`, {}, key)).body;
  const rows = await sql<{ status: string; queued: boolean; together: boolean }[]>`
    select f.status, f.input is not null or f.wake_at is not null as queued, f.xmin = e.xmin as together
    from flow.trigger_fire as f join flow.execution as e using (execution_id) where f.fire_id = ${String(first["fire_id"])}`;
  assert.deepEqual([...rows], [{ status: "started", queued: false, together: true }]);
  const repeats = await Promise.all([1, 2].map(() => work.post(`/api/triggers/${id}/fire`, {}, key)));
  for (const { body } of repeats) {
    assert.deepEqual(
      [body["fire_id"], body["execution_id"], body["status"]],
      [first["fire_id"], first["execution_id"], "started"],
    );
  }
});

test("of one delivery that two servers take in the same moment one starts it, and both answer that", async () => {
  const other = await buildApi(api.database);
  const there = workWith(other);
  const counts = async () => {
    const [row] = await sql<[{ fires: number; executions: number }]>`
      select (select count(*)::int from flow.trigger_fire) as fires, (select count(*)::int from flow.execution) as executions`;
    return row;
  };
  const before = await counts();
  const keys = Array.from({ length: 8 }, (_, index) => ({ "idempotency-key": `both ${index}` }));
  const answers = await Promise.all(
    keys.map((key) => Promise.all([work, there, work].map((one) => one.post(`/api/triggers/${id}/fire`, {}, key)))),
  );
  for (const ofKey of answers) assert.equal(new Set(ofKey.map(({ body }) => body["execution_id"])).size, 1);
  const after = await counts();
  assert.deepEqual([after.fires - before.fires, after.executions - before.executions], [8, 8]);
  await other.service.orchestrator.close();
});

test("a key whose fire another server has written as queued starts nothing beside it", async () => {
  await sql`
    insert into flow.trigger_fire (fire_id, trigger_id, key, due_at, status, input, wake_at)
    values ((select last_id + 1 from flow.id_source), ${id}, 'written', now(), 'queued', '{}', now() + interval '1 hour')`;
  const { triggers } = api.service;
  const trigger = await triggers.find(id);
  const { status, isRepeated } = await triggers.fire(trigger, { key: "written" });
  assert.deepEqual([status, isRepeated], ["queued", true]);
  // Found by the write alone, as where both look before either has written.
  const newFire = { fireId: "77", triggerId: id, key: "written", dueAt: 0, firedAt: 0, always: false, causeId: null };
  const start = { path: "t/fired", input: {}, newFire };
  const refused = { caller: "trigger", key: "another", bodySha256: "0".repeat(64), isNew: true };
  await assert.rejects(api.service.executions.start({ ...start, idempotency: refused }), /trigger_fire_key/);
  assert.equal((await sql`select from flow.execution where idempotency_key = 'another'`).length, 0);
});

test("a start under a key that was said to be new, and is not, finds the first one", async () => {
  const start = (isNew: boolean) =>
    api.service.executions.start({
      ...{ path: "t/fired", input: {} },
      idempotency: { caller: "trigger", key: "once", bodySha256: "0".repeat(64), isNew },
    });
  const first = await start(true);
  const repeats = await Promise.all([start(true), start(false), start(true)]);
  for (const { executionId, duplicate } of repeats)
    assert.deepEqual({ executionId, duplicate }, { executionId: first.executionId, duplicate: true });
});

test("a fire that a server still starts when its time to do so is over is not started once more beside, nor what waits behind it", async () => {
  const given = { triggerId: id, dueAt: new Date(), input: "{}", waits: true, always: false, isNew: true };
  const line = ["1", "2"].map((fireId) => ({ ...given, fireId, key: `held ${fireId}` }));
  let starts = 0;
  const release = new AbortController();
  const held = once(release.signal, "abort");
  const { start } = createFireStarts({
    ...{ database: api.database, now: Date.now, newName: () => "n", onFired: () => undefined },
    executions: {
      async start() {
        starts += 1;
        await held;
        return {
          executionId: "3",
          status: "COMPLETED",
          path: "t/fired",
          version: 1,
          catalogId: "1",
          warnings: [],
          duplicate: false,
        };
      },
      cancel: () => assert.fail("nothing is cancelled"),
    },
    onFault: assert.fail,
  });
  const triggers = new Map((await findTriggers(api.database, [id])).map((row) => [id, row]));
  const first = start(line, triggers);
  assert.deepEqual([...(await start(line, triggers)).keys()], []);
  assert.equal(starts, 1);
  release.abort();
  assert.deepEqual([...(await first).keys()], ["1", "2"]);
  assert.equal(starts, 2);
  // They may be started again once that is over: each finds its execution by its key.
  assert.equal((await start(line, triggers)).size, 2);
});
