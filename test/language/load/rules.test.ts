import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { DIAGNOSTIC_RULES } from "../../../src/language/document/source/codes.ts";
import { loadPlaybook, loadRegistered } from "../../../src/language/load/load.ts";
import { formatDiagnostic } from "../../../src/schema/words/diagnostic.ts";
import { RULE_CASES } from "../load-rules-cases.ts";
import { HEAD, summary } from "../load-support.ts";

describe("rules of the loader", () => {
  for (const { code, name, text, found, hint } of RULE_CASES) {
    it(`${code}: ${name}`, () => {
      const { playbook, diagnostics } = loadPlaybook(text, "test.yaml");
      assert.deepEqual(summary(diagnostics), found, diagnostics.map(formatDiagnostic).join("\n"));
      const own = diagnostics.find((diagnostic) => diagnostic.code === code);
      assert.equal(own?.severity, DIAGNOSTIC_RULES[code].severity);
      if (hint !== undefined) assert.equal(own?.hint, hint);
      assert.equal(
        playbook !== undefined,
        diagnostics.every((diagnostic) => diagnostic.severity === "warning"),
      );
    });
  }

  it("every rule is shown by a document that breaks it", () => {
    const elsewhere = [
      "too-large",
      "not-utf8",
      "too-deep",
      "too-many-steps",
      "more-errors",
      "more-warnings",
      "unknown-playbook",
    ];
    const shown = new Set<string>([...RULE_CASES.map((rule) => rule.code), ...elsewhere]);
    assert.deepEqual(
      Object.keys(DIAGNOSTIC_RULES).filter((code) => !shown.has(code)),
      [],
    );
  });

  it("every rule has a meaning of one sentence", () => {
    for (const [code, { meaning }] of Object.entries(DIAGNOSTIC_RULES)) assert.match(meaning, /^\S.*\.$/, code);
  });

  it("a diagnostic is one line with file, line, column, code, message and hint", () => {
    const text = `${HEAD}workflow:\n  - step: one\n    tool: { kind: htpp }\n`;
    const [diagnostic] = loadPlaybook(text, "a/b.yaml").diagnostics;
    assert.ok(diagnostic);
    assert.equal(diagnostic.path, "workflow[0].tool.kind");
    const line = "a/b.yaml:6:19  misspelled-kind  nothing runs kind `htpp`  (did you mean `http`?)";
    assert.equal(formatDiagnostic(diagnostic), line);
  });

  it("a name that nothing defines is no problem while nothing is like it", () => {
    const text = `${HEAD}workload: { customer: 1 }\nworkflow: [{ step: one, tool: { kind: noop, auth: "{{ elsewhere }}" } }]\n`;
    assert.deepEqual(loadPlaybook(text, "test.yaml").diagnostics, []);
  });

  it("what was registered before a problem became an error still loads, with a warning", () => {
    const text = `${HEAD}workflow: [{ step: one, when: "{{ a = 1 }}", set: { b: "{{ a | lowerr }}" }, tool: { kind: htpp } }]\n`;
    const { playbook, diagnostics } = loadRegistered(text, "test.yaml");
    assert.equal(playbook?.steps.length, 1);
    assert.deepEqual(
      diagnostics.map(({ severity, code }) => `${severity} ${code}`),
      ["warning template-syntax", "warning unknown-filter", "warning misspelled-kind"],
    );
    assert.equal(loadPlaybook(text, "test.yaml").playbook, undefined);
    assert.equal(loadRegistered(`${HEAD}workflow: []\n`, "test.yaml").playbook, undefined);
  });

  it("what was registered with a call of a system playbook still loads: its other steps keep running", () => {
    const text = `${HEAD}workflow: [{ step: one, tool: { kind: playbook, path: system/a } }]\n`;
    const { playbook, diagnostics } = loadRegistered(text, "test.yaml");
    assert.deepEqual([playbook?.steps.length, diagnostics.map(({ severity }) => severity)], [1, ["warning"]]);
  });

  it("names that a template binds itself are known", () => {
    const text = `${HEAD}workload: { rows: [] }\nworkflow: [{ step: one, tool: { kind: noop, auth: "{% for row in rows %}{{ row }}{% endfor %}" } }]\n`;
    assert.deepEqual(loadPlaybook(text, "test.yaml").diagnostics, []);
  });

  it("a target that is a template may lead anywhere, so that no step counts as unreachable", () => {
    const steps = `  - step: one\n    tool: { kind: noop }\n    next: { arcs: [{ step: "{{ to }}" }] }\n  - step: two\n    tool: { kind: noop }\n`;
    assert.deepEqual(loadPlaybook(`${HEAD}workflow:\n${steps}`, "test.yaml").diagnostics, []);
  });

  it("the final step needs no arc", () => {
    const text = `${HEAD}executor: { spec: { final_step: two } }\nworkflow: [{ step: one, tool: { kind: noop } }, { step: two, tool: { kind: noop } }]\n`;
    assert.deepEqual(loadPlaybook(text, "test.yaml").diagnostics, []);
  });
});
