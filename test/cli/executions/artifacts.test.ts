import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { type Claimed, ONE_STEP, workWith } from "../../support/service/api-work.ts";
import { folderWith, playbookText } from "../../support/service/cli-process.ts";
import { runFlow } from "../in-process.ts";
import { openOperatedApi } from "../operated-api.ts";

/* `flow artifacts` against a server, and where a run here leaves its files. */

const { api, commands } = await openOperatedApi();
const work = workWith(api);

/** Stores a file as a worker does that has claimed the command of a step, and reports it. */
async function stores(id: string, files: Record<string, string>): Promise<void> {
  const [command] = await work.claim("w");
  assert.equal(command?.execution_id, id);
  const { command_id, attempt, step } = command as Claimed;
  const refs: string[] = [];
  for (const [name, content] of Object.entries(files)) {
    const ref = `noetl://execution/${id}/step/${step}/task/${step}/run/${command_id}-0/artifact/${encodeURIComponent(name)}`;
    const query = new URLSearchParams({
      ref,
      worker: "w",
      command_id,
      attempt: String(attempt),
      content_type: "text/csv",
    });
    const { status } = await work.send("PUT", `/api/results?${query}`, content);
    assert.equal(status, 200);
    refs.push(ref);
  }
  await work.finish("w", command as Claimed, refs);
}

test("files are listed, and fetched by name to standard output or to a file", async (t) => {
  const run = await commands(t);
  await work.register("etl/one", ONE_STEP);
  const id = await work.execute("etl/one");
  const none = await run("artifacts", "list", id);
  assert.deepEqual([none.code, none.stdout], [0, ""]);
  assert.match(none.stderr, /has stored no files/);
  await stores(id, { "a.csv": "a,b\n", "b.csv": "c\n" });
  const { code, stdout } = await run("artifacts", "list", id);
  assert.equal(code, 0);
  assert.match(stdout, /^NAME +STEP +TYPE +BYTES +SHA256\na\.csv +start +text\/csv +4 +[0-9a-f]{64}\nb\.csv /);
  const { artifacts } = JSON.parse((await run("artifacts", "list", id, "--json")).stdout);
  assert.deepEqual(
    artifacts.map((file: { name: string; bytes: number }) => [file.name, file.bytes]),
    [
      ["a.csv", 4],
      ["b.csv", 2],
    ],
  );
  assert.equal((await run("artifacts", "get", id, "a.csv")).stdout, "a,b\n");
});

test("a file that is not there, and one of several steps without a step, are errors that say what to do", async (t) => {
  const run = await commands(t);
  await work.register(
    "etl/two",
    "  - { step: one, tool: { kind: noop }, next: [{ step: two }] }\n  - { step: two, tool: { kind: noop } }\n",
  );
  const id = await work.execute("etl/two");
  await stores(id, { "a.csv": "of one" });
  await stores(id, { "a.csv": "of two" });
  const missing = await run("artifacts", "get", id, "b.csv");
  assert.equal(missing.code, 2);
  assert.match(missing.stderr, /has no file 'b\.csv'. 'flow artifacts list \d+' lists them/);
  const several = await run("artifacts", "get", id, "a.csv");
  assert.equal(several.code, 2);
  assert.match(several.stderr, /Several steps have stored a file 'a\.csv': 'one', 'two'. Name one with --step/);
  assert.equal((await run("artifacts", "get", id, "a.csv", "--step", "two")).stdout, "of two");
  assert.equal((await run("artifacts", "list", "4711")).code, 2);
});

test("a run here writes files beside it and says where, whatever a step is called; one with a secret fails", async (t) => {
  const folder = await folderWith(t, {
    "files.yaml": playbookText(
      "files",
      `  - step: ".."
    loop: { in: 2, iterator: n }
    tool: { kind: artifact, action: put, file: "a b.txt", content: "{{ n }}" }
`,
    ),
    "secret.yaml": playbookText(
      "secret",
      `  - step: one
    tool: { kind: artifact, action: put, file: a.txt, content: "key: {{ password }}" }
`,
      "inputs: { password: { type: string, secret: true, required: true } }\n",
    ),
  });
  const { code, stderr } = await runFlow(folder, ["run", "files.yaml"]);
  assert.equal(code, 0);
  const paths = [...stderr.matchAll(/file: (\S+ b\.txt) \(1 bytes\)/g)].map(([, path]) => path ?? "");
  assert.equal(paths.length, 2);
  for (const path of paths) assert.match(path, /^\.flow\/artifacts\/\d+\/__\/([^/]+\/)?a b\.txt$/);
  assert.deepEqual(await Promise.all(paths.map((path) => readFile(join(folder, path), "utf8"))), ["0", "1"]);
  const refused = await runFlow(folder, ["run", "secret.yaml", "--set", "password=hunter22", "--json"]);
  assert.equal(refused.code, 1);
  assert.match(JSON.parse(refused.stdout).error.message, /it holds a secret of this step/);
  assert.doesNotMatch(refused.stdout + refused.stderr, /hunter22|file:/);
});

test("files that code writes to FLOW_ARTIFACTS are written here too, in their folders; those of a step that fails as well", async (t) => {
  const folder = await folderWith(t, {
    "files.yaml": playbookText(
      "files",
      `  - step: one
    tool: { kind: shell, cmds: ['mkdir "$FLOW_ARTIFACTS/sub"', 'echo a > "$FLOW_ARTIFACTS/sub/a.txt"'] }
    next: [{ step: two }]
  - step: two
    tool: { kind: shell, cmd: 'echo log > "$FLOW_ARTIFACTS/two.log"; exit 3' }
`,
    ),
  });
  const { code, stderr } = await runFlow(folder, ["run", "files.yaml"]);
  assert.equal(code, 1);
  const paths = [...stderr.matchAll(/file: (\S+) \(\d bytes\)/g)].map(([, path]) => path ?? "");
  assert.deepEqual(
    paths.map((path) => path.replace(/\/\d+\//, "/id/")),
    [".flow/artifacts/id/one/sub/a.txt", ".flow/artifacts/id/two/two.log"],
  );
  assert.equal(await readFile(join(folder, paths[0] ?? ""), "utf8"), "a\n");
});
