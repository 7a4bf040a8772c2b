import assert from "node:assert/strict";
import { before, test } from "node:test";
import { createDiskPayloads } from "../../../src/adapters/payloads/disk.ts";
import { createResults, type Results } from "../../../src/services/results/results.ts";
import { storedResults } from "../../support/database/stored-results.ts";
import { openApi } from "../../support/service/api.ts";
import { TWO_STEPS } from "../../support/service/api-work.ts";

const api = await openApi({ FLOW_RESULT_KV_MAX_BYTES: "2000" });
const { work, claimed, refOf, put, get, statusOf, rowsOf } = storedResults(api);
const { results } = api.service;

const CALLING = `  - step: start
    tool: { kind: noop }
    next: { arcs: [{ step: end }] }
  - step: end
    tool: { kind: noop }
`;
before(async () => {
  await work.register("two", TWO_STEPS);
  await work.register("child", CALLING);
});

/** Another server of the same database: it has received no notice of what this one stored. */
function another(): Results {
  return createResults({
    database: api.database,
    stores: [createDiskPayloads(api.resultsFolder)],
    ...{ folder: api.resultsFolder, bytesMax: 10_000_000, filesBytesMax: 10_000_000, ttlMs: 60_000, now: Date.now },
    limits: { kvBytesMax: 2_000, s3BytesMax: 2_000 },
    isStepOver: async () => true,
  });
}

const LONG = JSON.stringify("x".repeat(5_000));

test("results end with their execution, in the row and on the disk; permanent ones stay", async () => {
  const command = await claimed("two");
  const [inRow, onDisk, kept] = ["row", "disk", "kept"].map((run) => refOf(command, run)) as [string, string, string];
  await put(command, '"short"', { ref: inRow, scope: "execution" });
  await put(command, LONG, { ref: onDisk, scope: "execution" });
  await put(command, '"kept"', { ref: kept });
  await work.finish("w", command);
  assert.deepEqual(
    [await statusOf(inRow), await statusOf(onDisk)],
    [200, 200],
    "its step is over, the execution is not",
  );
  await work.runToEnd(command.execution_id);
  assert.deepEqual([await statusOf(inRow), await statusOf(onDisk), await statusOf(kept)], [404, 404, 200]);
  await results.idle();
  assert.deepEqual(await rowsOf(command.execution_id), [
    { ref: kept, state: "stored", scope: "permanent", store: "kv" },
  ]);
});

test("a read after the end is refused at once, also before anything is deleted", async () => {
  const command = await claimed("two");
  const ref = refOf(command);
  await put(command, LONG, { scope: "execution" });
  // As if another server had written the end.
  await api.database.sql`
    update flow.execution set status = 'CANCELLED', ended_at = now() where execution_id = ${command.execution_id}`;
  const answer = await get(ref);
  assert.equal(answer.status, 404);
  const { code, error } = (await answer.json()) as { code: string; error: string };
  assert.equal(code, "REFERENCE_NOT_AVAILABLE");
  assert.match(error, /its execution has ended, and it ended with that/);
  assert.equal((await rowsOf(command.execution_id)).length, 1);
  assert.equal(await another().sweep(), 1, "a sweep of any server finds it");
  assert.deepEqual(await rowsOf(command.execution_id), []);
});

test("the execution's own result stays, with all of its step; it is permanent from then on", async () => {
  const command = await claimed("two");
  const early = refOf(command);
  await put(command, LONG, { scope: "execution" });
  await work.finish("w", command);
  const [last] = await work.claim("w");
  assert.ok(last !== undefined);
  const [final, part] = [refOf(last, "final"), refOf(last, "part")];
  for (const ref of [final, part]) await put(last, LONG, { ref, scope: "execution" });
  const reference = {
    ...{ kind: "result_ref", ref: final, store: "disk", scope: "execution", extracted: {} },
    meta: { content_type: "application/json", bytes: 5_002, sha256: "0".repeat(64) },
    preview: { truncated: true, bytes: 5_002, sample: "" },
  };
  const { command_id, execution_id, attempt, step } = last;
  const claim = { command_id, execution_id, attempt, step };
  const done = { event_type: "task.done", task: "end", task_run_id: "final", duration_ms: 1 };
  const { status, body } = await work.post("/api/events/batch", {
    worker: "w",
    events: [
      { ...claim, ...done, result: { status: "ok", reference, context: { task: "end" } } },
      { ...claim, event_type: "command.completed" },
    ],
  });
  assert.equal(status, 202, JSON.stringify(body));
  await work.get(`/api/executions/${execution_id}/result?wait_ms=5000`);
  await results.idle();
  assert.deepEqual([await statusOf(early), await statusOf(final), await statusOf(part)], [404, 200, 200]);
  assert.deepEqual(new Set((await rowsOf(execution_id)).map(({ scope }) => scope)), new Set(["permanent"]));
  assert.equal(await another().sweep(), 0);
});

test("results of scope workflow end with the root of their tree, not with their own execution", async () => {
  const root = await claimed("two");
  const child = await work.execute("child", { parent_execution_id: root.execution_id, parent_step: root.step });
  const command = (await work.claim("w", 10)).find(({ execution_id }) => execution_id === child);
  assert.ok(command !== undefined);
  const ref = refOf(command);
  await put(command, LONG, { scope: "workflow" });
  await work.finish("w", command);
  await work.runToEnd(child);
  await results.idle();
  assert.equal(await statusOf(ref), 200);
  await work.finish("w", root);
  await work.runToEnd(root.execution_id);
  assert.equal(await statusOf(ref), 404);
  await results.idle();
  assert.deepEqual(await rowsOf(child), []);
});

test("results of scope step end with their step", async () => {
  const command = await claimed("two");
  const ref = refOf(command);
  await put(command, LONG, { scope: "step" });
  assert.equal(await statusOf(ref), 200);
  const { body } = await work.finish("w", command);
  // It ends when what follows from the report is decided.
  await (await api.open.request(`/api/events/batch/${String(body["request_id"])}/stream`)).text();
  const answer = await get(ref);
  assert.equal(answer.status, 404);
  await results.idle();
  assert.deepEqual(await rowsOf(command.execution_id), []);
});

test("what another server keeps of a step that has ended is found by the sweep, once it is a minute old", async () => {
  const command = await claimed("two");
  await put(command, LONG, { scope: "step" });
  assert.equal(await another().sweep(), 0, "it may be of a step that has just begun anew");
  await api.database.sql`
    update flow.result set created_at = now() - interval '2 minutes' where execution_id = ${command.execution_id}`;
  assert.equal(await results.sweep(), 0, "the step is running");
  assert.equal(await another().sweep(), 1);
  assert.deepEqual(await rowsOf(command.execution_id), []);
});

test("more results than a statement takes go in several", async () => {
  const command = await claimed("two");
  const count = 1_203;
  await api.database.sql`
    insert into flow.result (execution_id, ref, root_execution_id, state, store, scope, content_type, bytes, sha256, payload)
    select ${command.execution_id}::bigint, ${refOf(command, "x")} || n, ${command.execution_id}::bigint, 'stored', 'kv',
      'execution', 'application/json', 1, repeat('0', 64), '1' from generate_series(1, ${count}::int) n`;
  await put(command, '"noted"', { scope: "execution" });
  await work.finish("w", command);
  await work.runToEnd(command.execution_id);
  await results.idle();
  assert.deepEqual(await rowsOf(command.execution_id), []);
});

test("where nothing is kept that ends with anything, an end costs no statement", async () => {
  const none = createResults({
    // Any statement would fail.
    database: {} as never,
    stores: [],
    ...{ folder: "", bytesMax: 1, filesBytesMax: 1, ttlMs: 1, now: Date.now, limits: { kvBytesMax: 1, s3BytesMax: 1 } },
    observer: {
      ...{ stored: () => undefined, read: () => undefined, removed: () => undefined, damaged: () => undefined },
      failed: (_store, _doing, error) => assert.fail(String(error)),
    },
  });
  none.tell({ at: Date.now(), executionIds: ["1", "2"], steps: [{ executionId: "1", step: "a" }] });
  await none.idle();
});
