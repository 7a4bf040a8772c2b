import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { EXAMPLES, flow, ROOT } from "./run-flow.ts";

/* What holds for every example. */

const files = readdirSync(join(ROOT, EXAMPLES), { recursive: true, encoding: "utf8" }).sort();
const tests = files.filter((name) => name.endsWith(".test.yaml"));
const playbooks = files.filter((name) => name.endsWith(".yaml") && !name.endsWith(".test.yaml"));

test("there are at least eight examples, each with a test file beside it", () => {
  assert.ok(playbooks.filter((name) => !name.startsWith("parts/")).length >= 8, playbooks.join(", "));
  assert.deepEqual(
    tests,
    playbooks.map((name) => name.replace(/\.yaml$/, ".test.yaml")),
  );
});

test("flow validate has nothing to say about any of them, warnings included", async () => {
  const exit = await flow(["validate", "--strict", "--json", ...playbooks.map((name) => `${EXAMPLES}/${name}`)]);
  const { errors, warnings } = JSON.parse(exit.stdout);
  assert.deepEqual([errors, warnings], [[], []]);
  assert.equal(exit.code, 0, exit.stderr);
});

test("flow test passes for all of them", async () => {
  const exit = await flow(["test", EXAMPLES]);
  assert.equal(exit.code, 0, `${exit.stdout}\n${exit.stderr}`);
});

test("the catalog path of each is its place below the playbooks", () => {
  for (const name of playbooks) {
    const path = /^ {2}path: (.*)$/m.exec(readFileSync(join(ROOT, EXAMPLES, name), "utf8"))?.[1];
    assert.equal(path, `examples/${name.replace(/\.yaml$/, "")}`);
  }
});

test("the README mentions each of them", () => {
  const readme = readFileSync(join(ROOT, EXAMPLES, "README.md"), "utf8");
  const untold = playbooks.filter((name) => !name.startsWith("parts/") && !readme.includes(`(${name})`));
  assert.deepEqual(untold, []);
});
