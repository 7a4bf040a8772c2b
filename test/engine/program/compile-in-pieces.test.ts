import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { compileInPieces, compileProgram } from "../../../src/engine/program/program.ts";
import { loadRegistered } from "../../../src/language/load/load.ts";
import { slowness } from "../../support/machine-speed.ts";
import { threadMs } from "../../support/thread-time.ts";

/* A server compiles documents on the thread that answers calls: in pieces, with other calls in between. Each is to be short. */

/** Longest piece, ms of processor time on a machine of usual speed. The longest was an expression of 256 KiB with 80 to 120 ms. */
const PIECE_MS = 200 * slowness();

const HEAD = "apiVersion: flow/v2\nkind: Playbook\nmetadata: {name: hostile, path: hostile}\n";
const many = (count: number, what: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => what(index)).join("");
const value = (text: string) => `${HEAD}workflow: [{step: a, tool: {kind: noop, value: ${JSON.stringify(text)}}}]\n`;
const step = (more: string) => `${HEAD}workflow:\n- {step: a, tool: {kind: noop}, ${more}}\n`;
const rules = (count: number, rule: string) => many(count, () => `${rule},`);

const HOSTILE: Readonly<Record<string, string>> = {
  "a text of many expressions": value("{{a}}".repeat(120_000)),
  "a text of many filters that do not exist": value(`x${"{{a|uper}}".repeat(50_000)}`),
  "a text of many blocks": value("{% if a %}{% endif %}".repeat(45_000)),
  "a text of many assignments": value("{% set a = 1 %}".repeat(60_000)),
  "blocks that nothing ends": value("{% if 1 %}".repeat(100_000)),
  comments: value("{# a #}".repeat(140_000)),
  "one long expression": value(`{{ [${"1,".repeat(130_000)}1] }}`),
  "many assignments of a step": step(`set: {${many(25_000, (index) => `ctx.v${index}: '{{ 1 }}',`)}}`),
  "many arcs of a step": step(`next: {arcs: [${rules(20_000, "{step: a, when: '{{ 1 }}'}")}]}`),
  "many admissions of a step": step(
    `spec: {policy: {admit: {rules: [${rules(20_000, "{when: '{{ a }}', then: {allow: true}}")}]}}}`,
  ),
  "many rules of a task": `${HEAD}workflow: [{step: a, tool: {kind: noop, spec: {policy: {rules: [${rules(20_000, "{when: '{{ a }}', then: {do: continue}}")}]}}}}]\n`,
  "many texts of a list": `${HEAD}workload: {a: [${many(100_000, () => "'{{a}}',")}]}\nworkflow: [{step: a, tool: {kind: noop}}]\n`,
  "a task under many names": `${HEAD}workflow:\n- step: start\n  tool: &all {kind: noop, value: "${"{{a}}".repeat(2_000)}"}\n${many(100, (index) => `- {step: s${index}, tool: *all}\n`)}`,
  "many tasks that call one of the workbook": `${HEAD}workbook: [{name: shared, tool: {kind: noop, value: "${"{{a}}".repeat(50_000)}"}}]\nworkflow:\n- step: a\n  tool:\n${many(800, (index) => `  - t${index}: {kind: workbook, task: shared}\n`)}`,
};

for (const [what, text] of Object.entries(HOSTILE)) {
  test(`${what}: compiled in short pieces`, async () => {
    // The test before it is reported then: the runner ends a process that is silent for a minute.
    await setImmediate();
    const { playbook, diagnostics } = loadRegistered(text, "hostile");
    assert.ok(playbook !== undefined, JSON.stringify(diagnostics.slice(0, 2)));
    const longest = () => {
      const work = compileInPieces(playbook);
      let ms = 0;
      for (let isDone = false; !isDone; ) {
        const began = threadMs();
        // Some hundred pieces at a time, as one by one takes longer to measure than to do.
        for (let pieces = 0; pieces < 100 && !isDone; pieces += 1) isDone = work.next().done === true;
        ms = Math.max(ms, threadMs() - began);
      }
      return ms;
    };
    // What happens to come between does not do so twice.
    const first = longest();
    const best = first < PIECE_MS ? first : Math.min(first, longest());
    assert.ok(best < PIECE_MS, `${Math.round(best)} ms without a pause`);
  });
}

test("what a step needs of the workbook is known once, for whichever of its tasks calls it", () => {
  const { playbook } = loadRegistered(
    `${HEAD}workbook: [{name: shared, tool: {kind: noop, value: "{{ workload.only_there }}"}}]\nworkflow:\n- {step: a, tool: {kind: workbook, task: shared}, next: {arcs: [{step: b}]}}\n- {step: b, tool: {kind: noop}}\n`,
    "workbook",
  );
  assert.ok(playbook !== undefined);
  const { steps } = compileProgram(playbook);
  const fields = (name: string) => steps.get(name)?.needs.members.get("workload");
  assert.deepEqual([fields("a"), fields("b")], [new Set(["only_there"]), undefined]);
});
