import assert from "node:assert/strict";
import { test } from "node:test";
import { loadPlaybook } from "../../../src/language/load/load.ts";
import { HEAD } from "../load-support.ts";

// `spec.labels` of a step: which workers may run it.

const load = (step: string) => loadPlaybook(`${HEAD}workflow:\n  - step: one\n${step}`, "labels.yaml");

test("labels are texts, however they were written, and the step's own", () => {
  const flat = "    tool: { kind: noop }\n    spec: { labels: { gpu: yes, count: 2, fast: true } }\n";
  const { playbook, diagnostics } = load(flat);
  assert.deepEqual(diagnostics, []);
  assert.deepEqual(playbook?.steps[0]?.labels, { gpu: "yes", count: "2", fast: "true" });
  assert.deepEqual(playbook?.steps[0]?.tasks[0]?.config, {});
});

test("a step without labels has none, and a list of labels is refused", () => {
  assert.equal(load("    tool: { kind: noop }\n    spec: { labels: {} }\n").playbook?.steps[0]?.labels, undefined);
  const { diagnostics } = load("    tool: { kind: noop }\n    spec: { labels: [gpu] }\n");
  assert.match(JSON.stringify(diagnostics), /labels/);
});
