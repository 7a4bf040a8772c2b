import assert from "node:assert/strict";
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
 * How much the code of one task may use: tried by code that takes more, by small numbers, so that a limit that does not hold
 * harms nothing.
 */

const MIB = 1024 ** 2;
const LIMIT = 64;
/** Starts so many processes, in each of which something happens, and gives how many there were until one was refused. */
const forked = (count: number, inChild = "pass") => `
import os, time
children = []
try:
    for _ in range(${count}):
        child = os.fork()
        if child == 0:
            ${inChild}
            time.sleep(60)
            os._exit(0)
        children.append(child)
except OSError:
    pass
`;
const ENDED = `
for child in children:
    os.kill(child, 9)
    os.waitpid(child, 0)
result = len(children)`;

let box: Sandbox;
let tools: { python: Tool; shell: Tool };
before(async () => {
  box = await openSandbox({
    ...{ isolation: "strict", network: "none", readable: [], folder: undefined, hidden: [], python: TEST_PYTHON },
    guard: createEgressGuard({ allowPrivate: [] }),
    limits: { ...DEFAULT_LIMITS, processes: LIMIT, memoryBytes: 512 * MIB, scratchBytes: 16 * MIB },
  });
  tools = {
    python: createPythonTool({ pythonPath: TEST_PYTHON, sandbox: box }),
    shell: createShellTool({ sandbox: box }),
  };
});
after(async () => {
  await Promise.all([tools.python.close?.(), tools.shell.close?.()]);
  await box.close();
});

async function python(code: string): Promise<unknown> {
  const result = await tools.python.run(toolCall({ code }));
  return result.status === "ok" ? result.data : `${result.error?.code}: ${result.error?.message}`;
}

const forks = async (count: number) => Number(await python(forked(count) + ENDED));

test("a task that starts 200 processes where it may have 64 is refused the rest; the next task is not", async () => {
  assert.equal(await forks(LIMIT / 4), LIMIT / 4);
  const many = await forks(200);
  assert.ok(many >= LIMIT / 2 && many <= LIMIT + 8, `${many} processes; ${box.summary}`);
  assert.equal(await forks(LIMIT / 4), LIMIT / 4);
});

test("so is a shell command, and a fork bomb of it ends with its task", async () => {
  const cmds = "i=0; while [ $i -lt 200 ]; do sleep 60 & i=$((i+1)); done 2>/dev/null; jobs | wc -l";
  const call = toolCall({ cmds });
  const result = await tools.shell.run(call);
  const text = JSON.stringify([result, call.lines]);
  assert.match(text, /fork|Resource temporarily unavailable|EXIT_2|EXIT_254/i, text);
  assert.equal(await forks(LIMIT / 4), LIMIT / 4);
});

test("a process that takes more memory than it may is refused it, and the next task runs", async () => {
  assert.match(String(await python(`result = len(bytearray(${768 * MIB}))`)), /MemoryError|memory/);
  assert.equal(await python(`result = len(bytearray(${64 * MIB}))`), 64 * MIB);
});

test("processes that each take what they may, and together more, end with their task", async (t) => {
  if (!box.summary.includes("memory by")) return t.skip(`cgroup v2 limits no memory here: ${box.summary}`);
  const each = `held = bytearray(b"x") * ${100 * MIB}`;
  assert.match(String(await python(`${forked(10, each)}time.sleep(30)${ENDED}`)), /memory/);
  assert.equal(await python("result = 1"), 1);
});
