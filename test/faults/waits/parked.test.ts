import assert from "node:assert/strict";
import { test } from "node:test";
import { closeEventGate } from "../support/event-gate.ts";
import { LONG, openStand } from "../support/stand.ts";
import { until } from "../support/until.ts";

/* What is parked outlives every server: it waits while none is there, and goes on once. */

const document = (path: string, step: string) => `apiVersion: flow/v2
kind: Playbook
metadata: { name: ${path}, path: ${path} }
workflow:
  - ${step}
  - { step: end, tool: { kind: noop } }
`;

const RETRY = `step: a
    tool: { kind: http, url: "http://127.0.0.1:1/", spec: { policy: { rules: [{ when: "{{ output.status == 'error' }}", then: { do: retry, attempts: 2, delay: 12 } }] } } }
    next: { arcs: [{ step: end, when: "event.name == 'step.failed'" }] }`;
const APPROVAL = `{ step: a, tool: { kind: wait, approval: { title: "Go on?" } }, next: end }`;

type Stand = Awaited<ReturnType<typeof openStand>>;

/** How often each event stands in an execution's log. */
async function countsOf(client: Awaited<ReturnType<Stand["client"]>>, id: string): Promise<Record<string, number>> {
  const { body } = await client.call("GET", `/api/executions/${id}/events?limit=500`);
  const counts: Record<string, number> = {};
  for (const { event_type: type } of body.events) counts[type] = (counts[type] ?? 0) + 1;
  return counts;
}

const parked = ({ database: { sql } }: Stand, id: string) =>
  until("it is parked", async () => (await sql`select from flow.wait where execution_id = ${id}`).length === 1);

test("a parked retry: its server is killed, and the next one too as it wakes it; the third goes on with it once", async (t) => {
  const stand = await openStand(t, LONG);
  const server = await stand.server();
  const client = await stand.client(server);
  await client.register(document("faults/retry", RETRY));
  const worker = await stand.worker(server, "one");
  const id = await client.start("faults/retry", {});
  await parked(stand, id);
  await server.end("SIGKILL");
  const gate = await closeEventGate(stand.database, "command.woken");
  const next = await stand.server({}, server.port);
  await gate.reached();
  await next.end("SIGKILL");
  await gate.cutOff();
  await gate.open();
  await stand.server({}, server.port);
  await client.watch(id);
  const counts = await countsOf(client, id);
  assert.deepEqual([counts["command.parked"], counts["command.woken"], counts["playbook.completed"]], [1, 1, 1]);
  const { body } = await client.call("GET", `/api/executions/${id}/events?event_type=task.done`);
  assert.equal(body.events.length, 3, "Two runs of a, and one of end, each once");
  await worker.end("SIGKILL");
});

test("an approval: its server is killed, and the next one as it writes the decision; sent again, it is decided once", async (t) => {
  const stand = await openStand(t, LONG);
  const server = await stand.server({ FLOW_PURE_STEPS: "server" });
  const client = await stand.client(server);
  await client.register(document("faults/approval", APPROVAL));
  const id = await client.start("faults/approval", {});
  await parked(stand, id);
  await server.end("SIGKILL");
  const next = await stand.server({ FLOW_PURE_STEPS: "server" }, server.port);
  const [row] = await stand.database.sql<{ id: string }[]>`
    select approval_id::text as id from flow.approval where execution_id = ${id}`;
  const decide = () => client.call("POST", `/api/approvals/${row?.id}/decide`, { decision: "approve" });
  const gate = await closeEventGate(stand.database, "approval.decided");
  const lost = decide().catch(() => undefined);
  await gate.reached();
  await next.end("SIGKILL");
  await lost;
  await gate.cutOff();
  await gate.open();
  await stand.server({ FLOW_PURE_STEPS: "server" }, server.port);
  assert.equal((await decide()).status, 200);
  await client.watch(id);
  assert.equal((await decide()).status, 409);
  const counts = await countsOf(client, id);
  assert.deepEqual([counts["approval.decided"], counts["command.woken"], counts["playbook.completed"]], [1, 1, 1]);
});
