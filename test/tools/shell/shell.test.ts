import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import type { ToolResult } from "../../../src/schema/words/outcome.ts";
import { createShellTool } from "../../../src/tools/shell/shell.ts";
import { toolCall } from "../../support/service/tool-call.ts";

const environment = { PATH: process.env["PATH"], HOME: "/home/someone", FLOW_SERVER_TOKEN: "s3cret" };
const tool = createShellTool({ env: environment, killGraceMs: 200 });

function run(config: JsonObject, more: Parameters<typeof toolCall>[1] = {}): Promise<ToolResult> {
  return tool.run(toolCall(config, more));
}

interface Output {
  returncode: number;
  stdout: string;
  stderr: string;
  commands: { command: string; returncode: number }[];
  truncated?: boolean;
}

function outputOf(result: ToolResult): Output {
  return (result.data as unknown as { data: Output }).data;
}

/** A process that has ended but was not collected by its parent yet is a zombie: it runs no more. */
async function isAlive(pid: number): Promise<boolean> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, "utf8");
    return !/^\d+ \(.*\) [ZX]/s.test(stat);
  } catch {
    return false;
  }
}

test("one command gives its output, trimmed as text, and its exit code", async () => {
  assert.deepEqual((await run({ cmd: "echo out; echo err >&2" })).data, {
    status: "ok",
    data: {
      returncode: 0,
      stdout: "out\n",
      stderr: "err\n",
      commands: [{ command: "echo out; echo err >&2", returncode: 0 }],
    },
    text: "out",
    exit_code: 0,
  });
});

test("commands run in order up to the first that fails", async () => {
  const result = await run({ cmds: ["echo one", "echo two; echo sorry >&2; exit 3", "echo three"] });
  assert.deepEqual(
    [result.error?.kind, result.error?.code, result.error?.retryable, result.error?.message],
    ["client_error", "EXIT_3", false, 'Command 2, "echo two; echo sorry >&2; exit 3", exited with 3: sorry'],
  );
  const output = outputOf(result);
  assert.equal(output.stdout, "one\ntwo\n");
  assert.deepEqual(
    output.commands.map(({ returncode }) => returncode),
    [0, 3],
  );
  assert.equal((result.data as JsonObject)["status"], "error");
});

test("a text of several lines is one script", async () => {
  const result = await run({ command: "x=4\nif [ $x = 4 ]; then\n  echo four\nfi\n" });
  assert.equal((result.data as JsonObject)["text"], "four");
  assert.equal(outputOf(result).commands.length, 1);
});

test("every line of both streams is a line of the log, the last without a line break too", async () => {
  const call = toolCall({ cmd: "printf 'a\\r\\nb\\n'; printf 'grüß'" });
  await tool.run(call);
  assert.deepEqual(call.lines, ["a", "b", "grüß"]);
});

test("commands see a scrubbed environment and what the task gives", async () => {
  const result = await run({ cmd: "env", env: { A: "1 2", B: 3, C: null, D: { x: [1] } } });
  const lines = outputOf(result).stdout.trim().split("\n");
  for (const line of ["A=1 2", "B=3", 'D={"x":[1]}', "HOME=/home/someone"]) assert.ok(lines.includes(line), line);
  assert.doesNotMatch(outputOf(result).stdout, /FLOW_(?!ARTIFACTS=)|s3cret|^C=/m);
});

test("a relative cwd is relative to the work folder", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "flow-shell-"));
  t.after(() => rm(folder, { recursive: true }));
  const there = createShellTool({ env: environment, workFolder: folder });
  const result = await there.run(toolCall({ cmds: ["mkdir sub", "pwd"] }));
  assert.equal((result.data as JsonObject)["text"], folder);
  assert.equal(
    ((await there.run(toolCall({ cmd: "pwd", cwd: "sub" }))).data as JsonObject)["text"],
    join(folder, "sub"),
  );
});

test("a cwd that does not exist is a configuration error that names it", async () => {
  const { error } = await run({ cmd: "true", cwd: "/no/such/folder" });
  assert.equal(error?.kind, "configuration");
  assert.match(error?.message ?? "", /\/no\/such\/folder/);
});

test("a command that is not found exits with 127 and says why", async () => {
  const { error } = await run({ cmd: "no-such-command-here" });
  assert.equal(error?.code, "EXIT_127");
  assert.match(error?.message ?? "", /not found/);
});

test("a command that a signal ends has code 128 + n", async () => {
  const { error } = await run({ cmd: "kill -9 $$" });
  assert.equal(error?.code, "EXIT_137");
  assert.match(error?.message ?? "", /was ended by SIGKILL/);
});

test("output beyond the limit is dropped from the result, marked, and still logged", async () => {
  const small = createShellTool({ env: environment, outputBytesMax: 1000 });
  const call = toolCall({ cmd: "i=0; while [ $i -lt 300 ]; do echo 0123456789; i=$((i+1)); done" });
  const output = outputOf(await small.run(call));
  assert.deepEqual([output.stdout.length, output.truncated, call.lines.length], [1000, true, 300]);
});

test("a line without end reaches the log in pieces", async () => {
  const call = toolCall({ cmd: "head -c 300000 /dev/zero | tr '\\0' x" });
  await tool.run(call);
  assert.ok(call.lines.length > 1);
  assert.equal(call.lines.join("").length, 300_000);
});

for (const [name, script, grace] of [
  ["a grandchild", "sleep 300 & echo $!; wait", 60_000],
  ["a grandchild that ignores TERM", "trap '' TERM; sh -c 'echo $$; sleep 300; sleep 300' ; sleep 300", 200],
] as [string, string, number][]) {
  test(`cancelling ends the whole process group, ${name} too`, async () => {
    const stubborn = createShellTool({ env: environment, killGraceMs: grace });
    const controller = new AbortController();
    let pid = 0;
    const log = (line: string) => {
      pid = Number(line);
      controller.abort();
    };
    const result = await stubborn.run(toolCall({ cmds: [script, "echo never"] }, { signal: controller.signal, log }));
    assert.equal(result.error?.kind, "cancelled");
    assert.equal(outputOf(result).commands.length, 1);
    assert.ok(pid > 0);
    assert.equal(await isAlive(pid), false);
  });
}

test("a time-out is a distinct error, and keeps the output so far", async () => {
  const result = await run({ cmd: "echo begun; sleep 300" }, { signal: AbortSignal.timeout(300) });
  assert.deepEqual([result.error?.kind, result.error?.retryable], ["timeout", true]);
  assert.equal(outputOf(result).stdout, "begun\n");
});

test("what a command leaves in the background ends with it, and its open output does not hold up the task", async () => {
  const result = await run({ cmd: "sleep 300 & echo $!" });
  assert.equal(result.status, "ok");
  assert.equal(await isAlive(Number((result.data as JsonObject)["text"])), false);
});

test("nothing runs when the signal is aborted before", async () => {
  const result = await run({ cmd: "echo never" }, { signal: AbortSignal.abort() });
  assert.equal(result.error?.kind, "cancelled");
  assert.deepEqual(outputOf(result).commands, []);
});

for (const [name, config, expected] of [
  ["no command", {}, /has no command/],
  ["an empty list", { cmds: [] }, /has no command/],
  ["an empty command", { cmds: ["true", ""] }, /key "cmds/],
  ["a command that is a map", { cmd: { a: 1 } }, /key "cmd": expects a command or a list of commands/],
  ["a bad name in env", { cmd: "true", env: { "A-B": 1 } }, /"A-B", which cannot be an environment variable/],
  ["a NUL character", { cmd: "echo \0" }, /NUL/],
] as [string, JsonObject, RegExp][]) {
  test(`${name} is a configuration error`, async () => {
    const { error } = await run(config);
    assert.equal(error?.kind, "configuration");
    assert.match(error?.message ?? "", expected);
  });
}

test("a command is taken to the letter: quotes, lines, comments, and no variable that was not there before", async () => {
  for (const [cmd, expected] of [
    [String.raw`printf '%s|' "a  b" 'c"d' \$HOME '\'`, String.raw`a  b|c"d|$HOME|\|`],
    ["# a comment\n\nx=$(cat <<'EOF'\n  $x \"'\nEOF\n)\necho \"$x\"", "  $x \"'\n"],
    ["echo $0 $#; exit 0 # no line break at the end", "/bin/sh 0\n"],
    ["(env; set) | grep FLOW_ | grep -cv ^FLOW_ARTIFACTS=", "0\n"],
    ["\n\n", ""],
    ["; echo never", /Syntax error/],
    ["echo one\nif\nfi", /one[\s\S]*Syntax error/],
    ["no-such-command-here", /^\/bin\/sh: 1:.* not found/],
    ["true\n\nno-such-command-here", /^\/bin\/sh: 3:.* not found/],
    ["trap 'echo bye' EXIT; exit 4", "bye\n"],
  ] as [string, string | RegExp][]) {
    const { stdout, stderr } = outputOf(await run({ cmd }));
    if (typeof expected === "string") assert.equal(stdout, expected, cmd);
    else assert.match(stdout + stderr, expected, cmd);
  }
});

test("a task may have any variable", async () => {
  const { data } = await run({ cmd: "echo $FLOW_COMMAND", env: { FLOW_COMMAND: "mine" } });
  assert.equal((data as JsonObject)["text"], "mine");
});

for (const more of [-1, 0, 1]) {
  test(`a command of ${more} bytes more than the system takes ${more > 0 ? "is refused" : "runs"}`, async () => {
    // The limit is that of NAME=text with the NUL character at its end.
    const limit = 128 * 1024 - "FLOW_COMMAND=".length - 1;
    const { status, error } = await run({ cmd: `true ${"ü".repeat(10)}`.padEnd(limit + more - 10, "x") });
    assert.deepEqual([status, error?.code], more > 0 ? ["error", "E2BIG"] : ["ok", undefined]);
  });
}

test("a command longer than the system takes is a configuration error that says what to do", async () => {
  const { error } = await run({ cmd: `true ${"x".repeat(3_000_000)}` });
  assert.deepEqual([error?.kind, error?.code], ["configuration", "E2BIG"]);
  assert.match(error?.message ?? "", /put the script into a file/);
});
