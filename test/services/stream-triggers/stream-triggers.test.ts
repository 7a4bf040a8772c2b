import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { connect, type JetStreamManager, type NatsConnection } from "nats";
import { readStream } from "../../../src/roles/server/wire-incoming.ts";
import {
  createStreamTriggers,
  type StreamTriggers,
  type StreamTriggersDeps,
} from "../../../src/services/stream-triggers/stream-triggers.ts";
import { startTestNats, type TestNats } from "../../support/servers/nats-server.ts";
import { type Body, openApi } from "../../support/service/api.ts";
import { workWith } from "../../support/service/api-work.ts";

/* Triggers that fire for messages of a real NATS server, on PostgreSQL: one server reads at a time, and each message starts one execution. */

const LIMIT = { timeout: 60_000 };
const api = await openApi({ FLOW_PURE_STEPS: "server" });
const work = workWith(api);
const { sql } = api.database;

let nats: TestNats;
let own: NatsConnection;
let manager: JetStreamManager;
before(async () => {
  nats = await startTestNats();
  own = await connect({ servers: `127.0.0.1:${nats.port}` });
  manager = await own.jetstreamManager();
  await credential("bus");
});
after(() => own.close());

async function credential(name: string): Promise<void> {
  const { status } = await work.post("/api/credentials", {
    ...{ name, type: "broker", data: { url: nats.url }, meta: { playbooks: ["nats/**"] } },
  });
  assert.equal(status, 201);
}

/** A playbook with a trigger for the stream of this name, the only one that is enabled. */
async function register(name: string, section = "", more = "input: { got: '{{ body.n }}' }"): Promise<void> {
  await sql`update flow.trigger set enabled = false where path <> ${`nats/${name}`}`;
  const content = `apiVersion: flow/v2
kind: Playbook
metadata: { name: n, path: nats/${name} }
workload: { got: none }
workflow: [{ step: start, tool: { kind: noop, result: { got: "{{ workload.got }}" } } }]
triggers:
  - name: messages
    nats: { credential: bus, stream: ${name}${section} }
    ${more}
`;
  const { status, body } = await work.post("/api/catalog/register", { content });
  assert.equal(status, 200, JSON.stringify(body));
}

async function newStream(name: string): Promise<void> {
  await manager.streams.add({ name, subjects: [`${name}.>`] });
}

const publish = (name: string, value: unknown, rest = "a") =>
  own.jetstream().publish(`${name}.${rest}`, JSON.stringify(value));

async function trigger(name: string): Promise<string> {
  const { body } = await work.get(`/api/triggers?path=nats/${name}`);
  return String((body["triggers"] as Body[])[0]?.["trigger_id"]);
}

async function fires(name: string): Promise<Body[]> {
  return (await work.get(`/api/triggers/${await trigger(name)}/fires`)).body["fires"] as Body[];
}

interface Server extends StreamTriggers {
  /** Fires of this server, as `path status`, and problems. */
  readonly told: string[];
  readonly problems: string[];
  /** Resolves when this holds; asked with each thing that happens. */
  until(holds: () => boolean): Promise<void>;
}

const servers: Server[] = [];
after(() => Promise.all(servers.map((one) => one.end())));

/** A server that looks when it is told to. */
function server(holder: string, more: Partial<StreamTriggersDeps> = {}): Server {
  const told: string[] = [];
  const problems: string[] = [];
  const waiting: { holds(): boolean; resolve(): void }[] = [];
  const look = () => {
    for (const { resolve } of waiting.filter(({ holds }) => holds())) resolve();
  };
  const { triggers } = api.service;
  const made = createStreamTriggers({
    database: api.database,
    triggers: {
      scope: triggers.scope,
      async fire(row, delivery) {
        const fired = await triggers.fire(row, delivery);
        told.push(`${row.path} ${fired.isRepeated ? "repeated" : fired.status}`);
        look();
        return fired;
      },
    },
    credentials: api.service.credentials,
    readStream,
    holder,
    now: Date.now,
    pauseMs: 1,
    onProblem(row, reason) {
      problems.push(`${row.path}: ${reason}`);
      look();
    },
    onReading(row) {
      told.push(`${row.path} reading`);
      look();
    },
    ...more,
  });
  const one: Server = {
    ...made,
    told,
    problems,
    until: (holds) => (holds() ? Promise.resolve() : new Promise((resolve) => waiting.push({ holds, resolve }))),
  };
  servers.push(one);
  return one;
}

const counted = ({ told }: Server, line: string) => told.filter((one) => one === line).length;

test("each message starts one execution with its body, and is acknowledged when that is durable", LIMIT, async () => {
  await newStream("ONE");
  await publish("ONE", { n: 1 });
  await register("ONE", "", "input: { got: { n: '{{ body.n }}', at: '{{ message.sequence }}', of: '{{ subject }}' } }");
  const a = server("a");
  await a.look();
  await publish("ONE", { n: 2 });
  await a.until(() => counted(a, "nats/ONE started") === 2);
  await a.end();
  const found = await fires("ONE");
  assert.deepEqual(
    found.map(({ status }) => status),
    ["started", "started"],
  );
  const results = await Promise.all(
    found.map(
      async (fire) => (await work.get(`/api/executions/${fire["execution_id"]}/result?wait_ms=5000`)).body["result"],
    ),
  );
  assert.deepEqual(
    results,
    [2, 1].map((n) => ({ got: { n, at: n, of: "ONE.a" } })),
  );
  const info = await manager.consumers.info("ONE", `flow_${await trigger("ONE")}`);
  assert.deepEqual([info.num_ack_pending, info.num_pending], [0, 0]);
});

test("of two servers one reads; when it ends the other goes on, and no message is lost or doubled", LIMIT, async () => {
  await newStream("TWO");
  await register("TWO");
  const [a, b] = [server("a2"), server("b2")];
  await a.look();
  await b.look();
  await a.until(() => counted(a, "nats/TWO reading") === 1);
  for (let n = 0; n < 5; n += 1) await publish("TWO", { n });
  await a.until(() => counted(a, "nats/TWO started") === 5);
  assert.deepEqual(b.told, []);
  await a.end();
  for (let n = 5; n < 10; n += 1) await publish("TWO", { n });
  await b.look();
  await b.until(() => counted(b, "nats/TWO started") === 5);
  assert.equal((await fires("TWO")).length, 10);
  await b.end();
});

test(
  "a server that dies or freezes: another takes over when its lease is over, and what comes again starts nothing",
  LIMIT,
  async () => {
    await newStream("DEAD");
    await register("DEAD", ", ack_wait: 1s");
    let frozen: () => void = () => undefined;
    const thaw = new Promise<void>((resolve) => (frozen = resolve));
    // It starts the execution, and freezes before it acknowledges.
    const { triggers } = api.service;
    const started: string[] = [];
    let isStarted: () => void = () => undefined;
    const first = new Promise<void>((resolve) => (isStarted = resolve));
    const dead = server("dead", {
      leaseMs: 1,
      triggers: {
        scope: triggers.scope,
        async fire(row, delivery) {
          const { isRepeated, status } = await triggers.fire(row, delivery);
          if (!isRepeated) started.push(status);
          isStarted();
          await thaw;
          throw new Error("it died");
        },
      },
    });
    await dead.look();
    await publish("DEAD", { n: 1 });
    await first;
    const heir = server("heir");
    await heir.look();
    await heir.until(() => counted(heir, "nats/DEAD repeated") === 1);
    frozen();
    assert.deepEqual(started, ["started"]);
    assert.equal((await fires("DEAD")).length, 1);
    // Both read now, until the dead one looks: still one execution each.
    for (let n = 2; n < 12; n += 1) await publish("DEAD", { n });
    await dead.look();
    while ((await fires("DEAD")).length < 11) await heir.look();
    await Promise.all([dead.end(), heir.end()]);
    const found = await fires("DEAD");
    assert.equal(new Set(found.map((fire) => fire["execution_id"])).size, 11);
    assert.equal(found.length, 11);
  },
);

test("while the database is away messages wait at the broker, and come again", LIMIT, async () => {
  await newStream("AWAY");
  await register("AWAY");
  const { triggers } = api.service;
  let fails = 2;
  const a = server("a3", {
    triggers: {
      scope: triggers.scope,
      async fire(row, delivery) {
        if (fails-- > 0) throw new Error("the database is away");
        return await triggers.fire(row, delivery);
      },
    },
    onReading: () => undefined,
  });
  await a.look();
  await publish("AWAY", { n: 1 });
  while ((await fires("AWAY")).length === 0) await sql`select 1`;
  await a.end();
  assert.deepEqual(
    (await fires("AWAY")).map(({ status }) => status),
    ["started"],
  );
});

test("a new version is read as it says; a disabled trigger is not read", LIMIT, async () => {
  await newStream("EDIT");
  await register("EDIT", ', subject: "EDIT.a"');
  const a = server("a4");
  await a.look();
  await a.until(() => counted(a, "nats/EDIT reading") === 1);
  await register("EDIT", ', subject: "EDIT.b"');
  await a.look();
  await a.until(() => counted(a, "nats/EDIT reading") === 2);
  await publish("EDIT", { n: 1 }, "a");
  await publish("EDIT", { n: 2 }, "b");
  await a.until(() => counted(a, "nats/EDIT started") === 1);
  await work.post(`/api/triggers/${await trigger("EDIT")}/disable`, {});
  await a.look();
  await publish("EDIT", { n: 3 }, "b");
  await work.post(`/api/triggers/${await trigger("EDIT")}/enable`, {});
  await a.look();
  await a.until(() => counted(a, "nats/EDIT started") === 2);
  assert.equal((await fires("EDIT")).length, 2, "what came while it was disabled waited at the broker");
  await a.end();
});

test(
  "a condition that does not hold, and an input that fails, are rows; their messages do not come again",
  LIMIT,
  async () => {
    await newStream("JUDGE");
    await register("JUDGE", ', when: "body.n > 0"', "input: { got: '{{ 1 / body.d }}' }");
    const a = server("a5");
    await a.look();
    for (const value of [
      { n: 0, d: 1 },
      { n: 1, d: 0 },
      { n: 1, d: 1 },
    ])
      await publish("JUDGE", value);
    await a.until(() => counted(a, "nats/JUDGE started") === 1 && a.told.length >= 4);
    await a.end();
    assert.deepEqual((await fires("JUDGE")).map(({ status }) => status).sort(), ["failed", "skipped", "started"]);
    const info = await manager.consumers.info("JUDGE", `flow_${await trigger("JUDGE")}`);
    assert.deepEqual([info.num_ack_pending, info.num_pending], [0, 0]);
  },
);

test("what keeps a trigger from reading is told once, stands among its fires, and ends by itself", LIMIT, async () => {
  await register("LATER", "", "input: {}");
  const a = server("a6");
  await a.look();
  await a.until(() => a.problems.length === 1);
  assert.match(a.problems[0] ?? "", /^nats\/LATER: Consumer .*'LATER'.*cannot be read: stream not found/);
  while ((await fires("LATER")).length === 0) await sql`select 1`;
  const [row] = await fires("LATER");
  assert.equal(row?.["status"], "failed");
  await newStream("LATER");
  while (counted(a, "nats/LATER reading") === 0) await a.look();
  await publish("LATER", { n: 1 });
  await a.until(() => counted(a, "nats/LATER started") === 1);
  assert.equal(a.problems.length, 1);
  await a.end();
});

test("a credential that is not for its playbook, or not there, reads nothing", LIMIT, async () => {
  await newStream("MINE");
  await register("MINE");
  await work.post("/api/credentials", {
    name: "bus",
    type: "broker",
    data: { url: nats.url },
    meta: { playbooks: ["other/**"] },
  });
  const a = server("a7");
  await a.look();
  await a.until(() => a.problems.some((one) => one.startsWith("nats/MINE")));
  assert.match(
    a.problems.find((one) => one.startsWith("nats/MINE")) ?? "",
    /The credential 'bus' is for the playbooks other/,
  );
  await a.end();
});
