import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { folderWith, playbookText } from "../../support/service/cli-process.ts";
import { runFlow } from "../in-process.ts";

/* `flow run --from STEP --using RECORD`: only a late step and what follows it run. */

const PLAYBOOK = playbookText(
  "late",
  `  - step: fetch
    tool: {kind: shell, cmd: "echo fetch >> ran; echo 5"}
    next: {spec: {mode: inclusive}, arcs: [{step: each}, {step: beside}]}
  - step: each
    loop: {in: [1, 2], iterator: n, spec: {mode: parallel}}
    tool: {kind: shell, cmd: "echo each >> ran; echo {{ n }}"}
    next: {arcs: [{step: child}]}
  - step: child
    tool: {kind: playbook, path: inner}
    next: {arcs: [{step: publish}]}
  - {step: beside, tool: {kind: shell, cmd: "echo beside >> ran"}}
  - step: publish
    tool: {kind: shell, cmd: "echo publish >> ran; echo {{ fetch.text }}"}
`,
);
const INNER = playbookText("inner", `  - {step: in, tool: {kind: shell, cmd: "echo inner >> ran; echo 1"}}\n`);

async function recorded(t: TestContext): Promise<string> {
  const folder = await folderWith(t, { "late.yaml": PLAYBOOK, "inner.yaml": INNER, ran: "" });
  const run = await runFlow(folder, ["run", "late.yaml", "--record", "run.jsonl", "--quiet"]);
  assert.equal(run.code, 0, run.stderr);
  assert.equal(ranIn(folder).length, 6);
  return folder;
}

const ranIn = (folder: string) => readFileSync(join(folder, "ran"), "utf8").trim().split("\n");

test("the chosen step runs with what the record has of the others, and nothing before it or beside it runs", async (t) => {
  const folder = await recorded(t);
  writeFileSync(join(folder, "ran"), "");
  writeFileSync(join(folder, "late.yaml"), PLAYBOOK.replace("echo {{ fetch.text }}", "echo new {{ fetch.text }}"));
  const run = await runFlow(folder, ["run", "late.yaml", "--from", "publish", "--using", "run.jsonl", "--json"]);
  assert.equal(run.code, 0, run.stderr);
  assert.deepEqual(ranIn(folder), ["publish"]);
  assert.match(run.stderr, /reused from run\.jsonl: fetch, each, child, beside/);
  assert.equal(JSON.parse(run.stdout).result.text, "new 5");
});

test("what follows the chosen step runs too, sub-playbooks as well", async (t) => {
  const folder = await recorded(t);
  writeFileSync(join(folder, "ran"), "");
  const run = await runFlow(folder, ["run", "late.yaml", "--from", "child", "--using", "run.jsonl", "--quiet"]);
  assert.equal(run.code, 0, run.stderr);
  assert.deepEqual(ranIn(folder), ["inner", "publish"]);
});

test("a result with a value that the record hides is given to no tool", async (t) => {
  const folder = await recorded(t);
  const text = readFileSync(join(folder, "run.jsonl"), "utf8");
  writeFileSync(join(folder, "run.jsonl"), text.replaceAll('"text":"5"', '"text":"[secret]"'));
  writeFileSync(join(folder, "ran"), "");
  const run = await runFlow(folder, ["run", "late.yaml", "--from", "publish", "--using", "run.jsonl"]);
  assert.equal(run.code, 1);
  assert.match(run.stderr, /hides sensitive values in the result of step 'fetch'/);
  assert.deepEqual(ranIn(folder), [""]);
});

test("an unknown step, one option without the other and a file that is no record are refused", async (t) => {
  const folder = await recorded(t);
  writeFileSync(join(folder, "ran"), "");
  const refused = async (...args: string[]) => (await runFlow(folder, ["run", "late.yaml", ...args])).stderr;
  assert.match(await refused("--from", "nope", "--using", "run.jsonl"), /no step 'nope'/);
  assert.match(await refused("--from", "publish"), /belong together/);
  assert.match(await refused("--using", "run.jsonl"), /belong together/);
  assert.match(await refused("--from", "publish", "--using", "late.yaml"), /Cannot read late\.yaml/);
  assert.deepEqual(ranIn(folder), [""]);
});
