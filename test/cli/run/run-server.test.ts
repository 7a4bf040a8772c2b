import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { closedPort } from "../../support/servers/http-server.ts";
import { folderWith, playbookText, startFlow } from "../../support/service/cli-process.ts";
import { runFlow } from "../in-process.ts";
import { startPlayingServer } from "../playing-server.ts";

const HELLO = playbookText(
  "hello",
  `  - step: start
    tool: {kind: noop, result: {greeting: "Hello, {{ who }}!"}}
    next: {arcs: [{step: many}, {step: never, when: "{{ false }}"}]}
  - step: many
    loop: {in: 3, iterator: i}
    tool: {kind: noop, result: {i: "{{ i }}"}}
    next: {arcs: [{step: end}]}
  - step: never
    tool: {kind: noop}
  - step: end
    tool: {kind: noop, result: {text: "{{ start.greeting }}"}}
`,
  "workload: {who: nobody}\n",
);

const FAILING = playbookText(
  "failing",
  `  - step: work
    tool:
      - first: {kind: noop}
      - second: {kind: shell, cmd: "echo broken >&2; exit 3"}
`,
);

const PARENT = playbookText("parent", "  - step: call\n    tool: {kind: playbook, path: failing}\n");

/** Waits until there is a file `go` in the folder. */
function waiting(folder: string): string {
  const cmd = `while [ ! -e '${folder}/go' ]; do sleep 0.05; done`;
  const steps = `  - step: wait\n    tool: {kind: shell, cmd: "${cmd}"}\n    next: {arcs: [{step: end}]}\n`;
  return playbookText("waiting", `${steps}  - step: end\n    tool: {kind: noop, result: {done: true}}\n`);
}

async function setup(t: TestContext, files: Record<string, string>) {
  const server = await startPlayingServer(t);
  const folder = await folderWith(t, files);
  const environment = { FLOW_SERVER_URL: server.origin, XDG_CONFIG_HOME: join(folder, "settings") };
  const run = (...args: string[]) => runFlow(folder, ["run", ...args], environment);
  const start = (...args: string[]) => {
    const started = startFlow(folder, ["run", ...args], environment);
    // One that waits for what never comes must not keep the test waiting.
    t.after(() => started.process.kill("SIGKILL"));
    return started;
  };
  const bodies = (path: string) =>
    server.requests.filter(({ url }) => url === path).map(({ body }) => JSON.parse(body) as Record<string, unknown>);
  return { server, folder, environment, run, start, bodies };
}

test("a file is registered and executed on the server; the outcome is that of a local run", async (t) => {
  const { server, folder, run, bodies } = await setup(t, { "hello.yaml": HELLO });
  const there = await run("hello.yaml", "--json", "--set", "who=Ada");
  assert.equal(there.code, 0, there.stderr);
  const here = await run("hello.yaml", "--json", "--set", "who=Ada", "--runtime", "local");
  assert.deepEqual(timeless(there.stdout), timeless(here.stdout));
  assert.match(there.stderr, /^hello\.yaml was registered as hello version 1$/m);
  const chosen = `running at ${server.origin} (FLOW_SERVER_URL): hello version 1, execution `;
  assert.ok(there.stderr.includes(chosen), there.stderr);
  assert.match(there.stderr, /^start: completed in /m);
  assert.match(there.stderr, /^many: completed in .*, 3 iterations$/m);
  assert.match(there.stderr, /^never: skipped, no path leads to it$/m);
  assert.deepEqual(bodies("/api/execute"), [{ catalog_id: "1", resource_kind: "playbook", workload: { who: "Ada" } }]);

  const again = await run("hello", "--quiet");
  assert.deepEqual([again.code, JSON.parse(again.stdout)], [0, { text: "Hello, nobody!" }], "by its path, as it is");
  assert.match(again.stderr, /^✓ hello COMPLETED in \d\S*\n$/, "--quiet says nothing of where");
  await writeFile(join(folder, "hello.yaml"), HELLO.replace("nobody", "you"));
  const unchanged = await run("hello", "--version", "1", "--quiet");
  assert.deepEqual(JSON.parse(unchanged.stdout), { text: "Hello, nobody!" });
  const changed = await run("hello.yaml", "--runtime", "server");
  assert.match(changed.stderr, /^hello\.yaml was registered as hello version 2$/m);
});

test("a failed execution exits with 1 and is reported with step, task, line and cause", async (t) => {
  const { run } = await setup(t, { "failing.yaml": FAILING });
  const { code, stdout, stderr } = await run("failing.yaml", "--json");
  assert.equal(code, 1);
  assert.equal((JSON.parse(stdout) as { status: string }).status, "FAILED");
  assert.match(stderr, /^✗ failing FAILED after /m);
  assert.match(stderr, /^ {2}task {4}second \(shell\) at failing\.yaml:\d+, attempt 1$/m);
  assert.match(stderr, /^ {2}cause {3}.*exited with 3/m);
  assert.match(stderr, /^ {2}next {4}'flow events \d+' lists every event$/m);
});

test("the failure of a sub-playbook is reported with its step and task, and recorded", async (t) => {
  const { folder, run } = await setup(t, { "parent.yaml": PARENT, "failing.yaml": FAILING });
  await run("failing.yaml", "--detach");
  const { code, stderr } = await run("parent.yaml", "--record", "events.jsonl");
  assert.equal(code, 1);
  assert.match(stderr, /^call › work: failed after /m);
  assert.match(stderr, /^ {2}within {2}failing, step work, task second, attempt 1$/m);
  const log = await readFile(join(folder, "events.jsonl"), "utf8");
  const records = log
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  assert.equal(records[0]?.["event_type"], "playbook.initialized");
  assert.equal(records.filter(({ event_type }) => event_type === "playbook.failed").length, 2);
  assert.equal(new Set(records.map(({ event_id }) => event_id)).size, records.length);
});

test("--detach prints the id and leaves the execution to the server", async (t) => {
  const { server, folder, run, bodies } = await setup(t, {});
  await writeFile(join(folder, "waiting.yaml"), waiting(folder));
  const { code, stdout, stderr } = await run("waiting.yaml", "--detach");
  assert.equal(code, 0, stderr);
  const [id] = server.logs.keys();
  assert.equal(stdout, `${id}\n`);
  const json = await run(
    "waiting",
    "--detach",
    "--json",
    "--quiet",
    "--label",
    "team=a=b",
    "--label",
    "x=1",
    "--label",
    "x=2",
  );
  assert.deepEqual(bodies("/api/execute").at(-1)?.["labels"], { team: "a=b", x: "2" });
  assert.deepEqual(Object.keys(JSON.parse(json.stdout) as object).sort(), [
    ...["catalog_id", "execution_id", "path", "status", "version"],
  ]);
  assert.equal(json.stderr, "");
  await writeFile(join(folder, "go"), "");
});

test("Ctrl-C cancels the execution on the server and waits for its end", async (t) => {
  const { folder, start, bodies, server } = await setup(t, {});
  await writeFile(join(folder, "waiting.yaml"), waiting(folder));
  const run = start("waiting.yaml", "--json");
  await run.untilStderr("wait: started");
  run.process.kill("SIGINT");
  const { code, stdout, stderr } = await run.ended;
  assert.equal(code, 130, stderr);
  const outcome = JSON.parse(stdout) as { status: string; steps: { name: string; status: string }[] };
  assert.equal(outcome.status, "CANCELLED");
  assert.deepEqual(outcome.steps[0]?.status, "FAILED", "what follows the cancellation is folded too");
  assert.match(stderr, /^■ waiting CANCELLED after .*: interrupted by SIGINT$/m);
  const [id] = server.logs.keys();
  assert.deepEqual(bodies(`/api/executions/${id}/cancel`), [{ reason: "interrupted by SIGINT" }]);
});

test("an execution that cannot be cancelled is reported as running, with how to try again", async (t) => {
  const { folder, start, server } = await setup(t, {});
  await writeFile(join(folder, "waiting.yaml"), waiting(folder));
  server.faults.cancelStatus = 503;
  const run = start("waiting.yaml");
  await run.untilStderr("wait: started");
  run.process.kill("SIGINT");
  const { code, stderr } = await run.ended;
  assert.equal(code, 1, "it was not cancelled");
  const [id] = server.logs.keys();
  assert.match(stderr, new RegExp(`Execution ${id} could not be cancelled: .*try again with 'flow cancel ${id}'`));
  await writeFile(join(folder, "go"), "");
});

for (const [what, faults] of [
  ["streams that break off after two events", { streamEvents: 2 }],
  ["a server without streams", { streams: "refused" }],
] as const) {
  test(`every event is seen once with ${what}`, async (t) => {
    const { server, folder, run } = await setup(t, { "hello.yaml": HELLO });
    Object.assign(server.faults, faults);
    const { code, stdout, stderr } = await run("hello.yaml", "--json", "--record", "events.jsonl");
    assert.equal(code, 0, stderr);
    const [log] = server.logs.values();
    const seen = (await readFile(join(folder, "events.jsonl"), "utf8")).trimEnd().split("\n");
    assert.deepEqual(
      seen.map((line) => (JSON.parse(line) as { event_id: number }).event_id),
      log?.map(({ event_id }) => event_id),
    );
    assert.equal((JSON.parse(stdout) as { status: string }).status, "COMPLETED");
  });
}

test("a server that goes away and comes back is waited for", async (t) => {
  const { server, folder, start } = await setup(t, {});
  await writeFile(join(folder, "waiting.yaml"), waiting(folder));
  const run = start("waiting.yaml");
  await run.untilStderr("wait: started");
  server.faults.away = true;
  server.closeConnections();
  await run.untilStderr("; trying again");
  await writeFile(join(folder, "go"), "");
  await server.untilEvent("playbook.completed");
  server.faults.away = false;
  const { code, stdout, stderr } = await run.ended;
  assert.equal(code, 0, stderr);
  assert.match(stderr, /^The server is there again$/m);
  assert.deepEqual(JSON.parse(stdout), { done: true });
});

test("a result beyond the inline limit is loaded from the server for --json", async (t) => {
  const text = playbookText("large", `  - step: make\n    tool: {kind: noop, result: {text: "{{ 'x' * 100000 }}"}}\n`);
  const { run } = await setup(t, { "large.yaml": text });
  const { stdout, stderr } = await run("large.yaml", "--json");
  assert.equal((JSON.parse(stdout) as { result: { text: string } }).result.text.length, 100_000, stderr);
});

test("a server that is set and not there leaves files to this process, and says so", async (t) => {
  const folder = await folderWith(t, { "hello.yaml": HELLO });
  const environment = { FLOW_SERVER_URL: `http://127.0.0.1:${await closedPort()}` };
  const { code, stdout, stderr } = await runFlow(folder, ["run", "hello.yaml", "--quiet"], environment);
  assert.equal(code, 0, stderr);
  assert.deepEqual(JSON.parse(stdout), { text: "Hello, nobody!" });
  assert.match(stderr, /^warning: running in this process: Cannot reach the server at /m);
  const asked = await runFlow(folder, ["run", "hello.yaml", "--runtime", "server"], environment);
  assert.deepEqual([asked.code, asked.stdout], [1, ""]);
  assert.match(asked.stderr, /^flow: Cannot reach the server at .*\(FLOW_SERVER_URL\)/);
});

test("a context in use makes runs go to its server, until --runtime local", async (t) => {
  const { server, folder } = await setup(t, { "hello.yaml": HELLO });
  const settings = { XDG_CONFIG_HOME: join(folder, "settings") };
  await runFlow(folder, ["context", "add", "prod", "--server", server.origin], settings);
  const there = await runFlow(folder, ["run", "hello.yaml"], settings);
  assert.equal(there.code, 0, there.stderr);
  assert.ok(there.stderr.includes(`running at ${server.origin} (context 'prod'): hello version 1`), there.stderr);
  const here = await runFlow(folder, ["run", "hello.yaml", "--runtime", "local"], settings);
  assert.equal(here.code, 0);
  assert.equal(server.logs.size, 1);
});

test("a path unknown to the server is looked for here; a path unknown to both is reported", async (t) => {
  const { run } = await setup(t, { "some-file.yaml": HELLO });
  const found = await run("hello");
  assert.equal(found.code, 0, found.stderr);
  assert.match(found.stderr, /\(FLOW_SERVER_URL\) has no entry 'hello': looking for it here$/m);
  const asked = await run("hello", "--runtime", "server");
  assert.equal(asked.code, 2);
  assert.match(
    asked.stderr,
    /There is no catalog entry 'hello' at http:.*, and there is no such file here\. 'flow catalog'/,
  );
});

test("without a server that is set nothing is asked of one", async (t) => {
  const { server, folder } = await setup(t, { "hello.yaml": HELLO });
  const { code, stderr } = await runFlow(folder, ["run", "hello.yaml", "--quiet"]);
  assert.equal(code, 0, stderr);
  assert.match(stderr, /^✓ hello COMPLETED in \d\S*\n$/);
  assert.equal(server.requests.length, 0);
});

for (const [args, said] of [
  [["--runtime", "local", "--draft"], /--runtime local and --draft exclude each other/],
  [["--draft", "--version", "1"], /--draft and --version exclude each other/],
  [["--step", "many"], /--step goes with --draft/],
  [["--draft", "--of", "7"], /--of goes with --step/],
  [["--draft", "--dry-run"], /--dry-run goes with --step/],
  [["--draft", "--step", "many", "--set", "a=1"], /--step and --set exclude each other\. A step has the inputs/],
  [["--draft", "--step", "many", "--credentials", "k.json"], /--draft and --credentials exclude each other/],
  [["--runtime", "local", "--detach"], /--runtime local and --detach exclude each other/],
  [["--runtime", "server", "--credentials", "k.json"], /--runtime server and --credentials exclude each other/],
  [["--version", "2"], /--version is of what is registered, and hello\.yaml is a file/],
  [["--target", "strat"], /no step 'strat'\. Did you mean 'start'\?/],
  [["--label", "team"], /--label takes NAME=VALUE, got 'team'/],
  [["--label", "-x=y"], /has the label '-x': a name is letters/],
  [["--record", "hello.yaml"], /would replace a file that this run reads/],
] as const) {
  test(`run hello.yaml ${args.join(" ")} is refused before anything runs`, async (t) => {
    const { server, run } = await setup(t, { "hello.yaml": HELLO });
    const { code, stdout, stderr } = await run("hello.yaml", ...args);
    assert.deepEqual([code, stdout], [2, ""]);
    assert.match(stderr, said);
    assert.equal(server.logs.size, 0);
  });
}

/** An outcome without what differs from run to run. */
function timeless(json: string): unknown {
  const drop = new Set(["execution_id", "started_at", "ended_at", "duration_ms"]);
  return JSON.parse(json, (key, value: unknown) => (drop.has(key) ? undefined : value));
}
