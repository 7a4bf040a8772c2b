import assert from "node:assert/strict";
import { once } from "node:events";
import { before, test } from "node:test";
import { findTriggers } from "../../../src/repositories/triggers/triggers.ts";
import { createStartFires } from "../../../src/services/triggers/start-fires.ts";
import { type Body, openApi } from "../../support/service/api.ts";
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

test("a fire that a server still starts when its time to do so is over is not started once more beside", async () => {
  const given = { fireId: "1", triggerId: id, key: "held", dueAt: new Date(), input: "{}" };
  const fire = { ...given, waits: false, always: false, isNew: true };
  let starts = 0;
  const release = new AbortController();
  const held = once(release.signal, "abort");
  const start = createStartFires({
    ...{ database: api.database, now: Date.now, newName: () => "n", onFired: () => undefined },
    executions: {
      async start() {
        starts += 1;
        await held;
        return {
          executionId: "2",
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
  const first = start([fire], triggers);
  assert.deepEqual([...(await start([fire], triggers)).keys()], []);
  release.abort();
  assert.deepEqual([(await first).get("1")?.status, starts], ["started", 1]);
  // It may be started again once that is over: it finds its execution by its key.
  assert.equal((await start([fire], triggers)).size, 1);
});
