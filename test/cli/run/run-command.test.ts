import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { folderWith, playbookText, startFlow } from "../../support/service/cli-process.ts";
import { runFlow } from "../in-process.ts";

const THREE = playbookText(
  "three",
  `  - step: start
    tool: {kind: noop, result: {greeting: "Hello, {{ who }}!", nested: "{{ db.port }}"}}
    next: {arcs: [{step: many}, {step: never, when: "{{ false }}"}]}
  - step: many
    loop: {in: 3, iterator: i}
    tool: {kind: noop, result: {i: "{{ i }}"}}
    next: {arcs: [{step: end}]}
  - step: never
    tool: {kind: noop}
  - step: end
    tool: {kind: noop, result: {text: "{{ start.greeting }}", port: "{{ start.nested }}"}}
`,
  "workload: {who: nobody, db: {port: 1}}\n",
);

const CHILD = playbookText(
  "child",
  `  - step: inner
    tool: {kind: noop, result: {id: "{{ id }}"}}
`,
);

const PARENT = playbookText(
  "parent",
  `  - step: call
    tool: {kind: playbook, path: child, input: {id: 7}}
`,
);

const FAILING = playbookText(
  "failing",
  `  - step: work
    tool:
      - first: {kind: noop}
      - second:
          kind: shell
          cmd: "echo broken >&2; exit 3"
          spec: {policy: {rules: [{when: "{{ outcome.status == 'error' }}", then: {do: retry, attempts: 2, delay: 0}}]}}
`,
);

test("--json prints exactly one object on standard output, with every field, and progress on standard error", async (t) => {
  const folder = await folderWith(t, { "three.yaml": THREE });
  const { code, stdout, stderr } = await runFlow(folder, [
    ...["run", "three.yaml", "--json", "--workload", '{"who": "A", "db": {"port": 2}}'],
    ...["--set", "who=Ada", "--set", "db.port=5433"],
  ]);
  assert.equal(code, 0, stderr);
  const outcome = JSON.parse(stdout) as Record<string, unknown>;
  assert.deepEqual(Object.keys(outcome), [
    ...["execution_id", "path", "status", "result", "error", "started_at", "ended_at", "duration_ms", "steps"],
  ]);
  assert.match(String(outcome["execution_id"]), /^\d+$/);
  assert.equal(outcome["path"], "three");
  assert.equal(outcome["status"], "COMPLETED");
  assert.deepEqual(outcome["result"], { text: "Hello, Ada!", port: 5433 });
  assert.equal(outcome["error"], null);
  assert.match(String(outcome["started_at"]), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  const steps = outcome["steps"] as Record<string, unknown>[];
  assert.deepEqual(
    steps.map((step) => [step["name"], step["status"], step["attempts"]]),
    [
      ["start", "COMPLETED", 1],
      ["many", "COMPLETED", 1],
      ["end", "COMPLETED", 1],
      ["never", "SKIPPED", 0],
    ],
  );
  assert.deepEqual(steps[1]?.["iterations"], { total: 3, done: 3, failed: 0 });
  assert.match(stderr, /^start: completed in /m);
  assert.match(stderr, /^never: skipped, no path leads to it$/m);
  assert.doesNotMatch(stderr, /\u001b/, "no escape sequences where it is no terminal");
});

test("without --json the result stands on standard output and how it went on standard error", async (t) => {
  const folder = await folderWith(t, { "three.yaml": THREE });
  const { code, stdout, stderr } = await runFlow(folder, ["run", "three", "--quiet"]);
  assert.equal(code, 0);
  assert.deepEqual(JSON.parse(stdout), { text: "Hello, nobody!", port: 1 });
  assert.match(stderr, /^✓ three COMPLETED in \d\S*\n$/);
});

test("a playbook is found by its metadata.path below the folder", async (t) => {
  const folder = await folderWith(t, { "some-file.yaml": THREE });
  const { code, stderr } = await runFlow(folder, ["run", "three", "--quiet"]);
  assert.equal(code, 0, stderr);
});

test("--target runs no further than that step", async (t) => {
  const folder = await folderWith(t, { "three.yaml": THREE });
  const { code, stdout } = await runFlow(folder, ["run", "three.yaml", "--target", "many", "--json"]);
  assert.equal(code, 0);
  const { steps } = JSON.parse(stdout) as { steps: { name: string; status: string }[] };
  assert.deepEqual(
    steps.filter((step) => step.status === "COMPLETED").map((step) => step.name),
    ["start", "many"],
  );
});

test("a failing run exits with 1 and names step, task, attempt, line and cause", async (t) => {
  const folder = await folderWith(t, { "failing.yaml": FAILING });
  const { code, stdout, stderr } = await runFlow(folder, ["run", "failing.yaml", "--json"]);
  assert.equal(code, 1);
  const outcome = JSON.parse(stdout) as {
    status: string;
    error: Record<string, unknown>;
    steps: { attempts: number }[];
  };
  assert.equal(outcome.status, "FAILED");
  assert.equal(outcome.error["step"], "work");
  assert.equal(outcome.error["task"], "second");
  assert.equal(outcome.error["attempt"], 2);
  assert.equal(outcome.error["code"], "EXIT_3");
  assert.equal(outcome.steps[0]?.attempts, 2);
  assert.match(stderr, /^work: task second, attempt 2 follows: /m);
  assert.match(stderr, /^ {2}step {4}work at failing\.yaml:5$/m);
  assert.match(stderr, /^ {2}task {4}second \(shell\) at failing\.yaml:\d+, attempt 2$/m);
  assert.match(stderr, /^ {2}cause {3}.*broken/m);
  assert.match(stderr, /^ {2}next {4}\S/m);
  assert.match(stderr, /^work │ broken$/m, "what the tool wrote is shown");
});

test("a failure of a sub-playbook is reported with its step and task", async (t) => {
  const caller = PARENT.replace("child", "failing");
  const folder = await folderWith(t, { "parent.yaml": caller, "failing.yaml": FAILING });
  const { code, stdout, stderr } = await runFlow(folder, ["run", "parent.yaml", "--json"]);
  assert.equal(code, 1);
  const { error } = JSON.parse(stdout) as { error: { details: { status: string } } };
  assert.deepEqual([error.details.status, "detail" in error], ["FAILED", false]);
  assert.match(stderr, /^call › work: failed after /m);
  assert.match(stderr, /^ {2}within {2}failing, step work, task second, attempt 2$/m);
});

test("--record writes every event of the run and its sub-playbooks as lines with growing numbers", async (t) => {
  const folder = await folderWith(t, { "parent.yaml": PARENT, "child.yaml": CHILD });
  const { code, stdout, stderr } = await runFlow(folder, ["run", "parent.yaml", "--json", "--record", "events.jsonl"]);
  assert.equal(code, 0, stderr);
  const { execution_id } = JSON.parse(stdout) as { execution_id: string };
  const records = await readRecords(join(folder, "events.jsonl"));
  assert.deepEqual(
    records.map((record) => record["event_id"]),
    records.map((_, index) => index + 1),
  );
  assert.equal(records[0]?.["event_type"], "playbook.initialized");
  assert.equal(records.at(-1)?.["event_type"], "playbook.completed");
  const inner = records.filter((record) => record["node_id"] === "inner");
  assert.ok(inner.length > 0);
  for (const record of inner) assert.equal(record["parent_execution_id"], execution_id);
  assert.ok(inner.every((record) => record["execution_id"] !== execution_id));
});

test("Ctrl-C stops the tools, completes the event log and exits with 130", async (t) => {
  const slow = playbookText("slow", `  - step: wait\n    tool: {kind: shell, cmd: "echo pid $$; exec sleep 600"}\n`);
  const folder = await folderWith(t, { "slow.yaml": slow });
  const run = startFlow(folder, ["run", "slow.yaml", "--json", "--record", "events.jsonl"]);
  await run.untilStderr("wait │ pid ");
  run.process.kill("SIGINT");
  const { code, stdout, stderr } = await run.ended;
  assert.equal(code, 130, stderr);
  const outcome = JSON.parse(stdout) as { status: string; error: { kind: string } };
  assert.equal(outcome.status, "CANCELLED");
  assert.equal(outcome.error.kind, "cancelled");
  assert.match(stderr, /^■ slow CANCELLED after .*: interrupted by SIGINT$/m);
  const pid = Number(/pid (\d+)/.exec(stderr)?.[1]);
  assert.throws(() => process.kill(pid, 0), { code: "ESRCH" }, "the command of the shell step is gone");
  const records = await readRecords(join(folder, "events.jsonl"));
  assert.ok(records.some((record) => record["event_type"] === "execution.cancelled"));
});

test("a second Ctrl-C leaves at once, with the event log complete up to there", async (t) => {
  // It ignores what asks it to stop, so that the run would wait for it.
  const stubborn = playbookText(
    "stubborn",
    `  - step: wait\n    tool: {kind: shell, cmd: "trap '' TERM; echo ready; sleep 1.5"}\n`,
  );
  const folder = await folderWith(t, { "stubborn.yaml": stubborn });
  const run = startFlow(folder, ["run", "stubborn.yaml", "--record", "events.jsonl"]);
  await run.untilStderr("wait │ ready");
  run.process.kill("SIGINT");
  await run.untilStderr("cancelling");
  run.process.kill("SIGINT");
  const { code, stderr } = await run.ended;
  assert.equal(code, 130, stderr);
  assert.doesNotMatch(stderr, /CANCELLED/, "it did not wait for the end");
  assert.ok((await readRecords(join(folder, "events.jsonl"))).length > 0);
});

test("Ctrl-C reaches a loop whose tools answer at once", async (t) => {
  const endless = playbookText(
    "endless",
    `  - step: many\n    loop: {in: 5000000, iterator: i}\n    tool: {kind: noop}\n`,
  );
  const folder = await folderWith(t, { "endless.yaml": endless });
  const run = startFlow(folder, ["run", "endless.yaml"]);
  await run.untilStderr("many: started, 5,000,000 iterations");
  run.process.kill("SIGINT");
  const { code, stderr } = await run.ended;
  assert.equal(code, 130, stderr);
  assert.match(stderr, /^many: cancelled after /m);
});

test("warnings of the document are printed, ten at most", async (t) => {
  const keys = Array.from({ length: 12 }, (_, index) => `strange_${index}: 1\n`).join("");
  const folder = await folderWith(t, {
    "warned.yaml": playbookText("warned", "  - step: a\n    tool: {kind: noop}\n", keys),
  });
  const { code, stderr } = await runFlow(folder, ["run", "warned.yaml", "--quiet"]);
  assert.equal(code, 0);
  assert.equal(stderr.match(/^warning: warned\.yaml:\d+:1 {2}unknown-key {2}/gm)?.length, 10);
  assert.match(stderr, /^and 2 more warnings; /m);
});

test("a result beyond the inline limit is loaded for --json, and its step shows the reference", async (t) => {
  const text = playbookText("large", `  - step: make\n    tool: {kind: noop, result: {text: "{{ 'x' * 100000 }}"}}\n`);
  const folder = await folderWith(t, { "large.yaml": text });
  const { code, stdout, stderr } = await runFlow(folder, ["run", "large.yaml", "--json"]);
  assert.equal(code, 0, stderr);
  const outcome = JSON.parse(stdout) as { result: { text: string }; steps: { result: { kind: string } }[] };
  assert.equal(outcome.result.text.length, 100_000);
  assert.equal(outcome.steps[0]?.result.kind, "result_ref");
});

test("credentials come from the file that is named", async (t) => {
  const text = playbookText("keyed", `  - step: a\n    tool: {kind: shell, cmd: "true", auth: demo}\n`);
  const credentials = JSON.stringify({ demo: { type: "bearer", data: { token: "secret-text" } } });
  const folder = await folderWith(t, { "keyed.yaml": text, "keys.json": credentials });
  const found = await runFlow(folder, ["run", "keyed.yaml", "--credentials", "keys.json"]);
  assert.equal(found.code, 0, found.stderr);
  assert.doesNotMatch(found.stdout + found.stderr, /secret-text/);
  const missing = await runFlow(folder, ["run", "keyed.yaml"]);
  assert.equal(missing.code, 1, "without the file the task fails");
  assert.match(missing.stderr, /demo/);
});

async function readRecords(file: string): Promise<Record<string, unknown>[]> {
  const text = await readFile(file, "utf8");
  assert.ok(text.endsWith("\n"), "the last line is whole");
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

const ASYNC_PARENT = playbookText("parent", "  - step: call\n    tool: {kind: playbook, path: child, mode: async}\n");

test("the failure of a sub-playbook that no step waited for is reported, with --quiet too", async (t) => {
  const child = playbookText("child", '  - step: work\n    tool: {kind: shell, cmd: "sleep 0.2; exit 3"}\n');
  const folder = await folderWith(t, { "parent.yaml": ASYNC_PARENT, "child.yaml": child });
  const { code, stderr } = await runFlow(folder, ["run", "parent.yaml", "--quiet"]);
  assert.equal(code, 0, "the run itself went well");
  assert.match(
    stderr,
    /^warning: .*no step waited for, 1 failed; the last: child, execution \d+, FAILED: .*exited with 3/m,
  );
});

test("Ctrl-C after the run, while a sub-playbook that no step waits for keeps running, exits with 130 and says so", async (t) => {
  const child = playbookText("child", '  - step: work\n    tool: {kind: shell, cmd: "echo ready; exec sleep 600"}\n');
  const folder = await folderWith(t, { "parent.yaml": ASYNC_PARENT, "child.yaml": child });
  const run = startFlow(folder, ["run", "parent.yaml"]);
  await Promise.all([run.untilStderr("call: completed"), run.untilStderr("work │ ready")]);
  run.process.kill("SIGINT");
  const { code, stderr } = await run.ended;
  assert.equal(code, 130, stderr);
  assert.match(stderr, /✓ parent COMPLETED/);
  assert.match(stderr, /no step waited for, 1 cancelled; the last: child/);
});

test("an interpreter that is not there is a setting to correct, not a credential", async (t) => {
  const python = playbookText("python", '  - step: work\n    tool: {kind: python, code: "result = 1"}\n');
  const folder = await folderWith(t, { "python.yaml": python });
  const { code, stderr } = await runFlow(folder, ["run", "python.yaml"], { FLOW_PYTHON: "/no/python" });
  assert.equal(code, 1);
  assert.match(stderr, /^ {2}next +correct the setting; `flow config`/m);
  assert.doesNotMatch(stderr, /credential/i);
});

test("a missing credential is reported with the ways to give it", async (t) => {
  const call = playbookText("call", '  - step: work\n    tool: {kind: http, url: "http://127.0.0.1:1", auth: none}\n');
  const folder = await folderWith(t, { "call.yaml": call });
  const { stderr } = await runFlow(folder, ["run", "call.yaml"]);
  assert.match(stderr, /^ {2}next +check the credential: --credentials FILE/m);
});

test("of sub-playbooks deep within each other the outer ones and the innermost are named", async (t) => {
  const endless = playbookText("endless", "  - step: again\n    tool: {kind: playbook, path: endless}\n");
  const folder = await folderWith(t, { "endless.yaml": endless });
  const { code, stderr } = await runFlow(folder, ["run", "endless.yaml", "--quiet"]);
  assert.equal(code, 1);
  assert.equal(stderr.match(/^ {2}within/gm)?.length, 6);
  assert.match(stderr, /^ {2}within +… \d+ more sub-playbooks$/m);
  assert.match(stderr, /^ {2}cause +Playbooks call each other more than 64 deep/m);
});
