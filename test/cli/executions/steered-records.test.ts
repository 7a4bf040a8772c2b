import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { createServedDatabase } from "../../support/database/postgres.ts";
import { ownDatabase } from "../../support/engine/key-ring.ts";
import { type CliEnd, folderWith, playbookText } from "../../support/service/cli-process.ts";
import { startServe } from "../../support/service/serve.ts";
import { command, runFlow } from "../in-process.ts";

/* `flow export` and `flow replay`, as commands, on runs of a real service that people steered. */

/** Its results are over 64 KiB where `bytes` says so: they are stored apart. */
const PLAYBOOK = playbookText(
  "steered",
  `  - step: make
    tool: {kind: shell, cmd: "head -c {{ bytes }} /dev/zero | tr '\\\\0' x"}
    set: {ctx.long: "{{ make.text | length }}"}
    next: {arcs: [{step: each, when: "{{ make.text | length > 5 }}"}, {step: never}]}
  - step: each
    loop: {in: [1, 2, 3], iterator: n, spec: {mode: parallel}}
    tool: {kind: shell, cmd: "test {{ n }} != {{ bad }} && echo {{ n }}"}
    next: {arcs: [{step: hold, when: "{{ holds }}"}, {step: publish}]}
  - step: hold
    tool: {kind: wait, for: 1h}
    next: {arcs: [{step: publish}]}
  - {step: never, tool: {kind: noop}}
  - step: publish
    tool: {kind: shell, cmd: "echo {{ make.text | length }} {{ long }} {{ each.results | length }}"}
`,
  "workload: {bytes: 100, bad: 0, holds: false}\n",
);
const OTHER = PLAYBOOK.replace("{step: publish}]}\n  - step: hold", "{step: never}]}\n  - step: hold");

type Run = (...args: string[]) => Promise<CliEnd>;

let folder: string;
let run: Run;
const closers: (() => unknown)[] = [];
before(async () => {
  const owner = { after: (close: unknown) => void closers.push(close as () => unknown) };
  folder = await folderWith(owner, { "steered.yaml": PLAYBOOK, "other.yaml": OTHER });
  const { url } = await createServedDatabase();
  const service = await startServe(owner, folder, { ...ownDatabase(url), FLOW_WORKER_TOOLS: "all" }, ["--role", "all"]);
  run = (...args) => runFlow(folder, args, { FLOW_SERVER_URL: service.url });
  await ok(run("register", "steered.yaml"));
});
after(async () => {
  for (const close of closers.reverse()) await close();
});

async function ok(running: Promise<CliEnd>): Promise<CliEnd> {
  const end = await running;
  assert.equal(end.code, 0, end.stdout + end.stderr);
  return end;
}

/** The id of a new execution, which has ended if it waits for nothing. */
async function started(...sets: string[]): Promise<string> {
  const args = sets.flatMap((set) => ["--set", set]);
  const { stdout } = await ok(run("run", "steered", "--detach", ...args));
  return stdout.trim();
}

async function ended(id: string): Promise<string> {
  const { stdout, stderr } = await run("status", id, "--watch", "--json");
  assert.notEqual(stdout, "", stderr);
  return (JSON.parse(stdout) as { status: string }).status;
}

/** Exported, it is decided again as it was (0), with another version it is not (1), and cut off it cannot be read (2). */
async function assertReplays(id: string): Promise<void> {
  const { stdout } = await ok(run("export", id));
  await writeFile(join(folder, "run.jsonl"), stdout);
  const same = await command(folder, ["replay", "run.jsonl"]);
  assert.equal(same.code, 0, same.stdout + same.stderr);
  const other = await command(folder, ["replay", "run.jsonl", "--playbook", "other.yaml", "--json"]);
  assert.equal(other.code, 1, other.stdout + other.stderr);
  const [, ...events] = stdout.trimEnd().split("\n");
  await writeFile(join(folder, "run.jsonl"), events.slice(1).join("\n"));
  const cut = await command(folder, ["replay", "run.jsonl", "--playbook", "steered.yaml"]);
  assert.deepEqual([cut.code, cut.stdout], [2, ""]);
}

test("runs that failed, their reruns from several steps, and those of a bulk operation", async () => {
  const failed = await started("bad=2", "bytes=100000");
  assert.equal(await ended(failed), "FAILED");
  await assertReplays(failed);
  for (const args of [
    ["--set", "bad=0"],
    ["--from", "each", "--set", "bad=7"],
    ["--from", "start", "--set", "bad=0"],
  ]) {
    const { stdout } = await ok(run("rerun", failed, ...args, "--yes", "--json"));
    const again = (JSON.parse(stdout) as { execution_id: string }).execution_id;
    assert.equal(await ended(again), "COMPLETED");
    await assertReplays(again);
  }
  const filter = ["--filter", "status:failed path:steered", "--set", "bad=0"];
  const { stdout } = await ok(run("bulk", "rerun", ...filter, "--wait", "--json"));
  const { started: begun } = JSON.parse(stdout) as { started: { started: string; execution_id: string }[] };
  assert.equal(begun.length, 1, stdout);
  const { executions } = JSON.parse((await ok(run("executions", "by:bulk", "--json"))).stdout) as {
    executions: { execution_id: string }[];
  };
  for (const { execution_id } of executions) {
    assert.equal(await ended(execution_id), "COMPLETED");
    await assertReplays(execution_id);
  }
});

test("a run that was paused while it waited, of which a step was skipped, and that was resumed", async () => {
  const id = await started("holds=true");
  await untilWaiting(id);
  await ok(run("pause", id, "--reason", "noon"));
  await assertReplays(id);
  await ok(run("skip", id, "hold", "--reason", "nothing comes"));
  await ok(run("resume", id));
  assert.equal(await ended(id), "COMPLETED");
  await assertReplays(id);
});

test("steps that were completed and failed by hand", async () => {
  for (const [order, status] of [
    [["--complete", '{"by": "hand"}'], "COMPLETED"],
    [["--fail", "LATE"], "FAILED"],
  ] as const) {
    const id = await started("holds=true");
    await untilWaiting(id);
    await ok(run("skip", id, "hold", ...order, "--reason", "by hand"));
    assert.equal(await ended(id), status);
    await assertReplays(id);
  }
});

test("a result that is longer than an export was to include is left out: what needs it ends the replay with 2", async () => {
  const id = await started("bytes=100000");
  assert.equal(await ended(id), "COMPLETED");
  const { stdout, stderr } = await ok(run("export", id, "--max-bytes", "100000"));
  assert.match(stderr, /^1 of \d+ stored results were left out: over 100000 bytes, or gone\n$/);
  await writeFile(join(folder, "run.jsonl"), stdout);
  const { code, stderr: why } = await command(folder, ["replay", "run.jsonl"]);
  assert.equal(code, 2);
  assert.match(why, /leaves out the result noetl:\S+ that a decision needs: it has \d{6} bytes/);
});

test("a record that is written while a server runs it has the results that are stored apart", async () => {
  await ok(run("run", "steered", "--set", "bytes=100000", "--record", "run.jsonl", "--quiet"));
  const same = await command(folder, ["replay", "run.jsonl", "--playbook", "steered.yaml"]);
  assert.equal(same.code, 0, same.stdout + same.stderr);
  const late = ["run", "steered.yaml", "--from", "publish", "--using", "run.jsonl", "--json"];
  const { stdout } = await ok(runFlow(folder, [...late, "--runtime", "local"]));
  assert.equal((JSON.parse(stdout) as { result: { text: string } }).result.text, "100000 100000 3");
  assert.match(await readFile(join(folder, "run.jsonl"), "utf8"), /\n\{"ref":"noetl:/);
});

async function untilWaiting(id: string): Promise<void> {
  for (let looks = 0; ; looks += 1) {
    const { stdout } = await run("show", id, "--json");
    if (stdout.includes('"WAITING"') || stdout.includes('"timer"')) return;
    assert.ok(looks < 200, stdout);
  }
}
