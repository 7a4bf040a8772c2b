import assert from "node:assert/strict";
import { test } from "node:test";
import { type Body, openApi } from "../../support/service/api.ts";
import { workWith } from "../../support/service/api-work.ts";

/* Triggers for ends of executions and for signals (control, rules 24, 25 and 44). */

const api = await openApi({ FLOW_PURE_STEPS: "server" });
const work = workWith(api);
const { sql } = api.database;

async function register(path: string, triggers: string, step = "kind: noop"): Promise<void> {
  const head = `apiVersion: flow/v2\nkind: Playbook\nmetadata: { name: p, path: ${path} }\nworkload: { got: none }\nworkflow:\n`;
  const content = `${head}  - { step: start, tool: { ${step} } }\ntriggers:\n${triggers}`;
  const { status, body } = await work.post("/api/catalog/register", { content });
  assert.equal(status, 200, JSON.stringify(body));
}

async function triggerOf(path: string): Promise<string> {
  const { body } = await work.get(`/api/triggers?path=${path}`);
  return String((body["triggers"] as Body[])[0]?.["trigger_id"]);
}

const firesOf = async (path: string) =>
  (await work.get(`/api/triggers/${await triggerOf(path)}/fires`)).body["fires"] as Body[];

const sweep = () => api.service.triggers.sweep();
const noted = async () => (await sql`select from flow.watched_end`).length;

test("where no trigger watches, no end is noted", async () => {
  await work.register("e/alone", "  - { step: start, tool: { kind: noop } }\n");
  await work.execute("e/alone");
  assert.equal(await noted(), 0);
});

test("an end fires the triggers that watch its path and status, once, with what it came to", async () => {
  api.service.watching.ends = true;
  await work.register("e/load", "  - { step: start, tool: { kind: noop, result: { rows: 3 } } }\n");
  await register(
    "e/after",
    `  - { name: after, execution: { path: "e/l*" }, input: { got: "{{ trigger.execution.result.rows }}" } }\n`,
  );
  await register("e/failed", `  - { name: after, execution: { path: "e/load", status: [FAILED, CANCELLED] } }\n`);
  const id = await work.execute("e/load");
  assert.equal(await noted(), 1);
  // A server that dies after the fire, and before it has forgotten the end.
  const [end] = await sql<{ id: string }[]>`select execution_id as id from flow.watched_end`;
  await Promise.all([sweep(), sweep()]);
  await sql`insert into flow.watched_end (execution_id) values (${end?.id ?? ""}) on conflict do nothing`;
  await sweep();
  const fires = await firesOf("e/after");
  assert.deepEqual(
    fires.map(({ status }) => status),
    ["started"],
  );
  assert.deepEqual(await firesOf("e/failed"), []);
  const execution = (await work.get(`/api/executions/${fires[0]?.["execution_id"]}`)).body;
  assert.deepEqual((execution["workload"] as Body)["got"], 3);
  assert.equal(end?.id, id);
  await sweep();
  assert.equal(await noted(), 0);
});

test("an execution fires no trigger from which it came, and a chain of ends is sixteen long", async () => {
  api.service.watching.ends = true;
  await register("c/self", `  - { name: again, execution: { path: "c/self" } }\n`);
  await work.execute("c/self");
  for (let looks = 0; looks < 5; looks += 1) await sweep();
  const [last, first, ...rest] = await firesOf("c/self");
  assert.deepEqual([last?.["status"], first?.["status"], rest.length], ["skipped", "started", 0]);
  assert.match(String(last?.["reason"]), /^Execution \d+ came from this trigger$/);
  // Lineage has the trigger, from both sides, and what is deleted of it.
  const second = String(first?.["execution_id"]);
  const brief = (rows: unknown) =>
    (rows as Body[]).map(({ execution_id: id, by, trigger, of }) => [id === second, by, trigger, of === null]);
  const above = (await work.get(`/api/executions/${second}/lineage`)).body;
  assert.deepEqual([brief(above["ancestors"]), above["descendants"]], [[[false, "trigger", "again", true]], []]);
  const [top] = above["ancestors"] as Body[];
  const below = (await work.get(`/api/executions/${top?.["execution_id"]}/lineage`)).body;
  assert.deepEqual(brief(below["descendants"]), [[true, "trigger", "again", false]]);
  assert.equal((await work.send("DELETE", `/api/executions/${top?.["execution_id"]}`)).status, 200);
  const kept = (await work.get(`/api/executions/${second}/lineage`)).body["ancestors"] as Body[];
  assert.deepEqual([kept.length, typeof kept[0]?.["deleted_at"]], [1, "string"]);

  for (let index = 1; index <= 18; index += 1) {
    await register(`d/n${index}`, `  - { name: next, execution: { path: "d/n${index - 1}" } }\n`);
  }
  await work.register("d/n0", "  - { step: start, tool: { kind: noop } }\n");
  await work.execute("d/n0");
  for (let looks = 0; looks < 20; looks += 1) await sweep();
  assert.equal((await firesOf("d/n16"))[0]?.["status"], "started");
  const [over] = await firesOf("d/n17");
  assert.deepEqual([over?.["status"], over?.["reason"]], ["skipped", "16 ends of executions led to this one"]);
  assert.deepEqual(await firesOf("d/n18"), []);
});

test("a signal without a key fires the triggers of its name, once for its id; one with a key does not", async () => {
  await register(
    "s/asked",
    `  - { name: asked, signal: { name: recalculate }, input: { got: "{{ signal.data.n }}" } }\n`,
  );
  const send = (body: Body) => work.post("/api/signals/recalculate", body);
  const first = await send({ data: { n: 7 }, id: "a" });
  assert.deepEqual([first.status, first.body["reached"]], [202, 1]);
  await send({ data: { n: 7 }, id: "a" });
  await send({ data: { n: 8 }, key: "k" });
  const fires = await firesOf("s/asked");
  assert.deepEqual(
    fires.map(({ status }) => status),
    ["started"],
  );
  const execution = (await work.get(`/api/executions/${fires[0]?.["execution_id"]}`)).body;
  assert.equal((execution["workload"] as Body)["got"], 7);
});
