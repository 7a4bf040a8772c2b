import assert from "node:assert/strict";
import { test } from "node:test";
import { compileProgram } from "../../../../src/engine/program/program.ts";
import { loadPlaybook } from "../../../../src/language/load/load.ts";
import type { RenderedTask } from "../../../../src/schema/api/rendered.ts";
import type { Command, CommandContext, CommandLoop } from "../../../../src/schema/words/command.ts";
import type { JsonObject } from "../../../../src/schema/words/json.ts";
import type { StoredResult } from "../../../../src/schema/words/result.ts";
import { renderCommand } from "../../../../src/services/executions/rendered/render-command.ts";
import type { Done } from "../../../../src/services/executions/rendered/replay-pipeline.ts";

// What the templates of a command's tasks came to, told without a run: from what it was given and what its tasks gave.

const SEALED = "[sealed:k1:Zm9vYmFyYmF6]";

interface Given {
  context?: Partial<CommandContext>;
  loop?: Partial<CommandLoop>;
  iteration?: number;
  done?: readonly Done[];
}

/** Renders the first step of the workflow. */
function rendered(workflow: string, { context = {}, loop, iteration, done = [] }: Given = {}): RenderedTask[] {
  const text = `apiVersion: flow/v2\nkind: Playbook\nmetadata: { name: p }\n${workflow}`;
  const { playbook, diagnostics } = loadPlaybook(text, "p.yaml");
  assert.ok(playbook !== undefined, JSON.stringify(diagnostics));
  const command: Command = {
    command_id: "12",
    execution_id: "7",
    catalog_id: "3",
    step: playbook.steps[0]?.name ?? "",
    step_run_id: "11",
    step_started_at: 0,
    ...(loop !== undefined && { loop: { from: 0, items: [], max_in_flight: 1, stop_on_error: false, ...loop } }),
    context: { workload: {}, vars: {}, steps: {}, input: {}, ...context },
  };
  return renderCommand({ program: compileProgram(playbook), command, iteration, done });
}

/** The one task of a step of kind http whose `url` is the template. */
function url(template: string, given: Given = {}): RenderedTask {
  const text = JSON.stringify(template);
  const [task] = rendered(`workflow: [{ step: s, tool: { kind: http, url: ${text} } }]`, given);
  assert.ok(task !== undefined);
  return task;
}

const at = (task: RenderedTask | undefined, key = "url") => (task?.rendered as JsonObject | null)?.[key];

let serial = 0;
function done(task: string, value: StoredResult["value"], more: Partial<Done> = {}): Done {
  serial += 1;
  return {
    ...{ type: "task.done", at: 0, command_id: "12", attempt: 1, step: "s", task, task_run_id: `12-0-${serial}` },
    ...{ status: "ok", run: 1, final: true, result: { value: value ?? null }, duration_ms: 1 },
    ...more,
  } as Done;
}

test("templates are shown beside their rendered values, from inputs, variables and results of steps", () => {
  const context = {
    workload: { host: "a.test" },
    vars: { n: 3 },
    steps: { fetch: { value: { data: { id: 9 } } } },
    input: { q: "x y" },
    from: "fetch",
  };
  const task = url("https://{{ workload.host }}/{{ n }}/{{ fetch.id }}?q={{ q }}&r={{ result.data.id }}", { context });
  assert.equal(at(task), "https://a.test/3/9?q=x y&r=9");
  assert.deepEqual(
    task.template["url"],
    "https://{{ workload.host }}/{{ n }}/{{ fetch.id }}?q={{ q }}&r={{ result.data.id }}",
  );
  assert.deepEqual([task.unknown, task.secret, task.errors], [[], [], []]);
  assert.deepEqual(at(task, "input"), { q: "x y" });
});

test("a whole value keeps its type, and inputs are rendered in their order, the later one winning", () => {
  const [task] = rendered(
    `workflow:
  - step: s
    input: { a: "{{ workload.list }}", b: "{{ a | length }}", c: arc }
    tool: { kind: python, input: { c: "{{ b + 1 }}" }, code: "result = c" }
`,
    { context: { workload: { list: [1, 2] }, input: { c: 0, d: null } } },
  );
  // As the worker does it: what stands beside an input is not seen by it.
  assert.deepEqual(at(task, "input"), { c: 1, d: null, a: [1, 2], b: 0 });
  assert.deepEqual(task?.template["input"], { a: "{{ workload.list }}", b: "{{ a | length }}", c: "{{ b + 1 }}" });
});

for (const [what, template, shown] of [
  ["in a text", "Bearer {{ workload.access_token }}", "Bearer [secret]"],
  ["as it is", "{{ workload.access_token }}", "[secret]"],
  ["within a map", "{{ login }}", "[secret]"],
  ["in an expression", "{{ (workload.access_token | upper)[0:12] ~ 'x' }}", "[secret]"],
  ["by its length", "{{ login.token | length }}", "[secret]"],
  ["by what it decides", "{{ 'long' if login.token | length > 8 else 'short' }}", "[secret]"],
  ["by comparison", "{{ login.token == 'guess' }}", "[secret]"],
  ["in a block", "{% if login.token %}yes{% endif %}", "[secret]"],
  ["by a loop over what holds it", "{% for key in login %}{{ key }}={{ login[key] }};{% endfor %}", "[secret]"],
  ["by a variable", "{{ header.split(' ')[1] }}", "[secret]"],
  ["of the keychain", "{{ keychain.db.password }}", "[secret]"],
  ["of the environment", "{{ env.HOME }}", "[secret]"],
  ["of what a caller gave under such a name", "{{ workload.db.password ~ '!' }}", "[secret]"],
  ["of a token", "{{ token('db') }}", "[secret]"],
  ["beside one that is none", "{{ login.user }}", "Ada"],
] as const) {
  test(`a secret that is read ${what} is not shown, nor any value derived from it: ${template}`, () => {
    const task = url(template, {
      context: {
        workload: { access_token: SEALED, db: { password: "hunter2" } },
        steps: { login: { value: { user: "Ada", token: `x ${SEALED}` } } },
        vars: { header: `Bearer ${SEALED}` },
      },
    });
    assert.equal(at(task), shown);
    assert.deepEqual(task.secret, shown === "Ada" ? [] : ["url"]);
    assert.deepEqual([task.errors, task.unknown], [[], []]);
    assert.doesNotMatch(JSON.stringify(task), /sealed:|hunter2|SEALED|Zm9v/);
  });
}

test("a secret is not shown as an input, in a value derived by an input, or as written", () => {
  const [task] = rendered(
    `workflow:
  - step: s
    input: { head: "Bearer {{ given }}" }
    tool:
      kind: http
      url: "{{ head }}"
      auth: { type: bearer, token: "{{ keychain.a }}", password: hunter2 }
      headers: { authorization: "hunter2", x: "{{ head | length }}" }
`,
    { context: { input: { given: SEALED, password: "hunter2 {{ braces }}" } } },
  );
  assert.doesNotMatch(JSON.stringify(task), /sealed:|hunter2/);
  assert.deepEqual(at(task, "input"), { given: "[secret]", password: "[secret]", head: "Bearer [secret]" });
  assert.equal(at(task), "[secret]");
  assert.deepEqual(at(task, "headers"), { authorization: "[secret]", x: "[secret]" });
  assert.deepEqual(
    new Set(task?.secret),
    new Set([
      ...["input.given", "input.password", "input.head", "url", "auth.token", "auth.password"],
      ...["headers.authorization", "headers.x"],
    ]),
  );
});

test("a stored result is not loaded: its short fields are read, and the rest is marked as unknown", () => {
  const stored: StoredResult = {
    ref: {
      ...{ kind: "result_ref", ref: "noetl://execution/7/x", store: "kv", scope: "permanent" },
      meta: { content_type: "application/json", bytes: 1_000_000, sha256: "" },
      extracted: { page: 4 },
      preview: { truncated: true, bytes: 9, sample: "" },
    },
  };
  const task = url("{{ big.page }}/{{ big.rows[0].id }}", { context: { steps: { big: stored } } });
  assert.equal(at(task), "4/{{ big.rows[0].id }}");
  assert.deepEqual(task.unknown, [{ path: "url", waits_for: ["a stored result"] }]);
});

test("errors and values that depend on the time are shown in their place; the rest is still shown", () => {
  const [task] = rendered(
    `workflow:
  - step: s
    tool: { kind: http, url: "{{ 1 / 0 }}", headers: { a: "{{ now() }}", b: "{{ 1 + 1 }}", c: "{{ gone.nothing }}" } }
`,
  );
  assert.deepEqual(
    task?.errors.map(({ path }) => path),
    ["url"],
  );
  assert.match(task?.errors[0]?.message ?? "", /zero/i);
  assert.deepEqual(task?.unknown, [{ path: "headers.a", waits_for: ["now()"] }]);
  assert.deepEqual(at(task, "headers"), { a: "{{ now() }}", b: 2, c: null });
});

const PIPELINE = `workflow:
  - step: s
    tool:
      - a: { kind: http, url: "{{ _attempt }}", set: { seen: "{{ result.id }}", ctx.total: "{{ result.id + 1 }}" } }
      - b: { kind: http, url: "{{ a.id }}/{{ seen }}/{{ ctx.total }}/{{ output.status }}/{{ _prev.id }}" }
      - c: { kind: http, url: "{{ a.id }}/{{ b.id }}/{{ output.data.id }}" }
`;

test("a task reads the results and assignments of the tasks before it", () => {
  const [, b, c] = rendered(PIPELINE, { done: [done("a", { id: 5 }), done("b", { id: 6 })] });
  assert.equal(at(b), "5/5/6/ok/5");
  assert.equal(at(c), "5/6/6");
  assert.deepEqual([b?.unknown, c?.unknown], [[], []]);
});

test("values of later tasks are marked as unknown, and never guessed", () => {
  const [a, b, c] = rendered(PIPELINE);
  assert.equal(at(a), 1);
  assert.deepEqual(
    b?.unknown.flatMap(({ waits_for }) => waits_for),
    ["a", "seen, which task 'a' may write", "total, which task 'a' may write", "the task before it"],
  );
  assert.equal(at(c), "{{ a.id }}/{{ b.id }}/{{ output.data.id }}");
  const [, next, later] = rendered(PIPELINE, { done: [done("a", { id: 5 })] });
  assert.equal(at(next), "5/5/6/ok/5");
  assert.equal(at(later), "5/{{ b.id }}/{{ output.data.id }}");
});

test("a retry belongs to the same visit of the task; after a jump back the last visit is shown", () => {
  const failed = { status: "error", final: false, task_run_id: "12-0-1" } as const;
  const error = { kind: "timeout", code: "T", message: "late", retryable: true } as const;
  const first = [done("a", { id: 5 }, { task_run_id: "12-0-0" }), done("b", null, { ...failed, error })];
  const [, retried] = rendered(PIPELINE, { done: [...first, done("b", { id: 6 }, { task_run_id: "12-0-1", run: 2 })] });
  assert.equal(at(retried), "5/5/6/ok/5");
  const again = [done("a", { id: 7 }, { run: 3 }), done("b", { id: 8 }), done("c", { id: 9 })];
  const [a, b, c] = rendered(PIPELINE, { done: [...first.slice(0, 1), done("b", { id: 6 }), ...again] });
  assert.deepEqual([at(a), at(b), at(c)], [3, "7/7/8/ok/7", "7/8/8"]);
});

test("the next task reads a failure that a rule let pass", () => {
  const error = { kind: "timeout", code: "T", message: "late", retryable: true } as const;
  const result = { value: { status: "error", error } };
  const [, b] = rendered(
    `workflow:
  - step: s
    tool:
      - a: { kind: http, url: x, spec: { policy: { rules: [{ else: { then: { do: continue } } }] } } }
      - b: { kind: http, url: "{{ output.status }} {{ output.error.code }} {{ a.error.message }}" }
`,
    { done: [done("a", null, { status: "error", error, result })] },
  );
  assert.equal(at(b), "error T late");
});

test("a secret in a task's result stays secret for later tasks, also through its set", () => {
  const [, b] = rendered(
    `workflow:
  - step: s
    tool:
      - a: { kind: http, url: x, set: { head: "{{ 'Bearer ' ~ result.token }}" } }
      - b: { kind: http, url: "{{ head | length }}", headers: { a: "{{ a.token }}", b: "{{ output.data.id }}" } }
`,
    { done: [done("a", { token: SEALED, id: 1 })] },
  );
  assert.deepEqual([at(b), at(b, "headers")], ["[secret]", { a: "[secret]", b: 1 }]);
});

test("an iteration has its own item and index; values of the command's other iterations are unknown", () => {
  const [task] = rendered(
    `workflow:
  - step: s
    loop: { in: [], iterator: row, spec: { policy: { exec: local } } }
    tool: { kind: http, url: "{{ row.id }}/{{ iter.index }}/{{ iter._last }}/{{ count }}", set: { ctx.count: 1 } }
`,
    { loop: { from: 4, items: [{ id: "a" }, { id: "b" }], total: 6 }, iteration: 5, context: { vars: { count: 0 } } },
  );
  assert.equal(at(task), "b/5/true/{{ count }}");
  assert.deepEqual(task?.unknown, [{ path: "url", waits_for: ["count, which iterations write"] }]);
});

test("a workbook tool is shown with its own keys, and a missing one is reported", () => {
  const tasks = rendered(
    `workbook:
  - { name: get, tool: { kind: http, input: { a: 1, b: "{{ a }}", c: null }, url: "x/{{ a }}/{{ b }}/{{ c }}" } }
workflow:
  - step: s
    tool:
      - one: { kind: workbook, name: get, input: { a: 2, c: "{{ a }}" } }
      - two: { kind: workbook, name: none }
`,
    { context: { workload: { a: 5 } } },
  );
  assert.deepEqual([tasks[0]?.kind, at(tasks[0])], ["http", "x/2/5/5"]);
  assert.match(tasks[1]?.errors[0]?.message ?? "", /no tool 'none'/);
});

test("combined results of several runs of a task are marked as unknown", () => {
  const [, b] = rendered(
    `workflow:
  - step: s
    tool:
      - a: { kind: http, url: x, spec: { result: { accumulate: { strategy: append } } } }
      - b: { kind: http, url: "{{ a[0] }}" }
`,
    { done: [done("a", 1)] },
  );
  assert.deepEqual(b?.unknown, [{ path: "url", waits_for: ["the joined results of 'a'"] }]);
});

test("a value that is too long is not shown, and a rendering that takes too long is an error", () => {
  const context = { workload: { text: "x".repeat(300_000), list: Array.from({ length: 1_000 }, (_, n) => n) } };
  const long = url("{{ workload.text }}", { context });
  assert.equal(long.rendered, null);
  assert.match(long.errors[0]?.message ?? "", /longer than 262,144 characters/);
  const slow = url("{% for a in workload.list %}{% for b in workload.list %}{{ a * b }}{% endfor %}{% endfor %}", {
    context,
  });
  assert.match(slow.errors[0]?.message ?? "", /limit "(steps|text)"/);
});
