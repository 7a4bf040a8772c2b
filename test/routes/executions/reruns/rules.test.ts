import assert from "node:assert/strict";
import { before, test } from "node:test";
import { type Body, openApi } from "../../../support/service/api.ts";
import { endOf } from "../../../support/service/api-work.ts";
import { endOfLoop, rerunsOf } from "./support.ts";

/* What runs again and what is taken over (control, rules 5 to 10), with loops and after other steering. */

const api = await openApi();
const { work, rerun, begun, refused, claimed, fails, runs, detail } = rerunsOf(api);

const LOOP = `  - step: list
    tool: { kind: noop }
    next: { arcs: [{ step: each }] }
  - step: each
    loop: { in: "{{ workload.items }}", iterator: item, spec: { mode: parallel, max_in_flight: 100 } }
    tool: { kind: http, url: "https://example.org/{{ item }}" }
    next: { arcs: [{ step: after }] }
  - step: after
    tool: { kind: noop }
`;
const CHAIN = `  - step: one
    tool: { kind: noop }
    set: { ctx.a: 1, ctx.b: 1, ctx.c: 1 }
    next: { arcs: [{ step: two, set: { x: "arrived", y: "arrived", z: "arrived" } }] }
  - step: two
    input: { y: "{{ workload.who }} of the step", z: "of the step" }
    tool: { kind: noop }
    next: { arcs: [{ step: three }] }
  - step: three
    tool: { kind: noop }
`;
const CURSOR = `  - step: each
    loop:
      cursor: { kind: postgres, claim: "update t set taken = true returning *" }
      iterator: row
      spec: { mode: cursor, frame: { max_rows: 3, row_concurrency: 3 } }
    tool: { kind: noop }
`;

before(async () => {
  await work.register("q/loop", LOOP);
  await work.register("q/chain", CHAIN);
  await work.register("q/cursor", CURSOR);
});

const stepsOf = (body: Body) =>
  Object.fromEntries(
    (body["steps"] as Body[]).map(({ name, status, reused_from }) => [name, reused_from ? "reused" : status]),
  );
const eventsOf = async (id: string, query = "") =>
  (await work.get(`/api/executions/${id}/events?limit=500&${query}`)).body["events"] as Body[];

test("an open execution is not repeated, whatever its state; of one in which nothing failed the steps are asked for", async () => {
  const id = await work.execute("q/chain");
  for (const steer of ["pause", "resume"]) {
    await work.post(`/api/executions/${id}/${steer}`);
    const { status, body } = await rerun(id, { dry_run: true });
    assert.deepEqual([status, body["code"]], [409, "not_terminal"]);
    assert.match(String(body["error"]), steer === "pause" ? /PAUSED/ : /RUNNING/);
  }
  assert.deepEqual(await runs(id), ["one", "two", "three"]);
  assert.equal((await refused(id, { from: "failed" })).code, "nothing_failed");
  assert.deepEqual((await refused(id, { from: ["two", "no", "nor"] })).detail, { unknown_steps: ["no", "nor"] });
  for (const [body, pattern] of [
    [{ form: ["two"] }, /form/],
    [{ from: "all" }, /from/],
    [{ only: "yes" }, /only/],
    [{ version: 0 }, /version/],
    [{ step_input: { two: 1 } }, /step_input/],
    [{ variables: [] }, /variables/],
  ] as const) {
    assert.match(JSON.stringify((await rerun(id, body)).body), pattern);
    assert.equal((await rerun(id, body)).status, 422);
  }
});

test("cancelled: what was open runs again; what had not begun follows, and nothing that ended is repeated", async () => {
  const id = await work.execute("q/chain");
  await work.finish("w", await claimed(id, "one"));
  await claimed(id, "two");
  await work.post(`/api/executions/${id}/pause`);
  await work.post(`/api/executions/${id}/cancel`);
  const { status, body } = await rerun(id);
  assert.equal(status, 202, JSON.stringify(body));
  assert.deepEqual([body["reused"], body["will_run"]], [1, ["two", "three"]]);
  const again = String(body["execution_id"]);
  assert.deepEqual(await runs(again), ["two", "three"]);
  const ended = await detail(again);
  assert.deepEqual([ended["status"], ended["paused"]], ["COMPLETED", undefined]);
  assert.deepEqual(stepsOf(ended), { one: "reused", two: "COMPLETED", three: "COMPLETED" });
});

test("cancelled while a pause held it before its next step: that step runs", async () => {
  const id = await work.execute("q/chain");
  const command = await claimed(id, "one");
  await work.post(`/api/executions/${id}/pause`);
  await work.finish("w", command);
  await work.post(`/api/executions/${id}/cancel`);
  const { status, body } = await rerun(id, { dry_run: true });
  assert.equal(status, 200, JSON.stringify(body));
  assert.deepEqual(await runs(await begun(id)), body["will_run"]);
});

test("a step that was ended by hand stays as it was ended; from it on it runs as its tool says", async () => {
  const id = await work.execute("q/chain");
  const override = (step: string, body: Body) =>
    work.post(`/api/executions/${id}/steps/${step}/override`, { reason: "by hand", ...body });
  await override("one", { action: "complete", result: { by: "hand" } });
  await override("three", { action: "skip" });
  await fails(await claimed(id, "two"));
  await runs(id);
  const again = await begun(id);
  // The order for the step that was not reached was one of the original.
  assert.deepEqual(await runs(again), ["two", "three"]);
  assert.deepEqual(stepsOf(await detail(again)), { one: "reused", two: "COMPLETED", three: "COMPLETED" });
  const { body } = await work.get(`/api/executions/${again}/result?step=one`);
  assert.deepEqual(body["result"], { by: "hand" });
  assert.deepEqual(await runs(await begun(id, { from: ["one"] })), ["one", "two", "three"]);
});

test("the order of what is given: recorded, variables, input over the workload, step_input over the step's input", async () => {
  const id = await work.execute("q/chain", { workload: { who: "first", kept: 1 } });
  await work.finish("w", await claimed(id, "one"));
  await fails(await claimed(id, "two"));
  await runs(id);
  const again = await begun(id, {
    ...{ variables: { b: 2, d: 2 }, input: { who: "second" } },
    step_input: { two: { z: "given" } },
  });
  const command = await claimed(again, "two");
  const { context } = command as unknown as {
    context: { vars: Body; workload: Body; input: Body; given: string[] };
  };
  assert.deepEqual(context.workload, { who: "second" });
  assert.deepEqual(context.input, { x: "arrived", y: "arrived", z: "given" });
  assert.deepEqual(context.given, ["z"], "its own input does not replace it; y it does");
  await work.finish("w", command);
  await runs(again);
  const [first] = await eventsOf(again, "event_type=playbook.initialized");
  assert.deepEqual(((first as Body)["meta"] as Body)["workload"], { who: "second", kept: 1 });
  const [restored] = await eventsOf(again, "event_type=workflow.restored");
  assert.deepEqual(((restored as Body)["meta"] as Body)["vars"], {
    a: 1,
    b: 2,
    c: 1,
    d: 2,
    x: "arrived",
    y: "arrived",
    z: "arrived",
  });
});

test("copies name what they are of and have its times", async () => {
  const id = await work.execute("q/chain");
  await work.finish("w", await claimed(id, "one"));
  await fails(await claimed(id, "two"));
  await runs(id);
  const [of] = await eventsOf(id, "step=one&event_type=step.completed");
  const again = await begun(id);
  await runs(again);
  const third = await begun(again, { from: ["three"] });
  await runs(third);
  for (const one of [again, third]) {
    const [copy, ...more] = await eventsOf(one, "step=one");
    assert.deepEqual(more, []);
    const { reused_from, kept } = (copy as Body)["meta"] as { reused_from: Body; kept: Body };
    assert.deepEqual(reused_from, {
      ...{ execution_id: id, event_id: of?.["event_id"] },
      created_at: new Date(Number(kept["ended_at"])).toISOString(),
    });
    const { steps, rerun_of } = await detail(one);
    assert.equal(rerun_of, one === again ? id : again);
    const shown = (steps as Body[])[0] as Body;
    assert.deepEqual([shown["name"], shown["reused_from"]], ["one", reused_from]);
    const original = ((await detail(id))["steps"] as Body[])[0] as Body;
    assert.deepEqual([shown["started_at"], shown["duration_ms"]], [original["started_at"], original["duration_ms"]]);
  }
});

// Of 10,000: test/engine/rerun/loops.test.ts.
test("of a loop of 200 iterations with 3 failures the 3 run, the first and the last among them", async () => {
  const items = Array.from({ length: 200 }, (_, index) => index);
  const id = await work.execute("q/loop", { workload: { items } });
  const failing = new Set(["each[0]", "each[100]", "each[199]"]);
  await runs(id, (call) => (failing.has(call) ? "fails" : null));
  assert.equal((await detail(id))["status"], "FAILED");
  const again = await begun(id);
  assert.deepEqual(await runs(again), [...failing, "after"]);
  const ended = await detail(again);
  assert.equal(ended["status"], "COMPLETED");
  const { loop } = (ended["steps"] as { name: string; loop?: Body }[]).find(({ name }) => name === "each") ?? {};
  assert.deepEqual([loop?.["total"], loop?.["done"], loop?.["failed"]], [200, 200, 0]);
});

test("a changed item runs, also of an iteration that succeeded; one more runs, one less is left out; all run if asked", async () => {
  const id = await work.execute("q/loop", { workload: { items: ["a", "b", "c"] } });
  await runs(id, (call) => (call === "each[1]" ? "fails" : null));
  for (const [body, calls] of [
    [{}, ["each[1]"]],
    [{ input: { items: ["a", "b", "d"] } }, ["each[1]", "each[2]"]],
    [{ input: { items: ["a", "b", "c", "d"] } }, ["each[1]", "each[3]"]],
    [{ input: { items: ["a", "b"] } }, ["each[1]"]],
    [{ input: { items: [] } }, []],
    [{ reuse_iterations: false }, ["each[0]", "each[1]", "each[2]"]],
    [{ from: ["list"] }, ["list", "each[0]", "each[1]", "each[2]"]],
  ] as const) {
    const again = await begun(id, body as Body);
    assert.deepEqual((await runs(again)).sort(), ["after", ...calls].sort(), JSON.stringify(body));
    assert.equal((await detail(again))["status"], "COMPLETED");
  }
});

test("with another version a step of another kind is refused with its name; from it on it runs", async () => {
  await work.register("q/kinds", CHAIN);
  const id = await work.execute("q/kinds");
  await work.finish("w", await claimed(id, "one"));
  await fails(await claimed(id, "two"));
  await runs(id);
  const other = CHAIN.replace("tool: { kind: noop }", 'tool: { kind: python, code: "result = 1" }');
  await work.register("q/kinds", other);
  for (const version of ["latest", 2]) {
    const told = await refused(id, { version });
    assert.deepEqual([told.code, told.detail], ["INVALID_INPUT", { unmatched_steps: ["one"] }]);
  }
  assert.deepEqual(await runs(await begun(id, { version: 2, from: "start" })), ["one", "two", "three"]);
  // A loop is another kind than what it repeats.
  const looped = CHAIN.replace("- step: one\n", "- step: one\n    loop: { in: [1], iterator: i }\n");
  await work.register("q/kinds", looped);
  assert.deepEqual((await refused(id, { version: 3 })).detail, { unmatched_steps: ["one"] });
  const same = await begun(id, { version: "same" });
  assert.deepEqual([await runs(same), (await detail(same))["version"]], [["two", "three"], 1]);
  const { status, body } = await rerun(id, { version: 4 });
  assert.deepEqual([status, body["code"]], [404, "NOT_FOUND"]);
});

/** Runs a cursor's loop: claims give these rows. Gives the items of the iterations that ran. */
async function runsRows(id: string, pages: readonly (readonly string[])[], failing?: string): Promise<string[]> {
  const ran: string[] = [];
  const left = [...pages];
  for (;;) {
    const [command] = await work.claim("w", 1, 50);
    if (command === undefined && (await detail(id))["ended_at"] !== null) return ran.sort();
    if (command === undefined) continue;
    const isClaim = command["claim"] !== undefined;
    const events = isClaim
      ? endOf(command)
          .slice(-1)
          .map((event) => ({ ...event, meta: { rows: left.shift() ?? [] } }))
      : endOfLoop(command, (_, item) => {
          ran.push(String(item));
          return item === failing ? "fails" : null;
        });
    const { status, body } = await work.post("/api/events/batch", { worker: "w", events });
    assert.equal(status, 202, JSON.stringify(body));
  }
}

test("a loop over a cursor runs as a whole: which rows its claims give now is not known before", async () => {
  const id = await work.execute("q/cursor");
  assert.deepEqual(await runsRows(id, [["a", "b"]], "b"), ["a", "b"]);
  assert.equal((await detail(id))["status"], "FAILED");
  const again = await begun(id);
  assert.deepEqual(await runsRows(again, [["a", "c"], ["b"]]), ["a", "b", "c"]);
  assert.equal((await detail(again))["status"], "COMPLETED");
});
