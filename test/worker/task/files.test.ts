import assert from "node:assert/strict";
import { test } from "node:test";
import { FlowError } from "../../../src/schema/words/errors.ts";
import type { FlowEvent } from "../../../src/schema/words/event.ts";
import type { TaskFiles } from "../../../src/schema/words/outcome.ts";
import { placeOfArtifact } from "../../../src/schema/words/result.ts";
import { setup } from "../support/bench.ts";
import { bad, ok } from "../support/scripted-tools.ts";

/* What a worker does with files that a task has left in its folder: stored before the report that names them, and removed whatever happens. */

/** Files of a task, which note that they were removed. */
function left(names: readonly string[], refusal?: FlowError): { files: TaskFiles; removed: () => number } {
  let removed = 0;
  const file = (name: string) => ({
    name,
    contentType: "text/plain",
    content: async () => new Uint8Array(Buffer.from(name)),
  });
  const list = async () => {
    if (refusal !== undefined) throw refusal;
    return names.map(file);
  };
  const remove = async () => {
    removed += 1;
  };
  return { files: { list, remove }, removed: () => removed };
}

/** The names of files in the reports of task runs, one list for each. */
function reported(events: readonly FlowEvent[]): (string | undefined)[][] {
  return events.flatMap((event) =>
    event.type === "task.done" ? [(event.files ?? []).map((ref) => placeOfArtifact(ref)?.name)] : [],
  );
}

const ONE = "workflow:\n  - { step: work, tool: { kind: shell, cmd: x } }\n";

test("files of a task are named by its report, with those of folders, and its result stays its own", async (t) => {
  const { files, removed } = left(["a.csv", "sub/b.csv"]);
  const ran = await setup(t, { tools: { work: [ok({ n: 1 }, { files })] } }).completed(ONE);
  assert.deepEqual([reported(ran.events), removed()], [[["a.csv", "sub/b.csv"]], 1]);
  assert.deepEqual(await ran.result(), { n: 1 });
});

test("files of a task that fails are kept too; of one that is run again only those of its last run", async (t) => {
  const [first, last] = [left(["first"]), left(["last"])];
  const answers = [
    bad("connection", "REFUSED", { files: first.files }),
    bad("connection", "REFUSED", { files: last.files }),
  ];
  const ran = await setup(t, { tools: { work: answers } }).run(`
workflow:
  - step: work
    tool: { kind: shell, cmd: x, spec: { policy: { rules: [{ when: "output.status == 'error'", then: { do: retry, attempts: 2 } }] } } }
`);
  assert.equal(ran.state.status, "FAILED");
  assert.deepEqual([reported(ran.events), first.removed(), last.removed()], [[[], ["last"]], 1, 1]);
});

test("files of a task whose failure a rule goes on from are kept, and those of each iteration", async (t) => {
  const all = [left(["0"]), left(["1"])];
  const ran = await setup(t, {
    tools: { work: all.map(({ files }) => bad("client_error", "EXIT_1", { files })) },
  }).completed(`
workflow:
  - step: work
    loop: { in: 2, spec: { mode: sequential } }
    tool: { kind: shell, cmd: x, spec: { policy: { rules: [{ when: "output.status == 'error'", then: { do: continue } }] } } }
`);
  assert.deepEqual(reported(ran.events), [["0"], ["1"]]);
  assert.deepEqual(
    all.map(({ removed }) => removed()),
    [1, 1],
  );
});

test("what may not be stored fails a task that has succeeded, and is only said in the log of one that has failed", async (t) => {
  const refusal = new FlowError("INVALID_INPUT", "it left more than 100 files");
  const good = left([], refusal);
  const failed = await setup(t, { tools: { work: [ok(1, { files: good.files })] } }).run(ONE);
  const { kind, code, message } = failed.state.error ?? {};
  assert.deepEqual([kind, code, message], ["configuration", "INVALID_INPUT", "it left more than 100 files"]);
  assert.deepEqual([reported(failed.events), good.removed()], [[[]], 1]);
  const lost = left([], refusal);
  const ran = await setup(t, { tools: { work: [bad("client_error", "EXIT_1", { files: lost.files })] } }).run(ONE);
  assert.equal(ran.state.error?.code, "EXIT_1");
  const done = ran.events.find((event) => event.type === "task.done");
  assert.deepEqual([done?.log?.lines, lost.removed()], [["it left more than 100 files"], 1]);
});

test("a task with a sensitive result stores no files: nothing in them would be sealed", async (t) => {
  const { files, removed } = left(["a"]);
  const ran = await setup(t, { tools: { work: [ok(1, { files })] } }).run(
    "workflow:\n  - { step: work, tool: { kind: shell, cmd: x, spec: { result: { sensitive: true } } } }\n",
  );
  assert.match(ran.state.error?.message ?? "", /its result is sensitive, and a file is not sealed/);
  assert.deepEqual([reported(ran.events), removed()], [[[]], 1]);
});
