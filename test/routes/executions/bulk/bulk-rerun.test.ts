import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { BULK_STARTED_LISTED } from "../../../../src/schema/api/steering.ts";
import { createBulkOperations, SLICE } from "../../../../src/services/bulk/bulk.ts";
import type { Executions } from "../../../../src/services/executions/executions.ts";
import { type Body, buildApi, openApi, posted, TOKENS } from "../../../support/service/api.ts";
import { TWO_STEPS, workWith } from "../../../support/service/api-work.ts";
import { addUser } from "../../../support/service/users.ts";

/* Many executions are repeated by one operation, whatever happens to the servers that work on it. */

const api = await openApi();
const elsewhere = await buildApi(api.database);
after(() => elsewhere.service.orchestrator.close());
const work = workWith(api);
const { bulk } = api.service;

before(() => work.register("br/two", TWO_STEPS));

/** Executions that were cancelled in their first step. */
async function ended(count: number): Promise<string[]> {
  const ids = await Promise.all(Array.from({ length: count }, () => work.execute("br/two")));
  await Promise.all(ids.map((id) => work.post(`/api/executions/${id}/cancel`)));
  return ids.sort((left, right) => Number(left) - Number(right));
}

/** Something that is waited for, and what says that it is there. */
function signal(): [Promise<void>, () => void] {
  let tell: () => void = () => undefined;
  const told = new Promise<void>((resolve) => {
    tell = resolve;
  });
  return [told, () => tell()];
}

const filterOf = (ids: readonly string[]) => ({ execution_ids: ids });

async function start(ids: readonly string[], options: Body = {}): Promise<string> {
  const sent = { action: "rerun", filter: filterOf(ids), options };
  const { status, body } = await work.post("/api/executions/bulk", sent);
  assert.equal(status, 202, JSON.stringify(body));
  return String(body["bulk_id"]);
}

const find = async (id: string) => (await work.get(`/api/executions/bulk/${id}`)).body;
const counts = (matched: number, done: number, failed = 0, skipped = 0) => ({ matched, done, failed, skipped });

async function workOff(at: { workOff(): Promise<boolean> } = bulk): Promise<void> {
  while (await at.workOff());
}

/** A dead server's last statement may still hold the row, which others pass over: they look again, as servers do. */
async function finish(id: string, at: { workOff(): Promise<boolean> }): Promise<void> {
  do await workOff(at);
  while ((await find(id))["status"] === "running");
}

/** Every one of these was repeated, by exactly one execution, and this is what the operation says. */
async function assertRepeatedOnce(bulkId: string, ids: readonly string[]): Promise<void> {
  const rows = await api.database.sql<{ id: string; of: string; key: string }[]>`
    select execution_id as id, rerun_of as of, idempotency_key as key from flow.execution
    where rerun_of = any(${[...ids]}::bigint[]) and started_kind = 'bulk' and started_id = ${bulkId} order by rerun_of`;
  assert.deepEqual(
    rows.map(({ of }) => of),
    ids,
  );
  for (const { of, key } of rows) assert.equal(key, `bulk/${bulkId}/${of}`);
  const { started, counts: told, status } = await find(bulkId);
  assert.deepEqual([status, told], ["completed", counts(ids.length, ids.length)]);
  const expected = rows.map(({ id, of }) => ({ execution_id: of, new_execution_id: id }));
  assert.deepEqual(started, expected.slice(0, BULK_STARTED_LISTED));
  const [audit] = await api.database.sql<{ count: number; distinct: number }[]>`
    select count(*)::int as count, count(distinct resource)::int as distinct from auth.audit_log
    where action = 'execution.rerun' and result = 'allow' and detail ->> 'bulk_id' = ${bulkId}`;
  assert.deepEqual({ ...audit }, { count: ids.length, distinct: ids.length });
}

for (const count of [0, 1, SLICE - 1, SLICE, SLICE + 1]) {
  test(`${count} executions are repeated, each once`, async () => {
    const ids = await ended(count);
    // An id that no execution has: nothing is meant.
    const id = await start(count === 0 ? ["1"] : ids, { reason: "again" });
    await workOff();
    await assertRepeatedOnce(id, ids);
  });
}

test("a new execution says what started it and what it repeats, and is found by its operation", async () => {
  const [id = ""] = await ended(1);
  const operation = await start([id], { reason: "wrong day", input: { who: "you" } });
  await workOff();
  const [{ new_execution_id: begun }] = (await find(operation))["started"] as [{ new_execution_id: string }];
  const { body } = await work.get(`/api/executions/${begun}`);
  // What is replaced may be confidential: it is read with the key of the operation alone.
  assert.deepEqual((await find(operation))["options"], { reason: "wrong day", input: { who: "[secret]" } });
  assert.equal((body["workload"] as Body)["who"], "you");
  assert.deepEqual(body["started_by"], { kind: "bulk", id: operation, name: null });
  assert.equal(body["rerun_of"], id);
  const lineage = (await work.get(`/api/executions/${begun}/lineage`)).body["ancestors"] as Body[];
  assert.deepEqual([lineage[0]?.["execution_id"], lineage[0]?.["by"]], [id, "rerun"]);
  const listed = await work.get(`/api/executions?started_by=bulk&started_by_id=${operation}`);
  assert.deepEqual((listed.body["executions"] as Body[]).length, 1);
  const [{ detail }] = await api.database.sql<[{ detail: Body }]>`
    select detail from auth.audit_log where resource = ${`bulk/${operation}`}`;
  // The values may be confidential.
  assert.deepEqual(detail["options"], { reason: "wrong day", input: ["who"] });
  assert.equal((await work.runToEnd(begun))["status"], "COMPLETED");
});

test("what cannot be repeated has failed and says why; where there is nothing to do it was skipped", async () => {
  const [deleted = "", fine = ""] = await ended(2);
  const open = await work.execute("br/two");
  const completed = await work.execute("br/two");
  await work.runToEnd(completed);
  await work.post(`/api/executions/${open}/cancel`);
  const running = await work.execute("br/two");
  const operation = await start([deleted, fine, completed, running], { from: "failed" });
  await work.send("DELETE", `/api/executions/${deleted}`);
  await workOff();
  const { counts: told, failures } = await find(operation);
  assert.deepEqual(told, counts(4, 1, 1, 2));
  const [{ execution_id: id, code, message }] = failures as [Record<string, string>];
  assert.deepEqual([id, code], [running, "not_terminal"]);
  assert.match(message ?? "", /has not ended/);
  const unknown = await start([fine], { from: ["nowhere"] });
  await workOff();
  const [failure] = (await find(unknown))["failures"] as Body[];
  assert.deepEqual([failure?.["code"], (await find(unknown))["started"]], ["INVALID_INPUT", []]);
  await work.post(`/api/executions/${running}/cancel`);
});

test("a preview shows what would run of the newest, and why some would fail, and begins nothing", async () => {
  const ids = await ended(6);
  const running = await work.execute("br/two");
  const body = { action: "rerun", filter: filterOf([...ids, running]), dry_run: true };
  const answer = await work.post("/api/executions/bulk", body);
  const { matched, sample } = answer.body as { matched: number; sample: Body[] };
  assert.deepEqual([answer.status, matched, sample.length], [200, 7, 7]);
  const plan = { reused: 0, will_run: ["start", "end"] };
  const [newest = {}] = sample;
  assert.equal((newest["plan"] as { refused: Body }).refused["code"], "not_terminal");
  assert.deepEqual(
    sample.slice(1).map((one) => one["plan"]),
    [plan, plan, plan, plan, undefined, undefined],
  );
  await work.post(`/api/executions/${running}/cancel`);
});

/** The operations of a server that may die: what it waits for then never comes. */
function server(holder: string, { leaseMs = 5_000, rerun }: { leaseMs?: number; rerun?: Executions["rerun"] } = {}) {
  const { executions, access, triggers, sealing } = elsewhere.service;
  const given = { ...executions, ...(rerun !== undefined && { rerun }) };
  const { sealerOf } = sealing;
  const rest = { access, triggers, sealerOf, busy: () => performance.now(), onFault: assert.fail };
  return createBulkOperations({ database: api.database, executions: given, holder, leaseMs, ...rest });
}

for (const when of ["before", "after"] as const) {
  for (const dying of [0, SLICE - 1, SLICE]) {
    test(`a server dies ${when} it repeats item ${dying}: the next one goes on, and nothing is lost or doubled`, async () => {
      const ids = await ended(SLICE + 3);
      const id = await start(ids);
      const [dead, die] = signal();
      const forever = new Promise<never>(() => undefined);
      const rerun: Executions["rerun"] = async (original, request) => {
        if (when === "before" && original === ids[dying]) {
          die();
          return await forever;
        }
        const begun = await elsewhere.service.executions.rerun(original, request);
        if (original !== ids[dying]) return begun;
        die();
        return await forever;
      };
      // Its lease is over at once, as that of a dead one is after a while.
      void workOff(server("dying", { leaseMs: 0, rerun }));
      await dead;
      await finish(id, server("next"));
      await assertRepeatedOnce(id, ids);
    });
  }
}

test("a server that only stood still goes on beside the one that took over: nothing is doubled", async () => {
  const ids = await ended(SLICE);
  const id = await start(ids);
  const [standing, stand] = signal();
  const [woken, wake] = signal();
  const rerun: Executions["rerun"] = async (original, request) => {
    stand();
    await woken;
    return await elsewhere.service.executions.rerun(original, request);
  };
  const slow = workOff(server("slow", { leaseMs: 0, rerun }));
  await standing;
  await workOff(server("next"));
  wake();
  await slow;
  await assertRepeatedOnce(id, ids);
});

test("a server that takes longer than its lease renews it: no other one begins the same, also if the operation is paused and resumed meanwhile", async () => {
  const ids = await ended(SLICE + 1);
  const id = await start(ids);
  const [working, begin] = signal();
  const [allowed, allow] = signal();
  const slowly: Executions["rerun"] = async (original, request) => {
    begin();
    await allowed;
    return await elsewhere.service.executions.rerun(original, request);
  };
  const slow = server("slow", { leaseMs: 200, rerun: slowly }).workOff();
  await working;
  await outlasted(id);
  const other = server("other", { rerun: () => assert.fail("It was begun a second time") });
  assert.equal(await other.workOff(), false);
  await work.post(`/api/executions/bulk/${id}/pause`, {});
  assert.equal(await other.workOff(), false);
  await work.post(`/api/executions/bulk/${id}/resume`, {});
  assert.equal(await other.workOff(), false);
  await outlasted(id);
  assert.equal(await other.workOff(), false);
  allow();
  await slow;
  await workOff();
  await assertRepeatedOnce(id, ids);
});

/** Resolves when the present lease of an operation is over, and another one has begun before. */
async function outlasted(bulkId: string): Promise<void> {
  const leaseOf = async () => {
    const [row] = await api.database.sql<{ until: Date; isOver: boolean }[]>`
      select lease_expires_at as until, lease_expires_at < now() as "isOver" from flow.bulk where bulk_id = ${bulkId}`;
    assert.equal(row?.isOver, false);
    return row?.until.getTime() ?? 0;
  };
  const first = await leaseOf();
  for (;;) {
    const [row] = await api.database.sql<{ now: Date }[]>`select now() as now`;
    if ((await leaseOf()) > first && (row?.now.getTime() ?? 0) > first) return;
  }
}

test("an operation that is paused in the midst belongs to no server once what was begun has ended", async () => {
  const ids = await ended(SLICE + 1);
  const id = await start(ids);
  const rerun: Executions["rerun"] = async (original, request) => {
    await work.post(`/api/executions/bulk/${id}/pause`, {});
    return await elsewhere.service.executions.rerun(original, request);
  };
  await workOff(server("first", { rerun }));
  const [row] = await api.database.sql<{ worker: string | null }[]>`
    select worker from flow.bulk where bulk_id = ${id}`;
  assert.equal(row?.worker, null);
  assert.deepEqual((await find(id))["counts"], counts(ids.length, SLICE));
  assert.equal(await server("other").workOff(), false);
  await work.post(`/api/executions/bulk/${id}/resume`, {});
  await workOff(server("other"));
  await assertRepeatedOnce(id, ids);
});

test("two servers at once repeat each execution once", async () => {
  const ids = await ended(3 * SLICE + 1);
  const id = await start(ids);
  const isOver = async () => (await find(id))["ended_at"] !== null;
  const both = [bulk, server("another")].map(async (one) => {
    while (!(await isOver())) await one.workOff();
  });
  await Promise.all(both);
  await assertRepeatedOnce(id, ids);
});

test("the database is away for a moment: nothing has failed, and it goes on", async () => {
  const ids = await ended(2);
  const id = await start(ids);
  const away = Object.assign(new Error("connection lost"), { code: "CONNECTION_CLOSED" });
  assert.equal(await server("cut off", { leaseMs: 0, rerun: () => Promise.reject(away) }).workOff(), false);
  assert.deepEqual((await find(id))["counts"], counts(2, 0));
  await workOff();
  await assertRepeatedOnce(id, ids);
});

test("it is cancelled in the midst: what is under way ends and counts, the rest is not repeated, also if the server dies", async () => {
  const ids = await ended(SLICE + 2);
  const id = await start(ids);
  const [dead, die] = signal();
  let begun = 0;
  const rerun: Executions["rerun"] = async (original, request) => {
    await elsewhere.service.executions.rerun(original, request);
    begun += 1;
    if (begun === SLICE) die();
    return await new Promise<never>(() => undefined);
  };
  void workOff(server("dying", { leaseMs: 0, rerun }));
  await dead;
  assert.equal((await work.post(`/api/executions/bulk/${id}/cancel`, {})).body["status"], "cancelled");
  await workOff(server("next"));
  const { status, counts: told, started } = await find(id);
  assert.deepEqual([status, told], ["cancelled", counts(ids.length, SLICE)]);
  assert.deepEqual(
    (started as Body[]).map(({ execution_id: of }) => of),
    ids.slice(0, SLICE),
  );
  const [{ worker }] = await api.database.sql<[{ worker: string | null }]>`
    select worker from flow.bulk where bulk_id = ${id}`;
  assert.equal(worker, null);
});

test("rights that are lost between two items: what was repeated stays, the rest fails; an item that a dead server had done is done", async () => {
  const { userId, tokenSha256 } = await addUser(api.database, { roles: ["analyst"] });
  const ids = await ended(SLICE + 2);
  const sent = { action: "rerun", filter: filterOf(ids) };
  const headers = { authorization: `Bearer ${TOKENS.operator}`, "x-flow-session": tokenSha256 };
  const answer = await api.guarded.request("/api/executions/bulk", posted(sent, headers));
  const { bulk_id: id } = (await answer.json()) as { bulk_id: string };
  const [dead, die] = signal();
  let begun = 0;
  const rerun: Executions["rerun"] = async (original, request) => {
    await elsewhere.service.executions.rerun(original, request);
    begun += 1;
    if (begun === SLICE) die();
    return await new Promise<never>(() => undefined);
  };
  void workOff(server("dying", { leaseMs: 0, rerun }));
  await dead;
  await api.database.sql`update auth.users set is_active = false where user_id = ${userId}`;
  await workOff(server("next"));
  const { counts: told, failures } = await find(id);
  assert.deepEqual(told, counts(ids.length, SLICE, 2));
  assert.deepEqual(
    (failures as Body[]).map(({ code }) => code),
    ["FORBIDDEN", "FORBIDDEN"],
  );
  const rows = await api.database.sql<{ result: string; count: number; owner: string; address: number }[]>`
    select result, count(*)::int as count, min(user_id)::text as owner, count(request_id)::int as address
    from auth.audit_log where action = 'execution.rerun' and detail ->> 'bulk_id' = ${id} group by result order by result`;
  assert.deepEqual(
    rows.map(({ result, count, owner, address }) => [result, count, owner, address]),
    [
      ["allow", SLICE, String(userId), SLICE],
      ["deny", 2, String(userId), 2],
    ],
  );
  const [{ starter }] = await api.database.sql<[{ starter: string }]>`
    select min(started_by)::text as starter from flow.execution where started_kind = 'bulk' and started_id = ${id}`;
  assert.equal(starter, String(userId));
});
