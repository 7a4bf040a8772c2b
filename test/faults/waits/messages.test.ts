import assert from "node:assert/strict";
import { test } from "node:test";
import { closeGate } from "../support/event-gate.ts";
import { LONG, openStand } from "../support/stand.ts";
import { until } from "../support/until.ts";

/* Messages about approvals (control, rule 29): each is sent once, whichever servers die over it. */

const ASKS = `apiVersion: flow/v2
kind: Playbook
metadata: { name: asks, path: faults/asks }
workflow:
  - step: ask
    tool:
      kind: wait
      approval:
        title: "Go on?"
        remind_every: 2s
        notify: { playbook: faults/tell, input: { id: "{{ approval.id }}", reason: "{{ approval.reason }}" } }
  - { step: end, tool: { kind: noop } }
`;
const TELLS = `apiVersion: flow/v2
kind: Playbook
metadata: { name: tell, path: faults/tell }
workload: { id: none, reason: none }
workflow:
  - { step: tell, tool: { kind: noop } }
`;
const COUNT = 8;

/** Where a server is killed: before its message's execution is written, and between that and the note that it was sent. */
const PLACES = [
  ["as it starts the playbook", "insert on flow.event_log", "new.node_id = 'faults/tell'"],
  ["before it notes that it has", "update on flow.approval_message", "new.sent_at is not null"],
] as const;

for (const [when, change, row] of PLACES) {
  test(`messages are due, and servers are killed ${when}: each message starts one execution`, async (t) => {
    const stand = await openStand(t, { ...LONG, FLOW_PURE_STEPS: "server" });
    const { sql } = stand.database;
    const [first, second] = [await stand.server(), await stand.server()];
    const client = await stand.client(first, second);
    for (const content of [TELLS, ASKS]) await client.register(content);
    const gate = await closeGate(stand.database, change, row);
    const ids = await Promise.all(Array.from({ length: COUNT }, () => client.start("faults/asks", {})));
    await gate.reached();
    await first.end("SIGKILL");
    await gate.cutOff();
    await gate.open();
    const third = await stand.server({}, first.port);
    const sent = async (least: number) => {
      const rows = await sql<{ id: string; count: number }[]>`
        select approval_id::text as id, count(*)::int as count from flow.approval_message where sent_at is not null group by 1`;
      return rows.length === COUNT && rows.every(({ count }) => count >= least);
    };
    await until("all are told", () => sent(1));
    await second.end("SIGKILL");
    // Those of the reminders go on, whichever server is killed.
    await until("all are reminded", () => sent(2));
    for (const id of ids) assert.equal((await client.call("POST", `/api/executions/${id}/cancel`)).status, 200);
    await until("nothing is left to be sent", async () => {
      const [left] = await sql<{ count: number }[]>`
        select count(*)::int as count from flow.approval_message where sent_at is null`;
      return left?.count === 0;
    });
    const messages = await sql<{ key: string; id: string | null; error: string | null }[]>`
      select approval_id || '/' || number as key, sent_execution_id::text as id, error from flow.approval_message`;
    const started = await sql<{ key: string; id: string }[]>`
      select idempotency_key as key, execution_id::text as id from flow.execution where path = 'faults/tell'`;
    assert.deepEqual(
      messages.filter(({ error }) => error !== null),
      [],
    );
    const byKey = (rows: readonly { key: string; id: string | null }[]) =>
      rows.map(({ key, id }) => `${key} ${id}`).sort();
    assert.deepEqual(byKey(started), byKey(messages));
    await third.end("SIGTERM");
  });
}
