import assert from "node:assert/strict";
import { test } from "node:test";
import { FlowError } from "../../../../src/schema/words/errors.ts";
import { createPrograms } from "../../../../src/services/orchestration/memory/program-cache.ts";

const TEXT = "apiVersion: flow/v2\nkind: Playbook\nmetadata: { name: p, path: p }\nworkflow: [{ step: a }]\n";

function setup(contents: Record<string, string>) {
  const reads: string[] = [];
  const programs = createPrograms(async (id) => {
    reads.push(id);
    const content = contents[id];
    return content === undefined ? undefined : { path: "p", version: 1, content };
  });
  return { programs, reads, contents };
}

test("a playbook is read and compiled once, however many ask", async () => {
  const { programs, reads } = setup({ 1: TEXT });
  const [one, two] = await Promise.all([programs("1"), programs("1")]);
  assert.equal(one, two);
  assert.equal(one.file, "p@1");
  assert.deepEqual([...one.program.steps.keys()], ["a"]);
  assert.deepEqual(reads, ["1"]);
});

test("an entry that is not there, or is no playbook, is told, and looked for again", async () => {
  const { programs, contents } = setup({ 2: "kind: Nothing" });
  const code = (expected: string) => (error: unknown) => error instanceof FlowError && error.code === expected;
  await assert.rejects(programs("1"), code("NOT_FOUND"));
  await assert.rejects(programs("2"), code("INVALID_PLAYBOOK"));
  contents["1"] = TEXT;
  assert.equal((await programs("1")).path, "p");
});

test("the least recently used one is forgotten when there are too many", async () => {
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
