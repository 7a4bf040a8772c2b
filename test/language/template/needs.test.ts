import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { mergeNeeds, type Needs } from "../../../src/language/template/needs.ts";
import { compileCondition, compileTemplate } from "../../../src/language/template/template.ts";
import type { Json } from "../../../src/schema/words/json.ts";

/** Needs as text: names, then the fields of the large roots. */
function shown({ names, members }: Needs): string {
  const fields = [...members].map(([root, all]) => `${root}:${all === "all" ? "*" : [...all].sort().join("+")}`);
  return [[...names].sort().join(" "), ...fields.sort()].join(" | ");
}

describe("the needs of a template", () => {
  const cases: [Json, string][] = [
    ["plain", ""],
    ["{{ a }} {{ b.c }}", "a b"],
    ["{{ a[b] }}", "a b"],
    ["{{ workload.x.y }} {{ workload['z'] }}", "workload | workload:x+z"],
    ["{{ ctx.get('x', y) }}", "ctx y | ctx:x"],
    ["{{ ctx.get(y) }}", "ctx y | ctx:*"],
    ["{{ ctx | tojson }}", "ctx | ctx:*"],
    ["{{ ctx.items() }}", "ctx | ctx:*"],
    ["{{ steps[x].data }}", "steps x | steps:*"],
    ["{{ steps.a.data }} {{ steps }}", "steps | steps:*"],
    ["{{ keychain.api.token }}", "keychain | keychain:api"],
    ["{{ env.HOME ~ env['USER'] }}", "env | env:HOME+USER"],
    ["{{ {'k': vars.a, vars.b: 1} }}", "vars | vars:a+b"],
    ["{{ x | default(iter.item) | map(attribute='workload') }}", "iter x | iter:item"],
    ["{{ a if b else c }}", "a b c"],
    ["{{ a[b:c:d] }}", "a b c d"],
    ["{{ a is divisibleby(b) and c not in d }}", "a b c d"],
    ["{{ range(n) }}{{ now() }}{{ token(t, s=u) }}", "n t u"],
    ["{% for x in xs if x.ok and y %}{{ x }}{{ loop.index }}{{ z }}{% else %}{{ x }}{% endfor %}", "x xs y z"],
    ["{% for workload in list %}{{ workload.x }}{% endfor %}", "list"],
    ["{% set a = b %}{{ a }}", "b"],
    ["{{ a }}{% set a = 1 %}", "a"],
    ["{% set a = a %}", "a"],
    ["{% if c %}{% set a = 1 %}{{ a }}{% endif %}{{ a }}", "a c"],
    ["{% set a %}{{ b }}{% endset %}{{ a }}", "b"],
    ["{% if a %}{{ b }}{% elif c %}{{ d }}{% else %}{{ e }}{% endif %}", "a b c d e"],
    [{ k: ["{{ a }}", { "{{ no }}": "{{ ctx.b }}" }] }, "a ctx | ctx:b"],
    ["{{ .Go }} {{ a }}", "a"],
  ];
  for (const [source, expected] of cases) {
    it(`${JSON.stringify(source)}: ${expected || "nothing"}`, () => {
      assert.equal(shown(compileTemplate(source).needs), expected);
    });
  }

  it("are known of conditions too, with and without braces", () => {
    assert.equal(shown(compileCondition("ctx.a == b").needs), "b ctx | ctx:a");
    assert.equal(shown(compileCondition("{{ ctx.a == b }}").needs), "b ctx | ctx:a");
    assert.equal(shown(compileCondition(["{{ c }}"]).needs), "c");
  });

  it("merge: everything swallows single fields", () => {
    const needs = ["{{ ctx.a }}", "{{ ctx.b }}", "{{ steps.s }}"].map((text) => compileTemplate(text).needs);
    assert.equal(shown(mergeNeeds(...needs)), "ctx steps | ctx:a+b | steps:s");
    assert.equal(shown(mergeNeeds(...needs, compileTemplate("{{ ctx }}").needs)), "ctx steps | ctx:* | steps:s");
    assert.equal(shown(mergeNeeds(compileTemplate("{{ ctx }}").needs, ...needs)), "ctx steps | ctx:* | steps:s");
    assert.deepEqual(mergeNeeds(), { names: new Set(), members: new Map() });
  });
});
