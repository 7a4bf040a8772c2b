import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { after, before, test } from "node:test";
import { createEgressGuard } from "../../../src/platform/http/egress.ts";
import type { Tool } from "../../../src/tools/contract/tool.ts";
import { createPythonTool } from "../../../src/tools/python/python.ts";
import { openSandbox } from "../../../src/tools/sandbox/open-sandbox.ts";
import { DEFAULT_LIMITS, type Sandbox } from "../../../src/tools/sandbox/sandbox.ts";
import { createShellTool } from "../../../src/tools/shell/shell.ts";
import { toolCall } from "../../support/service/tool-call.ts";
import { TEST_PYTHON } from "../python-call.ts";

/*
 * What task code may not do, tried by real code in real sandboxes. Each is also tried without a sandbox, where it succeeds:
 * an attack that fails for another reason would prove nothing.
 */

const SECRET = "canary-of-the-worker";
const folder = mkdtempSync(join(tmpdir(), "flow-victim-"));
const secretFile = join(folder, "token");
writeFileSync(secretFile, SECRET);
/** A process of the same user with a secret in its environment: what a worker is to the code of its tasks. */
const victim = spawn("sleep", ["1000"], { env: { ...process.env, FLOW_WORKER_TOKEN: SECRET }, stdio: "ignore" });
const web = createServer((request, response) => response.end(`reached ${request.url}`));
let port = 0;

const guarded = {
  isolation: "auto",
  network: "guarded",
  readable: [],
  folder: undefined,
  hidden: [],
  limits: DEFAULT_LIMITS,
  python: TEST_PYTHON,
} as const;
const closed = createEgressGuard({ allowPrivate: [] });
const open = createEgressGuard({ allowPrivate: "all" });
const sandboxes: Sandbox[] = [];

async function sandbox(options: Partial<Parameters<typeof openSandbox>[0]> = {}): Promise<Sandbox> {
  const opened = await openSandbox({ ...guarded, guard: closed, ...options });
  sandboxes.push(opened);
  return opened;
}

let inside: { python: Tool; shell: Tool };
let outside: { python: Tool; shell: Tool };

before(async () => {
  web.listen(0, "127.0.0.1");
  await once(web, "listening");
  port = (web.address() as AddressInfo).port;
  const box = await sandbox();
  assert.notEqual(box.kind, "none", box.summary);
  inside = tools(box);
  outside = tools();
});
after(async () => {
  for (const { python, shell } of [inside, outside]) await Promise.all([python.close?.(), shell.close?.()]);
  await Promise.all(sandboxes.map((each) => each.close()));
  victim.kill("SIGKILL");
  web.close();
  rmSync(folder, { recursive: true });
});

function tools(box?: Sandbox): { python: Tool; shell: Tool } {
  const options = box === undefined ? {} : { sandbox: box };
  return {
    python: createPythonTool({ pythonPath: TEST_PYTHON, ...options }),
    shell: createShellTool({ ...options }),
  };
}

async function python(tool: Tool, code: string, trustDomain = ""): Promise<unknown> {
  const result = await tool.run(toolCall({ code }, { trustDomain }));
  return result.status === "ok" ? result.data : `${result.error?.code}: ${result.error?.message}`;
}

async function shell(tool: Tool, cmds: string): Promise<string> {
  const call = toolCall({ cmds });
  const result = await tool.run(call);
  return `${call.lines.join("\n")}${result.status === "ok" ? "" : result.error?.code}`;
}

const ATTACKS: [what: string, code: () => string][] = [
  ["reads the environment of a process of its user", () => `result = open("/proc/${victim.pid}/environ").read()`],
  ["reads a file of the worker", () => `result = open(${JSON.stringify(secretFile)}).read()`],
  [
    "finds the secret in any process",
    () => `
import glob
result = ""
for path in glob.glob("/proc/[0-9]*/environ"):
    try:
        result += open(path).read()
    except OSError:
        pass`,
  ],
  [
    "reaches a server of this machine",
    () => `
import urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
result = "${SECRET}" + opener.open("http://127.0.0.1:${port}/", timeout=5).read().decode()`,
  ],
  [
    "signals a process outside",
    () => `
os.kill(${victim.pid}, 0)
result = "${SECRET}"`,
  ],
  [
    "writes beside the scratch folder",
    () => `
open(${JSON.stringify(join(folder, "written"))}, "w").write("x")
result = "${SECRET}"`,
  ],
];

for (const [what, code] of ATTACKS) {
  test(`python code ${what}: not in a sandbox`, async () => {
    assert.match(String(await python(outside.python, code())), new RegExp(SECRET), "without a sandbox it does");
    assert.doesNotMatch(String(await python(inside.python, code())), new RegExp(SECRET));
  });
}

test("a shell command sees neither the worker's processes nor its files, and cannot write to the system", async () => {
  const commands = `tr '\\0' '\\n' </proc/${victim.pid}/environ; cat ${secretFile}`;
  assert.match(await shell(outside.shell, commands), new RegExp(SECRET));
  assert.doesNotMatch(await shell(inside.shell, commands), new RegExp(SECRET));
  assert.match(await shell(inside.shell, "touch /usr/bin/x"), /Read-only file system[\s\S]*EXIT_1/);
  assert.equal(await shell(inside.shell, "pwd; echo ok > file; cat file; ls"), "/tmp\nok\nfile");
});

test("a shell command ends with its own exit code, and a signal's is 128 + n", async () => {
  assert.equal(await shell(inside.shell, "exit 7"), "EXIT_7");
  assert.equal(await shell(inside.shell, "kill -9 $$"), "EXIT_137");
});

test("a stopped shell command gets the time to clean up", async () => {
  const controller = new AbortController();
  const lines: string[] = [];
  const log = (line: string) => {
    lines.push(line);
    if (line === "ready") controller.abort();
  };
  const cmds = "trap 'echo cleaned; exit 3' TERM\necho ready\nwhile :; do sleep 0.05; done";
  const result = await inside.shell.run(toolCall({ cmds }, { log, signal: controller.signal }));
  assert.equal(result.error?.kind, "cancelled");
  assert.ok(lines.includes("cleaned"), String(lines));
});

test("what a task leaves in the scratch folder is gone for the next, in the same interpreter", async () => {
  const first = await python(
    inside.python,
    `open("left", "w").write("x"); os.makedirs("/tmp/a/b"); result = os.getpid()`,
  );
  assert.equal(typeof first, "number");
  assert.deepEqual(
    await python(inside.python, `result = [os.getpid(), os.getcwd(), os.listdir("."), os.listdir("/tmp")]`),
    [first, "/tmp", [], []],
  );
});

test("a process that leaves its group does not outlive its task", async () => {
  const code = `
import subprocess
subprocess.run(["sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 &"])
result = os.getpid()`;
  const first = await python(inside.python, code);
  assert.equal(typeof first, "number", String(first));
  const running = await python(
    inside.python,
    `result = [open(f"/proc/{p}/comm").read() for p in os.listdir("/proc") if p.isdigit()]`,
  );
  assert.ok(!String(running).includes("sleep"), String(running));
});

test("a program ends with the worker that started it, however that ends", async () => {
  const modules = ["src/tools/sandbox/open-sandbox.js", "src/platform/http/egress.js"].map(
    (file) => new URL(`../../../${file}`, import.meta.url).href,
  );
  const script = `
const [{ openSandbox }, { createEgressGuard }] = await Promise.all(${JSON.stringify(modules)}.map((file) => import(file)));
const { spawn } = await import("node:child_process");
const options = ${JSON.stringify({ ...guarded, network: "open", hidden: [] })};
const box = await openSandbox({ ...options, guard: createEgressGuard({ allowPrivate: "all" }) });
const { file, args, env, cwd } = box.wrap({ file: "/bin/sh", args: ["-c", "echo up; sleep 1000; sleep 1000"], env: {}, cwd: "/" });
spawn(file, args, { env, cwd, detached: true, stdio: ["ignore", "inherit", "inherit"] });`;
  const worker = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(worker.stdout, "data");
  worker.kill("SIGKILL");
  // The program holds the pipe for as long as it lives.
  await once(worker, "close");
});

test("code of one trust domain never runs in an interpreter that ran another's", async () => {
  const spy = `
import builtins, sys
sys.setprofile(lambda *_: None)
import json
json.stolen = "hook"
result = os.getpid()`;
  const first = await python(inside.python, spy, "team-a");
  assert.equal(await python(inside.python, "result = os.getpid()", "team-a"), first);
  const code = `import json\nresult = getattr(json, "stolen", "clean")`;
  assert.equal(await python(inside.python, code, "team-b"), "clean");
  assert.equal(await python(inside.python, code, "team-a"), "hook");
});

test("code calls addresses that the guard lets through, by the proxy that its environment names", async () => {
  const tool = createPythonTool({ pythonPath: TEST_PYTHON, sandbox: await sandbox({ guard: open }) });
  const code = `
import http.client
proxy = os.environ["HTTPS_PROXY"].rsplit("/", 1)[1]
tunnel = http.client.HTTPConnection(proxy)
tunnel.set_tunnel("127.0.0.1", ${port})
tunnel.request("GET", "/tunnel")
plain = http.client.HTTPConnection(proxy)
plain.request("GET", "http://127.0.0.1:${port}/plain")
result = [tunnel.getresponse().read().decode(), plain.getresponse().read().decode()]`;
  assert.deepEqual(await python(tool, code), ["reached /tunnel", "reached /plain"]);
  const refused = code.replaceAll("127.0.0.1", "127.0.0.1");
  assert.match(String(await python(inside.python, refused)), /403 Forbidden/);
  await tool.close?.();
});

test("memory, processes, files and open files have limits", async () => {
  const small = {
    ...DEFAULT_LIMITS,
    memoryBytes: 512 * 1024 ** 2,
    fileBytes: 1024 ** 2,
    scratchBytes: 4 * 1024 ** 2,
    openFiles: 64,
  };
  const tool = createPythonTool({
    pythonPath: TEST_PYTHON,
    sandbox: await sandbox({ limits: small }),
    memoryLimitBytes: small.memoryBytes,
  });
  assert.match(String(await python(tool, "result = len(bytearray(1024 ** 3))")), /MemoryError/);
  assert.match(String(await python(tool, "open('f', 'wb').write(b'x' * (3 * 1024 ** 2))")), /OSError|SIGXFSZ/);
  assert.match(
    String(await python(tool, "files = [open('/dev/null') for _ in range(100)]")),
    /OSError.*Too many open files/,
  );
  const full = "for n in range(10): open(str(n), 'wb').write(b'x' * 900_000)";
  assert.match(String(await python(tool, full)), /No space left/);
  await tool.close?.();
});

test("CPU time has a limit for each task: what earlier tasks of an interpreter used does not count", async () => {
  const limits = { ...DEFAULT_LIMITS, cpuSeconds: 2 };
  const tool = createPythonTool({ pythonPath: TEST_PYTHON, sandbox: await sandbox({ limits }) });
  const busy = (seconds: number) => `
end = time.process_time() + ${seconds}
while time.process_time() < end:
    pass
result = os.getpid()`;
  const pids = await Promise.all([await python(tool, busy(0.7)), await python(tool, busy(0.7))]);
  assert.ok(pids.every(Number.isInteger), String(pids));
  assert.equal(typeof (await python(tool, busy(0.7))), "number", "2.1 s in all");
  assert.match(String(await python(tool, busy(10))), /^SIGXCPU: .*more CPU time than a task may/);
  await tool.close?.();
});

test("without any means `auto` runs code as it is and says why; `strict` refuses", async () => {
  const path = process.env["PATH"];
  process.env["PATH"] = [folder].join(delimiter);
  try {
    const none = await openSandbox({ ...guarded, guard: closed, python: "/nonexistent" });
    assert.equal(none.kind, "none");
    assert.match(none.summary, /^none \(bubblewrap: /);
    await assert.rejects(openSandbox({ ...guarded, isolation: "strict", guard: closed, python: "/nonexistent" }), {
      code: "INVALID_SETTING",
      message: /FLOW_TASK_ISOLATION=strict, and no sandbox can be made here/,
    });
  } finally {
    process.env["PATH"] = path;
  }
});
