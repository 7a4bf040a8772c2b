import assert from "node:assert/strict";
import { before, test } from "node:test";
import { type Body, openApi } from "../../support/service/api.ts";
import { workWith } from "../../support/service/api-work.ts";

/* Signals through the API, on PostgreSQL (control, section 2 and rules 21 to 26). */

const api = await openApi({ FLOW_PURE_STEPS: "server" });
const work = workWith(api);

const PAID = `  - step: paid
    tool: { kind: wait, signal: payment, key: "{{ workload.order }}", timeout: 3600 }
    next: { arcs: [{ step: end }] }
  - { step: end, tool: { kind: noop, result: { got: "{{ paid.data }}", by: "{{ paid.by }}" } } }
`;

before(() => work.register("s/paid", PAID));

const send = (id: string, name: string, body: Body) => work.post(`/api/executions/${id}/signals/${name}`, body);
const detailOf = async (id: string) => (await work.get(`/api/executions/${id}`)).body;

test("a step waits for a signal: the detail says for which, and the row has no time of its own but the time-out", async () => {
  const id = await work.execute("s/paid", { workload: { order: 4711 } });
  const detail = await detailOf(id);
  const [wait] = detail["waiting_for"] as Body[];
  assert.deepEqual(
    [wait?.["step"], wait?.["kind"], wait?.["name"], wait?.["key"]],
    ["paid", "signal", "payment", "4711"],
  );
  const lastsMs = Date.parse(String(wait?.["due"])) - Date.parse(String(wait?.["since"]));
  assert.ok(lastsMs > 3_590_000 && lastsMs <= 3_600_000, `${lastsMs} ms`);
  const [row] = await api.database
    .sql`select kind, due_at is not null as due from flow.wait where execution_id = ${id}`;
  assert.deepEqual({ ...row }, { kind: "signal", due: true });
  assert.deepEqual((await send(id, "payment", { data: 1 })).body, { reached: 0, kept: true, duplicate: false });
  const { status, body } = await send(id, "payment", { data: { amount: 12 }, key: "4711", id: "evt" });
  assert.deepEqual([status, body], [202, { reached: 1, kept: false, duplicate: false }]);
  const ended = await work.runToEnd(id);
  assert.deepEqual([ended["status"], ended["result"]], ["COMPLETED", { got: { amount: 12 }, by: "operator" }]);
  assert.equal((await api.database.sql`select from flow.wait where execution_id = ${id}`).length, 0);
  assert.equal((await send(id, "payment", { key: "4711" })).status, 409);
});

test("a list says what an execution waits for, and until when; of two waits the one that ends first", async () => {
  await work.register(
    "s/two",
    `  - { step: start, tool: { kind: noop }, next: { spec: { mode: inclusive }, arcs: [{ step: asked }, { step: later }] } }
  - { step: asked, tool: { kind: wait, signal: go } }
  - { step: later, tool: { kind: wait, for: 600 } }
`,
  );
  await work.execute("s/two");
  // What follows from a start may be of a later round: asked until it waits.
  const nowOf = async (path: string): Promise<Body> => {
    for (let asked = 1; ; asked += 1) {
      const { body } = await work.get(`/api/executions?path=${path}`);
      const now = (body["executions"] as Body[])[0]?.["now"] as Body | undefined;
      if (now?.["does"] === "waits" || asked === 500) return now ?? {};
    }
  };
  const { step, does, wait } = await nowOf("s/two");
  const { kind, name, until } = wait as Body;
  assert.deepEqual([step, does, kind, name], ["later", "waits", "timer", null]);
  assert.ok(Date.parse(String(until)) > Date.now() + 500_000, String(until));
  await work.register("s/asked", "  - { step: asked, tool: { kind: wait, signal: go } }\n");
  await work.execute("s/asked");
  assert.deepEqual(await nowOf("s/asked"), {
    step: "asked",
    does: "waits",
    wait: { kind: "signal", name: "go", until: null },
  });
});

test("what is no signal is refused, and says why", async () => {
  const id = await work.execute("s/paid", { workload: { order: 1 } });
  const refused: [name: string, body: Body, words: RegExp][] = [
    ["payment", { data: "x".repeat(65_536) }, /data: must be at most 65536 bytes/],
    ["payment", { key: " " }, /key: must not be empty/],
    ["payment", { id: "x".repeat(129) }, /id/],
    ["payment", { dato: 1 }, /dato/],
    ["%20", {}, /name of the signal/],
    ["x".repeat(129), {}, /name of the signal/],
  ];
  for (const [name, body, words] of refused) {
    const answer = await send(id, name, body);
    assert.equal(answer.status, 422, name);
    assert.match(JSON.stringify(answer.body), words);
  }
  assert.equal((await send(id, "payment", { data: "x".repeat(65_534) })).status, 202);
  assert.equal((await send("1", "payment", {})).status, 404);
  assert.equal((await send("x", "payment", {})).status, 404);
});

test("who sent it stands in the log and in the audit log", async () => {
  const id = await work.execute("s/paid", { workload: { order: 2 } });
  await send(id, "payment", { key: "2", data: { secret: "s3cret" }, id: "e-1" });
  const [row] = await api.database.sql<{ action: string; detail: Body }[]>`
    select action, detail from auth.audit_log where resource = ${`execution/${id}`} and action = 'execution.signal'`;
  assert.deepEqual(row?.detail, { name: "payment", key: "2", id: "e-1", reached: 1 });
  const { events } = (await work.get(`/api/executions/${id}/events?event_type=signal.received`)).body;
  const [event = {}] = events as Body[];
  assert.equal((event["meta"] as Body)["by"], "operator");
});
