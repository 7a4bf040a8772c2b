import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Sql } from "postgres";
import type { Database } from "../../../../src/repositories/database/database.ts";
import { type Body, buildApi, openApi } from "../../../support/service/api.ts";
import { rerunsOf } from "./support.ts";

/*
 * The beginning of a rerun while its server or the store fails: afterwards there is nothing, or a whole rerun that another server brings to
 * its end, and never two under one key.
 */

type Mode = "unanswered" | "dead" | "interrupted";

/** A database whose statements fail as they are told to. */
function failing(database: Database) {
  const plan = { count: 0, at: Number.POSITIVE_INFINITY, mode: "dead" as Mode, meanwhile: async () => undefined };
  const away = () => Object.assign(new Error("The connection was closed"), { code: "CONNECTION_CLOSED" });
  /** A query runs when it is awaited; parts of others never are. */
  const watched = <Q extends Promise<unknown>>(query: Q): Q => {
    const send = query.then.bind(query) as Q["then"];
    let sent: Promise<unknown> | undefined;
    const run = async () => {
      const number = plan.count++;
      const fails = plan.mode === "dead" ? number >= plan.at : number === plan.at;
      if (fails && plan.mode === "interrupted") await plan.meanwhile();
      if (!fails || plan.mode === "interrupted")
        return await new Promise((resolve, reject) => void send(resolve, reject));
      if (plan.mode === "unanswered") await new Promise((resolve, reject) => void send(resolve, reject));
      throw away();
    };
    const once = () => {
      sent ??= run();
      return sent;
    };
    void Object.defineProperty(query, "then", { value: (...ends: Parameters<Q["then"]>) => once().then(...ends) });
    return query;
  };
  const isQuery = (value: unknown): value is Promise<unknown> => value instanceof Promise;
  const sql = new Proxy(database.sql, {
    apply(target, self, parameters) {
      const made: unknown = Reflect.apply(target as (...given: unknown[]) => unknown, self, parameters);
      return isQuery(made) ? watched(made) : made;
    },
    get(target, key) {
      const value: unknown = Reflect.get(target, key);
      if (key !== "unsafe") return value;
      return (...parameters: Parameters<Sql["unsafe"]>) => watched(target.unsafe(...parameters));
    },
  });
  return {
    database: { ...database, sql },
    /** From now on: the statement with this number fails so. */
    fail: (at: number, mode: Mode) => Object.assign(plan, { count: 0, at, mode }),
    /** Before the statement with this number something else happens. */
    interrupt: (at: number, meanwhile: () => Promise<undefined>) =>
      Object.assign(plan, { count: 0, at, mode: "interrupted", meanwhile }),
    heal: () => Object.assign(plan, { at: Number.POSITIVE_INFINITY }),
    count: () => plan.count,
  };
}

const api = await openApi();
const weak = failing(api.database);
const SHORT = { FLOW_BATCH_ACCEPT_ENQUEUE_TIMEOUT_SECONDS: "0.2", FLOW_BATCH_PROCESSING_TIMEOUT_SECONDS: "0.2" };
const other = await buildApi(weak.database, SHORT);
const third = await buildApi(api.database);
after(async () => {
  weak.heal();
  await other.service.orchestrator.close();
  await third.service.orchestrator.close();
});
const { work, rerun, claimed, fails, stores, runs, detail } = rerunsOf(api);
const there = rerunsOf(other);
const beside = rerunsOf(third);
const { sql } = api.database;

const CHAIN = `  - step: data
    tool: { kind: noop }
    next: { arcs: [{ step: use }] }
  - step: use
    tool: { kind: noop, input: { data: "{{ data }}" } }
    next: { arcs: [{ step: last }] }
  - step: last
    tool: { kind: noop }
`;
before(() => work.register("f/chain", CHAIN));

async function failed(): Promise<string> {
  const id = await work.execute("f/chain");
  await stores(await claimed(id, "data"), '"of data"');
  await fails(await claimed(id, "use"));
  await runs(id);
  return id;
}

const rerunsFrom = async (id: string) =>
  (await sql<{ id: string }[]>`select execution_id as id from flow.execution where rerun_of = ${id}`).map(
    (row) => row.id,
  );

/** The rerun has all of its beginning, and comes to its end on a server that has heard nothing of it. */
async function assertWhole(again: string): Promise<void> {
  await api.service.orchestrator.recovery.poll();
  assert.deepEqual(await runs(again), ["use", "last"]);
  const { status, steps, rerun_of } = await detail(again);
  assert.equal(status, "COMPLETED");
  assert.deepEqual(
    (steps as Body[]).map(({ name, reused_from }) => [name, reused_from !== undefined]),
    [
      ["data", true],
      ["use", false],
      ["last", false],
    ],
  );
  const { body } = await work.get(`/api/executions/${again}/events?event_type=workflow.restored`);
  assert.equal((body["events"] as Body[]).length, 1);
  const audit = await sql`
    select from auth.audit_log where action = 'execution.rerun' and resource = ${`execution/${rerun_of}`} and result = 'allow'`;
  assert.equal(audit.length, 1);
}

for (const mode of ["unanswered", "dead"] as const) {
  test(`at each statement of the beginning, ${mode}: nothing or a whole rerun, and one under its key`, async (context) => {
    let at = 0;
    for (let isReached = true; isReached; at += 1) {
      const id = await failed();
      const headers = { "idempotency-key": `${mode}-${at}` };
      weak.fail(at, mode);
      const { status, body } = await there.rerun(id, {}, headers);
      isReached = weak.count() > at;
      assert.ok(status === 202 || status === 503, `${at}: ${status} ${JSON.stringify(body)}`);
      const before = await rerunsFrom(id);
      if (status === 202) assert.deepEqual(before, [body["execution_id"]]);
      const again = await rerun(id, {}, headers);
      assert.equal(again.status, 202, `${at}: ${JSON.stringify(again.body)}`);
      assert.deepEqual([again.body["reused"], again.body["will_run"]], [1, ["use", "last"]]);
      if (before.length > 0) assert.deepEqual(before, [again.body["execution_id"]]);
      weak.heal();
      await assertWhole(String(again.body["execution_id"]));
      assert.equal((await rerunsFrom(id)).length, 1);
      assert.ok(at < 60);
    }
    context.diagnostic(`${at - 1} statements`);
  });
}

test("without a key a call that failed has begun at most one, which is whole", async () => {
  let isReached = true;
  for (let at = 0; isReached; at += 1) {
    const id = await failed();
    weak.fail(at, "unanswered");
    await there.rerun(id);
    isReached = weak.count() > at;
    weak.heal();
    const begun = await rerunsFrom(id);
    assert.ok(begun.length <= 1);
    if (begun[0] !== undefined) await assertWhole(begun[0]);
  }
});

test("a server whose ids are older than those of the original's server begins one with newer ids", async () => {
  const older = await beside.work.execute("f/chain");
  const newer = await buildApi(api.database);
  const at = rerunsOf(newer);
  const id = await at.work.execute("f/chain");
  assert.ok(BigInt(id) > BigInt(older));
  for (const one of [older, id]) await at.work.post(`/api/executions/${one}/cancel`);
  const again = await beside.rerun(id, { from: "start" });
  assert.equal(again.status, 202, JSON.stringify(again.body));
  assert.ok(BigInt(String(again.body["execution_id"])) > BigInt(id));
  await beside.work.post(`/api/executions/${again.body["execution_id"]}/cancel`);
  await newer.service.orchestrator.close();
});

test("two servers at once, many calls with one key: one rerun, and every answer is of it", async () => {
  for (let round = 0; round < 4; round += 1) {
    const id = await failed();
    const headers = { "idempotency-key": `at-once-${round}` };
    const answers = await Promise.all([rerun, beside.rerun, rerun, beside.rerun].map((call) => call(id, {}, headers)));
    assert.deepEqual(
      answers.map(({ status }) => status),
      [202, 202, 202, 202],
    );
    assert.equal(new Set(answers.map(({ body }) => body["execution_id"])).size, 1);
    assert.equal(answers.filter(({ body }) => body["duplicate"] !== true).length, 1);
    for (const { body } of answers) assert.deepEqual([body["reused"], body["will_run"]], [1, ["use", "last"]]);
    await assertWhole(String(answers[0]?.body["execution_id"]));
  }
});

test("a key is of one call: of another body, another original or another caller's start it is refused; a plan does not use it up", async () => {
  const [id, second] = [await failed(), await failed()];
  const headers = { "idempotency-key": "once" };
  const plan = await rerun(id, { dry_run: true }, headers);
  assert.equal(plan.status, 200);
  const { body } = await rerun(id, {}, headers);
  for (const refused of [
    await rerun(id, { reason: "again" }, headers),
    await rerun(second, {}, headers),
    await work.post("/api/execute", { path: "f/chain" }, headers),
  ]) {
    assert.equal(refused.status, 422, JSON.stringify(refused.body));
  }
  assert.deepEqual(await rerunsFrom(second), []);
  await assertWhole(String(body["execution_id"]));
  // The answer stays the same after the end, and after the original is gone.
  await work.send("DELETE", `/api/executions/${id}`);
  const late = await rerun(id, {}, headers);
  assert.deepEqual([late.status, late.body["execution_id"]], [202, body["execution_id"]]);
  const started = await work.post("/api/execute", { path: "f/chain" }, { "idempotency-key": "of a start" });
  assert.equal((await rerun(second, {}, { "idempotency-key": "of a start" })).status, 422);
  await work.post(`/api/executions/${started.body["execution_id"]}/cancel`);
});

test("an original that is deleted at any moment of the beginning is repeated whole, or not at all", async () => {
  let isReached = true;
  let refused = 0;
  for (let at = 0; isReached; at += 1) {
    const id = await failed();
    weak.interrupt(at, async () => {
      await work.send("DELETE", `/api/executions/${id}`);
      return undefined;
    });
    const { status, body } = await there.rerun(id);
    isReached = weak.count() > at;
    weak.heal();
    if (isReached) assert.equal((await work.get(`/api/executions/${id}`)).status, 404);
    await api.service.orchestrator.recovery.poll();
    if (status === 202) {
      const again = String(body["execution_id"]);
      const { body: log } = await work.get(`/api/executions/${again}/events?step=data`);
      const [copy] = log["events"] as { meta: { kept: { result: { ref: { ref: string } } } } }[];
      const ref = copy?.meta.kept.result.ref.ref ?? "";
      assert.equal((await sql`select from flow.result where ref = ${ref}`).length, 1, `statement ${at}`);
      assert.deepEqual(await runs(again), ["use", "last"]);
      continue;
    }
    refused += 1;
    const told = `statement ${at}: ${JSON.stringify(body)}`;
    assert.ok(status === 404 || body["code"] === "RESULT_NOT_REUSABLE", told);
    for (const again of await rerunsFrom(id)) assert.equal((await detail(again))["status"], "CANCELLED");
  }
  assert.ok(refused > 0);
});
