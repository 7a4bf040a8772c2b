import assert from "node:assert/strict";
import { test } from "node:test";
import { openDatabase } from "../../src/repositories/database/database.ts";
import type { Overview } from "../../src/schema/api/overview.ts";
import { buildApi, openApi, TOKENS } from "../support/service/api.ts";
import { workWith } from "../support/service/api-work.ts";

const api = await openApi();
const work = workWith(api);
await work.register("one", '  - step: only\n    tool: { kind: python, code: "def main(): return 1" }');

const ask = async () => {
  const { status, body } = await work.get("/api/admin/overview");
  assert.equal(status, 200, JSON.stringify(body));
  return body as unknown as Overview;
};
const worker = (name: string, values: Record<string, unknown> = {}) =>
  work.post("/api/worker/pool/register", { name, capacity: 1, capabilities: ["python"], ...values });
const age = (name: string, seconds: number) => api.database.sql`
  update flow.runtime set heartbeat_at = now() - ${seconds}::float8 * interval '1 second' where name = ${name}`;
const checks = ({ verdict }: Overview) => verdict.causes.map(({ check }) => check);

test("an empty installation without a worker gets the advice to start one", async () => {
  const overview = await ask();
  assert.deepEqual(overview.missing, []);
  assert.equal(overview.verdict.level, "warn");
  assert.match(overview.verdict.what, /No worker is there/);
  assert.equal(overview.verdict.causes[0]?.command, "flow serve --role=worker");
  assert.deepEqual(overview.queue, { waiting: { count: 0, more: false }, oldest_ms: null, groups: [] });
});

test("a waiting command is shown with its reason until a suitable worker exists, then as running there", async () => {
  const executionId = await work.execute("one");
  const alone = await ask();
  assert.deepEqual([alone.verdict.level, alone.queue?.groups[0]?.why], ["bad", "no_worker"]);
  assert.deepEqual(alone.verdict.causes[0]?.execution_ids, [executionId]);
  await worker("other", { capabilities: ["http"] });
  const other = await ask();
  assert.match(other.verdict.what, /No ready worker takes python/);
  assert.match(other.verdict.causes[0]?.command ?? "", /^FLOW_WORKER_TOOLS=python /);
  await worker("right");
  assert.equal((await ask()).queue?.groups[0]?.why, "soon");
  const [command] = await work.claim("right");
  assert.equal(command?.execution_id, executionId);
  const busy = await ask();
  assert.equal(busy.verdict.level, "good");
  const right = busy.workers?.items.find(({ name }) => name === "right");
  assert.equal(right?.running, 1);
  const [runs] = right?.commands ?? [];
  assert.deepEqual([runs?.execution_id, runs?.path, runs?.attempt], [executionId, "one", 1]);
});

test("a silent worker with claimed commands is shown, with the sweep that helps", async () => {
  await age("right", 3_600);
  const overview = await ask();
  assert.ok(checks(overview).includes("stale_claims"), JSON.stringify(overview.verdict));
  const cause = overview.verdict.causes.find(({ check }) => check === "stale_claims");
  assert.equal(cause?.action, "sweep");
  assert.equal(overview.workers?.items.find(({ name }) => name === "right")?.status, "stale");
  await work.post("/api/admin/command_reaper/sweep");
  const swept = await ask();
  assert.deepEqual([swept.reaper?.last?.asked, swept.reaper?.last?.worker], [true, 1]);
  assert.equal(swept.reaper?.found.length, 1);
  await worker("right");
});

test("if the only worker is gone with claimed commands, the first advice is to start a new one", async () => {
  await api.database.sql`update flow.runtime set status = 'offline' where name in ('right', 'other')`;
  const overview = await ask();
  assert.deepEqual([overview.verdict.level, checks(overview)[0]], ["bad", "no_worker"]);
  assert.ok(checks(overview).includes("stale_claims"));
  await worker("right");
});

test("a full worker is shown with its slots, and only when a command waits for long", async () => {
  await work.execute("one");
  await api.database.sql`update flow.runtime set status = 'offline' where name = 'other'`;
  const now = await ask();
  assert.equal(now.queue?.groups[0]?.why, "busy");
  assert.ok(!checks(now).includes("waiting_busy"));
  await api.database.sql`update flow.command set created_at = now() - interval '1 minute' where status = 'PENDING'`;
  const later = await ask();
  assert.deepEqual(checks(later), ["waiting_busy"]);
  assert.match(later.verdict.what, /^All 1 slots of the workers are full: 1 command waits, the oldest for 60 s/);
});

test("counts end at their bound and say so", async () => {
  await api.database.sql`
    insert into flow.batch (request_id, caller, body_sha256, state, execution_ids, event_ids, created_at)
    select 1000000 + n, 'test', 'x', 'accepted', '{}', '{}', now() - interval '10 minutes'
    from generate_series(1, 600) as n`;
  const overview = await ask();
  assert.deepEqual(overview.batches?.accepted, { count: 500, more: true });
  assert.equal(checks(overview)[0], "batches");
  assert.match(
    overview.verdict.what,
    /^Batches pile up: more than 500 batches wait to be worked out, the oldest for 10 min/,
  );
  await api.database.sql`delete from flow.batch where caller = 'test'`;
});

test("a part that cannot be read is missing with its reason, and the others are there", async () => {
  await api.database.sql`alter table flow.batch rename to batch_away`;
  try {
    const overview = await ask();
    assert.equal(overview.batches, null);
    assert.deepEqual(
      overview.missing.map(({ part }) => part),
      ["batches"],
    );
    assert.equal(overview.verdict.level, "bad");
    assert.ok(overview.workers !== null && overview.queue !== null);
  } finally {
    await api.database.sql`alter table flow.batch_away rename to batch`;
  }
});

test("a database that is away is the answer, and no failure", async () => {
  const database = openDatabase("postgres://127.0.0.1:1/none", { connectSeconds: 2 });
  const away = await buildApi(database);
  const response = await away.open.request("/api/admin/overview");
  assert.equal(response.status, 200);
  const overview = (await response.json()) as Overview;
  assert.equal(overview.verdict.level, "bad");
  assert.match(overview.verdict.what, /^The database is not responding: The database cannot be reached/);
  assert.ok(overview.workers === null && overview.queue === null && overview.reaper === null);
  await away.service.orchestrator.close();
  await away.service.results.close();
  await database.close();
});

test("a worker's token may not look", async () => {
  const call = (token: string) =>
    api.guarded.request("/api/admin/overview", { headers: { authorization: `Bearer ${token}` } });
  assert.equal((await call(TOKENS.worker)).status, 403);
  assert.equal((await call(TOKENS.operator)).status, 200);
});
