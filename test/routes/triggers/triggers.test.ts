import assert from "node:assert/strict";
import { test } from "node:test";
import { type Body, openApi, posted, TOKENS } from "../../support/service/api.ts";
import { workWith } from "../../support/service/api-work.ts";
import { addUser, allow, type TestUser } from "../../support/service/users.ts";

/* Triggers through the API, on PostgreSQL (control, section 3 and rules 33 to 40). A clock that jumps is a schedule that is older. */

const api = await openApi({ FLOW_PURE_STEPS: "server" });
const work = workWith(api);
const { sql } = api.database;

/** One step that ends at once, and one that waits for a signal. */
const QUICK = "  - { step: start, tool: { kind: noop, result: { day: '{{ workload.day }}' } } }\n";
const SLOW = "  - { step: start, tool: { kind: wait, signal: go } }\n";

function document(path: string, triggers: string, steps = QUICK): string {
  const head = `apiVersion: flow/v2\nkind: Playbook\nmetadata: { name: ${path.split("/").at(-1)}, path: ${path} }`;
  return `${head}\nworkload: { day: none }\nworkflow:\n${steps}triggers:\n${triggers}`;
}

async function register(path: string, triggers: string, steps = QUICK): Promise<void> {
  const { status, body } = await work.post("/api/catalog/register", { content: document(path, triggers, steps) });
  assert.equal(status, 200, JSON.stringify(body));
}

async function triggersOf(path: string): Promise<Body[]> {
  const { status, body } = await work.get(`/api/triggers?path=${path}`);
  assert.equal(status, 200, JSON.stringify(body));
  return body["triggers"] as Body[];
}

async function onlyTrigger(path: string): Promise<string> {
  const [first, ...rest] = await triggersOf(path);
  assert.equal(rest.length, 0);
  return String(first?.["trigger_id"]);
}

async function firesOf(id: string): Promise<Body[]> {
  const { status, body } = await work.get(`/api/triggers/${id}/fires`);
  assert.equal(status, 200, JSON.stringify(body));
  return body["fires"] as Body[];
}

/** The schedule as it is when so much time has passed without a server. */
async function pass(id: string, interval: string): Promise<void> {
  await sql`update flow.trigger set counted_from = counted_from - ${interval}::interval, active_since = active_since - ${interval}::interval,
    next_due_at = next_due_at - ${interval}::interval, wake_at = wake_at - ${interval}::interval where trigger_id = ${id}`;
}

const sweep = () => api.service.triggers.sweep();
/** What was postponed is decided about now. */
const hurry = async () => {
  await sql`update flow.trigger_fire set wake_at = now() where wake_at is not null`;
  await sweep();
};

test("a registered version's triggers are the active ones; by name they keep their id, and whether they are on", async () => {
  await register(
    "t/list",
    `  - { name: daily, schedule: { cron: "@daily" } }\n  - { name: asked, signal: { name: go } }\n`,
  );
  const before = await triggersOf("t/list");
  assert.deepEqual(
    before.map(({ name, kind, enabled, last_fire }) => [name, kind, enabled, last_fire]),
    [
      ["asked", "signal", true, null],
      ["daily", "schedule", true, null],
    ],
  );
  const [asked, daily] = before.map(({ trigger_id: id }) => String(id));
  assert.equal(before[0]?.["next_fire"], null);
  assert.match(String(before[1]?.["next_fire"]), /T00:00:00\.000Z$/);
  const disabled = await work.post(`/api/triggers/${daily}/disable`);
  assert.deepEqual([disabled.status, disabled.body["enabled"], disabled.body["next_fire"]], [200, false, null]);

  await register(
    "t/list",
    `  - { name: daily, schedule: { cron: "0 6 * * *" } }\n  - { name: other, schedule: { every: 1h } }\n`,
  );
  const after = await triggersOf("t/list");
  assert.deepEqual(
    after.map(({ name, trigger_id: id, enabled }) => [name, id === daily, enabled]),
    [
      ["daily", true, false],
      ["other", false, true],
    ],
  );
  assert.equal((await work.get(`/api/triggers/${asked}`)).status, 404);
  const detail = (await work.get(`/api/triggers/${daily}`)).body;
  assert.deepEqual([detail["version"], detail["section"]], [2, { cron: ["0 6 * * *"], timezone: "UTC", jitter_ms: 0 }]);
  const enabled = await work.post(`/api/triggers/${daily}/enable`);
  assert.match(String(enabled.body["next_fire"]), /T06:00:00\.000Z$/);
  // Without `triggers` none is left.
  await work.register("t/list", QUICK);
  assert.deepEqual(await triggersOf("t/list"), []);
});

test("a schedule that is due starts one execution, however often it is looked at; the execution knows what started it", async () => {
  await register(
    "t/due",
    `  - { name: often, schedule: { every: 30s }, input: { day: "{{ trigger.scheduled_at[:10] }}" } }\n`,
  );
  const id = await onlyTrigger("t/due");
  await sweep();
  assert.deepEqual(await firesOf(id), []);
  await pass(id, "45 seconds");
  await Promise.all([sweep(), sweep(), sweep()]);
  await sweep();
  const fires = await firesOf(id);
  assert.equal(fires.length, 1, JSON.stringify(fires));
  assert.equal(fires[0]?.["status"], "started");
  const execution = (await work.get(`/api/executions/${fires[0]?.["execution_id"]}`)).body;
  assert.deepEqual(execution["started_by"], { kind: "trigger", id, name: "often" });
  assert.deepEqual(execution["result"], { day: String(fires[0]?.["due_at"]).slice(0, 10) });
  const [item] = await triggersOf("t/due");
  assert.equal(item?.["last_fire"], fires[0]?.["fired_at"]);
  assert.ok(Date.parse(String(item?.["next_fire"])) > Date.parse(String(fires[0]?.["due_at"])));
  const listed = await work.get(`/api/executions?started_by=trigger&started_by_id=${id}`);
  assert.equal((listed.body["executions"] as Body[]).length, 1);
});

test("what was missed is a row and starts nothing; with `last` or `all` it is made up for, oldest first", async () => {
  const schedule = `schedule: { every: 1h }`;
  await register("t/missed", `  - { name: none, ${schedule} }\n`);
  await register("t/last", `  - { name: last, ${schedule}, catchup: { mode: last, window: 2h } }\n`);
  await register("t/all", `  - { name: all, ${schedule}, catchup: { mode: all, window: 100m } }\n`);
  const ids = await Promise.all(["t/missed", "t/last", "t/all"].map(onlyTrigger));
  for (const id of ids) await pass(id, "4 hours 10 minutes");
  await sweep();
  const statuses = async (id = "") => (await firesOf(id)).map(({ status }) => status).reverse();
  assert.deepEqual(await statuses(ids[0]), ["missed", "missed", "missed", "missed"]);
  assert.deepEqual(await statuses(ids[1]), ["missed", "missed", "missed", "started"]);
  assert.deepEqual(await statuses(ids[2]), ["missed", "missed", "started", "started"]);
  assert.match(String((await firesOf(ids[0] ?? ""))[0]?.["reason"]), /within a minute/);
  const started = (await firesOf(ids[2] ?? "")).filter(({ status }) => status === "started").reverse();
  assert.ok(Number(started[0]?.["execution_id"]) < Number(started[1]?.["execution_id"]));
  // Time while it is disabled is not missed.
  await work.post(`/api/triggers/${ids[0]}/disable`);
  await sql`update flow.trigger set counted_from = counted_from - interval '5 hours' where trigger_id = ${ids[0] ?? ""}`;
  await work.post(`/api/triggers/${ids[0]}/enable`);
  await sweep();
  assert.equal((await firesOf(ids[0] ?? "")).length, 4);
});

test("a week without a server is one look: a hundred missed times have rows, and the last says up to when", async () => {
  await register("t/week", `  - { name: often, schedule: { every: 10s } }\n`);
  const id = await onlyTrigger("t/week");
  await pass(id, "7 days");
  await sweep();
  await sweep();
  const { body } = await work.get(`/api/triggers/${id}/fires?limit=500`);
  const fires = body["fires"] as Body[];
  const missed = fires.filter(({ status }) => status === "missed");
  assert.equal(missed.length, 100);
  assert.match(String(missed[0]?.["reason"]), /as were all after it up to/);
  assert.ok(fires.length - missed.length >= 6 && fires.length - missed.length <= 8, `${fires.length} fires`);
});

test("overlap: skip, queue and cancel_running, each against an open execution", async () => {
  for (const overlap of ["skip", "queue", "cancel_running", "allow"]) {
    await register(`t/${overlap}`, `  - { name: one, schedule: { every: 1h }, overlap: ${overlap} }\n`, SLOW);
  }
  const fire = async (path: string) => (await work.post(`/api/triggers/${await onlyTrigger(path)}/fire`)).body;
  for (const path of ["t/skip", "t/queue", "t/cancel_running", "t/allow"]) {
    assert.equal((await fire(path))["status"], "started", path);
  }
  const skipped = await fire("t/skip");
  assert.equal(skipped["status"], "skipped");
  assert.match(String(skipped["reason"]), /^Execution \d+ is open$/);
  assert.equal((await fire("t/allow"))["status"], "started");

  const [queued, again] = [await fire("t/queue"), await fire("t/queue")];
  assert.deepEqual([queued["status"], again["status"]], ["queued", "queued"]);
  const id = await onlyTrigger("t/queue");
  const open = (await firesOf(id)).find(({ status }) => status === "started")?.["execution_id"];
  await work.post(`/api/executions/${open}/signals/go`, {});
  await hurry();
  assert.deepEqual(
    (await firesOf(id)).map(({ status }) => status),
    ["queued", "started", "started"],
  );
  await work.post(`/api/triggers/${id}/disable`);
  const [last] = await firesOf(id);
  assert.deepEqual([last?.["status"], last?.["reason"]], ["skipped", "The trigger was disabled"]);

  const next = await fire("t/cancel_running");
  assert.equal(next["status"], "started");
  const fires = await firesOf(await onlyTrigger("t/cancel_running"));
  const statuses = fires.map(
    async ({ execution_id: one }) => (await work.get(`/api/executions/${one}`)).body["status"],
  );
  assert.deepEqual(await Promise.all(statuses), ["RUNNING", "CANCELLED"]);
});

test("the queue holds a hundred fires; the rest is skipped", async () => {
  await register("t/full", `  - { name: one, schedule: { every: 1h }, overlap: queue }\n`, SLOW);
  const trigger = await api.service.triggers.find(await onlyTrigger("t/full"));
  const deliveries = Array.from({ length: 102 }, (_, index) => ({ trigger, delivery: { key: `n/${index}` } }));
  const fired = await api.service.triggers.fireMany(deliveries);
  const count = (status: string) => fired.filter((one) => one.status === status).length;
  assert.deepEqual([count("started"), count("queued"), count("skipped")], [1, 100, 1]);
  assert.equal(fired.at(-1)?.reason, "100 fires wait before it");
});

test("a paused playbook is not started: the fire is skipped and says why", async () => {
  await register("t/paused", `  - { name: one, schedule: { every: 1h } }\n`);
  await work.post("/api/catalog/pause/t/paused", { reason: "holidays" });
  const { status, body } = await work.post(`/api/triggers/${await onlyTrigger("t/paused")}/fire`);
  assert.deepEqual([status, body["status"]], [202, "skipped"]);
  assert.match(String(body["reason"]), /holidays/);
});

test("an input that cannot be made is a failed fire", async () => {
  await register("t/broken", `  - { name: one, schedule: { every: 1h }, input: { a: "{{ trigger.name + 1 }}" } }\n`);
  const id = await onlyTrigger("t/broken");
  const { body } = await work.post(`/api/triggers/${id}/fire`);
  assert.equal(body["status"], "failed");
  assert.match(String(body["reason"]), /input could not be made/);
  assert.equal((await firesOf(id))[0]?.["execution_id"], undefined);
});

test("a fire by hand under a key happens once, also of a disabled trigger", async () => {
  await register("t/hand", `  - { name: one, schedule: { every: 1h } }\n`);
  const id = await onlyTrigger("t/hand");
  await work.post(`/api/triggers/${id}/disable`);
  const fire = (key: string) => work.post(`/api/triggers/${id}/fire`, {}, { "idempotency-key": key });
  const [first, second, other] = await Promise.all([fire("a"), fire("a"), fire("b")]);
  const repeated = await fire("a");
  assert.equal(first.status, 202);
  assert.equal(repeated.body["execution_id"], first.body["execution_id"] ?? second.body["execution_id"]);
  assert.equal(repeated.body["duplicate"], true);
  assert.notEqual(other.body["execution_id"], repeated.body["execution_id"]);
  assert.equal((await firesOf(id)).length, 2);
});

test("a server that dies between the row and the execution, or between that and the answer, leaves one execution", async () => {
  await register("t/died", `  - { name: one, schedule: { every: 1h } }\n`);
  const id = await onlyTrigger("t/died");
  const { body } = await work.post(`/api/triggers/${id}/fire`, {}, { "idempotency-key": "k" });
  // It has started the execution, and has not written that, as a server of an older version may.
  await sql`update flow.trigger_fire set status = 'queued', execution_id = null, input = '{}', wake_at = now() where trigger_id = ${id}`;
  await Promise.all([sweep(), sweep()]);
  assert.equal((await firesOf(id))[0]?.["execution_id"], body["execution_id"]);
  const executions = await sql`select from flow.execution where started_id = ${id}`;
  assert.equal(executions.length, 1);
  // It has taken the schedule, and has written nothing: until its time is over no one else does anything, then another one does.
  await pass(id, "60 minutes 5 seconds");
  await sql`update flow.trigger set taken_by = 'gone', wake_at = now() + interval '5 seconds' where trigger_id = ${id}`;
  await sweep();
  assert.equal((await firesOf(id)).length, 1);
  await sql`update flow.trigger set wake_at = now() where trigger_id = ${id}`;
  await sweep();
  assert.deepEqual(
    (await firesOf(id)).map(({ status }) => status),
    ["started", "started"],
  );
});

test("the next times of a schedule, from now or from a moment; none of another kind", async () => {
  await register(
    "t/next",
    `  - { name: berlin, schedule: { cron: "30 2 * * *", timezone: Europe/Berlin } }\n  - { name: asked, signal: { name: go } }\n`,
  );
  const [asked, berlin] = (await triggersOf("t/next")).map(({ trigger_id: id }) => String(id));
  const { body } = await work.get(`/api/triggers/${berlin}/next?n=3&from=2026-03-28T00:00:00Z`);
  assert.deepEqual(body["next"], ["2026-03-28T01:30:00.000Z", "2026-03-29T01:00:00.000Z", "2026-03-30T00:30:00.000Z"]);
  assert.equal(((await work.get(`/api/triggers/${berlin}/next`)).body["next"] as Body[]).length, 10);
  assert.deepEqual((await work.get(`/api/triggers/${asked}/next`)).body, {
    trigger_id: asked,
    timezone: null,
    next: [],
  });
  for (const query of ["n=0", "n=1001", "from=soon"]) {
    assert.equal((await work.get(`/api/triggers/${berlin}/next?${query}`)).status, 422, query);
  }
  assert.equal((await work.get("/api/triggers/123/next")).status, 404);
});

test("triggers that fire at a time are listed the soonest first, in one page", async () => {
  await register(
    "t/soon",
    `  - { name: t0, schedule: { cron: "9 9 1 1 *" } }
  - { name: t1, schedule: { cron: "* * * * *" } }
  - { name: t2, schedule: { cron: "0 * * * *" } }
  - { name: t3, signal: { name: soon } }\n`,
  );
  const namesOf = async (query: string) => {
    const { status, body } = await work.get(`/api/triggers?path=t/soon&sort=next${query}`);
    assert.equal(status, 200, JSON.stringify(body));
    assert.equal(body["next_cursor"], null);
    return (body["triggers"] as Body[]).map(({ name }) => name);
  };
  assert.deepEqual(await namesOf(""), ["t1", "t2", "t0"]);
  assert.deepEqual(await namesOf("&limit=2"), ["t1", "t2"]);
  const [, second] = await triggersOf("t/soon");
  await work.post(`/api/triggers/${String(second?.["trigger_id"])}/disable`, {});
  assert.deepEqual(await namesOf(""), ["t2", "t0"]);
  assert.equal((await work.get("/api/triggers?sort=last")).status, 422);
});

test("a document of kind Trigger starts the playbook that it names; one name stands in one document", async () => {
  await register("t/target", `  - { name: own, schedule: { every: 1h } }\n`);
  const apart = (name: string) => `apiVersion: flow/v2
kind: Trigger
metadata: { name: ${name}, path: triggers/${name} }
playbook: t/target
schedule: { cron: "0 6 * * 1-5", timezone: Europe/Berlin }
overlap: skip
`;
  const registered = await work.post("/api/catalog/register", { content: apart("early"), resource_type: "trigger" });
  assert.deepEqual(
    [registered.status, registered.body["kind"], registered.body["path"]],
    [200, "trigger", "triggers/early"],
  );
  assert.deepEqual(
    (await triggersOf("t/target")).map(({ name }) => name),
    ["early", "own"],
  );
  const listed = await work.get("/api/catalog?resource_type=trigger");
  assert.deepEqual(
    (listed.body["resources"] as Body[]).map(({ path }) => path),
    ["triggers/early"],
  );
  assert.deepEqual(registered.body["warnings"], []);
  const early = await work.post("/api/catalog/register", {
    content: apart("lost").replace("t/target", "t/nowhere"),
  });
  assert.deepEqual(
    (early.body["warnings"] as Body[]).map(({ code, line, message }) => [code, line, message]),
    [["unknown-playbook", 4, "`t/nowhere`, which the trigger starts, is not in the catalog"]],
  );
  const taken = await work.post("/api/catalog/register", { content: apart("own") });
  assert.equal(taken.status, 409);
  assert.match(String(taken.body["error"]), /has a trigger 'own' from another document/);
  assert.equal((await work.get("/api/catalog/resource/triggers/own")).status, 404);
  assert.equal((await work.post("/api/execute", { path: "triggers/early" })).status, 404);
});

async function as(user: TestUser, path: string, body?: unknown): Promise<{ status: number; body: Body }> {
  const headers = { authorization: `Bearer ${TOKENS.operator}`, "x-flow-session": user.tokenSha256 };
  const init = body === undefined ? { headers } : posted(body, headers);
  const answer = await api.guarded.request(path, init);
  return { status: answer.status, body: (await answer.json()) as Body };
}

test("rights: to register needs to execute and to view what is watched; firing to execute, turning on to modify, lists show what may be viewed", async () => {
  const author = await addUser(api.database);
  await allow(api.database, author, [
    { allow: "r/**", can: ["modify", "view"] },
    { allow: "r/may/*", can: ["execute"] },
    { allow: "seen/*", can: ["view"] },
  ]);
  const put = (path: string, triggers: string) =>
    as(author, "/api/catalog/register", { content: document(path, triggers) });
  const every = "  - { name: one, schedule: { every: 1h } }\n";
  assert.equal((await put("r/may/a", every)).status, 200);
  const refused = await put("r/other", every);
  assert.equal(refused.status, 403);
  assert.equal((await put("r/may/b", "  - { name: one, execution: { path: seen/x } }\n")).status, 200);
  const blind = await put("r/may/c", `  - { name: one, execution: { path: "**" } }\n`);
  assert.equal(blind.status, 403);
  assert.match(String(blind.body["error"]), /watches '\*\*'/);

  const id = await onlyTrigger("r/may/a");
  const viewer = await addUser(api.database);
  await allow(api.database, viewer, [{ allow: "r/may/a", can: ["view"] }]);
  assert.deepEqual(
    ((await as(viewer, "/api/triggers")).body["triggers"] as Body[]).map(({ path }) => path),
    ["r/may/a"],
  );
  assert.equal((await as(viewer, `/api/triggers/${id}/fires`)).status, 200);
  assert.equal((await as(viewer, `/api/triggers/${id}/fire`, {})).status, 403);
  assert.equal((await as(viewer, `/api/triggers/${id}/disable`, {})).status, 403);
  assert.equal((await as(author, `/api/triggers/${id}/fire`, {})).status, 202);
  assert.equal((await as(author, `/api/triggers/${id}/disable`, {})).status, 200);
  const stranger = await addUser(api.database);
  assert.equal((await as(stranger, `/api/triggers/${id}`)).status, 403);
  assert.deepEqual((await as(stranger, "/api/triggers")).body["triggers"], []);
});
