import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { folderWith, playbookText } from "../../support/service/cli-process.ts";
import { runFlow } from "../in-process.ts";

/* Declared inputs of runs in this process, of the sub-playbooks that they call, and in the help of a playbook. */

const INPUTS = `inputs:
  day: { type: string, format: date, required: true, description: The day to load. }
  mode: { enum: [full, delta], default: delta }
  password: { type: string, secret: true }
workload: { base: "http://localhost", at: "{{ now() }}" }
`;

const FILES = {
  "load.yaml": playbookText(
    "load",
    `  - { step: one, tool: { kind: noop, result: { said: "{{ day }} {{ mode }}" } } }\n`,
    INPUTS,
  ),
  "calls.yaml": playbookText("calls", `  - { step: call, tool: { kind: playbook, path: load, input: { day: 3 } } }\n`),
  "none.yaml": playbookText("none", "  - { step: one, tool: { kind: noop } }\n"),
  "load.test.yaml": `tests:
  - { name: fits, workload: { day: "2026-01-31", password: hunter22 }, expect: { equals: { said: 2026-01-31 delta } } }
  - { name: does not fit, workload: { day: soon }, expect: { equals: 1 } }
`,
};

test("a run whose inputs do not fit does not start, and says what is wrong", async (t) => {
  const folder = await folderWith(t, FILES);
  const { code, stdout, stderr } = await runFlow(folder, ["run", "load.yaml", "--set", "day=soon", "--set", "mdoe=1"]);
  assert.deepEqual([code, stdout], [2, ""]);
  assert.match(
    stderr,
    /'load' was not started: its inputs are not valid: mdoe: is no input of it; did you mean 'mode'\?; day: must be a date/,
  );
});

test("a run whose inputs fit has the defaults of the others; its secret is in no record", async (t) => {
  const folder = await folderWith(t, FILES);
  const words = ["run", "load.yaml", "--set", "day=2026-01-31", "--set", "password=hunter22", "--record", "r.jsonl"];
  const { code, stdout } = await runFlow(folder, words);
  assert.deepEqual([code, JSON.parse(stdout)], [0, { said: "2026-01-31 delta" }]);
  const record = await readFile(join(folder, "r.jsonl"), "utf8");
  assert.match(record, /\[secret\]|\[sealed:/);
  assert.doesNotMatch(record, /hunter22/);
});

test("a step that calls a playbook with inputs that do not fit fails with what is wrong", async (t) => {
  const { code, stdout } = await runFlow(await folderWith(t, FILES), ["run", "calls.yaml", "--json"]);
  assert.equal(code, 1);
  assert.match(
    JSON.parse(stdout).error.message,
    /'load' was not started: its inputs are not valid: day: must be string/,
  );
});

test("flow test checks them as a run does", async (t) => {
  const { code, stdout } = await runFlow(await folderWith(t, FILES), ["test", "load.test.yaml"]);
  assert.equal(code, 1);
  assert.match(stdout, /✓ fits/);
  assert.match(stdout, /✗ does not fit[\s\S]*day: must be a date/);
});

test("a plan hides the value of a secret input", async (t) => {
  const words = ["plan", "load.yaml", "--set", "day=2026-01-31", "--set", "password=hunter22", "--json"];
  const { stdout } = await runFlow(await folderWith(t, FILES), words);
  assert.deepEqual(JSON.parse(stdout).workload.secret, ["password"]);
  assert.doesNotMatch(stdout, /hunter22/);
});

test("the help of flow run lists the inputs of a playbook that is named", async (t) => {
  const folder = await folderWith(t, FILES);
  const { code, stdout } = await runFlow(folder, ["run", "load.yaml", "--help"]);
  assert.equal(code, 0);
  assert.equal(
    stdout.slice(stdout.indexOf("Inputs of")),
    `Inputs of 'load', as --set NAME=VALUE
  day       date, required; The day to load.
  mode      "full" | "delta"; default "delta"
  password  string, secret
  base      string; default "http://localhost"
  at        Worked out when left out.
`,
  );
  assert.match((await runFlow(folder, ["run", "none.yaml", "-h"])).stdout, /\n'none' names no inputs\n$/);
  const missing = await runFlow(folder, ["run", "lode.yaml", "--help"]);
  assert.deepEqual([missing.code, /Did you mean 'load.yaml'\?/.test(missing.stderr)], [2, true]);
});
