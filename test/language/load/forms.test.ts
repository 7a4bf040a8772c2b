import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Json } from "../../../src/schema/words/json.ts";
import type { Step } from "../../../src/schema/words/playbook.ts";
import { essence, HEAD, loadValid } from "../load-support.ts";

/** The only step of a workflow, or the first. */
function step(text: string): Step {
  const [first] = loadValid(`${HEAD}workflow:\n${text}`).steps;
  assert.ok(first);
  return first;
}

/** Tasks of a step `one` with this `tool`, written in YAML's flow style. */
function tasks(tool: string): Json {
  return essence(step(`  - { step: one, tool: ${tool} }\n`).tasks);
}

/** The single task's policy. */
function policy(rules: string): Json {
  const [task] = step(`  - { step: one, tool: { kind: noop, spec: { policy: { rules: ${rules} } } } }\n`).tasks;
  return essence(task?.policy);
}

function loop(text: string): Json {
  return essence(step(`  - { step: one, tool: { kind: noop }, loop: ${text} }\n`).loop);
}

/** `next` of step `one`; steps `a`, `b` and `c` exist too. */
function next(text: string): Json {
  const others = ["a", "b", "c"].map((name) => `  - { step: ${name}, tool: { kind: noop } }\n`);
  return essence(step(`  - { step: one, tool: { kind: noop }, next: ${text} }\n${others.join("")}`).next);
}

const HTTP = { kind: "http", config: { url: "u" } };

describe("forms of a tool", () => {
  const cases: [name: string, tool: string, expected: Json][] = [
    ["a single task has the step's name", "{ kind: http, url: u }", [{ label: "one", ...HTTP }]],
    ["a single task may have its own name", "{ kind: http, url: u, name: get }", [{ label: "get", ...HTTP }]],
    [
      "the name of a workbook task is the tool's, not its label",
      "{ kind: workbook, name: '{{ ctx.tool }}' }",
      [{ label: "one", kind: "workbook", config: { name: "{{ ctx.tool }}" } }],
    ],
    [
      "a list of named tasks",
      "[{ name: get, kind: http, url: u }, { name: end, kind: noop }]",
      [
        { label: "get", ...HTTP },
        { label: "end", kind: "noop" },
      ],
    ],
    ["a list of labels", "[{ get: { kind: http, url: u } }]", [{ label: "get", ...HTTP }]],
    [
      "a map of labels keeps its order",
      "{ get: { kind: http, url: u }, end: { kind: noop } }",
      [
        { label: "get", ...HTTP },
        { label: "end", kind: "noop" },
      ],
    ],
    [
      "tasks without a name count from zero",
      "[{ kind: noop }, { name: b, kind: noop }, { kind: noop }]",
      [
        { label: "task_0", kind: "noop" },
        { label: "b", kind: "noop" },
        { label: "task_2", kind: "noop" },
      ],
    ],
    [
      "aliases of a kind become one name",
      "[{ kind: postgres }, { kind: sql }, { kind: snowflake }, { kind: result }, { kind: script }]",
      [
        { label: "task_0", kind: "sqldb" },
        { label: "task_1", kind: "sqldb" },
        { label: "task_2", kind: "warehouse" },
        { label: "task_3", kind: "artifact" },
        { label: "task_4", kind: "python" },
      ],
    ],
    [
      "keys of spec stand for absent task keys, and lose against present ones",
      "{ kind: http, url: u, method: GET, spec: { method: PUT, idempotency_key: k, auth: c, timeout: 3 } }",
      [
        {
          label: "one",
          kind: "http",
          config: { url: "u", method: "GET", idempotency_key: "k" },
          auth: "c",
          timeoutMs: 3000,
        },
      ],
    ],
    [
      "the credentials of a transfer's source and target are the task's, under names of their own",
      "{ kind: transfer, auth: shared, source: { type: http, url: u, auth: { type: bearer, token: t } }, target: { table: x } }",
      [
        {
          label: "one",
          kind: "transfer",
          config: { source: { type: "http", url: "u" }, target: { table: "x" } },
          auth: { transfer_source: { type: "bearer", token: "t" }, transfer_target: "shared" },
        },
      ],
    ],
    [
      "input wins over args",
      "{ kind: noop, args: { a: 1, b: 1 }, input: { b: 2 } }",
      [{ label: "one", kind: "noop", input: { a: 1, b: 2 } }],
    ],
    [
      "the payload of a sub-playbook is input",
      "{ kind: playbook, path: p, payload: { a: 1, b: 1 }, args: { b: 2 } }",
      [{ label: "one", kind: "playbook", config: { path: "p" }, input: { a: 1, b: 2 } }],
    ],
    [
      "credential is auth, in every shape",
      "[{ kind: noop, credential: c }, { kind: noop, auth: { main: c } }]",
      [
        { label: "task_0", kind: "noop", auth: "c" },
        { label: "task_1", kind: "noop", auth: { main: "c" } },
      ],
    ],
    [
      "time-outs become milliseconds",
      "[{ kind: noop, timeout: 1.5 }, { kind: noop, timeout_seconds: '2' }, { kind: noop, timeout_ms: 30 }]",
      [
        { label: "task_0", kind: "noop", timeoutMs: 1500 },
        { label: "task_1", kind: "noop", timeoutMs: 2000 },
        { label: "task_2", kind: "noop", timeoutMs: 30 },
      ],
    ],
    [
      "a wait's time-out may be written as `for` is",
      "{ kind: wait, signal: s, timeout: 1d12h }",
      [{ label: "one", kind: "wait", config: { signal: "s" }, timeoutMs: 129_600_000 }],
    ],
    [
      "a wait's time-out in seconds, as any other",
      "{ kind: wait, signal: s, timeout: '90' }",
      [{ label: "one", kind: "wait", config: { signal: "s" }, timeoutMs: 90_000 }],
    ],
    [
      "a template of seconds is multiplied in the template",
      "[{ kind: noop, timeout: '{{ t }}' }, { kind: noop, timeout_ms: '{{ t }}' }]",
      [
        { label: "task_0", kind: "noop", timeoutMs: "{{ ((t) | float) * 1000 }}" },
        { label: "task_1", kind: "noop", timeoutMs: "{{ t }}" },
      ],
    ],
    [
      "a bare name in a task's set is for the later tasks only",
      "{ kind: noop, set: { a: 1, ctx.b: 2, step.c: 3, iter.d.e: 4, vars.f: 5 } }",
      [
        {
          label: "one",
          kind: "noop",
          set: [
            { scope: "local", name: "a", value: 1 },
            { scope: "ctx", name: "b", value: 2 },
            { scope: "ctx", name: "c", value: 3 },
            { scope: "iter", name: "d.e", value: 4 },
            { scope: "ctx", name: "f", value: 5 },
          ],
        },
      ],
    ],
    [
      "storage of a result, in each of its places",
      "{ kind: noop, output: { store: kv, output_select: [{ path: $.data.id }] }, spec: { result: { inline_max_bytes: 10, sensitive: true } } }",
      [
        {
          label: "one",
          kind: "noop",
          result: {
            inlineMaxBytes: 10,
            store: { kind: "kv" },
            select: [{ path: "$.data.id", as: "id" }],
            sensitive: true,
          },
        },
      ],
    ],
    [
      "a legacy retry is a rule for errors, before the rule without condition",
      "{ kind: noop, retry: { max_attempts: 5, initial_delay: 2, backoff: constant }, spec: { policy: { rules: [{ else: { do: continue } }] } } }",
      [
        {
          label: "one",
          kind: "noop",
          policy: [
            { when: "{{ output.status == 'error' }}", do: "retry", attempts: 5, delay: 2, backoff: "fixed" },
            { do: "continue" },
          ],
        },
      ],
    ],
  ];
  for (const [name, tool, expected] of cases) it(name, () => assert.deepEqual(tasks(tool), expected));

  it("several tasks are a pipeline, a single task is not, in any form", () => {
    const pipeline = (tool: string) => step(`  - { step: one${tool} }\n`).pipeline;
    for (const several of ["[{ kind: noop }, { kind: noop }]", "{ a: { kind: noop }, b: { kind: noop } }"]) {
      assert.equal(pipeline(`, tool: ${several}`), true, several);
    }
    const lone = [
      "{ kind: noop }",
      "[{ kind: noop }]",
      "[{ name: a, kind: noop }]",
      "[{ a: { kind: noop } }]",
      "{ a: { kind: noop } }",
    ];
    for (const one of lone) assert.equal(pipeline(`, tool: ${one}`), false, one);
    assert.equal(pipeline(", tool: noop"), false);
    assert.equal(pipeline(""), false);
  });

  it("a step without tool is a noop", () => {
    assert.deepEqual(essence(step("  - step: one\n").tasks), [{ label: "one", kind: "noop" }]);
  });

  it("the name on a flat workbook step is the tool's", () => {
    const text = `${HEAD}workbook: [{ name: w, tool: { kind: noop } }]\nworkflow: [{ step: one, tool: workbook, name: w }]\n`;
    const expected = [{ label: "one", kind: "workbook", config: { name: "w" } }];
    assert.deepEqual(essence(loadValid(text).steps[0]?.tasks), expected);
  });

  it("of a flat step the task gets its keys and rules, the step keeps the rest", () => {
    const flat = step(
      `  - step: one\n    tool: http\n    url: u\n    auth: c\n    timeout: 2\n    input: { a: 1 }\n    set: { b: 2 }\n    spec: { method: PUT, policy: { rules: [{ else: { do: break } }], admit: { rules: [{ else: { allow: true } }] } } }\n`,
    );
    assert.deepEqual(essence(flat), {
      name: "one",
      tasks: [
        {
          label: "one",
          kind: "http",
          config: { url: "u", method: "PUT" },
          auth: "c",
          timeoutMs: 2000,
          policy: [{ do: "break" }],
        },
      ],
      input: { a: 1 },
      set: [{ scope: "ctx", name: "b", value: 2 }],
      admit: [{ allow: true }],
    });
  });
});

describe("forms of a policy rule", () => {
  const cases: [name: string, rules: string, expected: Json][] = [
    [
      "when and then",
      "[{ when: a, then: { do: retry, attempts: 4, backoff: linear, delay: 0.5, jitter: true, max_elapsed: 60 } }]",
      [{ when: "a", do: "retry", attempts: 4, backoff: "linear", delay: 0.5, jitter: true, maxElapsed: 60 }],
    ],
    ["else with then inside", "[{ else: { then: { do: fail } } }]", [{ do: "fail" }]],
    ["else with the action itself", "[{ else: { do: fail } }]", [{ do: "fail" }]],
    ["an empty else with then beside it", "[{ else: , then: { do: fail } }]", [{ do: "fail" }]],
    ["the action beside when", "[{ when: a, do: break }]", [{ when: "a", do: "break" }]],
    [
      "other names of attempts and delay",
      "[{ when: a, then: { do: retry, max_attempts: 2, initial_delay: 1 } }]",
      [{ when: "a", do: "retry", attempts: 2, delay: 1 }],
    ],
    ["a jump to a label", "[{ when: a, then: { do: jump, to: one } }]", [{ when: "a", do: "jump", to: "one" }]],
    [
      "set, set_ctx and set_iter",
      "[{ when: a, then: { do: continue, set: { x: 1, iter.y: [2] }, set_ctx: { z: 3 }, set_iter: { w: { v: 4 } } } }]",
      [
        {
          when: "a",
          do: "continue",
          set: [
            { scope: "ctx", name: "z", value: 3 },
            { scope: "iter", name: "w", value: { v: 4 } },
            { scope: "ctx", name: "x", value: 1 },
            { scope: "iter", name: "y", value: [2] },
          ],
        },
      ],
    ],
  ];
  for (const [name, rules, expected] of cases) it(name, () => assert.deepEqual(policy(rules), expected));

  it("every spelling of the task before is `previous`", () => {
    for (const word of ["previous", "prev", "_previous", "'@previous'"]) {
      const rule = `{ when: a, then: { do: jump, to: ${word} } }`;
      const both = step(
        `  - { step: one, tool: [{ kind: noop }, { kind: noop, spec: { policy: { rules: [${rule}] } } }] }\n`,
      );
      assert.equal(both.tasks[1]?.policy[0]?.to, "previous");
    }
  });

  it("a label that is called like the task before wins", () => {
    const rule = "{ when: a, then: { do: jump, to: prev } }";
    const both = step(
      `  - { step: one, tool: [{ name: prev, kind: noop, spec: { policy: { rules: [${rule}] } } }] }\n`,
    );
    assert.equal(both.tasks[0]?.policy[0]?.to, "prev");
  });
});

describe("forms of a loop", () => {
  const cases: [name: string, text: string, expected: Json][] = [
    ["defaults", "{ in: '{{ x }}' }", { in: "{{ x }}", iterator: "item", mode: "sequential", exec: "auto" }],
    [
      "all of spec",
      "{ in: [1], element: e, spec: { mode: async, max_in_flight: 4, policy: { exec: local }, on_error: continue } }",
      { in: [1], iterator: "e", mode: "parallel", maxInFlight: 4, exec: "local", onError: "continue" },
    ],
    [
      "older names",
      "{ collection: '{{ x }}', iterator: e, mode: parallel }",
      { in: "{{ x }}", iterator: "e", mode: "parallel", exec: "auto" },
    ],
    [
      "failures tolerated as a count",
      "{ in: 3, spec: { on_error: { tolerate: 2 } } }",
      { in: 3, iterator: "item", mode: "sequential", exec: "auto", onError: { tolerate: 2 } },
    ],
    [
      "failures tolerated as a share",
      "{ in: 3, spec: { on_error: { tolerate: 5% } } }",
      { in: 3, iterator: "item", mode: "sequential", exec: "auto", onError: { toleratePercent: 5 } },
    ],
    [
      "a cursor with its defaults",
      "{ cursor: { kind: postgres, auth: db, claim: 'update … returning *' } }",
      {
        cursor: {
          kind: "sqldb",
          auth: "db",
          claim: "update … returning *",
          maxRows: 1,
          leaseSeconds: 120,
          heartbeatSeconds: 30,
          rowConcurrency: 1,
          process: "row",
        },
        iterator: "item",
        mode: "cursor",
        exec: "auto",
      },
    ],
    [
      "a cursor with a frame",
      "{ cursor: { kind: postgres, claim: c }, spec: { mode: cursor, frame: { max_rows: 10, max_seconds: 5, max_bytes: 9, lease_seconds: 60, heartbeat_seconds: 20, row_concurrency: 2, process: frame } } }",
      {
        cursor: {
          kind: "sqldb",
          claim: "c",
          maxRows: 10,
          maxSeconds: 5,
          maxBytes: 9,
          leaseSeconds: 60,
          heartbeatSeconds: 20,
          rowConcurrency: 2,
          process: "frame",
        },
        iterator: "item",
        mode: "cursor",
        exec: "auto",
      },
    ],
  ];
  for (const [name, text, expected] of cases) it(name, () => assert.deepEqual(loop(text), expected));
});

describe("forms of next", () => {
  const a = { step: "a" };
  const cases: [name: string, text: string, expected: Json][] = [
    [
      "arcs with a mode",
      "{ spec: { mode: inclusive, on_no_match: quiet }, arcs: [{ step: a, when: x, args: { p: 1 } }, { step: b }] }",
      {
        mode: "inclusive",
        onNoMatch: "quiet",
        arcs: [{ step: "a", when: "x", set: [{ scope: "ctx", name: "p", value: 1 }] }, { step: "b" }],
      },
    ],
    [
      "input, args and set of an arc are one; set wins",
      "{ arcs: [{ step: a, input: { p: 1, iter.q: 1 }, args: { p: 2 }, set: { p: 3 } }] }",
      {
        mode: "exclusive",
        onNoMatch: "notice",
        arcs: [
          {
            step: "a",
            set: [
              { scope: "ctx", name: "p", value: 3 },
              { scope: "iter", name: "q", value: 1 },
            ],
          },
        ],
      },
    ],
    ["a name", "a", { mode: "exclusive", onNoMatch: "notice", arcs: [a] }],
    [
      "a single arc",
      "{ step: a, when: x }",
      { mode: "exclusive", onNoMatch: "notice", arcs: [{ step: "a", when: "x" }] },
    ],
    ["a list of names is inclusive", "[a, b]", { mode: "inclusive", onNoMatch: "notice", arcs: [a, { step: "b" }] }],
    [
      "a list of arcs is exclusive",
      "[{ step: a, when: x }, b]",
      { mode: "exclusive", onNoMatch: "notice", arcs: [{ step: "a", when: "x" }, { step: "b" }] },
    ],
    [
      "branches with one target each are exclusive, the else last",
      "[{ else: [c] }, { when: x, then: [a] }, { when: '{{ y }}', then: { step: b, args: { p: 1 } } }]",
      {
        mode: "exclusive",
        onNoMatch: "notice",
        arcs: [
          { step: "a", when: "x" },
          { step: "b", when: "{{ y }}", set: [{ scope: "ctx", name: "p", value: 1 }] },
          { step: "c" },
        ],
      },
    ],
    [
      "the condition of a branch and of its target hold together",
      "[{ when: x, then: [{ step: a, when: '{{ y }}' }] }]",
      { mode: "exclusive", onNoMatch: "notice", arcs: [{ step: "a", when: "{{ (x) and (y) }}" }] },
    ],
    [
      "a branch with several targets fires all of them, and none of the later branches",
      "[{ when: x, then: [a, b] }, { when: true, then: [b] }, { else: [c] }]",
      {
        mode: "inclusive",
        onNoMatch: "notice",
        arcs: [
          { step: "a", when: "x" },
          { step: "b", when: "x" },
          { step: "b", when: "{{ (true) and (not (x)) }}" },
          { step: "c", when: "{{ (not (x)) and (not (true)) }}" },
        ],
      },
    ],
  ];
  for (const [name, text, expected] of cases) it(name, () => assert.deepEqual(next(text), expected));
});

describe("forms of the document", () => {
  const ONE = "workflow: [{ step: one, tool: { kind: noop } }]\n";

  it("the path is the name if it is not given", () => {
    assert.equal(loadValid(HEAD + ONE).path, "demo");
    const text = `apiVersion: v.io/v2\nkind: Agent\nmetadata: { name: n, path: a/b, agent: true }\n${ONE}`;
    const { path, kind, metadata } = loadValid(text);
    assert.deepEqual(
      { path, kind, metadata },
      { path: "a/b", kind: "Agent", metadata: { name: "n", path: "a/b", agent: true } },
    );
  });

  it("a run starts at entry_step, else at `start`, else at the first step", () => {
    const two = "workflow: [{ step: one, next: start }, { step: start, next: one }]\n";
    assert.equal(loadValid(HEAD + ONE).entryStep, "one");
    assert.equal(loadValid(HEAD + two).entryStep, "start");
    assert.equal(loadValid(`${HEAD}executor: { spec: { entry_step: one } }\n${two}`).entryStep, "one");
  });

  it("the executor's settings", () => {
    const spec = "{ final_step: one, no_next_is_error: true, timeout: 90 }";
    const text = `${HEAD}executor: { profile: local, version: 1, requires: { tools: [http] }, spec: ${spec} }\n${ONE}`;
    const expected = { profile: "local", finalStep: "one", noNextIsError: true, timeoutMs: 90_000 };
    assert.deepEqual(loadValid(text).executor, expected);
  });

  it("keychain entries are kept as written, `secrets` under its one name", () => {
    const text = `${HEAD}keychain:\n  - { name: s, kind: secrets, provider: cloud_a, map: { a: p/a } }\n  - { name: g, kind: gcp_credential }\n${ONE}`;
    assert.deepEqual(loadValid(text).keychain, [
      { name: "s", kind: "secret_manager", provider: "cloud_a", map: { a: "p/a" } },
      { name: "g", kind: "gcp_credential" },
    ]);
  });

  it("a workbook entry is a task under the entry's name, with its inputs as defaults", () => {
    const text = `${HEAD}workbook:\n  - { name: w, input: { a: 1, b: 1 }, tool: { kind: python, code: x, input: { b: 2 } } }\n${ONE}`;
    const expected = [{ label: "w", kind: "python", config: { code: "x" }, input: { a: 1, b: 2 } }];
    assert.deepEqual(essence(loadValid(text).workbook), expected);
  });

  it("a step's admission, inputs, variables, storage and time-out", () => {
    const text = `  - step: one
    desc: "{{ not rendered }}"
    tool: { kind: noop }
    args: { a: 1, b: 1 }
    input: { b: 2 }
    when: false
    vars: { x: 1, y: 1 }
    set: { y: 2, iter.z: 3 }
    output: { store: { kind: auto, ttl: 1h }, select: [{ path: $.id, as: key }] }
    spec:
      timeout: 5
      output: { preview_max_bytes: 100, accumulate: { strategy: append } }
      policy: { admit: { rules: [{ when: x, then: { allow: false } }, { else: { then: { allow: "{{ y }}" } } }] } }
`;
    assert.deepEqual(essence(step(text)), {
      name: "one",
      desc: "{{ not rendered }}",
      tasks: [{ label: "one", kind: "noop" }],
      input: { a: 1, b: 2 },
      when: false,
      admit: [{ when: "x", allow: false }, { allow: "{{ y }}" }],
      set: [
        { scope: "ctx", name: "x", value: 1 },
        { scope: "ctx", name: "y", value: 2 },
        { scope: "iter", name: "z", value: 3 },
      ],
      result: {
        previewMaxBytes: 100,
        accumulate: { strategy: "append" },
        store: { kind: "auto", ttl: "1h" },
        select: [{ path: "$.id", as: "key" }],
        sensitive: false,
      },
      timeoutMs: 5000,
    });
  });

  it("sections that are present but empty count as absent", () => {
    const text = `${HEAD}workload:\nkeychain:\nworkbook:\nexecutor:\nworkflow:\n  - step: one\n    tool: { kind: noop }\n    input:\n    loop:\n    next:\n`;
    const playbook = loadValid(text);
    assert.deepEqual(playbook.workload, {});
    assert.deepEqual(essence(playbook.steps), [{ name: "one", tasks: [{ label: "one", kind: "noop" }] }]);
  });
});

describe("positions", () => {
  it("steps, tasks, arcs and code know their lines", () => {
    const text = `${HEAD}workflow:
  - step: one
    tool:
      - first:
          kind: python
          code: |
            result = 1
      - name: second
        kind: python
        code: result = 2
      - kind: script
        script:
          source:
            code: >-
              result = 3
    next:
      arcs:
        - step: one
`;
    const [one] = loadValid(text).steps;
    assert.deepEqual(one?.position, { line: 5, column: 5 });
    assert.deepEqual(
      one?.tasks.map((task) => [task.position, task.codeLine]),
      [
        [{ line: 7, column: 9 }, 10],
        [{ line: 11, column: 9 }, 13],
        [{ line: 14, column: 9 }, 18],
      ],
    );
    assert.deepEqual(one?.next.arcs[0]?.position, { line: 21, column: 11 });
  });
});
