import assert from "node:assert/strict";
import { test } from "node:test";
import { closeEventGate } from "../support/event-gate.ts";
import { LONG, openStand } from "../support/stand.ts";
import { until } from "../support/until.ts";

/* Exactly one execution per fire, whatever restarts (control, section 3): a server is killed while it starts one, and another goes on. */

const document = (path: string, trigger: string) => `apiVersion: flow/v2
kind: Playbook
metadata: { name: ${path}, path: ${path} }
triggers:
  - ${trigger}
workflow:
  - { step: a, tool: { kind: noop } }
`;

/** Executions of a path, with what each was started for. */
async function startedOf({ database: { sql } }: Awaited<ReturnType<typeof openStand>>, path: string) {
  return await sql<{ id: string; key: string }[]>`
    select execution_id::text as id, idempotency_key as key from flow.execution where path = ${path} order by execution_id`;
}

test("servers are killed while they start what is due: each time has one fire, and that one execution", async (t) => {
  const stand = await openStand(t, LONG);
  const [first, second] = [await stand.server(), await stand.server()];
  const client = await stand.client(first, second);
  const path = "faults/every";
  const gate = await closeEventGate(stand.database, "playbook.initialized");
  await client.register(
    document(path, `{ name: tick, schedule: { every: 1s }, input: { at: "{{ trigger.scheduled_at }}" } }`),
  );
  await gate.reached();
  await first.end("SIGKILL");
  await gate.cutOff();
  await gate.open();
  const count = async () => (await startedOf(stand, path)).length;
  await until("the other server goes on", async () => (await count()) >= 3);
  const third = await stand.server({}, first.port);
  await second.end("SIGKILL");
  const before = await count();
  await until("the third server goes on", async () => (await count()) >= before + 3);
  await third.end("SIGKILL");
  const started = await startedOf(stand, path);
  assert.equal(new Set(started.map(({ key }) => key)).size, started.length, "A fire started two executions");
  const fires = await stand.database.sql<{ due: string; status: string; id: string | null }[]>`
    select f.due_at::text as due, f.status, f.execution_id::text as id from flow.trigger_fire as f order by f.due_at`;
  assert.equal(new Set(fires.map(({ due }) => due)).size, fires.length, "A time has two fires");
  const noted = fires.flatMap(({ status, id }) => (status === "started" ? [id] : []));
  const ids = new Set(started.map(({ id }) => id));
  assert.equal(new Set(noted).size, noted.length);
  for (const id of noted) assert.ok(id !== null && ids.has(id), `Fire of ${id} names no execution`);
});

test("a delivery whose answer was lost with its server, and that is sent again, starts one execution", async (t) => {
  const stand = await openStand(t, LONG);
  const [first, second] = [await stand.server(), await stand.server()];
  const client = await stand.client(second);
  const path = "faults/hook";
  const hook = `webhook: { path: faults/hook, verify: none, deduplicate: "{{ body.id }}" }`;
  await client.register(document(path, `{ name: pushed, ${hook} }`));
  const send = (url: string) =>
    fetch(`${url}/hooks/faults/hook`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ id: "delivery-1" }),
    });
  const gate = await closeEventGate(stand.database, "playbook.initialized");
  const lost = send(first.url).catch(() => undefined);
  await gate.reached();
  await first.end("SIGKILL");
  await lost;
  await gate.cutOff();
  await gate.open();
  const answers = [];
  for (let tries = 0; tries < 3; tries += 1) answers.push(await send(second.url));
  for (const { status } of answers) assert.ok(status === 202 || status === 200, String(status));
  const [started, ...more] = await startedOf(stand, path);
  assert.deepEqual(more, [], "One delivery started several executions");
  const named = await Promise.all(answers.map(async (answer) => (await answer.json()) as { execution_id?: string }));
  for (const { execution_id: id } of named) assert.equal(id, started?.id);
});
