import assert from "node:assert/strict";
import { after, test } from "node:test";
import { createBulkOperations } from "../../../src/services/bulk/bulk.ts";
import { type Body, buildApi, openApi, posted, TOKENS } from "../../support/service/api.ts";
import { workWith } from "../../support/service/api-work.ts";
import { addUser, allow } from "../../support/service/users.ts";

/* Making up for times of a schedule (control, section 3, rule 45), with a second server of the same database. */

const api = await openApi({ FLOW_PURE_STEPS: "server" });
const elsewhere = await buildApi(api.database, { FLOW_PURE_STEPS: "server" });
after(() => elsewhere.service.orchestrator.close());
const work = workWith(api);
const { bulk } = api.service;

/** One step that ends at once, and one that waits for a signal. */
const QUICK = "  - { step: start, tool: { kind: noop, result: { day: '{{ workload.day }}' } } }\n";
const SLOW = "  - { step: start, tool: { kind: wait, signal: go } }\n";
const DAILY = `schedule: { cron: "0 6 * * *", timezone: Europe/Berlin }, input: { day: "{{ trigger.scheduled_at[:10] }}" }`;
const JANUARY = { from: "2026-01-01", to: "2026-02-01" };

/** Registers a playbook with one trigger and gives the trigger's id. */
async function register(path: string, trigger: string, steps = QUICK): Promise<string> {
  const head = `apiVersion: flow/v2\nkind: Playbook\nmetadata: { name: ${path.split("/").at(-1)}, path: ${path} }`;
  const content = `${head}\nworkload: { day: none }\nworkflow:\n${steps}triggers:\n  - { name: one, ${trigger} }\n`;
  const { status, body } = await work.post("/api/catalog/register", { content });
  assert.equal(status, 200, JSON.stringify(body));
  const listed = await work.get(`/api/triggers?path=${path}`);
  return String((listed.body["triggers"] as Body[])[0]?.["trigger_id"]);
}

const post = (id: string, body: Body, headers: Record<string, string> = {}) =>
  work.post(`/api/triggers/${id}/backfill`, body, headers);
const begin = async (id: string, body: Body) => {
  const { status, body: answer } = await post(id, body);
  assert.equal(status, 202, JSON.stringify(answer));
  return String(answer["bulk_id"]);
};
const preview = async (id: string, body: Body) => {
  const { status, body: answer } = await post(id, { ...body, dry_run: true });
  assert.equal(status, 200, JSON.stringify(answer));
  return answer as { matched: number; missing: number; gaps: Body[]; sample: Body[]; bulk_id?: string };
};
const find = async (bulkId: string) => (await work.get(`/api/executions/bulk/${bulkId}`)).body;
const change = (bulkId: string, what: string) => work.post(`/api/executions/bulk/${bulkId}/${what}`);
const workOff = async () => {
  while (await bulk.workOff());
};
const counts = (matched: number, done: number, failed = 0, skipped = 0) => ({ matched, done, failed, skipped });
const startedOf = async (triggerId: string) =>
  (await work.get(`/api/executions?started_by=trigger&started_by_id=${triggerId}&limit=500`)).body[
    "executions"
  ] as Body[];
const openOf = async (triggerId: string) => (await startedOf(triggerId)).filter(({ status }) => status === "RUNNING");
const duesOf = async (bulkId: string) => ((await find(bulkId))["started"] as Body[]).map(({ due_at: due }) => due);

test("each time of the range starts one execution with its time, oldest first, whether the trigger is on or not", async () => {
  const id = await register("f/days", DAILY);
  await work.post(`/api/triggers/${id}/disable`);
  const bulkId = await begin(id, { from: "2026-01-01", to: "2026-01-08" });
  const before = await find(bulkId);
  assert.deepEqual([before["action"], before["status"], before["counts"]], ["backfill", "running", counts(7, 0)]);
  await workOff();
  const { status, counts: told, started, filter, options } = await find(bulkId);
  assert.deepEqual([status, told], ["completed", counts(7, 7)]);
  assert.deepEqual(filter, { path: "f/days", trigger: "one", from: "2026-01-01", to: "2026-01-08" });
  assert.deepEqual(options, { trigger_id: id, max_active: 4, order: "oldest", only_missing: false });
  const rows = started as { due_at: string; new_execution_id: string; execution_id?: string }[];
  assert.deepEqual(
    rows.map(({ due_at: due }) => due),
    ["01", "02", "03", "04", "05", "06", "07"].map((day) => `2026-01-${day}T05:00:00.000Z`),
  );
  for (const { due_at: due, new_execution_id: execution, execution_id: item } of rows) {
    assert.equal(item, undefined);
    const { result, started_by: by } = (await work.get(`/api/executions/${execution}`)).body;
    assert.deepEqual([result, by], [{ day: due.slice(0, 10) }, { kind: "trigger", id, name: "one" }]);
  }
  const fires = (await work.get(`/api/triggers/${id}/fires`)).body["fires"] as Body[];
  assert.deepEqual([fires.length, new Set(fires.map(({ status: is }) => is))], [7, new Set(["started"])]);
});

test("no more are open than max_active says, whatever else is open and however executions may overlap", async () => {
  const id = await register("f/slow", `${DAILY}, overlap: skip`, SLOW);
  await work.post(`/api/triggers/${id}/fire`);
  const bulkId = await begin(id, { from: "2026-01-01", to: "2026-01-06", max_active: 2 });
  await workOff();
  await workOff();
  assert.deepEqual((await find(bulkId))["counts"], counts(5, 2));
  assert.equal((await openOf(id)).length, 3);
  for (let rest = 5; rest > 0; rest -= 1) {
    const [item] = (await find(bulkId))["started"] as Body[];
    assert.ok(item);
    const ended = (await duesOf(bulkId)).length;
    const [first] = (await openOf(id)).filter(({ execution_id: one }) => one !== undefined).reverse();
    await work.post(`/api/executions/${first?.["execution_id"]}/signals/go`, {});
    await workOff();
    assert.ok((await duesOf(bulkId)).length <= Math.min(5, ended + 1));
    assert.ok((await openOf(id)).length <= 3);
  }
  assert.deepEqual([(await find(bulkId))["status"], (await find(bulkId))["counts"]], ["completed", counts(5, 5)]);
});

test("it has ended when all are started, however long the last ones are open", async () => {
  const id = await register("f/last", DAILY, SLOW);
  const bulkId = await begin(id, { from: "2026-01-01", to: "2026-01-04", max_active: 3 });
  await workOff();
  assert.deepEqual([(await find(bulkId))["status"], (await openOf(id)).length], ["completed", 3]);
});

test("a backfill that waits for ends holds up no other operation", async () => {
  const id = await register("f/held", DAILY, SLOW);
  const waiting = await begin(id, { from: "2026-01-01", to: "2026-01-11", max_active: 1 });
  await workOff();
  const other = await register("f/free", DAILY);
  const free = await begin(other, JANUARY);
  await workOff();
  assert.deepEqual([(await find(free))["status"], (await find(free))["counts"]], ["completed", counts(31, 31)]);
  assert.deepEqual((await find(waiting))["counts"], counts(10, 1));
  // There is nothing to do: it is looked at again after a while, and not at once.
  assert.equal(await bulk.workOff(), false);
  assert.equal((await change(waiting, "cancel")).body["status"], "cancelled");
});

test("paused it begins nothing, and goes on when it is resumed; cancelled it leaves the rest", async () => {
  const id = await register("f/pause", DAILY);
  const bulkId = await begin(id, JANUARY);
  assert.equal((await change(bulkId, "pause")).body["status"], "paused");
  await workOff();
  assert.deepEqual((await find(bulkId))["counts"], counts(31, 0));
  await change(bulkId, "resume");
  await workOff();
  assert.deepEqual((await find(bulkId))["counts"], counts(31, 31));
  const again = await begin(id, JANUARY);
  await change(again, "cancel");
  await workOff();
  const { status, counts: told, started } = await find(again);
  assert.deepEqual([status, told, started], ["cancelled", counts(31, 0), []]);
  assert.equal((await change(again, "resume")).status, 409);
});

test("newest first; a preview shows gaps and what was started; only_missing leaves that out", async () => {
  const id = await register("f/gaps", DAILY);
  const whole = await preview(id, JANUARY);
  assert.deepEqual([whole.matched, whole.missing, whole.sample.length, whole.bulk_id], [31, 31, 20, undefined]);
  const all = { from: "2026-01-01T05:00:00.000Z", to: "2026-01-31T05:00:00.000Z", count: 31 };
  assert.deepEqual(whole.gaps, [all]);
  assert.equal((await startedOf(id)).length, 0);
  const some = await begin(id, { from: "2026-01-10", to: "2026-01-13", order: "newest", max_active: 1 });
  await workOff();
  assert.deepEqual(
    await duesOf(some),
    [12, 11, 10].map((day) => `2026-01-${day}T05:00:00.000Z`),
  );
  await begin(id, { from: "2026-01-31", to: "2026-02-01" });
  await workOff();
  const left = await preview(id, { ...JANUARY, only_missing: true, order: "newest" });
  assert.deepEqual([left.matched, left.missing], [27, 27]);
  assert.deepEqual(left.gaps, [
    { from: "2026-01-01T05:00:00.000Z", to: "2026-01-09T05:00:00.000Z", count: 9 },
    { from: "2026-01-13T05:00:00.000Z", to: "2026-01-30T05:00:00.000Z", count: 18 },
  ]);
  assert.deepEqual(left.sample[0], { due_at: "2026-01-30T05:00:00.000Z", status: "missing" });
  const seen = await preview(id, { from: "2026-01-12", to: "2026-01-14" });
  assert.deepEqual(
    seen.sample.map(({ status, execution_id: one }) => [status, typeof one]),
    [
      ["started", "string"],
      ["missing", "undefined"],
    ],
  );
  const rest = await begin(id, { ...JANUARY, only_missing: true });
  await workOff();
  assert.deepEqual((await find(rest))["counts"], counts(27, 27));
  assert.deepEqual(await preview(id, { ...JANUARY, only_missing: true }), {
    matched: 0,
    missing: 0,
    gaps: [],
    sample: [],
  });
  const none = await begin(id, { ...JANUARY, only_missing: true });
  assert.deepEqual([(await find(none))["status"], (await find(none))["counts"]], ["completed", counts(0, 0)]);
  assert.equal((await startedOf(id)).length, 31);
});

test("what the schedule itself has fired is no gap, and a fire by hand in between is not for a time", async () => {
  const id = await register("f/fired", `schedule: { every: 1h }`);
  const ago = "3 hours 10 minutes";
  await api.database
    .sql`update flow.trigger set active_since = active_since - ${ago}::interval, counted_from = now() - interval '10 minutes 30 seconds',
    next_due_at = now() - interval '10 minutes', wake_at = now() where trigger_id = ${id}`;
  await api.database
    .sql`update flow.trigger set definition = jsonb_set(definition::jsonb, '{catchup}', '{"mode":"all","windowMs":86400000}')::json where trigger_id = ${id}`;
  await api.service.triggers.sweep();
  await work.post(`/api/triggers/${id}/fire`);
  const [row] = await api.database.sql<{ from: Date; now: Date }[]>`
    select active_since as from, now() as now from flow.trigger where trigger_id = ${id}`;
  assert.ok(row);
  const range = { from: row.from.toISOString(), to: row.now.toISOString() };
  const { matched, missing, gaps, sample } = await preview(id, range);
  assert.deepEqual([matched, missing, gaps.length], [4, 3, 1]);
  assert.deepEqual([sample.at(-1)?.["status"], gaps[0]?.["count"]], ["started", 3]);
});

test("a key begins one backfill; called again without, the same times start again, each under a key of its own", async () => {
  const id = await register("f/again", DAILY);
  const body = { from: "2026-01-01", to: "2026-01-04" };
  const key = { "idempotency-key": "january" };
  const [one, other] = await Promise.all([post(id, body, key), post(id, body, key)]);
  assert.deepEqual([one.status, other.status, other.body["bulk_id"]], [202, 202, one.body["bulk_id"]]);
  await workOff();
  const again = await post(id, body, key);
  assert.deepEqual(again.body, { bulk_id: one.body["bulk_id"], matched: 3, duplicate: true });
  await workOff();
  assert.equal((await startedOf(id)).length, 3);
  assert.equal((await post(id, { ...body, order: "newest" }, key)).status, 422);
  await begin(id, body);
  await workOff();
  assert.equal((await startedOf(id)).length, 6);
});

test("two servers work on one backfill, and one dies with items begun: each time starts one execution", async () => {
  const id = await register("f/two", DAILY);
  const bulkId = await begin(id, { ...JANUARY, max_active: 5 });
  const { executions, access, triggers, sealing } = elsewhere.service;
  const parts = {
    executions,
    access,
    triggers,
    sealerOf: sealing.sealerOf,
    busy: () => performance.now(),
    onFault: assert.fail,
  };
  const database = api.database;
  // It starts what it has begun, and then its answers are lost: the fires are written, what came of the items is not.
  const lost = {
    find: triggers.find,
    fire: async (...about: Parameters<typeof triggers.fire>) => {
      await triggers.fire(...about);
      return await new Promise<never>(() => undefined);
    },
  };
  const dying = createBulkOperations({ ...parts, database, triggers: lost, holder: "dying", leaseMs: 60_000 });
  void dying.workOff();
  while ((await startedOf(id)).length < 5) await new Promise((go) => setImmediate(go));
  await database.sql`update flow.bulk set worker = 'dead', lease_expires_at = now() where bulk_id = ${bulkId}`;
  const other = createBulkOperations({ ...parts, database, holder: "another" });
  const isOver = async () => (await find(bulkId))["ended_at"] !== null;
  await Promise.all(
    [bulk, other].map(async (one) => {
      while (!(await isOver())) await one.workOff();
    }),
  );
  assert.deepEqual((await find(bulkId))["counts"], counts(31, 31));
  const days = (await startedOf(id)).map(({ execution_id: one }) => one);
  assert.equal(new Set(days).size, 31);
  const dues = await duesOf(bulkId);
  assert.equal(new Set(dues).size, 31);
});

test("clocks change: dates are those of the zone, a time that is left out runs at the change, one that comes twice runs once", async () => {
  const id = await register("f/dst", `schedule: { cron: "30 2 * * *", timezone: Europe/Berlin }`);
  const spring = await preview(id, { from: "2026-03-28", to: "2026-03-31" });
  assert.deepEqual(
    spring.sample.map(({ due_at: due }) => due),
    ["2026-03-28T01:30:00.000Z", "2026-03-29T01:00:00.000Z", "2026-03-30T00:30:00.000Z"],
  );
  const autumn = await preview(id, { from: "2025-10-26", to: "2025-10-27" });
  assert.deepEqual(
    autumn.sample.map(({ due_at: due }) => due),
    ["2025-10-26T00:30:00.000Z"],
  );
  const hourly = await register("f/hourly", `schedule: { cron: "0 * * * *", timezone: Europe/Berlin }`);
  for (const [from, to, hours] of [
    ["2026-03-29", "2026-03-30", 23],
    ["2025-10-26", "2025-10-27", 25],
    ["2026-01-10", "2026-01-11", 24],
  ] as const) {
    assert.equal((await preview(hourly, { from, to })).matched, hours, from);
  }
  // `from` is a time of it, `to` is not.
  const edge = await preview(hourly, { from: "2026-01-10T01:00:00+01:00", to: "2026-01-10T03:00:00+01:00" });
  assert.deepEqual(
    edge.sample.map(({ due_at: due }) => due),
    ["2026-01-10T00:00:00.000Z", "2026-01-10T01:00:00.000Z"],
  );
});

test("an interval is counted from when the trigger came, and in the same step before that", async () => {
  const id = await register("f/every", `schedule: { every: 1h }`);
  const since = Date.parse(String((await work.get(`/api/triggers/${id}`)).body["active_since"]));
  const { sample } = await preview(id, { from: "2026-01-10", to: "2026-01-11" });
  assert.equal(sample.length, 20);
  for (const { due_at: due } of sample) assert.equal(Math.abs(Date.parse(String(due)) - since) % 3_600_000, 0);
});

test("what cannot start is skipped or has failed, and says why", async () => {
  const broken = await register("f/broken", `schedule: { cron: "@daily" }, input: { a: "{{ trigger.name + 1 }}" }`);
  const failing = await begin(broken, { from: "2026-01-01", to: "2026-01-03" });
  await workOff();
  const { counts: told, failures } = await find(failing);
  assert.deepEqual(told, counts(2, 0, 2));
  const [first] = failures as Body[];
  assert.deepEqual([first?.["due_at"], first?.["code"]], ["2026-01-01T00:00:00.000Z", "FIRE_FAILED"]);
  assert.match(String(first?.["message"]), /input could not be made/);
  const paused = await register("f/paused", DAILY);
  await work.post("/api/catalog/pause/f/paused", { reason: "holidays" });
  const skipping = await begin(paused, { from: "2026-01-01", to: "2026-01-03" });
  await workOff();
  assert.deepEqual((await find(skipping))["counts"], counts(2, 0, 0, 2));
  // The trigger is gone with the next version: nothing can be started for it any more.
  const gone = await register("f/gone", DAILY);
  const rest = await begin(gone, { from: "2026-01-01", to: "2026-01-03" });
  await work.register("f/gone", QUICK);
  await workOff();
  assert.deepEqual((await find(rest))["counts"], counts(2, 0, 2));
});

test("as many times as an operation may have, and one more", async () => {
  const id = await register("f/many", `schedule: { every: 1s }`);
  const second = (count: number) => new Date(Date.UTC(2026, 0, 1) + count * 1_000).toISOString();
  assert.equal((await preview(id, { from: second(0), to: second(100_000) })).matched, 100_000);
  const refused = await post(id, { from: second(0), to: second(100_001), dry_run: true });
  assert.deepEqual([refused.status, /more than 100000 times/.test(String(refused.body["error"]))], [422, true]);
});

test("refused: no range, an empty one, one in the future, what is no moment, other keys, a trigger without a schedule", async () => {
  const id = await register("f/refused", DAILY);
  const bodies: Body[] = [
    {},
    { from: "2026-01-01" },
    { to: "2026-01-01" },
    { from: "2026-01-02", to: "2026-01-01" },
    { from: "2026-01-01", to: "2026-01-01" },
    { from: "2026-01-01", to: "2999-01-01" },
    { from: "2026-02-30", to: "2026-03-01" },
    { from: "soon", to: "2026-03-01" },
    { ...JANUARY, max_active: 0 },
    { ...JANUARY, max_active: 1_001 },
    { ...JANUARY, max_active: 1.5 },
    { ...JANUARY, order: "random" },
    { ...JANUARY, missing_only: true },
  ];
  for (const body of bodies) assert.equal((await post(id, body)).status, 422, JSON.stringify(body));
  assert.equal((await post(id, { ...JANUARY, max_active: 1_000, dry_run: true })).status, 200);
  const asked = await register("f/asked", `signal: { name: go }`);
  const refused = await post(asked, JANUARY);
  assert.deepEqual(
    [refused.status, refused.body["error"]],
    [422, "'one' cannot be made up for: it has no schedule, but signal"],
  );
  assert.equal((await post("123", JANUARY)).status, 404);
});

test("it takes the right to execute, at the call and at each item's turn; the audit log has the call and each fire", async () => {
  const id = await register("f/rights", DAILY);
  const user = await addUser(api.database);
  const headers = { authorization: `Bearer ${TOKENS.operator}`, "x-flow-session": user.tokenSha256 };
  const call = (body: Body) => api.guarded.request(`/api/triggers/${id}/backfill`, posted(body, headers));
  await allow(api.database, user, [{ allow: "f/**", can: ["view", "modify"] }]);
  const body = { from: "2026-01-01", to: "2026-01-03" };
  assert.equal((await call({ ...body, dry_run: true })).status, 403);
  await allow(api.database, user, [{ allow: "f/rights", can: ["execute"] }]);
  const first = (await (await call(body)).json()) as Body;
  await workOff();
  const fired = await api.database.sql<{ action: string; result: string; resource: string; actor: string }[]>`
    select action, result, resource, actor from auth.audit_log
    where detail ->> 'bulk_id' = ${String(first["bulk_id"])} order by audit_id`;
  assert.deepEqual(
    fired.map(({ action, result, resource, actor }) => [action, result, resource, actor]),
    ["trigger.backfill", "trigger.fire", "trigger.fire"].map((action) => [
      action,
      "allow",
      `trigger/${id}`,
      user.email,
    ]),
  );
  const second = (await (await call(body)).json()) as Body;
  await api.database.sql`update auth.users set is_active = false where user_id = ${user.userId}`;
  await workOff();
  const { counts: told, failures } = await find(String(second["bulk_id"]));
  assert.deepEqual(told, counts(2, 0, 2));
  assert.deepEqual(new Set((failures as Body[]).map(({ code }) => code)), new Set(["FORBIDDEN"]));
  assert.equal((await startedOf(id)).length, 2);
});
