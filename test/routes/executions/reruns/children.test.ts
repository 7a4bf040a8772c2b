import assert from "node:assert/strict";
import { before, test } from "node:test";
import { type Body, openApi, posted } from "../../../support/service/api.ts";
import { type Claimed, claimOf, ONE_STEP, TWO_STEPS } from "../../../support/service/api-work.ts";
import { addUser, allow } from "../../../support/service/users.ts";
import { asUser, rerunsOf } from "./support.ts";

/* Reruns that take results of completed children (control, rule 11), through the API and, as workers do, in the name of a claim. */

const api = await openApi();
const { work, rerun, begun, refused, claimed, fails, stores, runs, detail } = rerunsOf(api);

const PARENT = `  - step: first
    tool: { kind: noop }
    next: { arcs: [{ step: call }] }
  - step: call
    tool: { kind: playbook, path: c/child }
    next: { arcs: [{ step: after }] }
  - step: after
    tool: { kind: noop }
`;
const LOOP = `  - step: each
    loop: { in: "{{ workload.items }}", iterator: item, spec: { mode: parallel, max_in_flight: 3 } }
    tool: { kind: playbook, path: c/child }
    next: { arcs: [{ step: after }] }
  - step: after
    tool: { kind: noop }
`;

before(async () => {
  for (const path of ["c/child", "c/other"]) await work.register(path, ONE_STEP);
  await work.register("c/parent", PARENT);
  await work.register("c/loop", LOOP);
  await work.register(
    "c/two",
    TWO_STEPS.replaceAll("step: start", "step: data").replaceAll("step: end", "step: check"),
  );
  await work.register("c/takes", PARENT.replace("path: c/child", "path: c/two, return_step: data"));
  await work.register("c/template", PARENT.replace("path: c/child", 'path: "{{ workload.which }}"'));
});

/** A completed run of a playbook with one step. */
async function completed(path: string, more: Body = {}): Promise<string> {
  const id = await work.execute(path, more);
  assert.equal((await work.runToEnd(id))["status"], "COMPLETED");
  return id;
}

async function removed(executionId: string): Promise<void> {
  const { status, body } = await work.send("DELETE", `/api/executions/${executionId}`);
  assert.ok(status < 300, JSON.stringify(body));
}

/** A run of the parent whose calling step failed. */
async function failedParent(path = "c/parent", workload: Body = {}): Promise<string> {
  const id = await work.execute(path, { workload });
  await work.finish("w", await claimed(id, "first"));
  await fails(await claimed(id, "call"));
  await work.runToEnd(id);
  return id;
}

/** Calls a playbook as the worker does that has claimed a command of the execution; gives the answer and the secret of its claim. */
async function call(command: Claimed, more: Body = {}, path = "c/child") {
  const headers = await claimOf(api, command.execution_id);
  const body = { path, parent_execution_id: command.execution_id, parent_step: command.step, ...more };
  const response = await api.guarded.request("/api/execute", posted(body, headers));
  return { status: response.status, body: (await response.json()) as Body, headers };
}

test("a completed child's result is taken by the step that called it, and nothing is started for it", async () => {
  const id = await failedParent();
  const child = await completed("c/child");
  const again = await begun(id, { reuse_children: { call: child } });
  const command = await claimed(again, "call");
  const { status, body, headers } = await call(command);
  assert.equal(status, 200, JSON.stringify(body));
  assert.deepEqual([body["execution_id"], body["status"], body["duplicate"]], [child, "COMPLETED", true]);
  const read = await api.guarded.request(`/api/executions/${child}/result?sealed=true`, { headers });
  assert.equal(read.status, 200, await read.text());
  // The worker that called ends the children of a call that it gives up: what is over stays as it is.
  const stopped = await api.guarded.request(`/api/executions/${child}/cancel`, posted({}, headers));
  assert.ok([200, 202].includes(stopped.status), await stopped.text());
  assert.equal((await detail(child))["status"], "COMPLETED");
  await work.finish("w", command, { ok: true });
  assert.equal((await work.runToEnd(again))["status"], "COMPLETED");
  const { sql } = api.database;
  assert.deepEqual([...(await sql`select 1 from flow.execution where parent_execution_id = ${again}`)], []);
});

test("without the name a rerun starts a child of its own, which has it as its parent", async () => {
  const again = await begun(await failedParent());
  const command = await claimed(again, "call");
  const { body } = await call(command);
  const child = String(body["execution_id"]);
  assert.equal((await detail(child))["parent_execution_id"], again);
  await work.runToEnd(child);
  await work.finish("w", command);
  await work.runToEnd(again);
});

test("what a child took over itself is read in the name of the rerun, and outlives both, and goes with the rerun", async () => {
  const first = await work.execute("c/two");
  const ref = await stores(await claimed(first, "data"), '"of the data"');
  await fails(await claimed(first, "check"));
  await work.runToEnd(first);
  const child = await begun(first);
  await work.runToEnd(child);
  const id = await failedParent("c/takes");
  const again = await begun(id, { reuse_children: { call: child } });
  const command = await claimed(again, "call");
  const { body, headers } = await call(command, { return_step: "data" }, "c/two");
  assert.equal(body["execution_id"], child);
  const read = async () => {
    const query = new URLSearchParams({ ref, execution_id: again, sealed: "true" });
    const response = await api.guarded.request(`/api/results/resolve?${query}`, { headers });
    return [response.status, await response.text()];
  };
  assert.deepEqual(await read(), [200, '"of the data"']);
  for (const gone of [first, child]) await removed(gone);
  assert.deepEqual(await read(), [200, '"of the data"']);
  await work.finish("w", command);
  await work.runToEnd(again);
  await removed(again);
  assert.equal((await api.open.request(`/api/results/resolve?${new URLSearchParams({ ref })}`)).status, 404);
});

test("iterations of a loop take the children that are named for them; the others start their own", async () => {
  const id = await work.execute("c/loop", { workload: { items: ["a", "b", "c"] } });
  await runs(id, () => "fails");
  const [zero, last] = [await completed("c/child"), await completed("c/child")];
  const again = await begun(id, { reuse_children: { "each[0]": zero, "each[2]": last } });
  const command = await claimed(again, "each");
  const called: unknown[] = [];
  for (const index of [0, 1, 2]) {
    const { status, body } = await call(command, { parent_iter: { index, _index: index } });
    assert.equal(status, 200, JSON.stringify(body));
    called.push(body["execution_id"]);
  }
  assert.deepEqual([called[0], called[2]], [zero, last]);
  assert.equal((await detail(String(called[1])))["parent_execution_id"], again);
  // What the rows are called does not matter.
  const { body: named } = await call(command, { parent_iter: { index: "b", _index: 2 } });
  assert.equal(named["execution_id"], last);
  await work.post(`/api/executions/${again}/cancel`);
});

test("names of no calling step, of no loop, of an iteration that there was not, and of steps that do not run are refused", async () => {
  const child = await completed("c/child");
  const id = await failedParent();
  const loop = await work.execute("c/loop", { workload: { items: ["a", "b", "c"] } });
  await runs(loop, () => "fails");
  const done = await completed("c/parent");
  for (const [of, caller, pattern, more] of [
    [id, "nowhere", /no step/, {}],
    [id, "after", /calls no playbook/, {}],
    [id, "call[0]", /no loop/, {}],
    [id, "call[]", /no step/, {}],
    [id, "call[-1]", /no step/, {}],
    [loop, "each", /each\[0\]/, {}],
    [loop, "each[3]", /3 iterations/, {}],
    [loop, "each[99999999999999999999]", /iterations/, {}],
    [loop, "nowhere[0]", /no step/, {}],
    [done, "call", /does not run/, { from: ["after"] }],
  ] as const) {
    const told = await refused(of, { reuse_children: { [caller]: child }, ...more });
    assert.equal(told.code, "INVALID_INPUT");
    assert.deepEqual(told.detail, { caller, execution_id: child }, caller);
    assert.ok(told.message.includes(`'${caller}'`), told.message);
    assert.match(told.message, pattern);
  }
  assert.equal((await rerun(loop, { reuse_children: { "each[2]": child }, dry_run: true })).status, 200);
});

test("a child that did not complete, is of another path or is not there is refused; a plan refuses it too", async () => {
  const id = await failedParent();
  const open = await work.execute("c/child");
  await work.post(`/api/executions/${open}/pause`);
  const cancelled = await work.execute("c/child");
  await work.post(`/api/executions/${cancelled}/cancel`);
  const failed = await work.execute("c/child");
  await runs(failed, (call) => (call === "start" ? "fails" : null));
  assert.equal((await detail(failed))["status"], "FAILED");
  const other = await completed("c/other");
  for (const [child, pattern] of [
    [open, /PAUSED/],
    [cancelled, /CANCELLED/],
    [failed, /FAILED/],
    [other, /c\/other/],
    ["12345", /does not exist/],
    [id, /FAILED/],
  ] as const) {
    for (const dry_run of [false, true]) {
      const told = await refused(id, { reuse_children: { call: child }, dry_run });
      assert.deepEqual(told.detail, { caller: "call", execution_id: child });
      assert.match(told.message, pattern);
    }
  }
  for (const children of [{ call: "x" }, { call: 7 }, { call: "" }, ["1"]]) {
    assert.equal((await rerun(id, { reuse_children: children })).status, 422);
  }
  await work.post(`/api/executions/${open}/cancel`);
});

test("a child that the caller may not view is refused as one that is not there", async () => {
  const user = await addUser(api.database);
  await allow(api.database, user, [{ allow: "c/**", can: ["execute"] }]);
  const id = await failedParent();
  const child = await completed("c/child");
  const told = await asUser(api, user, `/api/executions/${id}/rerun`, { reuse_children: { call: child } });
  const unknown = await asUser(api, user, `/api/executions/${id}/rerun`, { reuse_children: { call: "12345" } });
  assert.deepEqual([told.status, unknown.status], [422, 422]);
  assert.deepEqual(String(told.body["error"]).replace(child, "N"), String(unknown.body["error"]).replace("12345", "N"));
});

test("a path that is a template is compared when the step calls; a child that was deleted since is not taken", async () => {
  const id = await failedParent("c/template", { which: "c/other" });
  const child = await completed("c/child");
  const again = await begun(id, { reuse_children: { call: child } });
  const command = await claimed(again, "call");
  const { status, body } = await call(command, {}, "c/other");
  assert.deepEqual([status, body["code"]], [409, "CONFLICT"]);
  assert.match(String(body["error"]), /of 'c\/child'/);
  assert.equal((await call(command)).body["execution_id"], child);
  await removed(child);
  const gone = await call(command);
  assert.deepEqual([gone.status, gone.body["code"]], [409, "CONFLICT"]);
  assert.match(String(gone.body["error"]), /has been deleted/);
  await work.finish("w", command);
  await work.runToEnd(again);
});

test("a child reruns by itself: it has no parent, and the old one stays as it was; its result can be taken then", async () => {
  const id = await work.execute("c/parent");
  await work.finish("w", await claimed(id, "first"));
  const command = await claimed(id, "call");
  const child = String((await call(command)).body["execution_id"]);
  await fails(await claimed(child, "start"));
  assert.equal((await work.runToEnd(child))["status"], "FAILED");
  await fails(command);
  await work.runToEnd(id);
  const again = await begun(child);
  assert.equal((await detail(again))["parent_execution_id"], null);
  assert.equal((await work.runToEnd(again))["status"], "COMPLETED");
  assert.equal((await detail(id))["status"], "FAILED");
  const parent = await begun(id, { reuse_children: { call: again } });
  const calling = await claimed(parent, "call");
  assert.equal((await call(calling)).body["execution_id"], again);
  await work.finish("w", calling);
  assert.equal((await work.runToEnd(parent))["status"], "COMPLETED");
});

test("a sealed result of another tree cannot be taken: its key is another one", async () => {
  const id = await failedParent();
  const plain = await completed("c/child");
  const child = await work.execute("c/child");
  await stores(await claimed(child, "start"), '"[sealed:k1:AAAA]"');
  await work.runToEnd(child);
  const told = await refused(id, { reuse_children: { call: child } });
  assert.match(told.message, /sealed/);
  const { body } = await rerun(id, { reuse_children: { call: plain }, dry_run: true });
  assert.equal(body["rerun_of"], id);
});
