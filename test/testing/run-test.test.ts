import assert from "node:assert/strict";
import { setMaxListeners } from "node:events";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { ResultStore } from "../../src/ports/result-store.ts";
import type { Failure } from "../../src/testing/failure.ts";
import { runTest, type TestOutcome } from "../../src/testing/run-test.ts";
import { loadSuite } from "../../src/testing/suite.ts";
import { createToolRegistry, type ToolRegistry } from "../../src/tools/registry.ts";
import { workspace } from "./workspace.ts";

// As the program itself: every task in flight listens to the signal of its run.
setMaxListeners(0);

/** Runs the tests of a document against a playbook whose workflow is `steps`; further files may be sub-playbooks. */
async function outcomes(
  t: TestContext,
  steps: string,
  tests: string,
  files: Readonly<Record<string, string>> = {},
): Promise<TestOutcome[]> {
  const folder = workspace(t, { "main.yaml": playbook("main", steps), "main.test.yaml": `tests:\n${tests}`, ...files });
  const suite = await loadSuite(join(folder, "main.test.yaml"));
  assert.deepEqual(
    suite.diagnostics.filter(({ severity }) => severity === "error"),
    [],
  );
  const { playbook: loaded, findChild } = suite;
  assert.ok(loaded);
  const signal = new AbortController().signal;
  const registries: ToolRegistry[] = [];
  t.after(() => Promise.all(registries.map((registry) => registry.close())));
  const around = {
    playbook: loaded,
    findChild,
    realTools: (store: ResultStore) => {
      const registry = createToolRegistry({ allowPrivate: [], store });
      registries.push(registry);
      return registry;
    },
    callsMax: 10_000,
    signal,
  };
  const list: TestOutcome[] = [];
  for (const one of suite.tests) list.push(await runTest(one, around));
  return list;
}

function playbook(name: string, steps: string): string {
  return `apiVersion: demo/v2\nkind: Playbook\nmetadata: {name: ${name}}\nworkload: {n: 3, go: true}\nworkflow:\n${steps}`;
}

/** The failures of each test, in short. */
function failuresOf(list: TestOutcome[]): string[][] {
  return list.map(({ failures }) => failures.map(short));
}

function short({ what, message, expected, actual }: Failure): string {
  return message === "" ? `${what}: ${JSON.stringify(expected)} / ${JSON.stringify(actual)}` : `${what}: ${message}`;
}

const RETRY = `
  - step: fetch
    tool:
      kind: http
      url: "http://x/{{ n }}"
      spec:
        policy:
          rules:
            - {when: "output.error.retryable", then: {do: retry, attempts: 4, backoff: fixed, delay: 300, jitter: true}}
    next: {arcs: [{step: end}]}
  - step: end
    tool: {kind: noop, result: {got: "{{ fetch.data }}"}}
`;

test("a retry with five minutes of back-off is tested in milliseconds", async (t) => {
  const [run] = await outcomes(
    t,
    RETRY,
    `
  - name: retries
    mocks:
      fetch: [{status: 503}, {error: {kind: connection}}, {data: ok, expect_config: {url: http://x/3, method: null}}]
    expect: {result: {got: ok}, steps: [fetch, end], calls: {fetch: 3, fetch.fetch: 3, end: 1}, elapsed_seconds: 600}
`,
  );
  assert.deepEqual(run?.failures.map(short), ["mocks.fetch, call 3: config method"]);
  assert.equal(run?.elapsedSeconds, 600);
  assert.ok((run?.durationMs ?? 0) < 60_000, `took ${run?.durationMs} ms`);
});

test("the last answer of a list repeats, and a run that fails is a failed test unless it is expected", async (t) => {
  const list = await outcomes(
    t,
    RETRY,
    `
  - {name: unexpected, mocks: {fetch: [{status: 500}, {status: 503, data: {message: busy}}]}}
  - name: expected
    mocks: {fetch: {status: 503, data: {message: busy}}}
    expect: {error: {kind: server_error, code: HTTP_503, step: fetch, message: /503.*busy/}, calls: {fetch: 4}}
  - {name: not retried, mocks: {fetch: {status: 404}}, expect: {error: {kind: not_found}, calls: {fetch: 1}}}
`,
  );
  assert.deepEqual(failuresOf(list), [['expect.status: "COMPLETED" / "FAILED"'], [], []]);
  assert.match(list[0]?.failures[0]?.hint ?? "", /fetch.*server_error HTTP_503/);
});

test("a call that takes longer than its time-out times out, on virtual time", async (t) => {
  const steps = `
  - step: slow
    tool: {kind: http, url: http://x, timeout: 10}
  - step: never
    tool: {kind: noop}
`;
  const list = await outcomes(
    t,
    steps,
    `
  - {name: over, mocks: {slow: {takes: 11}}, expect: {error: {kind: timeout, code: TIMEOUT, message: /10 s/}, elapsed_seconds: 10}}
  - {name: under, mocks: {slow: {takes: 9}}, expect: {elapsed_seconds: 9}}
  - {name: by mock, mocks: {slow: {error: {kind: timeout}}}, expect: {error: {kind: timeout}, elapsed_seconds: 0}}
`,
  );
  assert.deepEqual(failuresOf(list), [[], [], []]);
});

test("time-outs of a step and of the whole run are virtual, too", async (t) => {
  const steps = `
  - step: slow
    spec: {timeout: 100}
    tool: {kind: http, url: http://x, timeout: 50, spec: {policy: {rules: [{when: "output.error", then: {do: retry, attempts: 9}}]}}}
`;
  const timed = playbook("main", steps).replace("workflow:", "executor: {spec: {timeout: 70}}\nworkflow:");
  const tests =
    "  - {name: a, mocks: {slow: {takes: 60}}, expect: {error: {kind: timeout, message: /LIMIT/}, elapsed_seconds: SECONDS}}\n";
  const ofStep = await outcomes(t, steps, tests.replace("LIMIT", "Step 'slow'.* 100 s").replace("SECONDS", "100"));
  assert.deepEqual(failuresOf(ofStep), [[]]);
  const ofRun = tests.replace("LIMIT", "execution of 'main'.* 70 s").replace("SECONDS", "70");
  assert.deepEqual(failuresOf(await outcomes(t, steps, ofRun, { "main.yaml": timed })), [[]]);
});

test("without a time-out of its own a task has that of its kind", async (t) => {
  const list = await outcomes(
    t,
    '  - {step: slow, tool: {kind: http, url: "http://x"}}\n',
    "  - {name: a, mocks: {slow: {takes: 61}}, expect: {error: {kind: timeout}, elapsed_seconds: 60}}\n",
  );
  assert.deepEqual(failuresOf(list), [[]]);
});

test("a task without a mock fails the test and shows the mock to add", async (t) => {
  const steps = `
  - step: load
    tool:
      - ready: {kind: noop}
      - save: {kind: postgres, command: select 1}
`;
  const list = await outcomes(
    t,
    steps,
    "  - {name: a, expect: {status: FAILED}}\n  - {name: b, mocks: {load.save: {rows: [{a: 1}]}}}\n",
  );
  assert.equal(list[0]?.failures.length, 1, "nothing else is told: the run was stopped");
  assert.match(list[0]?.failures[0]?.message ?? "", /'save' of step 'load' \(sqldb\) has no mock/);
  assert.match(list[0]?.failures[0]?.hint ?? "", /load\.save: \{rows: \[\]\}/);
  assert.deepEqual(list[1]?.failures, []);
});

test("the mock of a step answers for its tasks, but not for a noop among them", async (t) => {
  const steps = `
  - step: load
    tool:
      - ask: {kind: http, url: http://x}
      - keep: {kind: noop, set: {kept: "{{ ask.data }}"}, result: {kept: true}}
      - tell: {kind: http, url: http://y}
`;
  const list = await outcomes(
    t,
    steps,
    "  - {name: a, mocks: {load: [{data: 1}, {data: 2}]}, expect: {result: {data: 2, kept: true}, calls: {load: 3, load.ask: 1}}}\n  - {name: b, mocks: {load: {data: 1}, load.keep: {result: {kept: mocked}}}, expect: {result: {kept: mocked}}}\n",
  );
  assert.deepEqual(failuresOf(list), [[], []]);
});

test("a policy that takes every error does not hide that a mock is missing", async (t) => {
  const steps = `
  - step: call
    tool: {kind: http, url: http://x, spec: {policy: {rules: [{when: "true", then: {do: continue}}]}}}
`;
  const [run] = await outcomes(t, steps, "  - {name: a}\n");
  assert.match(run?.failures[0]?.message ?? "", /has no mock/);
});

test("answers are chosen by their condition, and may be made of the call", async (t) => {
  const steps = `
  - step: each
    loop: {in: "{{ range(n) }}", iterator: id, spec: {mode: parallel}}
    tool: {kind: http, url: "http://x/{{ id }}", input: {twice: "{{ id * 2 }}"}}
  `;
  const list = await outcomes(
    t,
    steps,
    `
  - name: chosen
    mocks:
      each:
        - {when: "{{ input.twice == 4 }}", status: 404}
        - {when: "id == 1", data: "one"}
        - {data: "{{ config.url }} {{ iter.index }} {{ loop_index }}"}
    expect:
      status: FAILED
      results: {each: {stats: {total: 3, success: 2, failed: 1}, results: [{data: http://x/0 0 0}, {data: one}, {error: {status: 404}}]}}
  - {name: none, mocks: {each: {when: "id == 1", data: 1}}}
  - {name: broken, mocks: {each: {data: "{{ 1 | nosuch }}"}}}
  - {name: broken condition, mocks: {each: {when: "1 +", data: 1}}}
`,
  );
  assert.deepEqual(list[0]?.failures, []);
  assert.match(list[1]?.failures[0]?.message ?? "", /no answer's `when` holds/);
  assert.deepEqual(list[2]?.failures, [], "what does not parse stays text, as in any template");
  assert.match(list[3]?.failures[0]?.message ?? "", /this answer cannot be given/);
});

test("what a call must contain is checked at each call", async (t) => {
  const [run] = await outcomes(
    t,
    '  - {step: post, tool: {kind: http, url: "http://x", json: {n: "{{ n }}"}, input: {a: 1}}}\n',
    "  - {name: a, mocks: {post: {data: 1, expect_input: {a: 2, b: 1}, expect_config: {json: {n: 3}}}}}\n",
  );
  assert.deepEqual(
    run?.failures.map(({ what, message, expected, actual }) => [what, message, expected, actual]),
    [
      ["mocks.post, call 1", "input a", 2, 1],
      ["mocks.post, call 1", "input b", 1, undefined],
    ],
  );
});

test("every unmet expectation is reported, with its path and both values", async (t) => {
  const steps = `
  - step: start
    tool: {kind: noop, result: {a: 1, list: [1, 2]}}
    set: {seen: yes}
    next: {spec: {mode: exclusive}, arcs: [{step: left, when: "go"}, {step: right}]}
  - {step: left, tool: {kind: noop, result: {x: left}}}
  - {step: right, tool: {kind: noop}}
`;
  const list = await outcomes(
    t,
    steps,
    `
  - name: right
    expect: {steps: [start, left], skipped: [right], equals: {x: left}, variables: {seen: "yes"}, results: {start: {list: [1, 2]}}}
  - name: wrong
    expect:
      status: FAILED
      result: {x: right}
      equals: {x: left, y: 1}
      results: {start: {a: 2}, right: {}}
      steps: [start]
      skipped: [left]
      calls: {left: 2}
      variables: {seen: "no"}
      error: {kind: timeout}
      elapsed_seconds: {min: 1}
  - {name: other branch, workload: {go: false}, expect: {steps: [start, right], skipped: [left]}}
`,
  );
  assert.deepEqual(failuresOf(list), [
    [],
    [
      'expect.status: "FAILED" / "COMPLETED"',
      'expect.result.x: "right" / "left"',
      "expect.equals.y: 1 / undefined",
      "expect.results.start.a: 2 / 1",
      "expect.results.right: {} / undefined",
      'expect.steps: ["start"] / ["start","left"]',
      'expect.variables.seen: "no" / "yes"',
      'expect.error: {"kind":"timeout"} / undefined',
      'expect.skipped.left: "SKIPPED" / "COMPLETED"',
      "expect.calls.left: 2 / 1",
      'expect.elapsed_seconds: {"min":1} / 0',
    ],
    [],
  ]);
});

test("an asynchronous sub-playbook runs to its end", async (t) => {
  const steps = "  - {step: enrich, tool: {kind: playbook, path: lib/child, mode: async, input: {id: 7}}}\n";
  const list = await outcomes(
    t,
    steps,
    "  - {name: a, mocks: {enrich/look: {data: 1, takes: 50}}, expect: {results: {enrich: {status: started}}, calls: {enrich/look: 1, enrich/end: 1}}}\n",
    { "lib/child.yaml": CHILD },
  );
  assert.deepEqual(failuresOf(list), [[]]);
});

const CHILD = playbook(
  "child",
  `
  - {step: look, tool: {kind: http, url: "http://x/{{ id }}"}, next: {arcs: [{step: end}]}}
  - {step: end, tool: {kind: noop, result: {name: "{{ look.data }}"}}}
`,
);

const PARENT = `
  - step: enrich
    tool: {kind: playbook, path: lib/child, input: {id: 7}}
    next: {arcs: [{step: end}]}
  - {step: end, tool: {kind: noop, result: {name: "{{ enrich.name }}"}}}
`;

test("a sub-playbook runs for real with its steps mocked, or is mocked as a whole", async (t) => {
  const list = await outcomes(
    t,
    PARENT,
    `
  - {name: steps, mocks: {enrich/look: {data: "{{ config.url }}"}}, expect: {result: {name: http://x/7}, calls: {enrich: 1, enrich/look: 1}}}
  - {name: whole, mocks: {enrich: {result: {name: ann}}}, expect: {result: {name: ann}, results: {enrich: {status: completed}}, calls: {enrich: 1, enrich/look: 0}}}
  - {name: fails, mocks: {enrich/look: {status: 500}}, expect: {error: {kind: sub_playbook, step: enrich, message: /500/}}}
  - {name: missing}
`,
    { "lib/child.yaml": CHILD },
  );
  assert.deepEqual(failuresOf(list).slice(0, 3), [[], [], []]);
  assert.match(list[3]?.failures[0]?.hint ?? "", /enrich\/look: \{data: \{\}\}/);
});

test("noop runs for real, other kinds only when the test lets them", async (t) => {
  const steps = '  - {step: calc, tool: {kind: python, input: {n: "{{ n }}"}, code: "result = {\'twice\': n * 2}"}}\n';
  const list = await outcomes(
    t,
    steps,
    "  - {name: by kind, run_real: [python], expect: {result: {twice: 6}}}\n  - {name: by step, run_real: [calc], expect: {result: {twice: 6}}}\n",
  );
  assert.deepEqual(failuresOf(list), [[], []]);
});

test("a virtual delay beside real work waits for the work", async (t) => {
  const steps = `
  - step: start
    tool: {kind: noop}
    next: {spec: {mode: inclusive}, arcs: [{step: real}, {step: slow}]}
  - {step: real, tool: {kind: python, code: "result = {'at': 1}"}, set: {order: "{{ (order | default('')) ~ 'real ' }}"}}
  - {step: slow, tool: {kind: http, url: "http://x"}, set: {order: "{{ (order | default('')) ~ 'slow ' }}"}}
`;
  const list = await outcomes(
    t,
    steps,
    '  - {name: a, run_real: [python], mocks: {slow: {takes: 30}}, expect: {variables: {order: "real slow "}, elapsed_seconds: 30}}\n',
  );
  assert.deepEqual(failuresOf(list), [[]]);
});

test("credentials exist without being given, and those that are given have their fields", async (t) => {
  const folderSteps = `
  - {step: call, tool: {kind: http, url: "http://x/{{ keychain.api.token }}/{{ env.REGION }}", auth: nobody_has_this}}
`;
  const text = playbook("main", folderSteps).replace("workflow:", "keychain: [{name: api, kind: bearer}]\nworkflow:");
  const list = await outcomes(
    t,
    folderSteps,
    `
  - name: given
    credentials: {api: {token: t0ken}}
    env: {REGION: eu}
    mocks: {call: {data: 1, expect_config: {url: http://x/t0ken/eu}}}
  - {name: not given, mocks: {call: {data: 1}}}
`,
    { "main.yaml": text },
  );
  assert.deepEqual(list[0]?.failures, []);
  assert.match(list[1]?.failures[0]?.hint ?? "", /credentials: \{<name>/);
});

test("a run starts when the test says", async (t) => {
  const list = await outcomes(
    t,
    '  - {step: a, tool: {kind: noop, result: {at: "{{ now() }}"}}}\n',
    '  - {name: default, expect: {result: {at: "2026-01-01T00:00:00.000Z"}}}\n  - {name: given, now: "2030-05-06T07:08:09Z", expect: {result: {at: "2030-05-06T07:08:09.000Z"}}}\n',
  );
  assert.deepEqual(failuresOf(list), [[], []]);
});

test("a cursor loop ends when its claim gives no rows", async (t) => {
  const steps = `
  - step: work
    loop: {cursor: {kind: postgres, auth: pg, claim: "update q"}, iterator: row, spec: {mode: cursor, frame: {max_rows: 2}}}
    tool: {kind: http, url: "http://x/{{ row.id }}"}
`;
  const [run] = await outcomes(
    t,
    steps,
    `
  - name: a
    mocks:
      work.claim: [{rows: [{id: 1}, {id: 2}], expect_config: {command: update q}}, {rows: []}]
      work: {data: "{{ config.url }}"}
    expect: {results: {work: {stats: {total: 2, success: 2, failed: 0}}}, calls: {work.claim: 2, work.work: 2}}
`,
  );
  assert.deepEqual(run?.failures, []);
});

test("an endless jump is stopped and reported", async (t) => {
  const steps = `
  - step: poll
    tool:
      - ask: {kind: http, url: http://x, spec: {policy: {rules: [{when: "output.data.data.ready != true", then: {do: jump, to: ask}}]}}}
`;
  const [run] = await outcomes(t, steps, "  - {name: a, mocks: {poll.ask: {data: {ready: false}}}}\n");
  assert.equal(run?.failures.length, 1);
  assert.match(run?.failures[0]?.message ?? "", /made 10,001 calls and was stopped/);
});

test("the order and results of a large parallel loop are those of the engine", async (t) => {
  const steps = `
  - step: each
    loop: {in: "{{ range(2000) }}", iterator: id, spec: {mode: parallel, max_in_flight: 50}}
    tool: {kind: http, url: "http://x/{{ id }}"}
    next: {arcs: [{step: end}]}
  - {step: end, tool: {kind: noop, result: {count: "{{ each.results | length }}", last: "{{ each.results[1999].data }}"}}}
`;
  const [run] = await outcomes(
    t,
    steps,
    "  - {name: a, mocks: {each: {data: {id: '{{ id }}'}, takes: 10}}, expect: {result: {count: 2000, last: {id: 1999}}, elapsed_seconds: 400}}\n",
  );
  assert.deepEqual(run?.failures, []);
});

test("a rule's own message and code are the error that a test expects", async (t) => {
  const rule = `{when: "{{ outcome.data.status == 'refused' }}", then: {do: fail, code: REFUSED, message: "refused: {{ outcome.data.why }}"}}`;
  const list = await outcomes(
    t,
    `  - {step: order, tool: {kind: http, url: "http://x", spec: {policy: {rules: [${rule}]}}}}\n`,
    `  - {name: refused, mocks: {order: {data: {status: refused, why: no stock}}}, expect: {error: {kind: policy, code: REFUSED, message: "refused: no stock", step: order}}}
  - {name: another, mocks: {order: {data: {status: refused, why: no stock}}}, expect: {error: {code: NOT_THIS}}}
`,
  );
  assert.deepEqual(failuresOf(list), [[], ['expect.error.code: "NOT_THIS" / "REFUSED"']]);
});
