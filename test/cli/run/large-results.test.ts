import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { folderWith, playbookText } from "../../support/service/cli-process.ts";
import { command, runFlow } from "../in-process.ts";

/* Records of runs whose results are stored apart (over 64 KiB): `flow replay`, `flow run --from --using`, `using` of `flow test`. */

const PLAYBOOK = playbookText(
  "large",
  `  - step: make
    tool: {kind: shell, cmd: "echo make >> ran; head -c {{ bytes }} /dev/zero | tr '\\\\0' x"}
    set: {ctx.long: "{{ make.text | length }}"}
    next: {arcs: [{step: each, when: "{{ make.text | length > 5 }}"}, {step: never}]}
  - step: each
    loop: {in: 20, iterator: i, spec: {mode: parallel}}
    tool: {kind: shell, cmd: "echo each >> ran; head -c 9000 /dev/zero | tr '\\\\0' {{ i % 10 }}"}
    next: {arcs: [{step: publish, when: "{{ each.results[13].text | length == 9000 }}"}]}
  - {step: never, tool: {kind: noop}}
  - step: publish
    tool: {kind: shell, cmd: "echo publish >> ran; echo {{ make.text | length }} {{ long }} {{ each.results[13].text[0] }}"}
`,
  "workload: {bytes: 200000}\n",
);

/** A folder with the playbook and a record of its run. */
async function recorded(t: TestContext, playbook = PLAYBOOK): Promise<string> {
  const folder = await folderWith(t, { "large.yaml": playbook, ran: "" });
  const run = await runFlow(folder, ["run", "large.yaml", "--record", "run.jsonl", "--quiet"]);
  assert.equal(run.code, 0, run.stderr);
  writeFileSync(join(folder, "ran"), "");
  return folder;
}

const ranIn = (folder: string) => readFileSync(join(folder, "ran"), "utf8").trim();
const linesIn = (folder: string) =>
  readFileSync(join(folder, "run.jsonl"), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

test("a record has the results that are stored apart, with length and checksum", async (t) => {
  const lines = linesIn(await recorded(t));
  const payloads = lines.filter(({ ref }) => ref !== undefined);
  const [made] = payloads.filter(({ ref }) => ref.includes("/step/make/"));
  assert.equal(made.payload.text.length, 200_000);
  assert.equal(made.bytes, JSON.stringify(made.payload).length);
  assert.match(made.sha256, /^[0-9a-f]{64}$/);
  assert.ok(payloads.some(({ ref }) => ref.includes("/step/each/")));
});

test("a run with large results is decided again as it was, and a changed arc is found", async (t) => {
  const folder = await recorded(t);
  const same = await command(folder, ["replay", "run.jsonl", "--playbook", "large.yaml"]);
  assert.equal(same.code, 0, same.stdout + same.stderr);
  writeFileSync(join(folder, "new.yaml"), PLAYBOOK.replace("length > 5", "length > 200000"));
  const other = await command(folder, ["replay", "run.jsonl", "--playbook", "new.yaml"]);
  assert.equal(other.code, 1, other.stdout + other.stderr);
  assert.match(other.stdout, /step\.completed of step 'make'/);
});

test("a late step is run with the large results of the record", async (t) => {
  const folder = await recorded(t);
  const run = await runFlow(folder, ["run", "large.yaml", "--from", "publish", "--using", "run.jsonl", "--json"]);
  assert.equal(run.code, 0, run.stderr);
  assert.equal(ranIn(folder), "publish");
  assert.equal(JSON.parse(run.stdout).result.text, "200000 200000 3");
});

test("tests take the large results of the record as their mocks", async (t) => {
  const folder = await recorded(t);
  const steps = "[make, each, publish]";
  writeFileSync(
    join(folder, "large.test.yaml"),
    `tests: [{name: as then, using: run.jsonl, expect: {steps: ${steps}, calls: {each: 20}}}]`,
  );
  const { code, stdout, stderr } = await command(folder, ["test", "large.test.yaml"]);
  assert.equal(code, 0, stdout + stderr);
  assert.equal(ranIn(folder), "");
});

test("a result that is too long for a record is left out: what needs it says so", async (t) => {
  const steps = `  - step: make
    tool: {kind: shell, cmd: "echo make >> ran; head -c 16777216 /dev/zero | tr '\\\\0' x"}
    next: {arcs: [{step: publish, when: "{{ make.text[0] == 'x' }}"}]}
  - step: publish
    tool: {kind: shell, cmd: "echo {{ make.text[0] }} >> ran"}
`;
  const folder = await recorded(t, playbookText("large", steps));
  const [made] = linesIn(folder).filter(({ ref }) => ref?.includes("/step/make/"));
  assert.ok(made.bytes > 16_777_216);
  assert.equal(made.payload, undefined);
  const same = await command(folder, ["replay", "run.jsonl", "--playbook", "large.yaml"]);
  assert.equal(same.code, 2);
  assert.match(same.stderr, /run\.jsonl leaves out the result noetl:\S+ that a decision needs: it has \d{8} bytes/);
  const run = await runFlow(folder, ["run", "large.yaml", "--from", "publish", "--using", "run.jsonl"]);
  assert.equal(run.code, 1);
  assert.match(run.stderr, /leaves out the result.*it has \d{8} bytes.*--from make/s);
  assert.equal(ranIn(folder), "");
});
