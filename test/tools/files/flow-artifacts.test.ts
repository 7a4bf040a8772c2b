import assert from "node:assert/strict";
import { mkdirSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { createEgressGuard } from "../../../src/platform/http/egress.ts";
import { ownFolder } from "../../../src/platform/system/own-folder.ts";
import { FlowError } from "../../../src/schema/words/errors.ts";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import type { ToolResult } from "../../../src/schema/words/outcome.ts";
import type { Tool } from "../../../src/tools/contract/tool.ts";
import { createPythonTool } from "../../../src/tools/python/python.ts";
import { openSandbox } from "../../../src/tools/sandbox/open-sandbox.ts";
import { DEFAULT_LIMITS, type Sandbox } from "../../../src/tools/sandbox/sandbox.ts";
import { createShellTool } from "../../../src/tools/shell/shell.ts";
import { toolCall } from "../../support/service/tool-call.ts";
import { TEST_PYTHON } from "../python-call.ts";

/* FLOW_ARTIFACTS of `python` and `shell`, with and without a sandbox: a folder of each task's own, of which nothing stays. */

let sandbox: Sandbox;
const all: { where: string; python: Tool; shell: Tool }[] = [];
before(async () => {
  sandbox = await openSandbox({
    ...{ isolation: "auto", network: "none", readable: [], folder: undefined, hidden: [], limits: DEFAULT_LIMITS },
    ...{ guard: createEgressGuard({ allowPrivate: [] }), python: TEST_PYTHON },
  });
  assert.notEqual(sandbox.kind, "none", sandbox.summary);
  for (const [where, options] of [
    ["sandbox", { sandbox }],
    ["none", {}],
  ] as const) {
    const python = createPythonTool({ pythonPath: TEST_PYTHON, maxCount: 1, ...options });
    all.push({ where, python, shell: createShellTool({ ...options, killGraceMs: 100 }) });
  }
});
after(async () => {
  for (const { python, shell } of all) await Promise.all([python.close?.(), shell.close?.()]);
  await sandbox.close();
});

/** What it left, by name, and nothing more of it afterwards. */
async function filesOf(result: ToolResult): Promise<Record<string, string>> {
  const files: Record<string, string> = {};
  for (const { name, content } of (await result.files?.list()) ?? [])
    files[name] = Buffer.from(await content()).toString();
  await result.files?.remove();
  return files;
}

const WRITE: Record<"python" | "shell", JsonObject> = {
  python: {
    code: "import os\nfolder = os.environ['FLOW_ARTIFACTS']\nos.makedirs(folder + '/sub')\nopen(folder + '/sub/a.csv', 'w').write('a,b')\nopen(folder + '/empty', 'w').close()\nresult = oct(os.stat(folder).st_mode)",
  },
  shell: {
    cmds: [
      'mkdir "$FLOW_ARTIFACTS/sub"; printf a,b > "$FLOW_ARTIFACTS/sub/a.csv"',
      'touch "$FLOW_ARTIFACTS/empty"; stat -c %a "$FLOW_ARTIFACTS"',
    ],
  },
};
const NOTHING: Record<"python" | "shell", JsonObject> = {
  python: { code: "import os\nresult = os.listdir(os.environ['FLOW_ARTIFACTS'])" },
  shell: { cmds: 'ls -A "$FLOW_ARTIFACTS"' },
};
const FAIL: Record<"python" | "shell", JsonObject> = {
  python: { code: "import os\nopen(os.environ['FLOW_ARTIFACTS'] + '/log', 'w').write('x')\nraise ValueError('no')" },
  shell: { cmds: 'printf x > "$FLOW_ARTIFACTS/log"; exit 3' },
};
const HANG: Record<"python" | "shell", JsonObject> = {
  python: {
    code: "import os, time\nopen(os.environ['FLOW_ARTIFACTS'] + '/half', 'w').write('x')\nprint('begun')\ntime.sleep(100)",
  },
  shell: { cmds: 'printf x > "$FLOW_ARTIFACTS/half"; echo begun; sleep 100' },
};

for (const kind of ["python", "shell"] as const) {
  test(`${kind}: what a task leaves is given with its result, and the next task finds nothing of it`, async () => {
    for (const tools of all) {
      const result = await tools[kind].run(toolCall(WRITE[kind]));
      assert.equal(result.status, "ok", `${tools.where}: ${result.error?.message}`);
      assert.match(JSON.stringify(result.data), /700/, tools.where);
      assert.deepEqual(await filesOf(result), { empty: "", "sub/a.csv": "a,b" }, tools.where);
      const next = await tools[kind].run(toolCall(NOTHING[kind]));
      assert.equal(next.files, undefined);
      assert.deepEqual(
        kind === "python" ? next.data : (next.data as { text: string }).text,
        kind === "python" ? [] : "",
      );
    }
  });

  test(`${kind}: a task that fails leaves its files too`, async () => {
    for (const tools of all) {
      const result = await tools[kind].run(toolCall(FAIL[kind]));
      assert.equal(result.status, "error");
      assert.deepEqual(await filesOf(result), { log: "x" }, tools.where);
    }
  });

  test(`${kind}: a task that is stopped leaves none`, async () => {
    for (const tools of all) {
      const stopping = new AbortController();
      const log = (line: string) => line === "begun" && stopping.abort(new FlowError("CANCELLED", "stop"));
      const result = await tools[kind].run(toolCall(HANG[kind], { signal: stopping.signal, log }));
      assert.deepEqual([result.status, result.files], ["error", undefined], tools.where);
    }
  });

  test(`${kind}: links to files of the machine are not followed from a sandbox`, async () => {
    const secret = ownFolder("secret-test");
    symlinkSync("/etc/hostname", join(secret, "x"));
    for (const tools of all) {
      const make =
        kind === "python"
          ? {
              code: `import os\nos.symlink(${JSON.stringify(secret)}, os.environ['FLOW_ARTIFACTS'] + '/dir')\nos.symlink('/etc/passwd', os.environ['FLOW_ARTIFACTS'] + '/passwd')`,
            }
          : { cmds: `ln -s ${secret} "$FLOW_ARTIFACTS/dir"; ln -s /etc/passwd "$FLOW_ARTIFACTS/passwd"` };
      const call = toolCall(make);
      const result = await tools[kind].run(call);
      assert.deepEqual(await filesOf(result), {}, tools.where);
      assert.deepEqual(call.lines.length, 2);
    }
    assert.deepEqual(readdirSync(secret), ["x"]);
  });
}

test("an interpreter that its code takes down leaves the files of the task", async () => {
  for (const { python, where } of all) {
    const code = "import os\nopen(os.environ['FLOW_ARTIFACTS'] + '/last', 'w').write('words')\nos._exit(7)";
    const result = await python.run(toolCall({ code }));
    assert.equal(result.error?.code, "EXIT_7");
    assert.deepEqual(await filesOf(result), { last: "words" }, where);
  }
});

test("the variable is flow's own: `env` of a shell task does not change it, and `os.environ` is put back", async () => {
  for (const { python, shell } of all) {
    const result = await shell.run(toolCall({ cmds: 'echo x > "$FLOW_ARTIFACTS/a"', env: { FLOW_ARTIFACTS: "/etc" } }));
    assert.deepEqual(Object.keys(await filesOf(result)), ["a"]);
    await python.run(toolCall({ code: "import os\nos.environ['FLOW_ARTIFACTS'] = '/etc'" }));
    const { data } = await python.run(toolCall({ code: "import os\nresult = os.environ['FLOW_ARTIFACTS']" }));
    assert.notEqual(data, "/etc");
  }
});

test("tools that share a sandbox have folders of their own, also at the same moment", async () => {
  const [first] = all;
  const { python, shell } = first ?? assert.fail();
  const results = await Promise.all([
    python.run(toolCall(WRITE.python)),
    ...["a", "b", "c"].map((name) =>
      shell.run(toolCall({ cmds: `touch "$FLOW_ARTIFACTS/${name}"; ls "$FLOW_ARTIFACTS"` })),
    ),
  ]);
  const names = await Promise.all(results.map(async (result) => Object.keys(await filesOf(result))));
  assert.deepEqual(names, [["empty", "sub/a.csv"], ["a"], ["b"], ["c"]]);
});

test("nothing is left of any of these tasks but the folders of interpreters that wait for the next", () => {
  const { root } = sandbox.files ?? { root: "" };
  assert.ok(readdirSync(root).length <= 1, readdirSync(root).join(", "));
});

test("what a killed process has left is removed by the next, and what another one has is not", () => {
  const first = ownFolder("kill-test");
  // No process has this id: it is beyond the largest.
  const dead = first.replace(/-\d+-([^-]+)$/, "-99999999-$1");
  const init = first.replace(/-\d+-([^-]+)$/, "-1-$1");
  mkdirSync(dead);
  mkdirSync(init);
  const second = ownFolder("kill-test");
  assert.throws(() => readdirSync(dead), { code: "ENOENT" });
  for (const folder of [init, first, second]) assert.deepEqual(readdirSync(folder), []);
  for (const folder of [init, first, second]) rmSync(folder, { recursive: true });
});
