import assert from "node:assert/strict";
import { test } from "node:test";
import { setup } from "./support/bench.ts";
import { bad, ok } from "./support/scripted-tools.ts";

// Language document, section 4.9: which names a template may read in each place, and which of two wins.

test("a name is looked up as reserved, input, iteration name, label, task variable, variable, step, workload", async (t) => {
  const { completed } = setup(t);
  // `x` has a value in every layer; the layers are taken away one by one, from the top.
  const steps = (layers: { input?: string; iterator?: string; label?: string; local?: string; variable?: string }) => `
workload: { x: workload }
workflow:
  - step: first
    tool: { kind: noop }
    ${layers.variable ?? ""}
    next: [{ step: probe }]
  - step: probe
    loop: { in: [iteration], iterator: ${layers.iterator ?? "item"} }
    tool:
      - ${layers.label ?? "a"}: { kind: noop, result: { from: label }, set: { ${layers.local ?? "y: 1"} } }
      - b: { kind: noop, ${layers.input ?? ""} result: { x: "{{ x }}" } }
`;
  const variable = "set: { x: variable }";
  const local = "x: local";
  const probe = async (layers: Parameters<typeof steps>[0]) => {
    const ran = await completed(steps(layers));
    const { results } = (await ran.step("probe")) as { results: { x: unknown }[] };
    return results[0]?.x;
  };
  const input = "input: { x: input },";
  assert.equal(await probe({ input, iterator: "x", label: "x", local, variable }), "input");
  assert.equal(await probe({ iterator: "x", label: "x", local, variable }), "iteration");
  assert.equal(await probe({ local, variable }), "local");
  assert.deepEqual(await probe({ label: "x", variable }), { from: "label" });
  assert.equal(await probe({ variable }), "variable");
  assert.equal(await probe({}), "workload");
});
