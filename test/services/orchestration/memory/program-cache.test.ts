import assert from "node:assert/strict";
import { after, test } from "node:test";
import { compileProgram, type Program } from "../../../../src/engine/program/program.ts";
import { loadRegistered } from "../../../../src/language/load/load.ts";
import { FlowError } from "../../../../src/schema/words/errors.ts";
import { createDocuments } from "../../../../src/services/catalog/documents.ts";
import { createProgramCache } from "../../../../src/services/orchestration/memory/program-cache.ts";

const documents = createDocuments();
after(() => documents.close());

const TEXT = "apiVersion: flow/v2\nkind: Playbook\nmetadata: { name: p, path: p }\nworkflow: [{ step: a }]\n";

function setup(contents: Record<string, string>) {
  const reads: string[] = [];
  const programs = createProgramCache(async (id) => {
    reads.push(id);
    const content = contents[id];
    return content === undefined ? undefined : { path: "p", version: 1, content };
  }, documents);
  return { programs, reads, contents };
}

test("a playbook is read and compiled once, however many callers request it", async () => {
  const { programs, reads } = setup({ 1: TEXT });
  const [one, two] = await Promise.all([programs("1"), programs("1")]);
  assert.equal(one, two);
  assert.equal(one.file, "p@1");
  assert.deepEqual([...one.program.steps.keys()], ["a"]);
  assert.deepEqual(reads, ["1"]);
});

const STEPS = 2_000;
/** Too large to be read at once. */
const LARGE = `apiVersion: flow/v2
kind: Playbook
metadata: { name: p, path: p }
workload: { limit: 3 }
workflow:
${Array.from({ length: STEPS }, (_, index) => `- {step: s${index}, tool: {kind: noop, a: "{{ workload.limit }}"}, next: [{step: s${(index + 1) % STEPS}, when: "workload.limit > 1"}]}\n`).join("")}`;

test("while a large playbook is compiled, other work proceeds; the program equals that of an uninterrupted compilation", async () => {
  const { playbook, diagnostics } = loadRegistered(LARGE, "p@1");
  assert.ok(playbook);
  // Read already: no other thread is waited for.
  const programs = createProgramCache(async () => ({ path: "p", version: 1, content: LARGE }), {
    registered: async () => ({ playbook, diagnostics }),
  });
  let turns = 0;
  const count = () => {
    turns += 1;
    counting = setImmediate(count);
  };
  let counting = setImmediate(count);
  const { program } = await programs("1");
  clearImmediate(counting);
  assert.ok(turns >= 2, `${turns} turns`);
  const expected = compileProgram(playbook);
  const shown = ({ steps, graph, workload }: Program) => ({
    steps: JSON.stringify([...steps]),
    targets: playbook.steps.map((_, index) => graph.targets(index)),
    back: [graph.isBack(STEPS - 1, 0), graph.isBack(0, 1)],
    reaches: [graph.reaches(0, STEPS - 1), graph.reaches(STEPS - 1, 0)],
    workload: JSON.stringify(workload),
  });
  assert.deepEqual(shown(program), shown(expected));
  assert.deepEqual(shown(program).back, [true, false]);
  assert.deepEqual(shown(program).reaches, [true, false]);
});

test("a large playbook that could not be read or is invalid gives an error, and is read again the next time", async () => {
  const ending = createDocuments({ file: new URL("../../support/document-thread-that-ends.js", import.meta.url) });
  const contents: Record<string, string> = {
    1: `${LARGE}# ends: by a fault\n`,
    2: `${LARGE}- {step: s0}\n`,
  };
  const programs = createProgramCache(async (id) => ({ path: "p", version: 1, content: contents[id] ?? "" }), ending);
  await assert.rejects(programs("1"), { code: "UNAVAILABLE" });
  await assert.rejects(programs("2"), { code: "INVALID_PLAYBOOK", message: /p@1 is no playbook/ });
  contents["1"] = LARGE;
  assert.equal((await programs("1")).program.steps.size, STEPS);
  await ending.close();
});

test("an entry that is missing or not a playbook gives an error, and is looked up again", async () => {
  const { programs, contents } = setup({ 2: "kind: Nothing" });
  const code = (expected: string) => (error: unknown) => error instanceof FlowError && error.code === expected;
  await assert.rejects(programs("1"), code("NOT_FOUND"));
  await assert.rejects(programs("2"), code("INVALID_PLAYBOOK"));
  contents["1"] = TEXT;
  assert.equal((await programs("1")).path, "p");
});

test("the least recently used program is evicted when there are too many", async () => {
  const all = Object.fromEntries(Array.from({ length: 501 }, (_, id) => [String(id), TEXT]));
  const { programs, reads } = setup(all);
  for (let id = 0; id < 500; id += 1) await programs(String(id));
  await programs("0");
  await programs("500");
  reads.length = 0;
  await programs("0");
  assert.deepEqual(reads, []);
  await programs("1");
  assert.deepEqual(reads, ["1"]);
});
