import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createSealer } from "../../../../src/platform/crypto/sealing.ts";
import { deleteExecution } from "../../../../src/repositories/executions/execution-delete.ts";
import { createRetention } from "../../../../src/services/maintenance/retention.ts";
import { type Body, openApi } from "../../../support/service/api.ts";
import { claimOf } from "../../../support/service/api-work.ts";
import { rerunsOf } from "./support.ts";

/* What reruns refer to lives as long as they do, also when all else is deleted (control, rules 9 and 12), on the store of rows. */

const api = await openApi();
const { work, rerun, begun, refused, claimed, fails, stores, runs, detail } = rerunsOf(api);
const { sql } = api.database;

const CHAIN = `  - step: data
    tool: { kind: noop }
    next: { arcs: [{ step: side }] }
  - step: side
    tool: { kind: noop }
    next: { arcs: [{ step: use }] }
  - step: use
    tool: { kind: http, method: POST, url: "https://example.org/", json: "{{ data }}" }
    next: { arcs: [{ step: last }] }
  - step: last
    tool: { kind: noop }
`;

const LOOP = `  - step: each
    loop: { in: [1, 2], iterator: item }
    tool: { kind: noop }
`;

before(async () => {
  await work.register("k/chain", CHAIN);
  await work.register("k/loop", LOOP);
});

/** A run whose step `data` has a stored result, and whose step `use` failed. */
async function failed(json = '"of data"', more: Record<string, string> = {}): Promise<{ id: string; ref: string }> {
  const id = await work.execute("k/chain");
  const ref = await stores(await claimed(id, "data"), json, more);
  await work.finish("w", await claimed(id, "side"), { side: 1 });
  await fails(await claimed(id, "use"));
  assert.deepEqual(await runs(id), []);
  return { id, ref };
}

async function remove(id: string): Promise<void> {
  const { status, body } = await work.send("DELETE", `/api/executions/${id}`);
  assert.ok(status < 300, JSON.stringify(body));
}

/** Whether a payload is stored under the reference. */
const isStored = async (ref: string) => (await sql`select from flow.result where ref = ${ref}`).length > 0;
const resolved = async (ref: string, query: Body = {}, headers: Record<string, string> = {}) => {
  const address = `/api/results/resolve?${new URLSearchParams({ ref, ...(query as Record<string, string>) })}`;
  const response = await (headers["x-flow-claim"] === undefined ? api.open : api.guarded).request(address, { headers });
  return { status: response.status, text: await response.text() };
};
const lineage = async (id: string) => (await work.get(`/api/executions/${id}/lineage`)).body;

/** Deletes what ended before this moment, as the server's loop does. */
async function retain(): Promise<void> {
  const retention = createRetention({
    database: api.database,
    dropPartition: async () => false,
    results: api.service.results,
    ...{ holder: "test", days: -1, leaseMs: 60_000, intervalMs: 1_000, now: Date.now },
    onRemoved: () => undefined,
    onFailed: (error) => assert.fail(String(error)),
  });
  await retention.runOnce();
  await retention.end();
}

test("a result of the original is read in the name of the rerun after the original is gone, and goes with the rerun", async () => {
  const { id, ref } = await failed();
  const again = await begun(id);
  const command = await claimed(again, "use");
  await remove(id);
  assert.equal(await isStored(ref), true);
  const headers = await claimOf(api, again);
  assert.deepEqual(await resolved(ref, { execution_id: again, sealed: "true" }, headers), {
    ...{ status: 200, text: '"of data"' },
  });
  await work.finish("w", command);
  await runs(again);
  assert.equal((await resolved(ref)).status, 200);
  await remove(again);
  assert.equal(await isStored(ref), false);
  assert.equal((await resolved(ref)).status, 404);
});

test("of reruns of reruns, and of several of one original, the last one takes the results with it, in whatever order", async () => {
  const { id, ref } = await failed();
  const second = await begun(id);
  await fails(await claimed(second, "use"));
  await runs(second);
  const third = await begun(second);
  await runs(third);
  const beside = await begun(id, { from: ["use"], only: true });
  await runs(beside);
  for (const gone of [second, id, beside]) {
    await remove(gone);
    assert.equal(await isStored(ref), true, gone);
  }
  await remove(third);
  assert.equal(await isStored(ref), false);
});

test("retention keeps what a young rerun refers to, and takes it away with the last one", async () => {
  const { id, ref } = await failed();
  const again = await begun(id);
  // Open: it stays, and with it what it refers to.
  await retain();
  assert.equal((await work.get(`/api/executions/${id}`)).status, 404);
  assert.equal(await isStored(ref), true);
  await runs(again);
  await retain();
  assert.equal((await work.get(`/api/executions/${again}`)).status, 404);
  assert.equal(await isStored(ref), false);
  assert.deepEqual([...(await sql`select from flow.deleted_execution`)], []);
});

test("two reruns that are deleted at the same moment leave nothing behind", async () => {
  const { id, ref } = await failed();
  const [one, other] = [await begun(id), await begun(id)];
  await runs(one);
  await runs(other);
  await remove(id);
  const take = async (owners: readonly string[]) => void (await api.service.results.removeOf(owners, 500));
  await deleteExecution(api.database, one, async (owners) => {
    // The other one's deletion begins and ends between the look of this one and its end.
    await deleteExecution(api.database, other, take);
    await take(owners);
  });
  assert.equal(await isStored(ref), false);
});

test("a result that has expired or was deleted is refused with the step that made it, where a step that runs needs it", async () => {
  for (const lose of [
    (ref: string) => sql`update flow.result set expires_at = now() - interval '1 second' where ref = ${ref}`,
    (ref: string) => sql`delete from flow.result where ref = ${ref}`,
  ]) {
    const { id, ref } = await failed();
    await lose(ref);
    for (const dry_run of [true, false]) {
      const told = await refused(id, { dry_run });
      assert.equal(told.code, "RESULT_NOT_REUSABLE");
      assert.deepEqual(told.detail, { step: "data", ref });
      assert.match(told.message, /Rerun from 'data'/);
    }
    const again = await begun(id, { from: ["data"] });
    assert.deepEqual(await runs(again), ["data", "side", "use", "last"]);
  }
});

test("a result that is gone and that nothing needs stays out of the way", async () => {
  const id = await work.execute("k/chain");
  const ref = await stores(await claimed(id, "data"), '"of data"');
  await work.finish("w", await claimed(id, "side"));
  await work.finish("w", await claimed(id, "use"));
  await fails(await claimed(id, "last"));
  await runs(id);
  await sql`delete from flow.result where ref = ${ref}`;
  const again = await begun(id);
  assert.deepEqual(await runs(again), ["last"]);
  assert.equal((await detail(again))["status"], "COMPLETED");
});

test("a stored result of an iteration that is taken over is needed too; with all iterations run it is not", async () => {
  const id = await work.execute("k/loop");
  const ref = await stores(await claimed(id, "each"), '"of the first"');
  await runs(id, () => "fails");
  assert.equal((await detail(id))["status"], "FAILED");
  assert.deepEqual((await rerun(id, { dry_run: true })).status, 200);
  await sql`update flow.result set expires_at = now() - interval '1 second' where ref = ${ref}`;
  const told = await refused(id, {});
  assert.deepEqual([told.code, told.detail], ["RESULT_NOT_REUSABLE", { step: "each", ref }]);
  assert.match(told.message, /reuse_iterations/);
  assert.deepEqual(await runs(await begun(id, { reuse_iterations: false })), ["each[0]", "each[1]"]);
});

test("a result whose scope ended with the original is gone too", async () => {
  const { id, ref } = await failed('"of data"', { scope: "execution" });
  await api.service.results.sweep();
  assert.equal((await refused(id, {})).detail["ref"], ref);
});

test("a rerun of a rerun from a step of an original that is gone names the steps; from the start it runs", async () => {
  const { id } = await failed();
  const again = await begun(id);
  await runs(again);
  await remove(id);
  const told = await refused(again, { from: ["data"] });
  assert.deepEqual([told.code, told.detail], ["RESULT_NOT_REUSABLE", { steps: ["data"], execution_id: id }]);
  assert.deepEqual(await runs(await begun(again, { from: "start" })), ["data", "side", "use", "last"]);
  assert.deepEqual(await runs(await begun(again, { from: ["use"] })), ["use", "last"]);
});

/** The sealer of an execution, as a worker has it. */
async function sealerOf(id: string) {
  const { body } = await work.get(`/api/executions/${id}/sealing-key`);
  const keys = (body["keys"] as { id: string; key: string }[]).map((one) => ({
    ...one,
    key: Buffer.from(one.key, "base64"),
  }));
  const [first, ...rest] = keys;
  assert.ok(first);
  return { sealer: createSealer([first, ...rest]), root: body["root_execution_id"] };
}

test("sealed values and sensitive results stay sealed, and a rerun opens them with its original's key, also when that is gone", async () => {
  const id = await work.execute("k/chain");
  const { sealer } = await sealerOf(id);
  const ref = await stores(await claimed(id, "data"), JSON.stringify(sealer.sealResult('{"pin":"of data 4711"}')));
  const token = sealer.seal("hunter22");
  await work.finish("w", await claimed(id, "side"), { token });
  await fails(await claimed(id, "use"));
  await runs(id);
  const again = await begun(id);
  const own = await sealerOf(again);
  assert.equal(own.root, id);
  assert.deepEqual(own.sealer.open(token), { kind: "value", value: "hunter22" });
  const command = await claimed(again, "use");
  const check = async () => {
    const stored = await resolved(ref, { execution_id: again, sealed: "true" }, await claimOf(api, again));
    assert.deepEqual(own.sealer.open(JSON.parse(stored.text) as string), {
      kind: "result",
      json: '{"pin":"of data 4711"}',
    });
    // An operator sees a sensitive result as in the original, and secrets in others as [secret].
    assert.deepEqual(await resolved(ref), { status: 200, text: '{"pin":"of data 4711"}' });
    const shown = JSON.stringify((await work.get(`/api/executions/${again}/events?step=side`)).body);
    assert.match(shown, /"token":"\[secret\]"/);
    assert.doesNotMatch(shown, /hunter22|sealed:/);
  };
  await check();
  await remove(id);
  await check();
  const third = await (async () => {
    await fails(command);
    await runs(again);
    return await begun(again);
  })();
  assert.equal((await sealerOf(third)).root, id);
  await remove(again);
  assert.deepEqual(await resolved(ref), { status: 200, text: '{"pin":"of data 4711"}' });
  const child = await work.execute("k/chain", { parent_execution_id: third, parent_step: "use" });
  assert.equal((await sealerOf(child)).root, id);
  for (const open of [child, third]) await work.post(`/api/executions/${open}/cancel`);
  await remove(child);
  await remove(third);
  assert.equal(await isStored(ref), false);
});

test("a token given for an agent in a rerun is sealed wherever it stands", async () => {
  const { id } = await failed();
  const access_token = "a token that is not to be read";
  for (const [from, more] of [
    ["failed", { input: { access_token } }],
    ["start", { input: { access_token } }],
    ["failed", { step_input: { use: { access_token } } }],
    ["start", { step_input: { use: { access_token } } }],
    [["data"], { input: { access_token } }],
  ] as const) {
    const again = await begun(id, { from, ...more } as Body);
    await work.post(`/api/executions/${again}/cancel`);
    const rows = await sql<{ body: string }[]>`
      select event_log::text as body from flow.event_log where execution_id = ${again}`;
    const { body } = await work.get(`/api/executions/${again}/events?limit=500`);
    const all = JSON.stringify([rows, body, await detail(again), await lineage(again)]);
    assert.ok(!all.includes("not to be read"), `${from} ${JSON.stringify(more)}`);
    const third = await begun(again, { from: "start" });
    const { sealer } = await sealerOf(third);
    const { context } = (await claimed(third, "data")) as unknown as { context: { input: Body } };
    const { access_token: sealed } = context.input;
    assert.equal(typeof sealed, "input" in more ? "string" : "undefined");
    if (typeof sealed === "string") assert.deepEqual(sealer.open(sealed), { kind: "value", value: access_token });
    await work.post(`/api/executions/${third}/cancel`);
  }
});

test("a deleted execution from which others descend is in lineage as a stub, until none descends from it any more", async () => {
  const { id } = await failed();
  const child = await work.execute("k/chain", { parent_execution_id: await begun(id), parent_step: "use" });
  const parent = String((await detail(child))["parent_execution_id"]);
  await work.post(`/api/executions/${parent}/cancel`);
  const again = await begun(child, { from: "start" });
  await work.post(`/api/executions/${again}/cancel`);
  for (const gone of [child, parent, id]) {
    await remove(gone);
    assert.equal((await work.get(`/api/executions/${gone}`)).status, 404);
  }
  const { ancestors } = await lineage(again);
  const told = (ancestors as Body[]).map(({ execution_id, path, version, status, deleted_at }) => {
    assert.ok(Date.parse(String(deleted_at)) <= Date.now());
    return [execution_id, path, version, status];
  });
  assert.deepEqual(told, [
    [child, "k/chain", 1, "CANCELLED"],
    [parent, "k/chain", 1, "CANCELLED"],
    [id, "k/chain", 1, "FAILED"],
  ]);
  await remove(again);
  const stubs = await sql`select from flow.deleted_execution where execution_id in ${sql([child, parent, id])}`;
  assert.equal(stubs.length, 0);
});

after(() => api.service.results.idle());

test("a file that a reused step has stored lives as long as the rerun whose result names it, and is read by it", async () => {
  const id = await work.execute("k/chain");
  const command = await claimed(id, "data");
  const { command_id, attempt } = command;
  const ref = `noetl://execution/${id}/step/data/task/data/run/${command_id}-0/artifact/a.csv`;
  const query = new URLSearchParams({
    ref,
    worker: "w",
    command_id,
    attempt: String(attempt),
    content_type: "text/csv",
  });
  const put = await api.open.request(`/api/results?${query}`, { method: "PUT", body: "a,b" });
  assert.equal(put.status, 200);
  await work.finish("w", command, { name: "a.csv", ref, content_type: "text/csv", bytes: 3 });
  await work.finish("w", await claimed(id, "side"), { side: 1 });
  await fails(await claimed(id, "use"));
  await runs(id);
  const again = await begun(id);
  await remove(id);
  assert.equal((await resolved(ref)).text, "a,b");
  await runs(again);
  await retain();
  assert.equal(await isStored(ref), false);
});
