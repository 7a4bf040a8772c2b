import assert from "node:assert/strict";
import { before, test } from "node:test";
import { createKeyedSignals, KEPT_MAX } from "../../../src/services/signals/keyed-signals.ts";
import { type Body, openApi, TOKENS } from "../../support/service/api.ts";
import { workWith } from "../../support/service/api-work.ts";
import { addUser, allow } from "../../support/service/users.ts";

/* Signals to everyone who waits for their name and key (control, section 2 and rules 23 to 25), on PostgreSQL. */

const api = await openApi({ FLOW_PURE_STEPS: "server" });
const work = workWith(api);
const { sql } = api.database;

const PAID = `  - step: paid
    tool: { kind: wait, signal: payment, key: "{{ workload.order }}", when: "{{ signal.data.amount >= workload.amount }}" }
    next: { arcs: [{ step: end }] }
  - { step: end, tool: { kind: noop, result: { got: "{{ paid.data }}", by: "{{ paid.by }}" } } }
`;
const EACH = `  - step: each
    loop: { in: [1, 2, 3], iterator: n, spec: { mode: parallel } }
    tool: { kind: wait, signal: payment, key: "{{ workload.order }}" }
    next: { arcs: [{ step: again }] }
  - { step: again, tool: { kind: wait, signal: payment, key: "{{ workload.order }}" } }
`;
const LATER = `  - { step: first, tool: { kind: wait, signal: go, key: "{{ workload.order }}" }, next: { arcs: [{ step: paid }] } }
  - { step: paid, tool: { kind: wait, signal: payment, key: "{{ workload.order }}" } }
`;

before(async () => {
  await work.register("s/paid", PAID);
  await work.register("t/paid", PAID);
  await work.register("s/each", EACH);
  await work.register("s/later", LATER);
});

let orders = 0;
const newOrder = () => {
  orders += 1;
  return `order-${orders}`;
};
/** An execution of which so many steps or iterations wait: a busy server comes to them after it has answered. */
async function started(order: string, path = "s/paid", amount = 1, waits = path === "s/each" ? 3 : 1): Promise<string> {
  const id = await work.execute(path, { workload: { order, amount } });
  await untilWaiting(id, waits);
  return id;
}
async function untilWaiting(id: string, waits: number): Promise<void> {
  for (let isOver = false; !isOver; ) {
    const moved = new Promise<void>((resolve) => {
      const end = api.service.orchestrator.watch(id, () => {
        end();
        resolve();
      });
    });
    isOver = (await sql`select from flow.wait where execution_id = ${id}`).length === waits;
    if (!isOver) await moved;
  }
}
const send = (body: Body, name = "payment") => work.post(`/api/signals/${name}`, body);
const statusOf = async (id: string) => (await work.get(`/api/executions/${id}`)).body["status"];
const endOf = async (id: string) => (await work.runToEnd(id))["status"];
const signals = async (key: string) => [
  ...(await sql<{ state: string; reached: number; data: unknown }[]>`
    select state, reached, data from flow.signal where key = ${key} order by signal_id`),
];

test("all that wait for it go on with its data; another key, and one that its condition refuses, do not", async () => {
  const order = newOrder();
  const reached = [await started(order), await started(order)];
  const others = [await started(order, "s/paid", 100), await started(newOrder())];
  const { status, body } = await send({ key: order, data: { amount: 12 } });
  assert.deepEqual([status, body], [202, { reached: 2, kept: false, duplicate: false }]);
  for (const id of reached) {
    const detail = await work.runToEnd(id);
    assert.deepEqual([detail["status"], detail["result"]], ["COMPLETED", { got: { amount: 12 }, by: "operator" }]);
  }
  for (const id of others) assert.equal(await statusOf(id), "RUNNING");
  assert.deepEqual(await signals(order), [{ state: "done", reached: 2, data: null }]);
});

test("every iteration that waits goes on, and the wait behind the loop is not reached by the same signal", async () => {
  const order = newOrder();
  const id = await started(order, "s/each");
  assert.equal((await send({ key: order })).body["reached"], 3);
  await untilWaiting(id, 1);
  const { events } = (await work.get(`/api/executions/${id}/events?event_type=signal.received`)).body;
  assert.equal((events as Body[]).length, 1, "its data is in the log once");
  const [kept] = (await work.get(`/api/executions/${id}`)).body["waiting_for"] as Body[];
  assert.equal(kept?.["step"], "again");
  assert.equal((await send({ key: order })).body["reached"], 1);
  assert.equal(await endOf(id), "COMPLETED");
});

test("one that reaches none is kept, and the first that waits for it takes it, no other", async () => {
  const order = newOrder();
  const answer = await send({ key: order, data: { amount: 5 } });
  assert.deepEqual(answer.body, { reached: 0, kept: true, duplicate: false });
  const tooMuch = await started(order, "s/paid", 100);
  await api.service.signals.workOff();
  assert.equal(await statusOf(tooMuch), "RUNNING");
  assert.equal((await signals(order))[0]?.state, "kept", "its condition leaves it to others");
  const [first, second] = [await started(order), await started(order)];
  await Promise.all([api.service.signals.workOff(), api.service.signals.workOff()]);
  await api.service.signals.workOff();
  const left = await sql<{ id: string }[]>`
    select execution_id as id from flow.wait where execution_id = any(${[first, second]}::bigint[])`;
  assert.equal(left.length, 1);
  assert.deepEqual(await signals(order), [{ state: "done", reached: 1, data: null }]);
  assert.equal((await sql`select from flow.wait where not is_looked`).length, 0, "nothing is looked for again");
});

test("a wait in a later step takes what was kept before; one that is kept no longer is gone", async () => {
  const order = newOrder();
  const id = await started(order, "s/later");
  assert.equal((await send({ key: order })).body["kept"], true);
  assert.equal((await send({ key: order, retain: 0 })).body["kept"], false);
  await sql`update flow.signal set kept_until = now() where key = ${order} and state = 'kept'`;
  await work.post(`/api/executions/${id}/signals/go`, { key: order });
  await untilWaiting(id, 1);
  await api.service.signals.workOff();
  assert.equal(await statusOf(id), "RUNNING");
  assert.equal((await send({ key: order, retain: "90s" })).body["reached"], 1);
  assert.equal(await endOf(id), "COMPLETED");
});

test("a signal under the same id counts once, of its name and key", async () => {
  const order = newOrder();
  const id = await started(order, "s/each");
  assert.equal((await send({ key: order, id: "e-1" })).body["reached"], 3);
  assert.deepEqual((await send({ key: order, id: "e-1" })).body, { reached: 0, kept: false, duplicate: true });
  await untilWaiting(id, 1);
  const elsewhere = await send({ key: newOrder(), id: "e-1" });
  assert.deepEqual([elsewhere.body["kept"], elsewhere.body["duplicate"]], [true, false]);
  const both = await Promise.all([send({ key: order, id: "e-2" }), send({ key: order, id: "e-2" })]);
  assert.deepEqual(both.map(({ body }) => body["reached"]).sort(), [0, 1]);
  assert.equal(await endOf(id), "COMPLETED");
});

test("without a key it is for those that wait without one", async () => {
  await work.register("s/plain", "  - { step: asked, tool: { kind: wait, signal: recalculate } }\n");
  const id = await work.execute("s/plain");
  await untilWaiting(id, 1);
  assert.equal((await send({ key: "x" }, "recalculate")).body["reached"], 0);
  assert.equal((await send({}, "recalculate")).body["reached"], 1);
  assert.equal(await endOf(id), "COMPLETED");
});

test("a paused execution is reached, and goes on with it at the resumption", async () => {
  const order = newOrder();
  const id = await started(order);
  await work.post(`/api/executions/${id}/pause`, {});
  assert.equal((await send({ key: order, data: { amount: 7 } })).body["reached"], 1);
  assert.equal(await statusOf(id), "PAUSED");
  assert.equal((await send({ key: order, data: { amount: 8 } })).body["reached"], 1);
  await work.post(`/api/executions/${id}/resume`, {});
  assert.deepEqual((await work.runToEnd(id))["result"], { got: { amount: 7 }, by: "operator" });
});

test("an execution that has ended is not reached", async () => {
  const order = newOrder();
  const id = await started(order);
  await work.post(`/api/executions/${id}/cancel`, {});
  assert.deepEqual((await send({ key: order })).body, { reached: 0, kept: true, duplicate: false });
});

test("only what the sender may execute is reached and counted, also by what is kept; a right that is gone does not count", async () => {
  const user = await addUser(api.database);
  await allow(api.database, user, [{ allow: "s/*", can: ["execute", "view"] }]);
  const headers = { authorization: `Bearer ${TOKENS.operator}`, "x-flow-session": user.tokenSha256 };
  const sendAs = async (body: Body) => {
    const init = {
      method: "POST",
      body: JSON.stringify(body),
      headers: { ...headers, "content-type": "application/json" },
    };
    const response = await api.guarded.request("/api/signals/payment", init);
    return (await response.json()) as Body;
  };
  const order = newOrder();
  const [own, other] = [await started(order), await started(order, "t/paid")];
  assert.equal((await sendAs({ key: order, data: { amount: 1 } }))["reached"], 1);
  assert.deepEqual([await endOf(own), await statusOf(other)], ["COMPLETED", "RUNNING"]);
  const late = newOrder();
  assert.equal((await sendAs({ key: late, data: { amount: 1 } }))["kept"], true);
  const [foreign, mine] = [await started(late, "t/paid"), await started(late)];
  await api.service.signals.workOff();
  assert.deepEqual([await statusOf(foreign), await endOf(mine)], ["RUNNING", "COMPLETED"]);
  const gone = newOrder();
  await sendAs({ key: gone, data: { amount: 1 } });
  await sql`delete from auth.user_roles where user_id = ${user.userId}`;
  const unreached = await started(gone);
  await api.service.signals.workOff();
  assert.equal(await statusOf(unreached), "RUNNING");
  const [audit] = await sql<{ detail: Body }[]>`
    select detail from auth.audit_log where action = 'signal.send' and detail ->> 'key' = ${order}`;
  assert.deepEqual(audit?.detail, { key: order, reached: 1 });
});

test("what is no signal to everyone is refused, and says why; too many that are kept are one too many", async () => {
  for (const [body, words] of [
    [{ retain: "24h1ms" }, /retain: must be a duration of at most 24h/],
    [{ retain: "soon" }, /retain/],
    [{ key: "" }, /key/],
    [{ other: 1 }, /other/],
    [{ data: "x".repeat(65_536) }, /data/],
  ] as [Body, RegExp][]) {
    const answer = await send(body);
    assert.equal(answer.status, 422);
    assert.match(JSON.stringify(answer.body), words);
  }
  const key = newOrder();
  assert.equal((await send({ key, retain: "24h" })).status, 202);
  await sql`
    insert into flow.signal (signal_id, name, key, sent_by, state, kept_until, expires_at)
    select n, 'payment', ${key}, 'operator', 'kept', now() + interval '1 hour', now() + interval '1 hour'
    from generate_series(1, ${KEPT_MAX - 2}) as n`;
  assert.equal((await send({ key, id: "last" })).status, 202);
  const refused = await send({ key });
  assert.equal(refused.status, 429);
  assert.match(JSON.stringify(refused.body), /1000 of them with key 'order-\d+' are kept/);
  assert.equal((await send({ key, id: "last" })).body["duplicate"], true, "a repeat is harmless all the same");
});

test("what a server that died has left is gone on with by another: none is reached twice, and none is left out", async () => {
  const order = newOrder();
  const ids = await Promise.all(Array.from({ length: 5 }, () => started(order, "s/each")));
  let told = 0;
  const { database, service } = api;
  const dying = createKeyedSignals({
    ...{ database, access: service.access, busy: () => performance.now(), unavailable: () => undefined },
    // It has told some, and not come to note it.
    orchestrator: {
      async signalWaiters(executionId, signal) {
        told += 1;
        if (told > 3) throw Object.assign(new Error("killed"), { code: "UNAVAILABLE" });
        return await service.orchestrator.signalWaiters(executionId, signal);
      },
    },
    onFault: (error) => {
      throw error;
    },
  });
  await assert.rejects(dying.send({ name: "payment", key: order, data: null, by: "me" }));
  await service.signals.workOff();
  const [row] = await signals(order);
  assert.equal(row?.state, "done");
  for (const id of ids) {
    await untilWaiting(id, 1);
    const [wait, ...more] = (await work.get(`/api/executions/${id}`)).body["waiting_for"] as Body[];
    assert.deepEqual([wait?.["step"], more], ["again", []]);
  }
});

test("a kept signal whose taker's server died between telling and noting it reaches no second one", async () => {
  const order = newOrder();
  await send({ key: order, data: { amount: 1 } });
  const taker = await started(order);
  const [{ id: signalId } = { id: "" }] = await sql<{ id: string }[]>`
    select signal_id as id from flow.signal where key = ${order}`;
  await sql`update flow.signal set taken_by = ${taker}, lease_expires_at = now() where signal_id = ${signalId}`;
  const at = { signalId, name: "payment", key: order, data: { amount: 1 }, at: Date.now(), atMost: 1 };
  assert.equal(await api.service.orchestrator.signalWaiters(taker, at), 1);
  const other = await started(order);
  await api.service.signals.workOff();
  assert.deepEqual([await endOf(taker), await statusOf(other)], ["COMPLETED", "RUNNING"]);
  assert.equal((await signals(order))[0]?.state, "done");
});

test("triggers are told once a signal is durable: with one it is not kept", async () => {
  const seen: string[] = [];
  const { database, service } = api;
  const key = newOrder();
  const withTriggers = createKeyedSignals({
    ...{ database, access: service.access, busy: () => performance.now(), unavailable: () => undefined },
    orchestrator: service.orchestrator,
    onFault: assert.fail,
    async triggers({ signalId, name, key: of }) {
      const [row] = await sql<{ state: string }[]>`select state from flow.signal where signal_id = ${signalId}`;
      seen.push(`${name} ${of} ${row?.state}`);
      return 1;
    },
  });
  const answer = await withTriggers.send({ name: "payment", key, data: null, by: "me", id: "x" });
  assert.deepEqual(answer, { reached: 1, kept: false, duplicate: false });
  await withTriggers.send({ name: "payment", key, data: null, by: "me", id: "x" });
  assert.deepEqual(seen, [`payment ${key} sending`]);
});
