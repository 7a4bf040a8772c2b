import assert from "node:assert/strict";
import { before, test } from "node:test";
import { type Body, openApi } from "../../support/service/api.ts";
import { ONE_STEP, TWO_STEPS, workWith } from "../../support/service/api-work.ts";

// The table of contents of a long log, and what narrows a log. The log is long because rows are added to it here.

const api = await openApi();
const work = workWith(api);
const ADDED = 1_000;
let id = "";
/** Every event of the execution, oldest first. */
let all: Body[] = [];

before(async () => {
  await work.register("one", ONE_STEP);
  id = await work.execute("one");
  for (const command of await work.claim("w", 1)) await work.finish("w", command, "x".repeat(5_000));
  await work.get(`/api/executions/${id}/result?wait_ms=5000`);
  await added("command.claimed", "each", { from: 1, to: ADDED });
  all = await pages("limit=500");
});

/** Adds events to the end of the log; of each tenth the worker is `slow`, each hundredth has failed. */
async function added(type: string, step: string, { from, to }: { from: number; to: number }): Promise<void> {
  const { sql } = api.database;
  await sql`
    insert into flow.event (event_id, execution_id, catalog_id, event_type, node_id, node_name, node_type, status, worker,
      error)
    select (select max(event_id) from flow.event where execution_id = ${id}) + at - ${from}::int + 1, execution_id,
      catalog_id, ${type}, ${step}, ${step}, 'step', case when at % 100 = 0 then 'FAILED' else 'CLAIMED' end,
      case when at % 10 = 0 then 'slow' else 'fast' end,
      case when at % 100 = 0 then json_build_object('message', 'Broke "here" at ' || at, 'at', U&'\\0041') end
    from generate_series(${from}::int, ${to}::int) as at cross join flow.execution where execution_id = ${id}`;
}

async function pages(query: string): Promise<Body[]> {
  const events: Body[] = [];
  for (let cursor = ""; ; ) {
    const { status, body } = await work.get(`/api/executions/${id}/events?${query}${cursor}`);
    assert.equal(status, 200, JSON.stringify(body));
    events.push(...(body["events"] as Body[]));
    if (body["next_cursor"] === null) return events;
    cursor = `&cursor=${body["next_cursor"]}`;
  }
}

async function marks(query: string): Promise<Body> {
  const { status, body } = await work.get(`/api/executions/${id}/events/marks?${query}`);
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

const idsOf = (events: unknown) => (events as Body[]).map(({ event_id }) => event_id);

test("marks give the number of events and the position of every n-th one", async () => {
  const { count, every, last_event_id, more, marks: marked } = await marks("every=100");
  assert.deepEqual([count, every, more], [all.length, 100, false]);
  assert.equal(last_event_id, all.at(-1)?.["event_id"]);
  const each = all.filter((_, index) => (index + 1) % 100 === 0);
  assert.deepEqual(
    marked,
    each.map(({ event_id, created_at }) => ({ event_id, created_at })),
  );
  assert.equal((await marks(""))["every"], 500);
});

test("a page after a mark is the page of that number", async () => {
  const { marks: marked } = await marks("every=200");
  const after = idsOf(marked)[1];
  const { body } = await work.get(`/api/executions/${id}/events?after=${after}&limit=200`);
  assert.deepEqual(idsOf(body["events"]), idsOf(all.slice(400, 600)));
});

test("marks count only the filtered events", async () => {
  for (const [query, isMeant] of [
    ["step=each", (event: Body) => event["node_id"] === "each"],
    ["event_type=command.claimed&worker=slow", (event: Body) => event["worker"] === "slow"],
    ["failed=true", (event: Body) => event["status"] === "FAILED"],
    ["q=BROKE%20%22here%22%20at%20700", (event: Body) => JSON.stringify(event).includes("at 700")],
    ["q=playbook.init", (event: Body) => event["event_type"] === "playbook.initialized"],
    [
      `command_id=${all.find((event) => "command_id" in event)?.["command_id"]}`,
      (event: Body) => "command_id" in event,
    ],
    ["step=none", () => false],
  ] as const) {
    const meant = all.filter(isMeant);
    assert.deepEqual(idsOf(await pages(`limit=7&${query}`)), idsOf(meant), query);
    assert.deepEqual(idsOf(await pages(`limit=7&order=desc&${query}`)), idsOf(meant.toReversed()), query);
    const { count, marks: marked, last_event_id } = await marks(`every=100&${query}`);
    assert.deepEqual([count, last_event_id], [meant.length, all.at(-1)?.["event_id"]], query);
    assert.deepEqual(idsOf(marked), idsOf(meant.filter((_, index) => (index + 1) % 100 === 0)), query);
  }
});

test("newest first goes back to the first event, from the end or from an event that is known", async () => {
  assert.deepEqual(idsOf(await pages("order=desc&limit=300")), idsOf(all.toReversed()));
  const known = all[700]?.["event_id"];
  const { body } = await work.get(`/api/executions/${id}/events?order=desc&before=${known}&limit=3`);
  assert.deepEqual(idsOf(body["events"]), idsOf(all.slice(697, 700).toReversed()));
  const between = await pages(`after=${all[10]?.["event_id"]}&before=${all[15]?.["event_id"]}`);
  assert.deepEqual(idsOf(between), idsOf(all.slice(11, 15)));
});

test("short values leave out what is long and say so", async () => {
  const short = await pages("values=short");
  assert.deepEqual(idsOf(short), idsOf(all));
  const done = short.find(({ event_type }) => event_type === "task.done");
  assert.deepEqual([done?.["omitted"], "result" in (done ?? {})], [["result"], false]);
  assert.equal(JSON.stringify(all.find(({ event_type }) => event_type === "task.done")).length > 5_000, true);
  const failed = short.find(({ status }) => status === "FAILED");
  assert.match(JSON.stringify(failed?.["error"]), /Broke/);
  assert.ok(!short.some((event) => "omitted" in event && (event["omitted"] as []).length === 0));
});

test("counting goes on from where it was when the log has grown", async () => {
  const query = "every=100&step=each";
  const first = await marks(query);
  await added("command.completed", "each", { from: ADDED + 1, to: ADDED + 250 });
  const rest = await marks(`${query}&after=${first["last_event_id"]}&counted=${first["count"]}`);
  const whole = await marks(query);
  assert.equal(rest["count"], whole["count"]);
  assert.deepEqual([...(first["marks"] as Body[]), ...(rest["marks"] as Body[])], whole["marks"]);
  const none = await marks(`${query}&after=${rest["last_event_id"]}&counted=${rest["count"]}`);
  assert.deepEqual([none["count"], none["marks"], none["last_event_id"]], [whole["count"], [], rest["last_event_id"]]);
});

test("an execution's answer names its newest event", async () => {
  const other = await work.execute("one");
  const { body } = await work.get(`/api/executions/${other}`);
  const { body: log } = await work.get(`/api/executions/${other}/events`);
  assert.equal(body["last_event_id"], (log["events"] as Body[]).at(-1)?.["event_id"]);
  await work.runToEnd(other);
});

test("a client with older steps gets those that changed since", async () => {
  await work.register("two", TWO_STEPS);
  const other = await work.execute("two");
  const path = `/api/executions/${other}`;
  const { body: first } = await work.get(path);
  const stepsSince = async (since: Body) => (await work.get(`${path}?steps_after=${since["last_event_id"]}`)).body;
  const namesOf = ({ steps }: Body) => (steps as Body[]).map(({ name, status }) => [name, status]);
  assert.deepEqual([namesOf(first).length, first["steps_total"]], [2, 2]);
  const [command] = await work.claim("w");
  assert.ok(command !== undefined);
  const claimed = await stepsSince(first);
  assert.deepEqual([namesOf(claimed), claimed["steps_total"]], [[["start", "RUNNING"]], 2]);
  await work.finish("w", command);
  await work.runToEnd(other);
  const ended = await stepsSince(claimed);
  assert.deepEqual(namesOf(ended), [
    ["start", "COMPLETED"],
    ["end", "COMPLETED"],
  ]);
  assert.deepEqual(
    (ended["steps"] as Body[]).map(({ order }) => order),
    [1, 2],
  );
  assert.deepEqual([(await stepsSince(ended))["steps"], ended["status"]], [[], "COMPLETED"]);
  assert.equal((await work.get(`${path}?steps_after=x`)).status, 422);
});

test("marks of nothing are 404, and queries that make no sense 422", async () => {
  assert.equal((await work.get("/api/executions/4711/events/marks")).status, 404);
  for (const query of [
    "marks?every=99",
    "marks?every=501",
    "marks?counted=-1",
    "marks?after=x",
    "marks?q=",
    "marks?failed=no",
    `?q=${"x".repeat(201)}`,
    "?order=up",
    "?before=x",
    "?values=none",
    "?step=",
    "?command_id=abc",
  ]) {
    const address = `/api/executions/${id}/events${query.startsWith("?") ? query : `/${query}`}`;
    const { status, body } = await work.get(address);
    assert.deepEqual([status, body["code"]], [422, "INVALID_INPUT"], query);
  }
});
