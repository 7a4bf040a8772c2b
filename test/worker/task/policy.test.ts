import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import { setup } from "../support/bench.ts";
import { bad, http, ok } from "../support/scripted-tools.ts";

// Language document, sections 5.2 to 5.5: what a task's rules see, and what each action does.

/** A step of two tasks; `rules` are those of the first. */
function withRules(rules: string, more = ""): string {
  return `
workflow:
  - step: a
    tool:
      - first: { kind: http, spec: { policy: { rules: [${rules.replace(/\s+/g, " ")}] } } }
      - second: { kind: shell, cmd: "{{ output.status }}" }
    ${more}
`;
}

test("the envelope contains status, data, error, meta and the driver's own fields", async (t) => {
  const answer = http(404, { why: "gone" }, { "x-id": "7" });
  const { completed } = setup(t, { tools: { first: [answer] } });
  const ran = await completed(`
workflow:
  - step: a
    tool:
      - first: { kind: http, spec: { policy: { rules: [{ else: { then: { do: continue, set: { envelope: "{{ output }}", again: "{{ outcome.result.data.why }}" } } } }] } } }
`);
  const { envelope, again } = ran.state.vars as { envelope: JsonObject; again: string };
  const { message, ...error } = envelope["error"] as JsonObject;
  assert.match(String(message), /HTTP_404/);
  assert.deepEqual(
    { ...envelope, error },
    {
      status: "error",
      data: { status_code: 404, headers: { "x-id": "7" }, data: { why: "gone" } },
      error: { kind: "client_error", code: "HTTP_404", retryable: false, step: "a", task: "first", attempt: 1 },
      ref: null,
      meta: { attempt: 1, duration_ms: 0 },
      http: { status: 404, headers: { "x-id": "7" } },
    },
  );
  assert.equal(again, "gone");
});

test("the envelope carries pg and py of those tools, and the duration on the clock", async (t) => {
  const bench = setup(t, {
    tools: {
      sql: async () => {
        await bench.clock.sleep(1_500);
        return bad("db_constraint", "23505", { pg: { code: "23505", sqlstate: "23505" } });
      },
      py: [bad("client_error", "ValueError", { py: { exception: "ValueError", traceback: "line 3" } })],
    },
  });
  const go = "spec: { policy: { rules: [{ else: { then: { do: continue } } }] } }";
  const ran = await bench.completed(`
workflow:
  - step: a
    tool:
      - sql: { kind: sqldb, query: x, ${go} }
      - py: { kind: python, code: "{{ output.pg.sqlstate }} {{ output.meta.duration_ms }}", ${go} }
      - last: { kind: noop, result: { py: "{{ output.py.exception }}", http: "{{ output.http is defined }}" } }
`);
  assert.equal(bench.calls[1]?.config["code"], "23505 1500");
  const { py, http: answer } = (await ran.step("a")) as JsonObject;
  assert.deepEqual([py, answer], ["ValueError", false]);
});

test("a result that says status: error is no failure", async (t) => {
  const { completed } = setup(t, { tools: { first: [ok({ status: "error", error: "so it says" })] } });
  const ran = await completed(withRules(""));
  assert.equal(ran.of("task.done")[0]?.status, "ok");
});

test("without rules, and where none matches, success continues and an error fails", async (t) => {
  const rules = `{ when: "output.error.code == 'OTHER'", then: { do: continue } }`;
  for (const text of [withRules(""), withRules(rules)]) {
    const good = setup(t, { tools: { first: [ok({})] } });
    await good.completed(text);
    assert.equal(good.calls.length, 2);
    const wrong = setup(t, { tools: { first: [bad("auth", "HTTP_401")] } });
    const { state } = await wrong.failed(text);
    assert.equal(wrong.calls.length, 1);
    const { message, ...error } = state.error!;
    assert.deepEqual(error, { kind: "auth", code: "HTTP_401", retryable: false, step: "a", task: "first", attempt: 1 });
    assert.match(message, /it failed with HTTP_401/);
  }
});

test("the first rule that matches decides", async (t) => {
  const { completed, calls } = setup(t, { tools: { first: [ok({ n: 1 })] } });
  const ran = await completed(
    withRules(`
      { when: "output.data.n == 2", then: { do: fail, set: { chosen: 1 } } },
      { when: "output.data.n == 1", then: { do: break, set: { chosen: 2 } } },
      { when: "true", then: { do: continue, set: { chosen: 3 } } }`),
  );
  assert.equal(ran.state.vars["chosen"], 2);
  assert.equal(calls.length, 1);
});

for (const rule of [
  "{ else: { then: { do: break } } }",
  "{ else: { do: break } }",
  "{ else: null, then: { do: break } }",
  "{ when: 'true', then: { do: break } }",
  "{ when: \"{{ output.status == 'ok' }}\", then: { do: break } }",
]) {
  test(`the rule ${rule} ends the pipeline`, async (t) => {
    const { completed, calls } = setup(t);
    const ran = await completed(withRules(rule));
    assert.deepEqual(
      calls.map(({ task }) => task),
      ["first"],
    );
    assert.equal(ran.state.steps["a"]?.status, "COMPLETED");
  });
}

test("a rule that cannot be evaluated does not match", async (t) => {
  const { completed, calls } = setup(t);
  await completed(
    withRules(`{ when: "output.data < 'text'", then: { do: fail } }, { when: "5 + {} == 1", then: { do: fail } }`),
  );
  assert.equal(calls.length, 2);
});

test("continue after an error goes on, and the label holds the error", async (t) => {
  const { completed, calls } = setup(t, { tools: { first: [bad("connection", "REFUSED")] } });
  const ran = await completed(withRules("{ else: { then: { do: continue } } }"));
  assert.equal(calls[1]?.config["cmd"], "error");
  const done = ran.of("task.done")[0];
  assert.equal(done?.status, "error");
  const held = done?.result?.value as { status: string; error: JsonObject };
  assert.deepEqual([held.status, held.error["code"]], ["error", "REFUSED"]);
});

test("fail after an error keeps the error, after a success it is of kind policy", async (t) => {
  const rules = "{ else: { then: { do: fail } } }";
  const wrong = await setup(t, { tools: { first: [http(404, { why: "gone" })] } }).failed(withRules(rules));
  assert.equal(wrong.state.error?.code, "HTTP_404");
  const { state } = await setup(t).failed(withRules(rules));
  const { message, ...error } = state.error!;
  assert.deepEqual(error, { kind: "policy", code: "POLICY", retryable: false, step: "a", task: "first", attempt: 1 });
  assert.match(message, /policy rule failed task 'first'/);
});

test("an arc reads the body of the answer that failed the step", async (t) => {
  const { completed } = setup(t, { tools: { a: [http(404, { why: "gone" })] } });
  const ran = await completed(`
workflow:
  - step: a
    tool: { kind: http }
    next:
      arcs:
        - { step: end, when: "event.name == 'step.failed' and output.error.code == 'HTTP_404'", set: { why: "{{ output.data.why }}", status: "{{ output.status }}" } }
  - step: end
`);
  assert.deepEqual(ran.state.vars, { why: "gone", status: "error" });
});

const JUMPING = `
workflow:
  - step: a
    tool:
      - count: { kind: noop, set: { ctx.n: "{{ (n | default(0)) + 1 }}" } }
      - work: { kind: http, url: "{{ n }}" }
      - check: { kind: noop, spec: { policy: { rules: [{ when: "n < 3", then: { do: jump, to: TARGET } }] } } }
`;

test("jump goes to a label, and what it makes anew replaces what was there", async (t) => {
  const { completed, calls } = setup(t);
  const ran = await completed(JUMPING.replace("TARGET", "count"));
  assert.deepEqual(
    calls.map((call) => call.config["url"]),
    [1, 2, 3],
  );
  assert.equal(ran.state.vars["n"], 3);
  const runs = ran.of("task.done").filter(({ task }) => task === "work");
  assert.equal(new Set(runs.map((event) => event.task_run_id)).size, 3, "Each is a task run of its own");
  assert.deepEqual(((await ran.step("a")) as JsonObject)["config"], { url: 3 });
});

for (const spelling of ["previous", "prev", "_previous", "@previous"]) {
  test(`jump to ${spelling} is to the task before`, async (t) => {
    let left = 2;
    const { completed, calls } = setup(t, { tools: { work: () => ok({ left: left-- }) } });
    await completed(`
workflow:
  - step: a
    tool:
      - before: { kind: shell, cmd: x }
      - work: { kind: http }
      - check: { kind: noop, spec: { policy: { rules: [{ when: "work.left > 0", then: { do: jump, to: "${spelling}" } }] } } }
`);
    assert.deepEqual(
      calls.map(({ task }) => task),
      ["before", "work", "work", "work"],
    );
  });
}

test("a jump resets the counters of the tasks that it leads back over", async (t) => {
  const fail = bad("connection", "REFUSED");
  const tools = { flaky: [fail, ok({ go: "back" }), fail, ok({ go: "on" })] };
  const { completed, calls } = setup(t, { tools });
  await completed(`
workflow:
  - step: a
    tool:
      - start: { kind: noop }
      - flaky:
          kind: http
          spec: { policy: { rules: [{ when: "output.status == 'error'", then: { do: retry, attempts: 2 } }, { when: "output.data.go == 'back'", then: { do: jump, to: start } }] } }
`);
  assert.deepEqual(
    calls.map(({ attempt }) => attempt),
    [1, 2, 1, 2],
  );
});

test("then.set is applied for every action, in its scope, with maps and lists", async (t) => {
  const actions = {
    continue: "do: continue",
    break: "do: break",
    jump: "do: jump, to: last",
    retry: "do: retry, attempts: 2",
    fail: "do: fail",
  };
  for (const [name, action] of Object.entries(actions)) {
    const { run } = setup(t);
    const ran = await run(`
workflow:
  - step: a
    tool:
      - first:
          kind: http
          spec: { policy: { rules: [{ when: "_attempt == 1", then: { ${action}, set: { plain: { is: ["{{ output.status }}"] }, ctx.c: 1, step.s: 2, iter.i: 3 }, set_ctx: { d: 4 }, set_iter: { j: 5 } } }] } }
      - last: { kind: shell, cmd: "{{ iter.i }} {{ iter.j }} {{ plain.is[0] }}" }
`);
    assert.deepEqual(ran.state.vars, { d: 4, plain: { is: ["ok"] }, c: 1, s: 2 }, name);
    assert.equal(ran.state.status, name === "fail" ? "FAILED" : "COMPLETED");
  }
});

test("a later assignment of one list sees what an earlier one wrote", async (t) => {
  const { completed } = setup(t);
  const ran = await completed(`
workflow:
  - step: a
    tool:
      kind: http
      set: { iter.x: 1, iter.y: "{{ iter.x + 1 }}", ctx.z: "{{ iter.y + 1 }}", w: "{{ z + 1 }}", ctx.all: "{{ [z, w] }}" }
`);
  assert.deepEqual(ran.state.vars, { z: 3, all: [3, 4] });
});

test("an assignment that cannot be evaluated fails its task", async (t) => {
  const { failed } = setup(t);
  const { state } = await failed(withRules('{ else: { then: { do: continue, set: { x: "{{ {} + 1 }}" } } } }'));
  assert.deepEqual([state.error?.kind, state.error?.task], ["template", "first"]);
});

test("a task's set is applied after an error that a rule went on from, and sees the error", async (t) => {
  const set =
    'set: { ctx.code: "{{ output.error.code }}", ctx.label: "{{ first.error.code }}", told: "{{ output.data.why }}" }';
  const tail = `      - second: { kind: shell, cmd: "{{ told }}" }`;
  for (const [action, expected] of [
    ["do: continue", { code: "HTTP_404", label: "HTTP_404" }],
    ["do: break", {}],
    ["do: jump, to: second", {}],
    ["do: fail", {}],
  ] as const) {
    const { run, calls } = setup(t, { tools: { first: [http(404, { why: "gone" })] } });
    const ran = await run(`
workflow:
  - step: a
    tool:
      - first: { kind: http, ${set}, spec: { policy: { rules: [{ then: { ${action} } }] } } }
${tail}
`);
    assert.deepEqual(ran.state.vars, expected, action);
    if (action === "do: continue") assert.equal(calls[1]?.config["cmd"], "gone");
  }
});

test("fail says why: in the words of the rule, after a success and after an error", async (t) => {
  const rule = `{ else: { then: { do: fail, code: "{{ output.data.code or none }}", message: "Order {{ output.data.order }}: {{ output.data.why }}", set: { seen: 1 } } } }`;
  const data = { order: 7, why: "no stock", code: "NO_STOCK" };
  const good = await setup(t, { tools: { first: [ok(data)] } }).failed(withRules(rule));
  const { kind, code, message, retryable, task } = good.state.error!;
  assert.deepEqual([kind, code, message, retryable, task], ["policy", "NO_STOCK", "Order 7: no stock", false, "first"]);
  assert.deepEqual(good.state.vars, { seen: 1 });
  const wrong = setup(t, { tools: { first: [{ ...bad("timeout", "T"), data }] } });
  const { state, of } = await wrong.failed(withRules(rule));
  assert.deepEqual(
    [state.error?.kind, state.error?.code, state.error?.message, state.error?.retryable],
    ["timeout", "NO_STOCK", "Order 7: no stock", true],
  );
  // What the tool said is told all the same.
  assert.equal(of("call.error")[0]?.error.code, "T");
});

test("a message or code that comes to nothing leaves the error as it was, and one without end is cut", async (t) => {
  const empty = `{ else: { then: { do: fail, code: "{{ none }}", message: " {{ '' }} " } } }`;
  const { state } = await setup(t, { tools: { first: [ok({})] } }).failed(withRules(empty));
  assert.deepEqual(
    [state.error?.code, /although its tool had succeeded/.test(state.error?.message ?? "")],
    ["POLICY", true],
  );
  const long = `{ else: { then: { do: fail, code: "4711", message: "{{ 'm' * 100000 }}" } } }`;
  const cut = await setup(t, { tools: { first: [ok({})] } }).failed(withRules(long));
  assert.deepEqual([cut.state.error?.code, cut.state.error?.message.length], ["4711", 4_000]);
});

test("a message that cannot be rendered fails the task with that", async (t) => {
  const { state } = await setup(t).failed(withRules('{ else: { then: { do: fail, message: "{{ {} + 1 }}" } } }'));
  assert.deepEqual([state.error?.kind, state.error?.task], ["template", "first"]);
});

test("a task's set is applied after success only, once", async (t) => {
  const set = 'set: { ctx.n: "{{ (n | default(0)) + 1 }}" }';
  const { run } = setup(t, { tools: { first: [bad("timeout", "T"), ok({})], second: [bad("timeout", "T")] } });
  const ran = await run(`
workflow:
  - step: a
    tool:
      - first: { kind: http, ${set}, spec: { policy: { rules: [{ when: "output.status == 'error'", then: { do: retry } }] } } }
      - second: { kind: http, ${set} }
`);
  assert.deepEqual(ran.state.vars, { n: 1 });
});
