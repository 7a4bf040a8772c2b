import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { folderWith, playbookText } from "../../support/service/cli-process.ts";
import { command } from "../in-process.ts";

/* `flow replay`: a recorded run, decided again. */

const PLAYBOOKS = join(import.meta.dirname, "../../../../test/parity/playbooks");
const BRANCH = playbookText(
  "branch",
  `  - step: start
    tool: {kind: noop, result: {n: "{{ limit }}"}}
    set: {ctx.n: "{{ result.n }}"}
    next: {arcs: [{step: small, when: "{{ n < 10 }}", args: {given: "{{ n }}"}}, {step: large}]}
  - {step: small, tool: {kind: noop, result: {small: true}}}
  - {step: large, tool: {kind: noop, result: {small: false}}}
`,
  "workload: {limit: 5}\n",
);

/** Runs a playbook of this folder, and replays its record. */
async function recorded(folder: string, file: string, args: readonly string[] = []) {
  const run = await command(folder, ["run", file, "--record", "run.jsonl", "--quiet", ...args]);
  const same = await command(folder, ["replay", "run.jsonl", "--playbook", file]);
  return { run, same, text: readFileSync(join(folder, "run.jsonl"), "utf8") };
}

test("a run is decided again as it was", async (t) => {
  const folder = await folderWith(t, { "branch.yaml": BRANCH });
  const { run, same } = await recorded(folder, "branch.yaml");
  assert.equal(run.code, 0, run.stderr);
  assert.deepEqual([same.code, same.stderr], [0, ""]);
  assert.match(same.stdout, /^✓ run\.jsonl goes the same way \(\d+ events\)\n$/);
});

for (const name of [
  "back_arc",
  "failures",
  "loop_empty",
  "loop_result",
  "routing",
  "values",
  "pipeline",
  "retry",
  "large_loop_parallel",
]) {
  test(`a run of ${name} is decided again as it was`, async (t) => {
    const folder = await folderWith(t, { "p.yaml": readFileSync(join(PLAYBOOKS, `${name}.yaml`), "utf8") });
    const { same } = await recorded(folder, "p.yaml");
    assert.equal(same.code, 0, same.stdout + same.stderr);
  });
}

test("a changed arc is found at its place, with both values", async (t) => {
  const folder = await folderWith(t, { "branch.yaml": BRANCH, "new.yaml": BRANCH.replace("n < 10", "n < 3") });
  await recorded(folder, "branch.yaml");
  const { code, stdout } = await command(folder, ["replay", "run.jsonl", "--playbook", "new.yaml"]);
  assert.equal(code, 1);
  assert.match(stdout, /^✗ run\.jsonl goes another way \(after \d+ events that are the same\)\n/);
  assert.match(stdout, / {2}\S+ of step 'start' at \S+, event \d+\n {4}recorded {2}.*\n {4}replayed {2}/);
  const json = JSON.parse((await command(folder, ["replay", "run.jsonl", "--playbook", "new.yaml", "--json"])).stdout);
  assert.equal(json.runs[0].same, false);
  assert.equal(typeof json.runs[0].difference.event_id, "number");
});

test("changed arguments, a new default, a missing step and a new input are told apart", async (t) => {
  const versions = {
    "args.yaml": BRANCH.replace('given: "{{ n }}"', 'given: "{{ n + 1 }}"'),
    "default.yaml": BRANCH.replace("limit: 5", "limit: 6"),
    "step.yaml": BRANCH.replaceAll("small,", "tiny,").replace("step: small", "step: tiny"),
    "more.yaml": BRANCH.replace("limit: 5", "limit: 5, more: 1"),
  };
  const folder = await folderWith(t, { "branch.yaml": BRANCH, ...versions });
  await recorded(folder, "branch.yaml");
  const replayed = async (file: string) => {
    const { code, stdout } = await command(folder, ["replay", "run.jsonl", "--playbook", file, "--json"]);
    return { code, ...JSON.parse(stdout).runs[0].difference };
  };
  const args = await replayed("args.yaml");
  assert.deepEqual([args.code, args.path, args.recorded, args.replayed], [1, "set.given", 5, 6]);
  const fallback = await replayed("default.yaml");
  assert.deepEqual([fallback.code, fallback.path, fallback.recorded, fallback.replayed], [1, "workload.limit", 5, 6]);
  assert.equal((await replayed("step.yaml")).code, 1);
  assert.equal((await replayed("more.yaml")).code, 0);
});

test("a record that ends early goes the same way as far as it goes; one without its beginning cannot be read", async (t) => {
  const folder = await folderWith(t, { "branch.yaml": BRANCH });
  const { text } = await recorded(folder, "branch.yaml");
  const lines = text.trimEnd().split("\n");
  const replayOf = (some: readonly string[], args = ["--playbook", "branch.yaml"]) => {
    writeFileSync(join(folder, "some.jsonl"), `${some.join("\n")}\n`);
    return command(folder, ["replay", "some.jsonl", ...args]);
  };
  for (let count = 1; count <= lines.length; count += 1) {
    assert.equal((await replayOf(lines.slice(0, count))).code, 0, `${count} lines`);
  }
  for (const [some, why] of [
    [lines.slice(1), /does not begin with the start/],
    [[], /it has no events/],
    [["{"], /line 1 .*not a JSON object/],
    [[...lines, "{}"], /neither an event nor a result/],
    [['{"flow_record":2}', ...lines], /version 2/],
  ] as const) {
    const { code, stderr } = await replayOf(some);
    assert.equal(code, 2);
    assert.match(stderr, why);
  }
  assert.match((await replayOf(lines, [])).stderr, /has no document.*--playbook FILE/);
  assert.equal((await command(folder, ["replay", "missing.jsonl"])).code, 2);
});

test("an event that was taken out of the record is a difference there", async (t) => {
  const folder = await folderWith(t, { "branch.yaml": BRANCH });
  const { text } = await recorded(folder, "branch.yaml");
  const lines = text
    .trimEnd()
    .split("\n")
    .filter((line) => !line.includes('"next.evaluated"'));
  writeFileSync(join(folder, "some.jsonl"), lines.join("\n"));
  const { code, stdout } = await command(folder, ["replay", "some.jsonl", "--playbook", "branch.yaml"]);
  assert.equal(code, 1);
  assert.match(stdout, /replayed {2}/);
});
