import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { folderWith, playbookText } from "../../support/service/cli-process.ts";
import { runFlow } from "../in-process.ts";

const GOOD = playbookText("good", "  - step: start\n    tool: {kind: noop}\n");
const WARNED = playbookText("warned", "  - step: start\n    tool: {kind: noop}\n", "strange: 1\n");
const BAD = playbookText("bad", "  - step: start\n    tool: {kind: noop}\n    next: {arcs: [{step: strat}]}\n");

test("a valid document gives exit code 0 and no output but the verdict", async (t) => {
  const folder = await folderWith(t, { "good.yaml": GOOD });
  const { code, stdout, stderr } = await runFlow(folder, ["validate", "good.yaml"]);
  assert.deepEqual([code, stdout, stderr], [0, "", "good.yaml: valid\n"]);
});

test("problems are lines of file, line, column, code, message and hint, with exit code 2", async (t) => {
  const folder = await folderWith(t, { "bad.yaml": BAD, "good.yaml": GOOD });
  const { code, stdout, stderr } = await runFlow(folder, ["validate", "bad.yaml", "good.yaml"]);
  assert.equal(code, 2);
  assert.match(stdout, /^bad\.yaml:7:\d+ {2}unknown-step {2}.*`strat`.* {2}\(did you mean `start`\?\)$/m);
  assert.match(stderr, /^2 documents: 1 error/);
});

test("--strict makes errors of warnings", async (t) => {
  const folder = await folderWith(t, { "warned.yaml": WARNED });
  const lenient = await runFlow(folder, ["validate", "warned.yaml"]);
  assert.equal(lenient.code, 0);
  assert.match(lenient.stdout, /^warned\.yaml:4:1 {2}unknown-key {2}warning: /);
  const strict = await runFlow(folder, ["validate", "warned.yaml", "--strict"]);
  assert.equal(strict.code, 2);
  assert.match(strict.stderr, /warned\.yaml: 1 error/);
});

test("--json gives one object over all files, each problem with its file", async (t) => {
  const folder = await folderWith(t, { "bad.yaml": BAD, "warned.yaml": WARNED });
  const { code, stdout } = await runFlow(folder, ["validate", "bad.yaml", "warned.yaml", "--json"]);
  assert.equal(code, 2);
  const report = JSON.parse(stdout) as {
    valid: boolean;
    errors: Record<string, unknown>[];
    warnings: { file: string }[];
  };
  assert.equal(report.valid, false);
  assert.equal(report.errors.length, 1);
  const { file, line, column, path, code: rule, message, hint } = report.errors[0] ?? {};
  assert.deepEqual([file, line, rule], ["bad.yaml", 7, "unknown-step"]);
  for (const value of [path, message, hint]) assert.equal(typeof value, "string");
  assert.equal(typeof column, "number");
  assert.ok(report.warnings.some((warning) => warning.file === "warned.yaml"));
});

test("a folder stands for the playbooks below it, without tests and other YAML", async (t) => {
  const folder = await folderWith(t, {
    "good.yaml": GOOD,
    "good.test.yaml": "playbook: good",
    "compose.yaml": "services: {}",
  });
  await mkdir(join(folder, "deeper"));
  await writeFile(join(folder, "deeper", "warned.yml"), WARNED);
  const { code, stdout, stderr } = await runFlow(folder, ["validate", "."]);
  assert.equal(code, 0, stdout);
  assert.match(stdout, /^deeper\/warned\.yml:4:1 /);
  assert.match(stderr, /^2 documents: valid, 1 warning$/m);
});
