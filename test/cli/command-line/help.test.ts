import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { optionsOf } from "../../../src/cli/command-line/command.ts";
import { entryHelp } from "../../../src/cli/command-line/help.ts";
import { COMMANDS } from "../../../src/cli/commands.ts";
import { folderWith, MAIN } from "../../support/service/cli-process.ts";
import { runFlow } from "../in-process.ts";

const exec = promisify(execFile);

test("--help lists every command, with examples and where the documentation is", async (t) => {
  const { code, stdout, stderr } = await runFlow(await folderWith(t, {}), ["--help"]);
  assert.equal(code, 0);
  assert.equal(stderr, "");
  for (const { name, summary } of COMMANDS) assert.ok(stdout.includes(`  ${name} `) && stdout.includes(summary), name);
  assert.match(stdout, /^Examples$/m);
  assert.match(stdout, /Documentation: /);
  for (const line of stdout.split("\n")) assert.ok(line.length <= 120, line);
});

test("help of a command is the same by 'flow help <command>', --help and -h, and names every option", async (t) => {
  const folder = await folderWith(t, {});
  const byName = await runFlow(folder, ["help", "run"]);
  const run = COMMANDS.filter((command) => command.name === "run");
  for (const { name } of run.flatMap(optionsOf)) assert.ok(byName.stdout.includes(`--${name}`), name);
  for (const line of byName.stdout.split("\n")) assert.ok(line.length <= 120, line);
  assert.equal((await runFlow(folder, ["run", "--help"])).stdout, byName.stdout);
  assert.equal((await runFlow(folder, ["run", "x.yaml", "-h"])).stdout, byName.stdout);
});

test("a set of commands explains itself and each of its commands", async (t) => {
  const folder = await folderWith(t, {});
  const set = await runFlow(folder, ["users", "--help"]);
  assert.match(set.stdout, /^Usage: flow users \[command\] \[options\]$/m);
  assert.match(set.stdout, /^ {2}list +List users \(default\)$/m);
  assert.match(set.stdout, /^ {2}grant <user> <role>… +Give roles$/m);
  const one = await runFlow(folder, ["users", "add", "--help"]);
  assert.match(one.stdout, /^Usage: flow users add <email> \[role\]… \[options\]$/m);
  assert.doesNotMatch(one.stdout, /--search/);
  assert.equal((await runFlow(folder, ["help", "users", "add"])).stdout, one.stdout);
  const nested = await runFlow(folder, ["help", "doctor", "repair", "run-playbook"]);
  assert.match(nested.stdout, /^Usage: flow doctor repair run-playbook <file> \[options\]$/m);
  const unknown = await runFlow(folder, ["help", "users", "ad"]);
  assert.equal(unknown.code, 2);
  assert.match(unknown.stderr, /no command 'users ad'\. Did you mean 'flow users add'\?/);
});

test("explanations wrap within their column on a narrow terminal", () => {
  for (const entry of COMMANDS) {
    const text = entryHelp(entry, entry.name, { columns: 80 });
    const [head = ""] = text.split(entry.details ?? "\u0000");
    for (const line of head.split("\n").slice(1)) assert.ok(line.length <= 80, line);
  }
});

test("--version prints the version alone", async (t) => {
  const { code, stdout } = await runFlow(await folderWith(t, {}), ["--version"]);
  assert.equal(code, 0);
  assert.match(stdout, /^\d+\.\d+\.\d+\S*\n$/);
});

test("schema prints the JSON Schema of playbooks from anywhere", async (t) => {
  const { code, stdout } = await runFlow(await folderWith(t, {}), ["schema"]);
  assert.equal(code, 0);
  assert.equal((JSON.parse(stdout) as { title: string }).title, "Playbook");
});

test("a reader that has seen enough is no error", async (t) => {
  const folder = await folderWith(t, {});
  const script = `"$0" "$1" schema | head -c 1 > first; echo "\${PIPESTATUS[0]}"`;
  const { stdout, stderr } = await exec("bash", ["-c", script, process.execPath, MAIN], { cwd: folder });
  assert.deepEqual([stdout, stderr], ["0\n", ""]);
});

test("config prints each setting's value and its source", async (t) => {
  const { stdout } = await runFlow(await folderWith(t, {}), ["config", "--json"], { FLOW_LOCAL_CAPACITY: "8" });
  const { settings } = JSON.parse(stdout) as { settings: { name: string; value: string; source: string }[] };
  const capacity = settings.find((setting) => setting.name === "FLOW_LOCAL_CAPACITY");
  assert.equal(capacity?.value, "8");
  assert.equal(capacity.source, "environment");
  assert.ok(settings.some((setting) => setting.source === "default"));
});

test("the bash completion is valid and offers commands, options, choices and files", async (t) => {
  const folder = await folderWith(t, { "demo.yaml": "" });
  const { stdout } = await runFlow(folder, ["completion", "bash"]);
  await writeFile(join(folder, "flow.bash"), stdout);
  await exec("bash", ["-n", join(folder, "flow.bash")]);
  const offered = async (...words: string[]) => {
    const script = `source ./flow.bash; COMP_WORDS=(flow "$@"); COMP_CWORD=$#; _flow 2>/dev/null; echo "\${COMPREPLY[*]}"`;
    return (await exec("bash", ["-c", script, "bash", ...words], { cwd: folder })).stdout.trim().split(" ");
  };
  assert.deepEqual(await offered("ru"), ["run"]);
  assert.deepEqual(await offered("run", "--ta"), ["--target"]);
  assert.deepEqual(await offered("run", "--runtime", ""), ["local", "server", "auto"]);
  assert.deepEqual(await offered("run", "dem"), ["demo.yaml"]);
  assert.deepEqual(await offered("run", "--record", "dem"), ["demo.yaml"]);
  assert.deepEqual(await offered("help", "comp"), ["completion"]);
  assert.deepEqual(await offered("users", "gr"), ["grant"]);
  assert.deepEqual(await offered("users", "add", "--na"), ["--name"]);
  assert.deepEqual(await offered("doctor", "repair", "run"), ["run-playbook"]);
  assert.deepEqual(await offered("doctor", "repair", "run-playbook", "dem"), ["demo.yaml"]);
});

for (const shell of ["zsh", "fish"]) {
  test(`the ${shell} completion names every command and option, and is valid where ${shell} is installed`, async (t) => {
    const folder = await folderWith(t, {});
    const { code, stdout } = await runFlow(folder, ["completion", shell]);
    assert.equal(code, 0);
    for (const command of COMMANDS) {
      assert.ok(stdout.includes(command.name));
      for (const option of optionsOf(command)) assert.match(stdout, new RegExp(`(--|-l )${option.name}\\b`));
    }
    await writeFile(join(folder, "script"), stdout);
    await exec(shell, ["-n", join(folder, "script")]).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") throw error;
    });
  });
}
