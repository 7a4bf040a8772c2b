import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { evolve } from "../../../src/engine/state/evolve.ts";
import { emptyState } from "../../../src/engine/state/state.ts";
import { type EventRecord, fromRecord } from "../../../src/schema/rules/event-record.ts";
import { type Body, buildApi, openApi } from "../../support/service/api.ts";
import { type Claimed, endOf, workWith } from "../../support/service/api-work.ts";

/* Control, section 1 and rules 4 to 13, through the API, with a second server of the same database that hears nothing of the first. */

const api = await openApi();
const elsewhere = await buildApi(api.database);
after(() => elsewhere.service.orchestrator.close());
const work = workWith(api);
const there = workWith(elsewhere);

const CHAIN = `  - step: fetch
    tool: { kind: http, url: "https://example.org/{{ workload.who }}" }
    set: { ctx.n: "{{ (n | default(0)) + 1 }}" }
    next: { arcs: [{ step: load, set: { day: "{{ fetch.day }}" } }] }
  - step: load
    tool: { kind: http, method: POST, url: "https://example.org/", json: { n: "{{ n }}", day: "{{ day }}", who: "{{ workload.who }}" } }
    set: { ctx.n: "{{ n + 10 }}" }
    next: { arcs: [{ step: report }] }
  - step: report
    tool: { kind: python, code: "result = 1", input: { a: "{{ fetch.day }}" } }
`;

before(async () => {
  await work.register("r/chain", CHAIN);
});

/** These steps and nothing after them. */
const only = true;

const detailOf = async (id: string) => (await work.get(`/api/executions/${id}`)).body;
const rerun = (id: string, body: Body = {}, headers = {}, at = work) =>
  at.post(`/api/executions/${id}/rerun`, body, headers);
const stepsOf = (body: Body) =>
  Object.fromEntries(
    (body["steps"] as Body[]).map(({ name, status, reused_from }) => [name, reused_from ? "reused" : status]),
  );

/** The command of a step, claimed. */
async function claimed(step: string, at = work): Promise<Claimed> {
  const [command] = await at.claim("w");
  assert.equal(command?.step, step);
  return command as Claimed;
}

async function fails(command: Claimed, at = work): Promise<void> {
  const events = endOf(command, { status: 500 }).map((event) =>
    event["event_type"] === "command.completed"
      ? {
          ...event,
          event_type: "command.failed",
          error: { kind: "unknown", code: "X", message: "no", retryable: false },
        }
      : event,
  );
  const { status, body } = await at.post("/api/events/batch", { worker: "w", events });
  assert.equal(status, 202, JSON.stringify(body));
}

/** A run of the chain of which `load` failed. */
async function failed(input: Body = {}): Promise<string> {
  const id = await work.execute("r/chain", { workload: input });
  await work.finish("w", await claimed("fetch"), { day: "monday" });
  await fails(await claimed("load"));
  await work.runToEnd(id);
  return id;
}

/** The fold of the log that the API shows is the state that the server has. */
async function assertFolds(id: string): Promise<void> {
  const { body } = await work.get(`/api/executions/${id}/events?limit=500`);
  const events = (body["events"] as EventRecord[]).filter(({ event_type: type }) => !type.startsWith("batch."));
  const state = events.map((record) => fromRecord(record)).reduce(evolve, emptyState());
  const shown = await detailOf(id);
  assert.equal(state.status, shown["status"]);
  assert.deepEqual(
    Object.entries(state.steps)
      .map(([name, { status, runs, order }]) => [name, status, runs, order])
      .sort(),
    (shown["steps"] as Body[])
      .filter(({ order, status }) => order !== 0 || status === "SKIPPED")
      .map(({ name, status, runs, order }) => [name, status, runs, order])
      .sort(),
  );
}

test("what failed runs again, with what it had; what ran before is taken over and names its original", async () => {
  const id = await failed();
  const { status, body } = await rerun(id, { reason: "the port was closed" });
  assert.equal(status, 202, JSON.stringify(body));
  const { execution_id: again, ...told } = body;
  assert.equal(told["rerun_of"], id);
  assert.deepEqual([told["reused"], told["will_run"]], [1, ["load", "report"]]);
  const command = await claimed("load");
  assert.equal(command.execution_id, again);
  const { context } = command as unknown as { context: { vars: Body; input: Body } };
  assert.deepEqual([context.vars, context.input], [{ n: 1, day: "monday" }, { day: "monday" }]);
  await work.finish("w", command, { ok: true });
  const ended = await work.runToEnd(String(again));
  assert.equal(ended["status"], "COMPLETED");
  assert.equal(ended["rerun_of"], id);
  assert.deepEqual(stepsOf(ended), { fetch: "reused", load: "COMPLETED", report: "COMPLETED" });
  const { body: log } = await work.get(`/api/executions/${again}/events?step=fetch`);
  const [copy] = log["events"] as { meta: { reused_from: Body } }[];
  const { body: before } = await work.get(`/api/executions/${id}/events?step=fetch&event_type=step.completed`);
  const [original] = before["events"] as Body[];
  assert.deepEqual(
    [copy?.meta.reused_from["execution_id"], copy?.meta.reused_from["event_id"]],
    [id, original?.["event_id"]],
  );
  assert.equal((log["events"] as Body[]).length, 1);
  await assertFolds(String(again));
  assert.equal((await detailOf(id))["status"], "FAILED");
});

test("labels that were given with the start are kept, and those of the playbook rendered anew", async () => {
  const labels = '{ team: data, who: "{{ workload.who }}" }';
  await work.register("r/labelled", `${CHAIN}executor: { spec: { labels: ${labels} } }\n`);
  const given = { extra: "x", ticket: "4711" };
  const id = await work.execute("r/labelled", { labels: given });
  await work.post(`/api/executions/${id}/cancel`);
  const { body } = await rerun(id, { input: { who: "eve" } });
  const again = await detailOf(String(body["execution_id"]));
  assert.deepEqual(again["labels"], { ...given, team: "data", who: "eve" });
  const { body: found } = await work.get("/api/executions?q=label.ticket:4711%20by:rerun");
  assert.deepEqual(
    (found["executions"] as Body[]).map(({ execution_id }) => execution_id),
    [again["execution_id"]],
  );
  await work.post(`/api/executions/${again["execution_id"]}/cancel`);
});

test("a dry run answers the plan and begins nothing", async () => {
  const id = await failed();
  const { status, body } = await rerun(id, { dry_run: true });
  assert.equal(status, 200);
  assert.equal(body["execution_id"], undefined);
  assert.deepEqual(body["steps"], [
    { step: "fetch", action: "reuse", kind: "http", effect: null, protected_by: null },
    { step: "load", action: "run", kind: "http", effect: "sends POST", protected_by: null },
    { step: "report", action: "run", kind: "python", effect: "runs code", protected_by: null },
  ]);
  assert.deepEqual(await work.claim("w", 1, 0), []);
});

test("another server reruns it too, and goes on with what the first had", async () => {
  const id = await failed();
  const { status, body } = await rerun(id, {}, {}, there);
  assert.equal(status, 202, JSON.stringify(body));
  await api.service.orchestrator.recovery.poll();
  const command = await claimed("load");
  assert.equal(command.execution_id, body["execution_id"]);
  await work.finish("w", command, { ok: true });
  assert.equal((await work.runToEnd(String(body["execution_id"])))["status"], "COMPLETED");
});

test("the order of edits: recorded variables, variables, input, the step's input", async () => {
  const id = await failed({ who: "me" });
  const edits = { variables: { n: 5 }, input: { who: "you" }, step_input: { load: { day: "friday" } } };
  const { body } = await rerun(id, edits);
  const command = await claimed("load");
  const { context } = command as unknown as { context: { vars: Body; input: Body; workload: Body; given: string[] } };
  assert.deepEqual(context.vars, { n: 5, day: "monday" });
  assert.deepEqual(context.workload, { who: "you" });
  assert.deepEqual([context.input, context.given], [{ day: "friday" }, ["day"]]);
  await work.finish("w", command, { ok: true });
  assert.equal((await work.runToEnd(String(body["execution_id"])))["status"], "COMPLETED");
  assert.deepEqual((await detailOf(String(body["execution_id"])))["workload"], { who: "you" });
});

test("from the start everything runs, and a completed one does by default; nothing failed in it", async () => {
  const id = await work.execute("r/chain");
  await work.runToEnd(id);
  assert.equal((await rerun(id, { from: "failed" })).body["code"], "nothing_failed");
  const { status, body } = await rerun(id, { input: { who: "all" } });
  assert.equal(status, 202);
  assert.deepEqual([body["reused"], body["will_run"]], [0, ["fetch", "load", "report"]]);
  const ended = await work.runToEnd(String(body["execution_id"]));
  assert.deepEqual(stepsOf(ended), { fetch: "COMPLETED", load: "COMPLETED", report: "COMPLETED" });
  assert.deepEqual([ended["workload"], ended["rerun_of"]], [{ who: "all" }, id]);
});

test("only the steps that are asked for run, and nothing after them", async () => {
  const id = await work.execute("r/chain");
  await work.runToEnd(id);
  const { body } = await rerun(id, { from: ["load"], only });
  assert.deepEqual(body["will_run"], ["load"]);
  const ended = await work.runToEnd(String(body["execution_id"]));
  assert.deepEqual(
    [ended["status"], stepsOf(ended)],
    ["COMPLETED", { fetch: "reused", load: "COMPLETED", report: "SKIPPED" }],
  );
});

test("a rerun of a rerun from a step that it had taken over goes back to where that ran", async () => {
  const first = await failed();
  const second = String((await rerun(first, { variables: { n: 100 } })).body["execution_id"]);
  await work.runToEnd(second);
  const { status, body } = await rerun(second, { from: ["fetch"] });
  assert.equal(status, 202, JSON.stringify(body));
  assert.deepEqual([body["rerun_of"], body["reused"]], [second, 0]);
  const command = await claimed("fetch");
  await work.finish("w", command, { day: "tuesday" });
  const load = await claimed("load");
  assert.deepEqual((load as unknown as { context: { vars: Body } }).context.vars, { n: 101, day: "tuesday" });
  await work.finish("w", load, { ok: true });
  assert.equal((await work.runToEnd(String(body["execution_id"])))["status"], "COMPLETED");
  // And from a step that ran in the rerun.
  const { body: third } = await rerun(second, { from: ["report"] });
  assert.deepEqual([third["reused"], third["will_run"]], [2, ["report"]]);
  const { body: log } = await work.get(`/api/executions/${third["execution_id"]}/events?step=fetch`);
  const [copy] = log["events"] as { meta: { reused_from: Body } }[];
  assert.equal(copy?.meta.reused_from["execution_id"], first);
  await work.runToEnd(String(third["execution_id"]));
});

test("a call that is repeated under its key begins nothing more, and answers the same", async () => {
  const id = await failed();
  const headers = { "idempotency-key": `once-${id}` };
  const { body: once } = await rerun(id, {}, headers);
  const { status, body: twice } = await rerun(id, {}, headers, there);
  assert.equal(status, 202);
  assert.deepEqual(
    [twice["execution_id"], twice["reused"], twice["will_run"], twice["duplicate"]],
    [once["execution_id"], 1, ["load", "report"], true],
  );
  assert.equal((await rerun(id, { only, from: ["load"] }, headers)).status, 422);
  await work.runToEnd(String(once["execution_id"]));
});

test("what cannot be run again is refused with its reason", async () => {
  const open = await work.execute("r/chain");
  const { status, body } = await rerun(open);
  assert.deepEqual([status, body["code"]], [409, "not_terminal"]);
  await work.runToEnd(open);
  for (const [asked, pattern] of [
    [{ from: ["nowhere"] }, /nowhere/],
    [{ from: ["load"], unknown: 1 }, /unknown/],
    [{ from: ["load"], step_input: { fetch: { a: 1 } } }, /fetch/],
    [{ from: ["load"], step_input: { nowhere: { a: 1 } } }, /nowhere/],
    [{ from: [] }, /from/],
    [{ version: 99 }, /99/],
  ] as const) {
    const refused = await rerun(open, asked as Body);
    assert.ok(refused.status === 422 || refused.status === 404, JSON.stringify(refused.body));
    assert.match(JSON.stringify(refused.body), pattern);
  }
  const early = await failed();
  const unreached = await rerun(early, { from: ["report"], only });
  assert.deepEqual([unreached.status, (unreached.body["detail"] as Body)["unreached_steps"]], [422, ["report"]]);
  assert.equal((await rerun("12345", {})).status, 404);
});

test("another version takes over what it has by name and kind, and refuses what it has not", async () => {
  const id = await failed();
  await work.register("r/chain", CHAIN.replace("result = 1", "result = 2"));
  const { status, body } = await rerun(id, { version: "latest" });
  assert.deepEqual([status, body["version"], body["reused"]], [202, 2, 1], JSON.stringify(body));
  await work.runToEnd(String(body["execution_id"]));
  await work.register("r/chain", CHAIN.replaceAll("fetch", "get"));
  const renamed = await rerun(id, { version: "latest" });
  assert.deepEqual([renamed.status, (renamed.body["detail"] as Body)["unmatched_steps"]], [422, ["fetch"]]);
  await work.register(
    "r/chain",
    CHAIN.replace('kind: http, url: "https://example.org/{{ workload.who }}"', "kind: noop"),
  );
  const changed = await rerun(id, { version: "latest" });
  assert.deepEqual([changed.status, (changed.body["detail"] as Body)["unmatched_steps"]], [422, ["fetch"]]);
  assert.equal((await rerun(id, { version: 1, dry_run: true })).status, 200);
  await work.register("r/chain", CHAIN);
});
