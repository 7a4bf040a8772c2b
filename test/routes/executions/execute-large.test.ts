import assert from "node:assert/strict";
import { before, test } from "node:test";
import { openApi } from "../../support/service/api.ts";
import { type Answer, ONE_STEP, TWO_STEPS, workWith } from "../../support/service/api-work.ts";

const api = await openApi();
const work = workWith(api);

/** Takes 0.25 s to be read and compiled, ten times as long as the calls that are answered meanwhile. */
const STEPS = 1_200;
const LARGE = Array.from({ length: STEPS }, (_, index) => {
  const next = index + 1 < STEPS ? `, next: [{step: s${index + 1}, when: "ctx.v > ${index}"}]` : "";
  return `  - {step: s${index}, tool: {kind: noop, a: "{{ workload.who }}"}, set: {ctx.v: "{{ ${index} + 1 }}"}${next}}\n`;
}).join("");

/** Calls that are answered one after the other, each after a question to the database. */
const CALLS = 8;

before(async () => {
  await work.register("runs/one", ONE_STEP);
  await work.register("runs/two", TWO_STEPS);
  // First starts of their own: what is compiled once is kept.
  for (const name of ["started", "called", "broken", "twice"]) await work.register(`large/${name}`, LARGE);
});

/** Sends a request, and others after it; says what was answered in which order. */
async function meanwhile(send: () => Promise<Answer>): Promise<{ answer: Answer; order: string[] }> {
  const order: string[] = [];
  const sent = send().then((answer) => {
    order.push("large");
    return answer;
  });
  for (let call = 0; call < CALLS; call += 1) {
    assert.equal((await work.get("/api/catalog/resource/runs/one")).status, 200);
    order.push("other");
  }
  return { answer: await sent, order };
}

const OTHERS_FIRST = [...Array.from({ length: CALLS }, () => "other"), "large"];

test("while 1,200 steps are started for the first time, other calls are answered; it runs, with a warning about unused inputs", async () => {
  const { answer, order } = await meanwhile(() =>
    work.post("/api/execute", { path: "large/started", workload: { whom: "you" } }),
  );
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  assert.deepEqual(order, OTHERS_FIRST);
  assert.match(JSON.stringify(answer.body["warnings"]), /did you mean 'who'/);
  const id = String(answer.body["execution_id"]);
  const [command] = await work.claim("w");
  assert.deepEqual([command?.execution_id, command?.step], [id, "s0"]);
  assert.equal(((await work.get(`/api/executions/${id}`)).body["steps"] as unknown[]).length, STEPS);
  await work.post(`/api/executions/${id}/cancel`);
});

test("the same for one that another execution calls", async () => {
  const parent = await work.execute("runs/two");
  const { answer, order } = await meanwhile(() =>
    work.post("/api/execute", { path: "large/called", parent_execution_id: parent, parent_step: "start" }),
  );
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  assert.deepEqual(order, OTHERS_FIRST);
  const { body } = await work.get(`/api/executions/${String(answer.body["execution_id"])}`);
  assert.equal(body["parent_execution_id"], parent);
  await work.post(`/api/executions/${parent}/cancel`);
});

test("two first starts at once run both", async () => {
  const ids = await Promise.all([work.execute("large/twice"), work.execute("large/twice")]);
  assert.notEqual(ids[0], ids[1]);
  for (const id of ids) {
    assert.equal((await work.get(`/api/executions/${id}`)).body["status"], "RUNNING");
    await work.post(`/api/executions/${id}/cancel`);
  }
});

test("a large document that is missing, or that this version cannot run, starts nothing and is reported", async () => {
  const count = async () => {
    const [row] = await api.database.sql<{ n: number }[]>`select count(*)::int as n from flow.execution`;
    return row?.n;
  };
  const before = await count();
  await api.database.sql`
    update flow.catalog set content = content || '  - {step: s0, tool: {kind: noop}}' where path = 'large/broken'`;
  const { answer, order } = await meanwhile(() => work.post("/api/execute", { path: "large/broken" }));
  assert.deepEqual([answer.status, answer.body["code"]], [422, "INVALID_PLAYBOOK"]);
  assert.match(String(answer.body["error"]), /'?large\/broken@1'? is no playbook that this version can run/);
  assert.deepEqual(order, OTHERS_FIRST);
  const none = await work.post("/api/execute", { path: "large/none" });
  assert.deepEqual([none.status, none.body["error"]], [404, "Executable catalog entry not found"]);
  assert.equal(await count(), before);
});
