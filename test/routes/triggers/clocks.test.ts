import assert from "node:assert/strict";
import { test } from "node:test";
import { createTriggers, type Triggers } from "../../../src/services/triggers/triggers.ts";
import { type Body, openApi } from "../../support/service/api.ts";
import { workWith } from "../../support/service/api-work.ts";

/*
 * Exactly one execution per fire, whatever clocks do (control, section 3): two servers whose machines are hours apart look at the same schedules,
 * and the database's clock jumps by hours in both directions. That it jumps forward is that every moment it has written is older; that it
 * jumps back, that they are younger.
 */

const api = await openApi({ FLOW_PURE_STEPS: "server" });
const work = workWith(api);
const { sql } = api.database;

const HOUR_MS = 3_600_000;

/** A server whose machine's clock is wrong by so many ms. */
function serverWrongBy(ms: number, name: string): Triggers {
  let calls = 0;
  return createTriggers({
    ...{ database: api.database, executions: api.service.executions, env: {} },
    now: () => Date.now() + ms,
    busy: () => performance.now(),
    newName: () => `${name}/${++calls}`,
    onFired: () => undefined,
    onFault: (error) => assert.fail(error as Error),
  });
}

const servers = [serverWrongBy(5 * HOUR_MS, "ahead"), serverWrongBy(-7 * HOUR_MS, "behind")];

async function register(path: string, trigger: string, tool = "{ kind: noop }"): Promise<string> {
  const content = `apiVersion: flow/v2
kind: Playbook
metadata: { name: c, path: ${path} }
workload: { at: none }
triggers:
  - { name: tick, ${trigger}, input: { at: "{{ trigger.scheduled_at }}" } }
workflow:
  - { step: start, tool: ${tool} }
`;
  const registered = await work.post("/api/catalog/register", { content });
  assert.equal(registered.status, 200, JSON.stringify(registered.body));
  const { body } = await work.get(`/api/triggers?path=${path}`);
  return String((body["triggers"] as Body[])[0]?.["trigger_id"]);
}

/** The database's clock jumps, forward or back: of everything that was written about a trigger, the times stay as far from now as they then are. */
async function jump(triggerId: string, hours: number): Promise<void> {
  const by = sql`make_interval(secs => ${hours * 3_600})`;
  await sql`
    update flow.trigger set wake_at = wake_at - ${by}, next_due_at = next_due_at - ${by}, counted_from = counted_from - ${by},
      active_since = active_since - ${by} where trigger_id = ${triggerId}`;
  // Aside first: a key may become that of the row beside it.
  await sql`
    update flow.trigger_fire set due_at = due_at - ${by}, wake_at = wake_at - ${by}, key = '~' || key where trigger_id = ${triggerId}`;
  await sql`
    update flow.trigger_fire set key = to_char(due_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') where trigger_id = ${triggerId}`;
  // That of its execution is made of it.
  await sql`update flow.execution set idempotency_key = '~' || idempotency_key where started_id = ${triggerId}`;
  await sql`
    update flow.execution as e set idempotency_key = f.trigger_id || '/' || f.key, body_sha256 = encode(sha256(f.key::bytea), 'hex')
    from flow.trigger_fire as f where f.execution_id = e.execution_id and f.trigger_id = ${triggerId}`;
}

/** All servers look at once, so often. */
async function look(times = 3): Promise<void> {
  for (let turn = 0; turn < times; turn += 1) {
    await sql`update flow.trigger_fire set wake_at = now() where wake_at is not null`;
    await Promise.all(servers.flatMap((server) => [server.sweep(), server.sweep()]));
  }
}

/** Fires by status, and the executions of the path; each started fire has one of its own, and there are no others. */
async function assertOnce(triggerId: string, path: string): Promise<Record<string, number>> {
  const fires = await sql<{ status: string; due: string; id: string | null }[]>`
    select status, due_at::text as due, execution_id::text as id from flow.trigger_fire where trigger_id = ${triggerId}`;
  const executions = await sql<
    { id: string }[]
  >`select execution_id::text as id from flow.execution where path = ${path}`;
  assert.equal(new Set(fires.map(({ due }) => due)).size, fires.length, "A time has two fires");
  assert.deepEqual(
    fires.flatMap(({ id }) => id ?? []).sort(),
    executions.map(({ id }) => id).sort(),
    "Fires and executions differ",
  );
  const counts: Record<string, number> = {};
  for (const { status } of fires) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

const every = `schedule: { every: 1h }`;

test("the clock jumps forward: what was missed is decided once, by `catchup`, and fires once", async () => {
  for (const [mode, expected] of [
    ["none", { missed: 5 }],
    ["last", { missed: 4, started: 1 }],
    ["all", { started: 5 }],
  ] as const) {
    const path = `clocks/forward_${mode}`;
    const id = await register(path, `${every}, catchup: { mode: ${mode} }`);
    await jump(id, 5.5);
    await look();
    assert.deepEqual(await assertOnce(id, path), expected, mode);
  }
});

test("the clock jumps back: no time fires again, and the next one when it comes", async () => {
  const path = "clocks/back";
  const id = await register(path, `${every}, catchup: { mode: all }`);
  await jump(id, 3.5);
  await look();
  assert.deepEqual(await assertOnce(id, path), { started: 3 });
  // Back before all of them, and forward again over them.
  for (const hours of [-3, 1, 2, -11, 11]) {
    await jump(id, hours);
    await look(1);
    assert.deepEqual(await assertOnce(id, path), { started: 3 }, `${hours} h`);
  }
  await jump(id, 1);
  await look();
  assert.deepEqual(await assertOnce(id, path), { started: 4 });
});

test("it jumps to and fro while fires wait for an open execution: one at a time, each once, none lost", async () => {
  const path = "clocks/queue";
  const id = await register(path, `${every}, catchup: { mode: all }, overlap: queue`, "{ kind: wait, signal: go }");
  await jump(id, 4.5);
  await look();
  assert.deepEqual(await assertOnce(id, path), { started: 1, queued: 3 });
  for (const hours of [-6, 2, 4, -3, 3]) {
    await jump(id, hours);
    await look(1);
    const [open] = await sql<[{ count: number }]>`
      select count(*)::int as count from flow.execution where path = ${path} and ended_at is null`;
    assert.ok(open.count <= 1, `${open.count} are open`);
    for (const { id: execution } of await sql<{ id: string }[]>`
      select execution_id::text as id from flow.execution where path = ${path} and ended_at is null`)
      await work.post(`/api/executions/${execution}/signals/go`, {});
  }
  await look(4);
  for (const { id: execution } of await sql<{ id: string }[]>`
    select execution_id::text as id from flow.execution where path = ${path} and ended_at is null`)
    await work.post(`/api/executions/${execution}/signals/go`, {});
  await look(2);
  assert.deepEqual(await assertOnce(id, path), { started: 4 });
});

test("a jump while a server has taken a schedule: another one goes on, and what the first then writes has no effect", async () => {
  const path = "clocks/taken";
  const id = await register(path, `${every}, catchup: { mode: all }`);
  await jump(id, 2.5);
  await sql`update flow.trigger set taken_by = 'gone/1', wake_at = now() + interval '5 seconds' where trigger_id = ${id}`;
  await look(1);
  assert.deepEqual(await assertOnce(id, path), {});
  await jump(id, 3);
  await look();
  assert.deepEqual(await assertOnce(id, path), { started: 5 });
});
