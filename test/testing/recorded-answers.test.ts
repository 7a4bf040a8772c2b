import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { runTests } from "../../src/cli/documents/test.ts";
import { runFlow } from "../cli/in-process.ts";
import { command, workspace } from "./workspace.ts";

/* Tests whose tools answer what a recorded run says, and what part of a playbook tests have been through. */

const PLAYBOOK = `apiVersion: demo/v2
kind: Playbook
metadata: {name: main, path: main}
workload: {file: given.txt}
workflow:
  - step: read
    tool: {kind: shell, cmd: "cat {{ file }}"}
    next: {arcs: [{step: each, when: "{{ read.text == 'good' }}"}, {step: bad}]}
  - step: each
    loop: {in: [c, a, b], iterator: name, spec: {mode: parallel}}
    tool: {kind: shell, cmd: "echo {{ name }}$(date +%N)"}
    next: {arcs: [{step: twice}]}
  - step: twice
    tool:
      kind: shell
      cmd: "test -e done || { touch done; exit 1; }; echo ok"
      spec: {policy: {rules: [{when: "{{ outcome.status == 'error' }}", then: {do: retry, attempts: 2, delay: 0}}]}}
  - {step: bad, tool: {kind: noop}}
`;

/** A folder with the playbook, a record of its run, and these tests. */
async function recorded(t: TestContext, tests: string): Promise<string> {
  const folder = workspace(t, { "main.yaml": PLAYBOOK, "main.test.yaml": tests, "given.txt": "good" });
  const run = await runFlow(folder, [
    "run",
    "main.yaml",
    "--record",
    "run.jsonl",
    "--set",
    "file=given.txt",
    "--quiet",
  ]);
  assert.equal(run.code, 0, run.stderr);
  return folder;
}

const USING =
  "tests: [{name: as then, using: run.jsonl, expect: {steps: [read, each, twice], calls: {twice: 2, each: 3}}}]";

test("tools answer what they answered then: for each iteration, errors and retries included", async (t) => {
  const folder = await recorded(t, USING);
  // Were anything run, it would go another way now.
  writeFileSync(join(folder, "given.txt"), "other");
  const { code, stdout, stderr } = await command(runTests, folder, ["main.test.yaml"], { json: true });
  assert.equal(code, 0, stdout + stderr);
  const texts = readFileSync(join(folder, "run.jsonl"), "utf8").match(/"text":"[abc]\d+/g) ?? [];
  assert.equal(texts.length, 3);
  const [c, a, b] = ["c", "a", "b"].map((name) => texts.find((text) => text.startsWith(`"text":"${name}`))?.slice(8));
  const expected = `tests: [{name: values, using: run.jsonl, expect: {results: {each: {results: [{text: "${c}"}, {text: "${a}"}, {text: "${b}"}]}}}}]`;
  writeFileSync(join(folder, "main.test.yaml"), expected);
  const values = await command(runTests, folder, ["main.test.yaml"]);
  assert.equal(values.code, 0, values.stdout);
});

test("a record of the defaults is that of each test, and one that cannot be read is told at its place", async (t) => {
  const folder = await recorded(
    t,
    "defaults: {using: run.jsonl}\ntests: [{name: as then, expect: {calls: {each: 3}}}]",
  );
  const { code, stdout } = await command(runTests, folder, ["main.test.yaml"]);
  assert.equal(code, 0, stdout);
  writeFileSync(join(folder, "main.test.yaml"), "defaults: {using: none.jsonl}\ntests: [{name: as then}]");
  const missing = await command(runTests, folder, ["main.test.yaml"]);
  assert.equal(missing.code, 2);
  assert.match(missing.stdout + missing.stderr, /main\.test\.yaml:1:19.*none\.jsonl/);
});

test("a mock wins over the record, and the test's workload over the recorded inputs", async (t) => {
  const folder = await recorded(
    t,
    'tests: [{name: other, using: run.jsonl, workload: {file: x}, mocks: {read: {expect_config: {cmd: "cat x"}, result: {text: no}}}, expect: {steps: [read, bad]}}]',
  );
  const { code, stdout } = await command(runTests, folder, ["main.test.yaml"]);
  assert.equal(code, 0, stdout);
});

test("a call that the record does not have fails the test and says so", async (t) => {
  const folder = await recorded(t, USING);
  const text = readFileSync(join(folder, "run.jsonl"), "utf8");
  const less = text.split("\n").filter((line) => !(line.includes('"task.done"') && line.includes('"node_id":"twice"')));
  writeFileSync(join(folder, "run.jsonl"), less.join("\n"));
  const { code, stdout } = await command(runTests, folder, ["main.test.yaml"]);
  assert.equal(code, 1);
  assert.match(
    stdout,
    /task 'twice' of step 'twice' \(shell\) has no mock, the recorded run has no answer for this call/,
  );
});

test("a record that is missing or no record is a problem at its place", async (t) => {
  const folder = await recorded(t, USING.replace("run.jsonl", "gone.jsonl"));
  const gone = await command(runTests, folder, ["main.test.yaml"]);
  assert.equal(gone.code, 2);
  assert.match(gone.stderr, /main\.test\.yaml:1:\d+ .*Cannot read gone\.jsonl as a recorded run/);
  writeFileSync(join(folder, "gone.jsonl"), "{}");
  assert.match((await command(runTests, folder, ["main.test.yaml"])).stderr, /neither an event nor a result/);
});

test("the coverage of a file's tests names the steps and arcs that none of them came to", async (t) => {
  const folder = await recorded(t, USING);
  const { stdout } = await command(runTests, folder, ["main.test.yaml"]);
  assert.match(stdout, / {2}covered: 3 of 4 steps, 2 of 3 arcs\n {4}not run: bad\n {4}not taken: read → bad\n/);
  const { files } = JSON.parse((await command(runTests, folder, ["main.test.yaml"], { json: true })).stdout);
  assert.deepEqual(files[0].coverage, {
    steps: { total: 4, covered: 3, missing: ["bad"] },
    arcs: { total: 3, covered: 2, missing: ["read → bad"] },
  });
  const both = USING.replace("tests: [", "tests: [{name: no, mocks: {read: {result: {text: no}}}}, ");
  writeFileSync(join(folder, "main.test.yaml"), both);
  assert.match(
    (await command(runTests, folder, ["main.test.yaml"])).stdout,
    /covered: 4 of 4 steps, 3 of 3 arcs\n(?! +not)/,
  );
});
