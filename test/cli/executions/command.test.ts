import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { momentOf } from "../../../src/cli/command-line/list-options.ts";
import { closedPort, startHttpServer } from "../../support/servers/http-server.ts";
import { folderWith, MAIN, playbookText, startFlow } from "../../support/service/cli-process.ts";
import { runFlow } from "../in-process.ts";
import { startPlayingServer } from "../playing-server.ts";

const exec = promisify(execFile);

const GOOD = playbookText("good", "  - step: start\n    tool: {kind: noop}\n");
const BAD = playbookText("bad", '  - step: work\n    tool: {kind: shell, cmd: "exit 3"}\n');

/** A playbook that waits until there is a file `go` in the folder. */
function waiting(folder: string): string {
  const cmd = `while [ ! -e '${folder}/go' ]; do sleep 0.05; done`;
  return playbookText("waiting", `  - step: wait\n    tool: {kind: shell, cmd: "${cmd}"}\n`);
}

async function setup(t: TestContext) {
  const server = await startPlayingServer(t);
  const folder = await folderWith(t, { "good.yaml": GOOD, "bad.yaml": BAD });
  await writeFile(join(folder, "waiting.yaml"), waiting(folder));
  const environment = { FLOW_SERVER_URL: server.origin };
  const run = (...args: string[]) => runFlow(folder, args, environment);
  const start = (...args: string[]) => {
    const started = startFlow(folder, args, environment);
    // One that waits for what never comes must not keep the test waiting.
    t.after(() => started.process.kill("SIGKILL"));
    return started;
  };
  const begin = async (file: string) => (await run("run", file, "--detach", "--quiet")).stdout.trim();
  return { server, folder, run, start, begin };
}

test("executions lists what a server has, filtered, as a table and as JSON", async (t) => {
  const { server, run } = await setup(t);
  await run("run", "good.yaml", "--quiet");
  await run("run", "bad.yaml", "--quiet");
  const all = await run("executions");
  assert.equal(all.code, 0);
  assert.match(
    all.stdout,
    /^ID +PATH +VER +STATUS +STARTED +TOOK\n\d+ +bad +1 +FAILED +(now|\ds ago) +\S+\n\d+ +good +1 +COMPLETED .*\n$/,
  );
  assert.match(
    (await run("executions", "--wide")).stdout,
    /^ID +PATH +VERSION +STATUS +PROGRESS +STARTED +DURATION +STARTED BY +LABELS\n\d+ +bad +1 +FAILED +- +\d{4}-\S+ +\S+ *\n/,
  );
  assert.match(all.stderr, /^2 executions at http/);
  const failed = await run("executions", "--status", "failed", "--json");
  const { executions } = JSON.parse(failed.stdout) as { executions: { path: string }[] };
  assert.deepEqual(
    executions.map(({ path }) => path),
    ["bad"],
  );
  await run("executions", "--since", "2h", "--parent", "7", "--path", "a b", "--limit", "3");
  const query = new URL(server.requests.at(-1)?.url ?? "", "http://h").searchParams;
  assert.deepEqual([query.get("parent_execution_id"), query.get("path"), query.get("limit")], ["7", "a b", "3"]);
  assert.match(query.get("since") ?? "", /^\d{4}-/);
});

test("executions are searched by what is typed and by options, which are one search", async (t) => {
  const { server, run } = await setup(t);
  const asked = async (...args: string[]) => {
    const { code, stderr } = await run("executions", ...args);
    assert.equal(code, 0, stderr);
    const { limit: _, ...query } = Object.fromEntries(
      new URL(server.requests.at(-1)?.url ?? "", "http://h").searchParams,
    );
    return query;
  };
  assert.deepEqual(await asked("status:failed", "etl/*"), { q: "status:failed etl/*" });
  assert.deepEqual(await asked("etl", "--label", "team=a b", "--input", 'x.y=say "hi"\\'), {
    q: 'etl label.team:"a b" input.x.y:"say \\"hi\\"\\\\"',
  });
  assert.deepEqual(await asked("--error", "E", "--step", "s", "--version", "2", "--started-by", "MCP", "--roots"), {
    ...{ error_code: "E", step: "s", version: "2", started_by: "mcp", roots_only: "true" },
  });
});

test("--since takes durations and times, and nothing else", () => {
  const now = Date.parse("2026-01-31T12:00:00.000Z");
  assert.equal(momentOf("90s", now), "2026-01-31T11:58:30.000Z");
  assert.equal(momentOf("2d", now), "2026-01-29T12:00:00.000Z");
  assert.equal(momentOf("2026-01-30", now), "2026-01-30T00:00:00.000Z");
  for (const text of ["2", "h", "-2h", "2 h", "yesterday", "2026-13-01", "9999999d"]) {
    assert.throws(() => momentOf(text, now), { code: "USAGE" }, text);
  }
});

test("executions are listed beyond one page, up to the limit", async (t) => {
  const server = await startHttpServer((request, response) => {
    const query = new URL(request.url, "http://h").searchParams;
    const from = Number(query.get("cursor") ?? 0);
    const limit = Number(query.get("limit"));
    const executions = Array.from({ length: limit }, (_, index) => item(from + index + 1));
    response.end(JSON.stringify({ executions, next_cursor: from + limit < 1_200 ? String(from + limit) : null }));
  });
  t.after(() => server.close());
  const folder = await folderWith(t, {});
  const count = async (...args: string[]) => {
    const { stdout } = await runFlow(folder, ["executions", "--json", ...args], { FLOW_SERVER_URL: server.origin });
    return (JSON.parse(stdout) as { executions: unknown[] }).executions.length;
  };
  assert.deepEqual([await count(), await count("--limit", "600"), await count("--limit=1100")], [20, 600, 1_100]);
});

function item(id: number): Record<string, unknown> {
  return {
    ...{ execution_id: String(id), catalog_id: "1", path: "p", version: 1, status: "RUNNING", progress: 0 },
    ...{
      parent_execution_id: null,
      started_at: "2026-01-31T12:00:00.000Z",
      ended_at: null,
      duration_ms: 1,
      error: null,
    },
  };
}

test("status shows what is running, and why an execution failed", async (t) => {
  const { server, folder, run, begin } = await setup(t);
  const open = await begin("waiting.yaml");
  await server.untilEvent("command.claimed");
  const now = await run("status", open);
  assert.equal(now.code, 0, now.stderr);
  assert.match(now.stdout, /^waiting version 1 {2}RUNNING for \S+, 50%\nexecution \d+, started \d{4}-/);
  assert.match(now.stdout, /^\S wait +\d\S*$/m);
  assert.match(now.stdout, /^ {2}wait {2}with local for \S+ {2}command \d+$/m);
  await run("run", "bad.yaml", "--quiet");
  const failed = await run("status", "--last");
  assert.equal(failed.code, 0);
  assert.match(failed.stdout, /^bad version 1 {2}FAILED after /);
  assert.match(failed.stdout, /^✗ work /m);
  assert.match(failed.stdout, /^ {2}step {4}work at bad@1:5$/m);
  assert.match(failed.stdout, /^ {2}cause {3}.*exited with 3/m);
  const json = JSON.parse((await run("status", open, "--json")).stdout) as { execution_id: string; steps: unknown[] };
  assert.equal(json.execution_id, open);
  await writeFile(join(folder, "go"), "");
});

test("status shows why work waits, what it needs, and when the next attempt begins", async (t) => {
  const commands = [
    { command_id: "9", step: "train", attempt: 0, worker: null, claimed_at: null, kinds: [], labels: { gpu: "true" } },
    { command_id: "10", step: "load", attempt: 0, worker: null, claimed_at: null, kinds: ["shell"] },
    { command_id: "11", step: "soon", attempt: 0, worker: null, claimed_at: null, kinds: ["http"] },
  ];
  const error = { code: "HTTP_503", message: "Service\u001b[2J Unavailable\nmore" };
  const next_retry = { step: "get", task: "fetch", at: "2026-01-31T12:00:12.001Z", run: 3, error };
  const server = await startHttpServer((request, response) => {
    const execution = { ...item(7), result: null, workload: {}, steps: [], commands, next_retry };
    const workers = { items: [{ ...WORKER, status: "ready" }], next_cursor: null };
    response.end(JSON.stringify(request.url.startsWith("/api/worker/pools") ? workers : execution));
  });
  t.after(() => server.close());
  const { stdout } = await runFlow(await folderWith(t, {}), ["status", "7"], { FLOW_SERVER_URL: server.origin });
  assert.match(stdout, /^ {2}train {2}waits: no worker that is ready has the label gpu=true {2}command 9$/m);
  assert.match(stdout, /^ {2}load {2}waits: no worker that is ready runs shell {2}command 10$/m);
  assert.match(stdout, /^ {2}soon {2}waits: a worker is about to take it {2}command 11$/m);
  assert.match(stdout, /^ {2}get {2}task fetch, attempt 3 begins in 12\.0s, after: Service Unavailable$/m);
  assert.match(stdout, /^ {2}next {2}start such a worker \('flow workers --wide' shows/m);
});

test("status shows work that waits for a worker, and work of lost workers", async (t) => {
  const command = { command_id: "9", step: "many", attempt: 0, worker: null, claimed_at: null };
  let commands: unknown[] = [
    { ...command, iterations: { from: 0, to: 1 } },
    { ...command, step: "a\u001b[2Jb" },
  ];
  const server = await startHttpServer((_request, response) => {
    response.end(JSON.stringify({ ...item(7), result: null, workload: {}, steps: [], commands }));
  });
  t.after(() => server.close());
  const folder = await folderWith(t, {});
  const status = () => runFlow(folder, ["status", "7"], { FLOW_SERVER_URL: server.origin });
  const waits = (await status()).stdout;
  assert.match(
    waits,
    /^now\n {2}many\[0\] {2}waits for a worker {2}command 9\n {2}ab {2}waits for a worker {2}command 9$/m,
  );
  assert.doesNotMatch(waits, /^ {2}next/m, "who the workers are could not be read");
  commands = Array.from({ length: 12 }, () => ({
    ...command,
    attempt: 2,
    worker: "w2",
    claimed_at: item(7)["started_at"],
  }));
  const lost = (await status()).stdout;
  assert.match(lost, /^ {2}many {2}with w2 for \S+.*, attempt 2: a worker was lost {2}command 9$/m);
  assert.match(lost, /^ {2}and 2 more commands$/m);
});

test("status --watch follows an execution to its end; Ctrl-C leaves it running", async (t) => {
  const { server, folder, start, begin } = await setup(t);
  const id = await begin("waiting.yaml");
  const left = start("status", id, "--watch");
  await left.untilStderr("wait: started");
  left.process.kill("SIGINT");
  const { code: leaving, stderr } = await left.ended;
  assert.equal(leaving, 130);
  assert.match(stderr, new RegExp(`^Execution ${id} keeps running; 'flow cancel ${id}' cancels it$`, "m"));
  assert.doesNotMatch(stderr, /cancelling/);
  assert.equal(
    server.requests.some(({ url }) => url.endsWith("/cancel")),
    false,
  );
  const watched = start("status", "--last", "--watch", "--json");
  await watched.untilStderr("wait: started");
  await writeFile(join(folder, "go"), "");
  const { code, stdout } = await watched.ended;
  assert.equal(code, 0);
  assert.equal((JSON.parse(stdout) as { status: string }).status, "COMPLETED");
});

test("events prints the log, a part of it, and what comes until the end", async (t) => {
  const { server, folder, run, start, begin } = await setup(t);
  const id = await begin("waiting.yaml");
  await server.untilEvent("command.claimed");
  const following = start("events", id, "-f", "--json");
  const first = await run("events", id, "--limit", "2");
  assert.equal(first.stdout.split("\n").length, 3);
  assert.match(first.stdout, /^\d+ {2}\d{4}-\S+ {2}playbook\.initialized {2}waiting\n/);
  assert.match(first.stderr, /^there are more: --after \d+ continues/);
  await writeFile(join(folder, "go"), "");
  const { code, stdout } = await following.ended;
  assert.equal(code, 0);
  const log = server.logs.get(id);
  assert.deepEqual(
    stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as unknown),
    JSON.parse(JSON.stringify(log)),
  );
  const typed = await run("events", id, "--type", "step.completed", "--after", String(log?.[0]?.event_id));
  assert.match(typed.stdout, /^\d+ {2}\S+ {2}step\.completed +wait {2}in \S+\n$/);
  assert.equal((await run("events", id, "-f")).stdout.trimEnd().split("\n").length, log?.length, "one that has ended");
});

test("a reader of events that has seen enough ends the command", async (t) => {
  const { server, folder, begin } = await setup(t);
  const id = await begin("waiting.yaml");
  await server.untilEvent("command.claimed");
  // It goes on for ever: only its reader ends it.
  const log = server.logs.get(id) ?? [];
  const script = `"$0" "$1" events ${id} -f | head -n 1; echo "\${PIPESTATUS[0]}"`;
  const environment = { ...process.env, FLOW_SERVER_URL: server.origin, XDG_CONFIG_HOME: folder };
  const ended = exec("bash", ["-c", script, process.execPath, MAIN], { cwd: folder, env: environment });
  await writeFile(join(folder, "go"), "");
  const { stdout } = await ended;
  assert.match(stdout, new RegExp(`^${log[0]?.event_id} .*\n0\n$`));
});

test("cancel ends an execution, and says so when it had ended", async (t) => {
  const { server, run, begin } = await setup(t);
  const id = await begin("waiting.yaml");
  const { code, stdout } = await run("cancel", id, "--reason", "wrong day", "--no-cascade");
  assert.deepEqual([code, stdout], [0, `Execution ${id} is CANCELLED\n`]);
  const sent = server.requests.findLast(({ url }) => url.endsWith("/cancel"));
  assert.deepEqual(JSON.parse(sent?.body ?? ""), { reason: "wrong day", cascade: false });
  assert.match((await run("status", id)).stdout, /CANCELLED after .*\n.*\nwrong day\n/);
  await run("run", "good.yaml", "--quiet");
  const last = [...server.logs.keys()].at(-1) ?? "";
  assert.deepEqual((await run("cancel", last)).stdout, `Execution ${last} had ended before: COMPLETED\n`);
  assert.equal((JSON.parse((await run("cancel", id, "--json")).stdout) as { status: string }).status, "CANCELLED");
});

test("a server that cannot be reached is no reason to wait, for a log that is followed neither", async (t) => {
  const folder = await folderWith(t, {});
  const environment = { FLOW_SERVER_URL: `http://127.0.0.1:${await closedPort()}` };
  const commands = [["executions"], ["workers"], ["status", "7", "--watch"], ["events", "7", "-f"], ["cancel", "7"]];
  for (const args of commands) {
    const { code, stderr } = await runFlow(folder, args, environment);
    assert.equal(code, 1);
    assert.match(
      stderr,
      /^flow: Cannot reach the server at .* \(FLOW_SERVER_URL\): .*ECONNREFUSED.* 'flow serve' starts one/,
    );
  }
});

const WORKER = {
  ...{
    runtime_id: "1",
    name: "w\u001b[2J1",
    status: "stale",
    capacity: 64,
    running: 3,
    capabilities: ["http", "noop"],
  },
  ...{ labels: { zone: "a" }, runtime: {}, heartbeat_at: "2026-01-31T12:00:00.000Z", heartbeat_age_ms: 65_000 },
  created_at: "2026-01-31T12:00:00.000Z",
};

test("workers lists the workers safely, and explains an empty list", async (t) => {
  let items: unknown[] = [WORKER];
  const server = await startHttpServer((_request, response) => {
    response.end(JSON.stringify({ items, next_cursor: null }));
  });
  t.after(() => server.close());
  const folder = await folderWith(t, {});
  const workers = (...args: string[]) => runFlow(folder, ["workers", ...args], { FLOW_SERVER_URL: server.origin });
  const table = await workers();
  assert.match(table.stdout, /\nw1 +stale +3\/64 +1m ago +zone=a +http,noop\n$/);
  assert.match((await workers("--wide")).stdout, /\nw1 +stale +64 +3 +1m 05s ago +http,noop +zone=a +unknown\n$/);
  assert.match(table.stderr, /^1 worker at .*, 0 ready; commands wait until there is one/);
  assert.deepEqual((JSON.parse((await workers("--json")).stdout) as { items: unknown[] }).items, [WORKER]);
  assert.doesNotMatch(table.stderr, /sandbox/);
  const isolations = { open: "none (bubblewrap: no such program)", boxed: "unshare, guarded network" };
  items = Object.entries(isolations).map(([name, isolation]) => ({
    ...WORKER,
    name,
    status: "ready",
    runtime: { isolation },
  }));
  assert.match((await workers()).stderr, /\nwithout a sandbox for the code of tasks: open \('flow workers --wide'/);
  items = [];
  assert.match((await workers()).stderr, /^0 workers/);
});

for (const [args, said] of [
  [["status"], /Which execution\? Give its id or the start of it \('flow executions' lists them\), or --last/],
  [["status", "7", "--last"], /7 and --last exclude each other/],
  [["status", "../metrics"], /named by its id, a number; got '\.\.\/metrics'/],
  [["cancel"], /Which execution\? Give its id/],
  [["cancel", "x"], /named by its id/],
  [["events", "7", "--after", "x"], /--after takes the id of an event/],
  [["events", "7", "-x"], /Unknown option -x/],
  [["executions", "--limit", "0"], /--limit must be a whole number from 1/],
  [["executions", "--status", "faild"], /--status must be one of .*did you mean 'FAILED'/],
  [["executions", "-f"], /Unknown option -f/],
  [["executions", "--until", "x"], /--until takes 90s/],
  [["executions", "--label", "team"], /--label takes NAME=VALUE, got 'team'/],
  [["executions", "etl", "stat:x"], /The search cannot be read: there is no key 'stat'.*\n {2}etl stat:x\n {6}\^{4}\n/],
  [["status", "7"], /There is no execution 7/],
  [["events", "7", "-f"], /There is no execution 7/],
  [["cancel", "7"], /There is no execution 7/],
  [["status", "--last"], /There is no execution at http.* yet/],
] as const) {
  test(`flow ${args.join(" ")} reports what is wrong, with exit code 2`, async (t) => {
    const { run } = await setup(t);
    const { code, stdout, stderr } = await run(...args);
    assert.deepEqual([code, stdout], [2, ""], stderr);
    assert.match(stderr, said);
  });
}
