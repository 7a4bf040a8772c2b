import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { createTestDatabase } from "../support/database/postgres.ts";
import { flow, folderWith } from "../support/service/cli-process.ts";
import { assertArrived } from "./arrivals.ts";
import { createCanaries } from "./canary.ts";
import { credentialsWith } from "./credentials.ts";
import { startEchoServer } from "./echo-server.ts";
import { CANARY_NAMES, documentsFor } from "./playbooks.ts";

// The local runtime: nothing that it prints or writes has a secret in it, and secrets arrive where they are meant to.

const database = await createTestDatabase();

async function setUp(t: TestContext) {
  const canaries = createCanaries(CANARY_NAMES);
  const server = await startEchoServer(t, canaries.values["granted"] ?? "");
  const folder = await folderWith(t, {});
  for (const [name, text] of Object.entries(documentsFor(server.origin))) {
    await writeFile(join(folder, `${name}.yaml`), text);
  }
  await writeFile(join(folder, "credentials.json"), JSON.stringify(credentialsWith(canaries, database, server.origin)));
  const run = (...args: string[]) => flow(folder, [...args, "--credentials", "credentials.json"], {});
  return { canaries, server, folder, run };
}

test("a run that passes secrets through everything prints and records none, and they arrive", async (t) => {
  const { canaries, server, folder, run } = await setUp(t);
  const { code, stdout, stderr } = await run("run", "parent.yaml", "--verbose", "--json", "--record", "events.jsonl");
  assert.equal(code, 0, stderr + stdout);
  assertArrived(server, canaries);
  const record = await readFile(join(folder, "events.jsonl"), "utf8");
  for (const [where, text] of Object.entries({ stdout, stderr, record })) {
    assert.deepEqual(canaries.found(text), [], `in ${where}`);
  }
  assert.match(stdout, /"back": "\[secret\]"/);
  assert.doesNotMatch(stdout + stderr, /\[sealed:/);
  assert.match(record, /\[sealed:local:/);
});

test("a run that fails with secrets in its message shows them nowhere", async (t) => {
  const { canaries, folder, run } = await setUp(t);
  const { code, stdout, stderr } = await run("run", "failing.yaml", "--verbose", "--record", "events.jsonl");
  assert.equal(code, 1, stderr);
  assert.match(stderr, /cannot use \{'token': '\[secret\]'\} or \[secret\]/);
  const record = await readFile(join(folder, "events.jsonl"), "utf8");
  for (const [where, text] of Object.entries({ stdout, stderr, record })) {
    assert.deepEqual(canaries.found(text), [], `in ${where}`);
  }
});

test("a plan shows none", async (t) => {
  const { canaries, run } = await setUp(t);
  for (const args of [
    ["plan", "parent.yaml"],
    ["plan", "parent.yaml", "--json"],
  ]) {
    const { code, stdout, stderr } = await run(...args);
    assert.equal(code, 0, stderr);
    assert.deepEqual(canaries.found(stdout + stderr), []);
  }
});
