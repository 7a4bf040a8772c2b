import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { childCalls } from "../../../src/language/load/child-calls.ts";
import { HEAD, loadValid } from "../load-support.ts";

const CALL = "{ kind: playbook, path: area/child }";

/** `path` of every literal call, with `!` where the run comes to it for certain. */
function calls(steps: string): string[] {
  return childCalls(loadValid(`${HEAD}workflow:\n${steps}`)).map(
    ({ path, isCertain }) => `${path}${isCertain ? "!" : ""}`,
  );
}

describe("calls of other playbooks that are known before the run", () => {
  for (const [name, steps, expected] of [
    ["a call in the first step is certain", `  - { step: a, tool: ${CALL} }\n`, ["area/child!"]],
    [
      "so is one behind arcs without a condition",
      `  - { step: a, tool: { kind: noop }, next: { arcs: [{ step: b }] } }\n  - { step: b, tool: ${CALL} }\n`,
      ["area/child!"],
    ],
    ["and one in a loop", `  - { step: a, loop: { in: [1] }, tool: ${CALL} }\n`, ["area/child!"]],
    [
      "an arc with a condition may lead elsewhere",
      `  - { step: a, tool: { kind: noop }, next: { arcs: [{ step: b, when: x }] } }\n  - { step: b, tool: ${CALL} }\n`,
      ["area/child"],
    ],
    ["a step with a guard may be skipped", `  - { step: a, when: x, tool: ${CALL} }\n`, ["area/child"]],
    [
      "a rule may handle the failure",
      `  - { step: a, tool: { kind: playbook, path: area/child, spec: { policy: { rules: [{ else: { do: continue } }] } } } }\n`,
      ["area/child"],
    ],
    [
      "an arc may handle it",
      `  - { step: a, tool: ${CALL}, next: { arcs: [{ step: a, when: "{{ event.name == 'step.failed' }}" }] } }\n`,
      ["area/child"],
    ],
    [
      "a loop may tolerate it",
      `  - { step: a, loop: { in: [1], spec: { on_error: { tolerate: 1 } } }, tool: ${CALL} }\n`,
      ["area/child"],
    ],
    [
      "a rule of an earlier task may end the pipeline",
      `  - { step: a, tool: [{ kind: noop, spec: { policy: { rules: [{ else: { do: break } }] } } }, ${CALL}] }\n`,
      ["area/child"],
    ],
    [
      "templates and ids are left to the run",
      `  - { step: a, tool: [{ kind: playbook, path: "{{ x }}/y" }, { kind: playbook, catalog_id: 1 }] }\n`,
      [],
    ],
  ] as const) {
    it(name, () => assert.deepEqual(calls(steps), expected));
  }
});
