import assert from "node:assert/strict";
import { test } from "node:test";
import { connect } from "nats";
import { startTestNats } from "../../support/servers/nats-server.ts";
import type { ServerProcess } from "../../support/service/service-process.ts";
import { closeGate } from "../support/event-gate.ts";
import { LONG, openStand } from "../support/stand.ts";
import { until } from "../support/until.ts";

/* Messages of a stream come while the servers that read it are killed: each starts exactly one execution (control, section 3). */

const PATH = "faults/stream";
const ORDERS = `apiVersion: flow/v2
kind: Playbook
metadata: { name: stream, path: ${PATH} }
workload: { n: none }
triggers:
  - { name: orders, nats: { credential: bus, stream: ORDERS, ack_wait: 1s, max_in_flight: 5 }, input: { n: "{{ body.n }}" } }
workflow:
  - { step: a, tool: { kind: noop } }
`;
const READS = "reads a stream for a trigger";

/** Where the server that reads is killed: with nothing of the execution written, and between that and the note that it has begun. */
const PLACES = [
  ["insert on flow.event_log", `new.node_id = '${PATH}'`],
  ["update on flow.trigger_fire", "new.status = 'started'"],
] as const;

test("servers are killed while messages come: each message starts exactly one execution, and none is left at the broker", async (t) => {
  const nats = await startTestNats();
  const own = await connect({ servers: `127.0.0.1:${nats.port}` });
  t.after(() => own.close());
  const manager = await own.jetstreamManager();
  await manager.streams.add({ name: "ORDERS", subjects: ["orders.>"] });
  let published = 0;
  const publish = async (count: number) => {
    for (let times = 0; times < count; times += 1) {
      published += 1;
      await own.jetstream().publish("orders.created", JSON.stringify({ n: published }));
    }
  };
  const stand = await openStand(t, { ...LONG, FLOW_HTTP_ALLOW_PRIVATE: "all" });
  const { sql } = stand.database;
  let servers: ServerProcess[] = [await stand.server(), await stand.server()];
  const client = await stand.client(...servers);
  const data = { url: nats.url };
  const made = await client.call("POST", "/api/credentials", {
    ...{ name: "bus", type: "broker", data, meta: { playbooks: ["faults/**"] } },
  });
  assert.equal(made.status, 201);
  await publish(5);
  await client.register(ORDERS);
  const started = () => sql<{ n: string; key: string }[]>`
    select l.n, e.idempotency_key as key from flow.execution as e join lateral (
      select (body::json -> 0 -> 'workload' ->> 'n') as n from flow.event_log as l
      where l.execution_id = e.execution_id order by l.event_id limit 1) as l on true
    where e.path = ${PATH}`;
  const reader = () => servers.find((server) => server.log().includes(READS));
  for (const [change, row] of PLACES) {
    const reading = await until("a server reads", async () => reader());
    const gate = await closeGate(stand.database, change, row);
    await publish(10);
    await gate.reached();
    await reading.end("SIGKILL");
    await gate.cutOff();
    await gate.open();
    servers = servers.filter((server) => server !== reading);
    await publish(10);
    // As after the time of its lease, in which no other server reads.
    await sql`update flow.lease set expires_at = now() where name like 'trigger/%'`;
    servers.push(await stand.server({}, reading.port));
  }
  await until("each message has started one", async () => (await started()).length >= published);
  const [trigger] = await sql<{ id: string }[]>`select trigger_id::text as id from flow.trigger where path = ${PATH}`;
  await until("all are acknowledged", async () => {
    const info = await manager.consumers.info("ORDERS", `flow_${trigger?.id}`);
    return info.num_ack_pending === 0 && info.num_pending === 0;
  });
  const all = await started();
  const numbers = all.map(({ n }) => Number(n)).sort((left, right) => left - right);
  assert.deepEqual(
    numbers,
    Array.from({ length: published }, (_, index) => index + 1),
  );
  const fires = await sql<{ status: string; count: number }[]>`
    select status, count(*)::int as count from flow.trigger_fire group by status`;
  assert.deepEqual([...fires], [{ status: "started", count: published }]);
});
