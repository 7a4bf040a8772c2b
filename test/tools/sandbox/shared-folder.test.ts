import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { createEgressGuard } from "../../../src/platform/http/egress.ts";
import { packagePath } from "../../../src/platform/system/package-file.ts";
import type { Tool } from "../../../src/tools/contract/tool.ts";
import { createPythonTool } from "../../../src/tools/python/python.ts";
import { openSandbox } from "../../../src/tools/sandbox/open-sandbox.ts";
import { DEFAULT_LIMITS, type Sandbox } from "../../../src/tools/sandbox/sandbox.ts";
import { sharedFolder, unshareable } from "../../../src/tools/sandbox/shared-folder.ts";
import { createShellTool } from "../../../src/tools/shell/shell.ts";
import { toolCall } from "../../support/service/tool-call.ts";
import { TEST_PYTHON } from "../python-call.ts";

/* One's own machine: code works in the folder that flow was started in, and sees neither flow's keys nor other folders. */

const SECRET = "canary-of-the-service";
const folder = mkdtempSync(join(tmpdir(), "flow-shared-"));
const elsewhere = mkdtempSync(join(tmpdir(), "flow-elsewhere-"));
const home = join(folder, "state", "flow");
const keys = join(folder, "keys.txt");
let box: Sandbox;
let python: Tool;
let shell: Tool;

async function open(): Promise<Sandbox> {
  return await openSandbox({
    isolation: "auto",
    network: "open",
    readable: [],
    folder,
    hidden: [home, join(home, "within"), keys, join(folder, "absent")],
    limits: DEFAULT_LIMITS,
    guard: createEgressGuard({ allowPrivate: "all" }),
    python: TEST_PYTHON,
  });
}

before(async () => {
  mkdirSync(home, { recursive: true });
  writeFileSync(join(home, "key"), SECRET);
  writeFileSync(keys, SECRET);
  writeFileSync(join(folder, "data.csv"), "a,b");
  writeFileSync(join(elsewhere, "data.csv"), SECRET);
  symlinkSync(home, join(folder, "link"));
  box = await open();
  assert.notEqual(box.kind, "none", box.summary);
  python = createPythonTool({ pythonPath: TEST_PYTHON, sandbox: box });
  shell = createShellTool({ sandbox: box });
});
after(async () => {
  await Promise.all([python.close?.(), shell.close?.()]);
  await box.close();
  for (const each of [folder, elsewhere]) rmSync(each, { recursive: true });
});

async function value(code: string): Promise<unknown> {
  const result = await python.run(toolCall({ code }));
  return result.status === "ok" ? result.data : `${result.error?.code}: ${result.error?.message}`;
}

async function lines(cmds: string): Promise<string> {
  const call = toolCall({ cmds });
  const result = await shell.run(call);
  return `${call.lines.join("\n")}${result.status === "ok" ? "" : `${result.error?.code}: ${result.error?.message}`}`;
}

test("code starts in the folder, and reads and writes its files, which stay", async () => {
  assert.equal(await value(`open("by-python", "w").write("x"); result = open("data.csv").read()`), "a,b");
  assert.equal(await lines("pwd; cat data.csv; echo y > by-shell"), `${folder}\na,b`);
  assert.equal(readFileSync(join(folder, "by-python"), "utf8"), "x");
  assert.equal(readFileSync(join(folder, "by-shell"), "utf8"), "y\n");
});

test("what a task leaves in the scratch folder is removed, and nothing of the folder, which lies below it", async () => {
  assert.ok(folder.startsWith("/tmp/"), "the folder of this test lies in the sandbox's scratch folder");
  assert.equal(await value(`os.makedirs("/tmp/a/b"); open("/tmp/a/c", "w"); result = 1`), 1);
  assert.deepEqual(await value(`result = os.path.exists("/tmp/a")`), false);
  assert.ok(existsSync(join(folder, "data.csv")));
});

for (const [what, command] of [
  ["a folder", `cat ${join(home, "key")}`],
  ["a folder by a link", `cat ${join(folder, "link", "key")}`],
  ["a file", `cat ${keys}`],
  ["what a folder above is moved away from", `mv state gone && mkdir -p ${home} && cat gone/flow/key`],
  ["a folder that is moved", `mv ${home} ./gone; cat gone/key`],
  ["a folder's mount that is removed", `umount ${home}; cat ${home}/key`],
  ["a folder of the machine beside it", `cat ${join(elsewhere, "data.csv")}`],
] as const) {
  test(`hidden from code: ${what}`, async () => {
    assert.doesNotMatch(await lines(command), new RegExp(SECRET));
    assert.equal(readFileSync(join(home, "key"), "utf8"), SECRET, "it is where it was");
  });
}

test("a readable folder is shown below the scratch folder too, and is not emptied; one above it is refused", async () => {
  const options = {
    isolation: "auto",
    network: "open",
    folder: undefined,
    hidden: [],
    limits: DEFAULT_LIMITS,
  } as const;
  const guard = createEgressGuard({ allowPrivate: "all" });
  const readable = await openSandbox({ ...options, guard, readable: [elsewhere], python: TEST_PYTHON });
  const tool = createPythonTool({ pythonPath: TEST_PYTHON, sandbox: readable });
  const code = `
open("/tmp/left", "w")
try:
    open(${JSON.stringify(join(elsewhere, "new"))}, "w")
except OSError as error:
    result = [os.strerror(error.errno), os.listdir(${JSON.stringify(elsewhere)})]`;
  for (const _time of [1, 2]) {
    const { data } = await tool.run(toolCall({ code }));
    assert.deepEqual(data, ["Read-only file system", ["data.csv"]]);
  }
  await tool.close?.();
  await readable.close();
  await assert.rejects(
    openSandbox({ ...options, guard, readable: ["/tmp"], python: TEST_PYTHON }),
    /FLOW_TASK_READABLE has \/tmp/,
  );
});

test("variables of a task do not reach the programs that make the sandbox", async () => {
  for (const name of ["bwrap", "setpriv", "unshare", "mount", "mkdir", "sh"]) {
    writeFileSync(join(folder, name), `#!/bin/sh\necho ${name} > ${elsewhere}/escaped\n`, { mode: 0o755 });
  }
  const env = { PATH: folder, LD_PRELOAD: "", GREETING: 'it\'s "$HOME"\n\\', IFS: "x" };
  const command = '/usr/bin/printf "%s|%s|%s" "$PATH" "$GREETING" "$HOME"; /usr/bin/env | /usr/bin/grep -c FLOW_INSIDE';
  const result = await shell.run(toolCall({ cmds: `${command} || :`, env }));
  assert.equal((result.data as { text: string }).text, `${folder}|${env.GREETING}|/tmp0`);
  assert.ok(!existsSync(join(elsewhere, "escaped")));
  const program = box.wrap({ file: "/bin/sh", args: [], env, cwd: "/" });
  const names = Object.keys(program.env).filter((name) => !name.startsWith("FLOW_INSIDE_"));
  assert.deepEqual(names, ["PATH"]);
  assert.equal(program.env["PATH"], process.env["PATH"]);
});

test("a file or a folder that the sandbox does not show is an error that says what to set", async () => {
  const missing = join(elsewhere, "data.csv");
  assert.match(await value(`open(${JSON.stringify(missing)})`).then(String), /FileNotFoundError.*FLOW_TASK_READABLE/);
  assert.match(await lines(`cat ${missing}`), /EXIT_1: [\s\S]*No such file or directory[\s\S]*FLOW_TASK_READABLE/);
  const result = await shell.run(toolCall({ cmds: "pwd", cwd: elsewhere }));
  assert.equal(`${result.error?.kind} ${result.error?.code}`, "configuration ENOENT");
  assert.match(String(result.error?.message), /the folder .* \(cwd\) does not exist.*FLOW_TASK_READABLE/);
  assert.doesNotMatch(await lines("exit 1"), /FLOW_TASK/);
});

test("a stopped command prints nothing about signals", async () => {
  const controller = new AbortController();
  const said: string[] = [];
  const log = (line: string) => {
    said.push(line);
    if (line === "ready") controller.abort();
  };
  await shell.run(toolCall({ cmds: "echo ready\nsleep 1000\necho more" }, { log, signal: controller.signal }));
  assert.deepEqual(said, ["ready"]);
});

test("a program's own end by a signal is told, for the first process too", async () => {
  assert.match(await lines("kill -TERM $$"), /EXIT_143/);
  assert.match(
    await value("import signal; os.kill(os.getpid(), signal.SIGTERM); result = 1").then(String),
    /SIGTERM: .*was ended by SIGTERM/,
  );
});

test("folders of the machine and those of flow itself are not shared", async () => {
  for (const path of ["/", "/tmp", "/usr", home, join(home, "deeper"), packagePath("dist"), keys, "/nonexistent"]) {
    mkdirSync(join(home, "deeper"), { recursive: true });
    assert.notEqual(unshareable(path, [home, keys]), undefined, path);
  }
  assert.equal(unshareable(folder, [home, keys]), undefined);
  const { mounts } = sharedFolder(packagePath(""), []);
  const accessOf = (name: string) => mounts.find(({ path }) => path === packagePath(name))?.access;
  assert.deepEqual(["", "dist", "node_modules"].map((name) => accessOf(name) ?? accessOf(`${name}.`)).slice(1), [
    "read",
    "read",
  ]);
  await assert.rejects(
    openSandbox({
      isolation: "auto",
      network: "open",
      readable: [],
      folder: home,
      hidden: [home],
      limits: DEFAULT_LIMITS,
      guard: createEgressGuard({ allowPrivate: "all" }),
      python: TEST_PYTHON,
    }),
    { code: "INVALID_SETTING", message: /FLOW_TASK_FOLDER=.* cannot be used: it lies in/ },
  );
});
