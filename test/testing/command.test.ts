import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { runTests } from "../../src/cli/documents/test.ts";
import { FlowError } from "../../src/schema/words/errors.ts";
import { command, workspace } from "./workspace.ts";

const PLAYBOOK = `apiVersion: demo/v2
kind: Playbook
metadata: {name: main}
workflow:
  - {step: start, tool: {kind: noop, result: {n: 1}}}
`;

const PASSING = "tests: [{name: passes, expect: {result: {n: 1}}}]";
/** Names and values that would break a report that does not escape them. */
const FAILING = 'tests: [{name: "fails # <&\\"\\u0007> ok", expect: {result: {n: "]]>\\n..."}}}, {name: passes}]';

const folderWith = (t: TestContext, tests: string) => workspace(t, { "main.yaml": PLAYBOOK, "main.test.yaml": tests });

test("all passed is exit 0, a failure is exit 1 and shows both values", async (t) => {
  const good = await command(runTests, folderWith(t, PASSING), ["main.test.yaml"]);
  assert.equal(good.code, 0);
  assert.match(good.stdout, /✓ passes[\s\S]*1 test passed/);
  const bad = await command(runTests, folderWith(t, FAILING), ["main.test.yaml"]);
  assert.equal(bad.code, 1);
  assert.match(
    bad.stdout,
    /✗ fails[\s\S]*expect\.result\.n\n +expected {2}"\]\]>\\n\.\.\."\n +actual {4}1\n[\s\S]*1 failed, 1 passed/,
  );
  assert.equal(bad.stdout.includes("\u0007"), false, "no control character reaches the terminal");
});

test("an invalid document is exit 2, all problems on standard error, and no test is run", async (t) => {
  const folder = workspace(t, {
    "main.yaml": PLAYBOOK,
    "main.test.yaml": PASSING,
    "other.test.yaml": "playbook: main.yaml\ntests:\n  - {name: a, mocks: {strat: {}}, expcet: {}}\n",
    "third.test.yaml":
      "playbook: main.yaml\ntests:\n  - {name: a, mocks: {strat: {}, start.nope: {}}, expect: {steps: [stat], calls: {x: 1}}, run_real: [pyhton]}\n",
  });
  const run = await command(runTests, folder, ["."]);
  assert.equal(run.code, 2);
  assert.equal(run.stdout, "");
  assert.match(run.stderr, /other\.test\.yaml:3:\d+ {2}unknown-key {2}`expcet`.*did you mean `expect`/);
  assert.match(
    run.stderr,
    /third\.test\.yaml:3:\d+ {2}unknown-step {2}the playbook has no step `strat` {2}\(did you mean `start`\?\)/,
  );
  assert.match(run.stderr, /no step `stat`[\s\S]*no step `x`/);
  assert.match(run.stderr, /no step `pyhton` {2}\(did you mean `python`\?\)/);
});

test("an invalid playbook is exit 2 with the playbook's own problems", async (t) => {
  const folder = workspace(t, { "main.yaml": PLAYBOOK.replace("noop", "noop, eval: 1"), "main.test.yaml": PASSING });
  const run = await command(runTests, folder, ["main.test.yaml"]);
  assert.equal(run.code, 2);
  assert.match(run.stderr, /main\.test\.yaml:1:1 .*cannot be tested/);
  assert.match(run.stderr, /main\.yaml:5:\d+ {2}removed-form/);
});

test("a playbook is found by its name beside the test, or the error asks for the name", async (t) => {
  const run = await command(runTests, workspace(t, { "lost.test.yaml": PASSING }), ["lost.test.yaml"]);
  assert.equal(run.code, 2);
  assert.match(run.stderr, /no playbook 'lost'.*name it: `playbook: /);
});

test("a file or folder without tests is refused with its name", async (t) => {
  const folder = workspace(t, { "empty/x.yaml": PLAYBOOK });
  const refused = (target: string, pattern: RegExp) =>
    assert.rejects(command(runTests, folder, [target]), (error: unknown) => {
      assert.ok(error instanceof FlowError);
      assert.match(error.message, pattern);
      return true;
    });
  await refused("empty", /no test .* in or below empty/);
  await refused("nowhere.test.yaml", /Cannot read nowhere\.test\.yaml/);
});

test("folders are searched, without node_modules and hidden ones", async (t) => {
  const pair = { "main.yaml": PLAYBOOK, "main.test.yaml": PASSING };
  const files = ["a/b", "node_modules/x", ".hidden"].flatMap((folder) =>
    Object.entries(pair).map(([name, text]) => [`${folder}/${name}`, text]),
  );
  const run = await command(runTests, workspace(t, Object.fromEntries(files)), ["."], { json: true });
  const report = JSON.parse(run.stdout);
  assert.deepEqual([report.passed, report.files.length], [1, 1]);
});

test("--filter runs the tests whose name has the text, and refuses one that no name has", async (t) => {
  const folder = folderWith(t, FAILING);
  const run = await command(runTests, folder, ["."], { filter: "PASS", json: true });
  assert.equal(run.code, 0);
  assert.deepEqual(JSON.parse(run.stdout).passed, 1);
  await assert.rejects(command(runTests, folder, ["."], { filter: "zzz" }), /no test of 2 tests has 'zzz'/);
});

test("--json is one object alone on standard output", async (t) => {
  const run = await command(runTests, folderWith(t, FAILING), ["main.test.yaml"], { json: true });
  const report = JSON.parse(run.stdout);
  assert.deepEqual([report.passed, report.failed], [1, 1]);
  const [failed] = report.files[0].tests;
  assert.equal(failed.ok, false);
  assert.deepEqual(failed.failures, [{ what: "expect.result.n", message: "", expected: "]]>\n...", actual: 1 }]);
});

test("--tap is TAP 14: a plan, escaped descriptions, and what failed", async (t) => {
  const { stdout } = await command(runTests, folderWith(t, FAILING), ["main.test.yaml"], { tap: true });
  const lines = stdout.split("\n");
  assert.deepEqual(lines.slice(0, 2), ["TAP version 14", "1..2"]);
  assert.match(stdout, /^not ok 1 - fails \\# <&"/m);
  assert.match(stdout, /^ok 2 - passes$/m);
  assert.match(stdout, /^ {6}expected: "\]\]>\\n\.\.\."$/m, "a value cannot end the YAML block");
});

test("--junit writes well-formed XML whatever names and values hold", async (t) => {
  const folder = folderWith(t, FAILING);
  const run = await command(runTests, folder, ["main.test.yaml"], { junit: "out.xml" });
  assert.equal(run.code, 1);
  const read =
    "import sys, xml.etree.ElementTree as e; r = e.parse(sys.argv[1]).getroot(); c = r.find('.//testcase'); print(r.get('tests'), r.get('failures'), c.get('name'), c.find('failure').text)";
  const parsed = spawnSync("python3", ["-c", read, join(folder, "out.xml")], { encoding: "utf8" });
  assert.equal(parsed.status, 0, parsed.stderr);
  assert.match(parsed.stdout, /^2 1 fails # <&"\ufffd> ok expect\.result\.n/);
  assert.match(readFileSync(join(folder, "out.xml"), "utf8"), /\]\]&gt;/);
  await assert.rejects(
    command(runTests, folder, ["main.test.yaml"], { junit: "no/such/folder.xml" }),
    /Cannot write the report/,
  );
});

test("a cancelled run has exit code 130 and prints no result", async (t) => {
  const stopped = AbortSignal.abort(new FlowError("CANCELLED", "interrupted"));
  const run = await command(runTests, folderWith(t, PASSING), ["main.test.yaml"], { json: true }, {}, stopped);
  assert.deepEqual([run.code, run.stdout], [130, ""]);
});

test("defaults are what every test starts from, and a test's own entries win", async (t) => {
  const playbook = `apiVersion: demo/v2
kind: Playbook
metadata: {name: main}
workload: {a: 0, b: 0}
workflow:
  - {step: ask, tool: {kind: http, url: http://x}, next: {arcs: [{step: calc}]}}
  - {step: calc, tool: {kind: python, code: "result = {'real': True}"}, next: {arcs: [{step: end}]}}
  - {step: end, tool: {kind: noop, result: {a: "{{ a }}", b: "{{ b }}", ask: "{{ ask.data }}", calc: "{{ calc }}"}}}
`;
  const tests = `
defaults:
  workload: {a: 1, b: 1}
  mocks: {ask: {data: default}, calc: {result: {real: false}}}
tests:
  - {name: defaults, expect: {equals: {a: 1, b: 1, ask: default, calc: {real: false}}}}
  - {name: own, workload: {b: 2}, mocks: {ask: {data: own}}, expect: {equals: {a: 1, b: 2, ask: own, calc: {real: false}}}}
  - {name: real, run_real: [calc], expect: {result: {calc: {real: true}}}}
`;
  const run = await command(runTests, workspace(t, { "main.yaml": playbook, "main.test.yaml": tests }), ["."]);
  assert.equal(run.code, 0, run.stdout + run.stderr);
});

test("the example of the guide passes as it stands there", async (t) => {
  const guide = readFileSync(new URL("../../../docs/testing-playbooks.md", import.meta.url), "utf8");
  const example = /^```yaml\n# fetch_users\.test\.yaml\n(.*?)^```$/ms.exec(guide)?.[1];
  assert.ok(example, "the guide begins with fetch_users.test.yaml");
  const playbook = `apiVersion: demo/v2
kind: Playbook
metadata: {name: fetch_users}
workload: {base_url: ""}
workflow:
  - {step: start, next: {arcs: [{step: fetch}]}}
  - step: fetch
    tool:
      kind: http
      url: "{{ base_url }}/users"
      spec:
        policy:
          rules: [{when: "output.error.retryable", then: {do: retry, backoff: fixed, delay: 300}}]
    set: {count: "{{ result.data.users | length }}"}
    next: {arcs: [{step: notify}]}
  - {step: notify, tool: {kind: http, method: POST, url: "{{ base_url }}", json: {count: "{{ count }}"}}, next: {arcs: [{step: end}]}}
  - {step: end, tool: {kind: noop, result: {count: "{{ count }}"}}}
`;
  const folder = workspace(t, { "fetch_users.yaml": playbook, "fetch_users.test.yaml": example });
  const run = await command(runTests, folder, ["fetch_users.test.yaml"]);
  assert.equal(run.code, 0, run.stdout + run.stderr);
});
