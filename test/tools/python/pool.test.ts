import assert from "node:assert/strict";
import { execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { ToolResult } from "../../../src/schema/words/outcome.ts";
import type { Tool } from "../../../src/tools/contract/tool.ts";
import { createPythonTool } from "../../../src/tools/python/python.ts";
import { pythonCall, TEST_PYTHON, testTool } from "../python-call.ts";

const folder = mkdtempSync(join(tmpdir(), "flow-python-"));
const tool = testTool();
const single = testTool({ maxCount: 1 });
after(async () => {
  await Promise.all([tool.close?.(), single.close?.()]);
  rmSync(folder, { recursive: true });
});

const LOOP = "print('started')\nwhile True: pass";

/** Starts `code`, and aborts it with `reason` as soon as it logs its first line. */
function abortedAtFirstLine(on: Tool, code: string, reason?: Error): Promise<ToolResult> {
  const controller = new AbortController();
  const log = () => controller.abort(reason);
  return on.run(pythonCall(code, { signal: controller.signal, log }));
}

async function pidOf(on: Tool): Promise<number> {
  const result = await on.run(pythonCall("result = os.getpid()"));
  assert.equal(result.status, "ok", result.error?.message);
  return result.data as number;
}

/** Resolves when the process has gone. Polls, since a process that is not our child sends no signal. */
async function gone(pid: number): Promise<void> {
  const deadline = Date.now() + 10_000;
  for (;;) {
    try {
      process.kill(pid, 0);
    } catch {
      return;
    }
    assert.ok(Date.now() < deadline, `process ${pid} is still there`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test("tasks one after the other share an interpreter", async () => {
  assert.equal(await pidOf(single), await pidOf(single));
});

/** Interpreters of tasks that run side by side: each waits for the other's file. */
async function sideBySide(on: Tool): Promise<number[]> {
  const code = "open(own, 'w').close()\nwhile not os.path.exists(other): time.sleep(0.001)\nresult = os.getpid()";
  const [one, two] = [join(folder, "one"), join(folder, "two")];
  const runs = [
    { own: one, other: two },
    { own: two, other: one },
  ].map((input) => on.run(pythonCall(code, { input })));
  return (await Promise.all(runs)).map(({ data }) => data as number);
}

test("200 tasks at once over two interpreters each get their own result and their own lines", async () => {
  const both = new Set(await sideBySide(tool));
  assert.equal(both.size, 2);
  const runs = Array.from({ length: 200 }, async (_, n) => {
    const lines: string[] = [];
    const code =
      "import sys\nprint('task', n)\nos.system('echo child %d' % n)\nprint('end', n, file=sys.stderr, end='')";
    const result = await tool.run(pythonCall(`${code}\nresult = [n, os.getpid()]`, { input: { n } }, lines));
    const [value, pid] = result.data as [number, number];
    assert.equal(value, n);
    assert.deepEqual(lines, [`task ${n}`, `child ${n}`, `end ${n}`]);
    return pid;
  });
  for (const pid of await Promise.all(runs)) assert.ok(both.has(pid), `Interpreter ${pid} is a third one`);
});

test("lines arrive while the code runs", async () => {
  const result = await abortedAtFirstLine(single, LOOP);
  assert.equal(result.error?.kind, "cancelled");
});

test("an endless loop is stopped by a time-out, and the next task runs", async () => {
  const result = await abortedAtFirstLine(single, LOOP, new DOMException("too late", "TimeoutError"));
  assert.equal(result.status, "error");
  assert.equal(result.error?.kind, "timeout");
  assert.equal(result.error?.retryable, true);
  assert.match(result.error?.message ?? "", /python code of task "work" did not finish/);
  assert.ok((await pidOf(single)) > 0);
});

test("a stop reaches the processes that the code started", async () => {
  const controller = new AbortController();
  let child = 0;
  const log = (line: string) => {
    child = Number(line);
    controller.abort();
  };
  const code = "import subprocess\np = subprocess.Popen(['sleep', '1000'])\nprint(p.pid)\np.wait()";
  const result = await single.run(pythonCall(code, { signal: controller.signal, log }));
  assert.equal(result.error?.kind, "cancelled");
  await gone(child);
});

test("a task that was aborted before it began, or while it waits, never runs", async () => {
  const before = await single.run(pythonCall("result = 1", { signal: AbortSignal.abort() }));
  assert.equal(before.error?.kind, "cancelled");
  const busy = new AbortController();
  const waiting = new AbortController();
  const log = () => waiting.abort();
  const running = single.run(pythonCall(LOOP, { signal: busy.signal, log }));
  const result = await single.run(
    pythonCall("print('ran')", { signal: waiting.signal, log: () => assert.fail("ran") }),
  );
  assert.equal(result.error?.kind, "cancelled");
  busy.abort();
  assert.equal((await running).error?.kind, "cancelled");
});

test("waiting tasks run in the order in which they came", async () => {
  const order: number[] = [];
  const run = async (n: number) => {
    await single.run(pythonCall("result = 1"));
    order.push(n);
  };
  await Promise.all([0, 1, 2, 3, 4].map(run));
  assert.deepEqual(order, [0, 1, 2, 3, 4]);
});

const CRASHES: [what: string, code: string, expected: string, message: RegExp][] = [
  ["os._exit(3)", "os._exit(3)", "EXIT_3", /exited with status 3/],
  ["os._exit(0)", "os._exit(0)", "INTERPRETER_LOST", /exited with status 0/],
  ["a segmentation fault", "import ctypes\nctypes.string_at(0)", "SIGSEGV", /ended by SIGSEGV/],
  ["a kill from outside", "os.kill(os.getpid(), 9)", "SIGKILL", /memory ran out/],
  ["a write to our descriptor", "os.write(3, b'\\xff' * 8)\nwhile True: pass", "INTERPRETER_LOST", /descriptor 3/],
  [
    "an answer of its own making",
    "os.write(3, b'\\0\\0\\0\\4null')\nwhile True: pass",
    "INTERPRETER_LOST",
    /descriptor 3/,
  ],
];

for (const [what, code, expected, message] of CRASHES) {
  test(`${what} is an error of the task, and the next task runs`, async () => {
    const result = await single.run(pythonCall(code));
    assert.equal(result.status, "error");
    assert.equal(result.error?.kind, "client_error");
    assert.equal(result.error?.code, expected);
    assert.match(result.error?.message ?? "", message);
    assert.ok((await pidOf(single)) > 0);
  });
}

test("the last output before a crash is in the log", async () => {
  const lines: string[] = [];
  await single.run(pythonCall("print('working')\nimport ctypes\nctypes.string_at(0)", {}, lines));
  assert.equal(lines[0], "working");
  assert.ok(
    lines.some((line) => line.includes('File "flow.yaml", line 12')),
    lines.join("\n"),
  );
});

test("a process that the code forked and that falls out of it does not answer for its parent", async () => {
  const lines: string[] = [];
  const code = "pid = os.fork()\nif pid: os.waitpid(pid, 0)\nprint('parent' if pid else 'child')\nresult = pid > 0";
  const result = await single.run(pythonCall(code, {}, lines));
  assert.equal(result.data, true);
  assert.deepEqual(lines, ["child", "parent"]);
});

test("an interpreter with a thread or process left behind is replaced, and these end", async () => {
  const thread = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()";
  const first = await single.run(pythonCall(`${thread}\nresult = os.getpid()`));
  assert.notEqual(await pidOf(single), first.data);
  const child = "import subprocess\nresult = [os.getpid(), subprocess.Popen(['sleep', '1000']).pid]";
  const second = (await single.run(pythonCall(child))).data as [number, number];
  assert.notEqual(await pidOf(single), second[0]);
  await gone(second[1]);
});

/** How many of so many tasks each interpreter ran, one after the other. */
async function tasksOfEach(tasks: number, code = ""): Promise<number[]> {
  const one = testTool({ maxCount: 1 });
  const pids = new Map<number, number>();
  for (let n = 0; n < tasks; n++) {
    const { data, error } = await one.run(pythonCall(`${code}\nresult = os.getpid()`));
    assert.equal(error, undefined);
    pids.set(data as number, (pids.get(data as number) ?? 0) + 1);
  }
  await one.close?.();
  return [...pids.values()];
}

test("an interpreter is replaced after 10,000 tasks", async () => {
  assert.deepEqual(await tasksOfEach(10_001), [10_000, 1]);
});

test("an interpreter whose tasks leave memory or open files behind is replaced after 1,000", async () => {
  const kept = (what: string) => `import json as place\nplace.kept = getattr(place, 'kept', []) + [${what}]`;
  // A process begins with the peak of the one that starts it: what a large worker's interpreters leave behind is seen all the same.
  const ballast = Buffer.alloc(400 * 1024 ** 2, 1);
  // 40 MB and 90 files between the first look and the second: some of the memory was there before, freed and kept.
  assert.deepEqual(await tasksOfEach(1_001, kept("b'x' * 44_000")), [1_000, 1]);
  const file = kept("open('/dev/null') if len(getattr(place, 'kept', [])) % 10 == 0 else None");
  assert.deepEqual(await tasksOfEach(1_001, file), [1_000, 1]);
  // Nor is one replaced for what its worker has.
  const small = testTool({ maxCount: 1, memoryLimitBytes: 512 * 1024 ** 2 });
  assert.equal(await pidOf(small), await pidOf(small));
  await small.close?.();
  assert.equal(ballast[0], 1);
});

test("an interpreter whose tasks leave little behind goes on", async () => {
  const kept = "import json as place\nplace.kept = getattr(place, 'kept', []) + [b'x' * 5_000]";
  assert.deepEqual(await tasksOfEach(1_001, kept), [1_001]);
});

test("code that needs more memory than allowed gets a coded error", async () => {
  const small = testTool({ maxCount: 1, memoryLimitBytes: 256 * 1024 ** 2 });
  try {
    const once = await small.run(pythonCall("x = bytearray(10 ** 9)"));
    assert.equal(once.error?.code, "MEMORY_LIMIT");
    assert.equal(once.py?.exception, "MemoryError");
    assert.match(once.error?.message ?? "", /more memory than a python task may use \(flow\.yaml:10\)/);
    const bitByBit = await small.run(pythonCall("def main():\n    x = []\n    while True: x.append([0] * 100)"));
    assert.equal(bitByBit.error?.code, "MEMORY_LIMIT");
    assert.equal((await small.run(pythonCall("result = len(bytearray(10 ** 7))"))).data, 10 ** 7);
  } finally {
    await small.close?.();
  }
});

test("inputs that do not fit into the memory limit are a coded error too", async () => {
  const small = testTool({ maxCount: 1, memoryLimitBytes: 128 * 1024 ** 2 });
  const rows = Array.from({ length: 1_000_000 }, (_, id) => ({ id, a: 1, b: 2 }));
  try {
    const result = await small.run(pythonCall("result = 1", { input: { rows } }));
    assert.equal(result.error?.code, "MEMORY_LIMIT", result.error?.message);
    assert.match(result.error?.message ?? "", /while reading the inputs/);
    assert.equal((await small.run(pythonCall("result = 1"))).data, 1);
  } finally {
    await small.close?.();
  }
});

test("a flood of output is bounded, from print and from a child process", async () => {
  const bounded = testTool({ maxCount: 1, maxOutputBytes: 100_000 });
  const floods = [
    "for n in range(1000000): print('line', n)",
    "import subprocess\nsubprocess.run('yes | head -n 3000000', shell=True)",
  ];
  try {
    for (const code of floods) {
      const lines: string[] = [];
      const result = await bounded.run(pythonCall(code, {}, lines));
      assert.equal(result.status, "ok");
      assert.ok(lines.join("\n").length < 101_000);
      assert.equal(lines.at(-1), "[more than 100000 bytes of output: the rest was dropped]");
      assert.ok(JSON.stringify(result.data).length < 200_000);
    }
  } finally {
    await bounded.close?.();
  }
});

test("close ends what runs and refuses what comes", async () => {
  const closing = testTool({ maxCount: 1 });
  let pid = 0;
  const log = (line: string) => {
    pid = Number(line);
    void closing.close?.();
  };
  const running = closing.run(pythonCall("print(os.getpid())\nwhile True: pass", { log }));
  const waiting = closing.run(pythonCall("result = 1"));
  assert.equal((await running).error?.kind, "cancelled");
  assert.equal((await waiting).error?.kind, "cancelled");
  assert.equal((await closing.run(pythonCall("result = 1"))).error?.kind, "cancelled");
  await gone(pid);
  await closing.close?.();
});

test("an idle interpreter does not keep the program running, and ends with it", async () => {
  const call = new URL("../python-call.js", import.meta.url).href;
  const script = `
    const { testTool, pythonCall } = await import(${JSON.stringify(call)});
    const result = await testTool().run(pythonCall("result = os.getpid()"));
    process.stdout.write(String(result.data));`;
  const output = await new Promise<string>((resolve, reject) => {
    execFile(process.execPath, ["--input-type=module", "-e", script], { timeout: 30_000 }, (error, stdout) =>
      error === null ? resolve(stdout) : reject(error),
    );
  });
  await gone(Number(output));
});

test("a running interpreter ends when the program is killed by force", {
  skip: process.platform !== "linux",
}, async () => {
  const call = new URL("../python-call.js", import.meta.url).href;
  const script = `
    const { testTool, pythonCall } = await import(${JSON.stringify(call)});
    const log = (line) => process.stdout.write(line);
    await testTool().run(pythonCall("print(os.getpid())\\nwhile True: pass", { log }));`;
  const program = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [pid] = (await once(program.stdout, "data")) as [Buffer];
  program.kill("SIGKILL");
  await gone(Number(pid.toString()));
});

test("idle interpreters beyond the warm ones end soon, the warm ones later", async (context) => {
  const lazy = testTool({ warmCount: 1, maxCount: 2 });
  context.mock.timers.enable({ apis: ["setTimeout"] });
  // Both wait for each other's file, so that two interpreters run.
  const code = "open(mine, 'w').close()\nwhile not os.path.exists(other): time.sleep(0.001)\nresult = os.getpid()";
  const [a, b] = [join(folder, "a"), join(folder, "b")];
  const runs = [
    lazy.run(pythonCall(code, { input: { mine: a, other: b } })),
    lazy.run(pythonCall(code, { input: { mine: b, other: a } })),
  ];
  const pids = (await Promise.all(runs)).map((result) => result.data as number);
  context.mock.timers.tick(10_000);
  const warm = await pidOf(lazy);
  assert.ok(pids.includes(warm));
  await gone(pids.find((pid) => pid !== warm)!);
  context.mock.timers.tick(300_000);
  await gone(warm);
  assert.ok(!pids.includes(await pidOf(lazy)));
  await lazy.close?.();
});

function fakeInterpreter(name: string, script: string): string {
  const path = join(folder, name);
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
  return path;
}

async function startError(pythonPath: string): Promise<string> {
  const broken = createPythonTool({ pythonPath, maxCount: 2 });
  const results = await Promise.all([0, 1, 2].map(() => broken.run(pythonCall("result = 1"))));
  await broken.close?.();
  for (const result of results) assert.equal(result.error?.kind, "configuration");
  return results[2]?.error?.message ?? "";
}

test("no interpreter is a configuration error with what was looked for and the setting, for every task", async () => {
  assert.match(await startError("no-such-python"), /"no-such-python": there is no such program on PATH.*FLOW_PYTHON/);
  assert.match(await startError("/no/python3"), /"\/no\/python3": there is no such program\. Install Python 3\.8/);
  assert.match(await startError(folder), /it may not be executed/);
});

test("an interpreter that is too old, or ends at once, is a configuration error with its reason", async () => {
  const old = fakeInterpreter("old", "printf 'Python 2.7' >&2\nexit 86");
  assert.match(await startError(old), /it is Python 2\.7, and 3\.8 is needed/);
  const broken = fakeInterpreter("broken", "echo no libpython.so >&2\nexit 127");
  assert.match(await startError(broken), /it ended at once, saying: no libpython\.so/);
});

test("a wrapper around the interpreter works", async () => {
  const wrapped = createPythonTool({ pythonPath: fakeInterpreter("wrapper", `exec ${TEST_PYTHON} "$@"`), maxCount: 1 });
  assert.equal((await wrapped.run(pythonCall("result = 1"))).data, 1);
  await wrapped.close?.();
});

test("an interpreter that does not know its own path, because PATH is unset, is used all the same", async (t) => {
  // Python finds itself on PATH, or by the name it was called by: without either it does not know. The system's own
  // search for programs still finds python3 in /usr/bin.
  const found = spawnSync("python3", ["-c", "import sys; print(repr(sys.executable))"], { env: {}, encoding: "utf8" });
  if (found.stdout?.trim() !== "''") return t.skip("python3 is not found without PATH, or knows where it is");
  const bare = createPythonTool({ pythonPath: "python3", env: {} });
  t.after(() => bare.close?.());
  const result = await bare.run(pythonCall("result = 1"));
  assert.equal(result.data, 1, result.error?.message);
});
