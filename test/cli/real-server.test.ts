import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { createServedDatabase } from "../support/database/postgres.ts";
import { ownDatabase } from "../support/engine/key-ring.ts";
import { folderWith, playbookText, startFlow } from "../support/service/cli-process.ts";
import { type Serving, startServe } from "../support/service/serve.ts";
import { runFlow } from "./in-process.ts";

/* The commands against the service itself, a worker process included: what the other tests script is as they say. */

const CHILD = playbookText("child", '  - step: inner\n    tool: {kind: noop, result: {id: "{{ id }}"}}\n');
const WORK = playbookText(
  "work",
  `  - step: many
    loop: {in: 30, iterator: i, spec: {mode: parallel, max_in_flight: 8}}
    tool: {kind: noop, result: {i: "{{ i }}"}}
    next: {arcs: [{step: call}, {step: never, when: "{{ false }}"}]}
  - step: call
    tool: {kind: playbook, path: child, input: {id: 7}}
    next: {arcs: [{step: end}]}
  - step: never
    tool: {kind: noop}
  - step: end
    tool: {kind: noop, result: {id: "{{ call.id }}", big: "{{ 'x' * 100000 }}"}}
`,
);
const TOLD = playbookText(
  "told",
  `  - step: first
    tool: {kind: shell, cmd: "echo from the parent"}
    next: {arcs: [{step: both}]}
  - step: both
    loop: {in: [1, 2], iterator: n}
    tool: {kind: playbook, path: teller, input: {n: "{{ n }}"}}
`,
);
const TELLER = playbookText("teller", `  - step: say\n    tool: {kind: shell, cmd: "echo child {{ n }}"}\n`);
const SLEEP = playbookText("sleep", '  - step: wait\n    tool: {kind: shell, cmd: "exec sleep 600"}\n');

/** Of a server with a database of its own: its tools may do what they may there. */
async function startService(t: TestContext, folder: string): Promise<Serving> {
  const { url } = await createServedDatabase();
  return await startServe(t, folder, { ...ownDatabase(url), FLOW_WORKER_TOOLS: "all" }, ["--role", "all"]);
}

test("logs of a parent have its children's lines, each behind its path, and say so where nothing was written", async (t) => {
  const folder = await folderWith(t, { "told.yaml": TOLD, "teller.yaml": TELLER, "child.yaml": CHILD });
  const { url } = await startService(t, folder);
  const run = (...args: string[]) => runFlow(folder, args, { FLOW_SERVER_URL: url });
  await run("register", "teller.yaml");
  const ran = await run("run", "told.yaml", "--quiet");
  assert.equal(ran.code, 0, ran.stderr);
  const expected = "first  from the parent\nteller › say  child 1\nteller › say  child 2\n";
  assert.equal((await run("logs", "--last")).stdout, expected);
  assert.equal((await run("logs", "--last", "-f")).stdout, expected);
  const lines = (await run("logs", "--last", "--json")).stdout.trim().split("\n");
  assert.deepEqual(
    lines.map((line) => (JSON.parse(line) as { path?: string }).path),
    [undefined, "teller", "teller"],
  );
  assert.equal((await run("logs", "--last", "--step", "first")).stdout, "first  from the parent\n");

  await run("run", "child.yaml", "--quiet", "--set", "id=1");
  const nothing = await run("logs", "--last");
  assert.deepEqual([nothing.code, nothing.stdout, nothing.stderr], [0, "", "nothing was written\n"]);
});

test("run, status, events, executions, workers and cancel agree with the service", async (t) => {
  const folder = await folderWith(t, { "child.yaml": CHILD, "work.yaml": WORK, "sleep.yaml": SLEEP });
  const { url } = await startService(t, folder);
  const environment = { FLOW_SERVER_URL: url };
  const run = (...args: string[]) => runFlow(folder, args, environment);
  await run("register", "child.yaml");

  const there = await run("run", "work.yaml", "--json", "--record", "events.jsonl");
  assert.equal(there.code, 0, there.stderr);
  const here = await run("run", "work.yaml", "--json", "--runtime", "local");
  assert.deepEqual(told(there.stdout), told(here.stdout), "the same outcome as in one process");
  assert.match(there.stderr, /^call › inner: completed in /m);
  const log = (await readFile(join(folder, "events.jsonl"), "utf8")).trimEnd().split("\n");
  const ends = log.filter((line) => (JSON.parse(line) as { event_type: string }).event_type === "playbook.completed");
  assert.equal(ends.length, 2, "the sub-playbook's events too");

  const { executions } = JSON.parse((await run("executions", "--path", "work", "--json")).stdout) as {
    executions: { execution_id: string; status: string }[];
  };
  assert.deepEqual(
    executions.map(({ status }) => status),
    ["COMPLETED"],
  );
  const id = executions[0]?.execution_id ?? "";
  const status = await run("status", id);
  assert.match(
    status.stdout,
    /^work version 1 {2}COMPLETED after .*\n.*\n\n✓ many .* 30\/30\n✓ call .*\n✓ end .*\n− never/,
  );
  const { stdout: tree, stderr: counted } = await run("lineage", id);
  assert.match(
    tree,
    new RegExp(`^${id}  work v1  COMPLETED  .*  ← this one\n└─ called \\d+  child v1  COMPLETED .*\n$`),
  );
  assert.equal(counted, "0 ancestors, 1 descendant\n");
  const [, child = ""] = /called (\d+)/.exec(tree) ?? [];
  assert.match(
    (await run("lineage", child)).stdout,
    new RegExp(`^${id}  work v1 .*\n└─ called ${child}  child v1 .*← this one\n$`),
  );
  const { ancestors } = JSON.parse((await run("lineage", child, "--json")).stdout) as { ancestors: { by: string }[] };
  assert.deepEqual(
    ancestors.map(({ by }) => by),
    ["parent"],
  );
  assert.equal((await run("lineage", "7")).code, 2);
  const followed = await run("events", id, "-f", "--json");
  const ids = followed.stdout
    .trimEnd()
    .split("\n")
    .map((line) => (JSON.parse(line) as { event_id: number }).event_id);
  assert.deepEqual(
    ids,
    [...new Set(ids)].sort((left, right) => left - right),
  );
  assert.match((await run("workers")).stdout, /\n\S+ +ready +\d+\/\d+ +\S+/);

  const sleeping = startFlow(folder, ["run", "sleep.yaml"], environment);
  t.after(() => sleeping.process.kill("SIGKILL"));
  await sleeping.untilStderr("wait: started");
  const last = await run("status", "--last");
  assert.match(last.stdout, /^sleep version 1 {2}RUNNING for /);
  assert.match(last.stdout, /^ {2}wait {2}with \S+ for \S+ {2}command \d+$/m);
  const [, open = ""] = /^execution (\d+)/m.exec(last.stdout) ?? [];
  // The start of an id is enough where no other one begins so: the tests above started theirs within milliseconds of this one.
  const others =
    (await run("executions", "--limit", "100")).stdout.match(/\d{15,}/g)?.filter((id) => id !== open) ?? [];
  const length = [...open].findIndex((_, index) => !others.some((id) => id.startsWith(open.slice(0, index + 1)))) + 1;
  const begins = open.slice(0, length);
  const begun = await run("status", begins);
  assert.match(begun.stdout, /^sleep version 1 {2}RUNNING for /, `${open}: ${begun.stderr}`);
  const several = await run("status", open.slice(0, 2));
  assert.equal(several.code, 2);
  assert.match(
    several.stderr,
    new RegExp(`is the start of several executions; give more of it:\\n {2}${open} sleep RUNNING`),
  );
  assert.match((await run("cancel", "--last", "--reason", "enough")).stdout, /is CANCELLED$/m);
  const cancelled = await sleeping.ended;
  assert.equal(cancelled.code, 130, cancelled.stderr);
  assert.match(cancelled.stderr, /^■ sleep CANCELLED after .*: enough$/m);
});

/** An outcome without what differs from run to run; of a stored result only that it is one. */
function told(json: string): unknown {
  const drop = new Set(["execution_id", "started_at", "ended_at", "duration_ms"]);
  return JSON.parse(json, (key, value: unknown) => {
    if (drop.has(key)) return undefined;
    return isReference(value) ? "stored" : value;
  });
}

function isReference(value: unknown): boolean {
  return typeof value === "object" && value !== null && "kind" in value && value.kind === "result_ref";
}

const DRAFTED = (text: string, send = "noop, result: {sent: old}") =>
  playbookText(
    "drafted",
    `  - step: build
    tool: {kind: noop, result: {text: "${text} {{ who }}"}}
    next: {arcs: [{step: send, set: {text: "{{ build.text }}"}}]}
  - step: send
    tool: {kind: ${send}}
`,
    "workload: {who: world}\n",
  );

test("a file runs as a draft, whole or one step of it with recorded inputs; what does not fit says so", async (t) => {
  const folder = await folderWith(t, {
    "drafted.yaml": DRAFTED("hello"),
    "next.yaml": DRAFTED("good bye", `shell, cmd: "echo {{ text }}"`),
    "broken.yaml": DRAFTED("x").replace("arcs: [{step: send", "arcs: [{step: nowhere"),
  });
  const { url } = await startService(t, folder);
  const run = (...args: string[]) => runFlow(folder, args, { FLOW_SERVER_URL: url });
  const early = await run("run", "next.yaml", "--draft", "--step", "send");
  assert.equal(early.code, 2);
  assert.match(
    early.stderr,
    /Step 'send' has not run in any of the last 20 executions of 'drafted'.*Run the draft up to it/,
  );

  const draft = await run("run", "drafted", "--draft", "--set", "who=Ada", "--json");
  assert.equal(draft.code, 0, draft.stderr);
  const { execution_id: id, status } = JSON.parse(draft.stdout) as { execution_id: string; status: string };
  assert.equal(status, "COMPLETED");
  assert.match(draft.stderr, /running at .*: drafted as a draft, execution \d+/);
  assert.match((await run("catalog")).stdout, /^(?![\s\S]*drafted)/, "nothing was registered");

  const plan = await run("run", "next.yaml", "--draft", "--step", "send", "--dry-run");
  assert.equal(plan.code, 0, plan.stderr);
  assert.match(plan.stdout, new RegExp(`^Rerun of ${id}, drafted as the draft: 1 step reused, send runs$`, "m"));
  assert.match(plan.stdout, /^send +runs +shell +runs commands$/m);
  const step = await run("run", "next.yaml", "--draft", "--step", "send", "--of", id);
  assert.equal(step.code, 0, step.stderr);
  assert.match(step.stderr, new RegExp(`^step 'send' runs with what it had in execution ${id}$`, "m"));
  assert.match(step.stdout, /hello Ada/, `what the recorded run had built: ${step.stderr}`);

  const unknown = await run("run", "next.yaml", "--draft", "--step", "sent");
  assert.deepEqual(
    [unknown.code, /--step: the playbook has no step 'sent'. Did you mean 'send'/.test(unknown.stderr)],
    [2, true],
  );
  const none = await run("run", "next.yaml", "--draft", "--step", "send", "--of", "999");
  assert.match(none.stderr, /Execution 999 does not exist/);
  const broken = await run("run", "broken.yaml", "--draft");
  assert.equal(broken.code, 2);
  assert.match(broken.stderr, /broken\.yaml:\d+:\d+.*nowhere/);
});
