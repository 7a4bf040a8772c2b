import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { flow, folderWith } from "../support/service/cli-process.ts";

// A short password stands by chance in names and values that have nothing to do with it: they stay what they are.

const PLAYBOOK = `apiVersion: flow/v2
kind: Playbook
metadata: { name: chance, path: chance }
keychain:
  - { name: db, kind: static, map: { user: demo, password: demo } }
workflow:
  - step: count
    tool:
      kind: python
      input: { password: "{{ keychain.db.password }}" }
      code: |
        print("logging in as", password)
        result = {"demographics_done": True, "table": "demographics", "tables": ["demo_1", "demo"]}
    set: { done: "{{ count.demographics_done }}", table: "{{ count.table }}" }
    next:
      arcs:
        - { step: ready, when: "{{ count.demographics_done and count.table == 'demographics' }}", args: { from: "{{ count }}" } }
        - { step: lost }
  - step: ready
    tool:
      kind: python
      input: { from_count: "{{ from }}", done: "{{ done }}", table: "{{ table }}" }
      code: |
        result = {"same": from_count["tables"] + [table], "done": done, "keys": sorted(from_count)}
  - step: lost
    tool: { kind: python, code: "raise Exception('the wrong branch')" }
`;

test("a password of four letters changes no column, no branch and no assignment, and is hidden where people look", async (t) => {
  const folder = await folderWith(t, { "chance.yaml": PLAYBOOK });
  const { code, stdout, stderr } = await flow(
    folder,
    ["run", "chance.yaml", "--json", "--verbose", "--record", "log"],
    {},
  );
  assert.equal(code, 0, stderr + stdout);
  const { result } = JSON.parse(stdout) as { result: Record<string, unknown> };
  assert.deepEqual([result["same"], result["done"]], [["demo_1", "demo", "demographics"], true]);
  assert.deepEqual(result["keys"], ["demographics_done", "table", "tables"]);
  const record = await readFile(join(folder, "log"), "utf8");
  assert.match(record, /logging in as \[secret\]/);
  assert.doesNotMatch(record, /logging in as demo/);
});
