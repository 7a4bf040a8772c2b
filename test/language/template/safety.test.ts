import assert from "node:assert/strict";
import { performance } from "node:perf_hooks";
import { describe, it } from "node:test";
import fc from "fast-check";
import { compileCondition, compileTemplate } from "../../../src/language/template/template.ts";
import { objectScope } from "../../../src/language/views/scope.ts";
import { FlowError } from "../../../src/schema/words/errors.ts";
import type { Json } from "../../../src/schema/words/json.ts";

const MANY = 10_000;
const NAMES = {
  big: Array.from({ length: MANY }, (_, id) => ({ id, name: `name ${id}` })),
  long: "a".repeat(1_000_000),
  twin: `${"a".repeat(999_999)}a`,
  wide: "ä€😀".repeat(100_000),
  five: 5,
  nested: nested(5_000),
};

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let i = 0; i < depth; i++) value = [value];
  return value;
}

function render(source: Json): Json {
  return compileTemplate(source).render(objectScope(NAMES));
}

/** A second is promised; a busy machine gets five of them before the test calls it a fault. */
function runsOut(source: Json, message: RegExp): void {
  const start = performance.now();
  assert.throws(() => render(source), { code: "TEMPLATE_BUDGET", message });
  const elapsed = performance.now() - start;
  assert.ok(elapsed < 5_000, `took ${Math.round(elapsed)} ms`);
}

describe("the host language", () => {
  const unreachable = [
    "{{ five.constructor }}",
    "{{ 'a'.constructor.constructor }}",
    "{{ [].constructor }}",
    "{{ {}.constructor }}",
    "{{ {}['__proto__'] }}",
    "{{ {}.__proto__.polluted }}",
    "{{ [].__proto__ }}",
    "{{ 'a'['__proto__'] }}",
    "{{ big.map }}",
    "{{ big[0].toString }}",
    "{{ {}.hasOwnProperty }}",
    "{{ ''.length }}",
    "{{ {} | attr('constructor') }}",
    "{{ [{}] | map(attribute='constructor') | first }}",
    "{{ [{}] | map(attribute='__proto__.constructor') | first }}",
    "{{ {}.get('constructor') }}",
    "{{ loop.constructor }}",
    "{{ constructor }}",
    "{{ globalThis }}",
    "{{ process }}",
    "{{ this }}",
    "{{ __proto__ }}",
  ];
  for (const source of unreachable) {
    it(`${source} is nothing`, () => assert.equal(render(source), null));
  }

  for (const source of ["{{ five.constructor() }}", "{{ eval('1') }}", "{{ 1 | eval }}", "{{ 1 is hasOwnProperty }}"]) {
    it(`${source} does not parse`, () => assert.equal(render(source), source));
  }

  it("is not changed by maps, JSON, loops or assignments that name __proto__", () => {
    const sources: Json[] = [
      "{{ {'__proto__': {'polluted': 1}} }}",
      '{{ \'{"__proto__": {"polluted": 1}}\' | fromjson }}',
      "{% set __proto__ = {'polluted': 1} %}{{ __proto__.polluted }}",
      "{% for __proto__ in [{'polluted': 1}] %}{{ __proto__.polluted }}{% endfor %}",
      JSON.parse('{"__proto__": {"polluted": "{{ 1 }}"}, "x": "{{ {\'__proto__\': missing} }}"}') as Json,
      "{{ {'__proto__': {'polluted': 1}} | tojson | fromjson }}",
      "{{ [{'__proto__': 1}] | unique }}",
    ];
    for (const source of sources) {
      const value = render(source);
      assert.equal((value as { polluted?: unknown }).polluted, undefined);
      assert.equal(({} as { polluted?: unknown }).polluted, undefined);
      if (typeof value === "object" && value !== null && !Array.isArray(value)) {
        assert.equal(Object.getPrototypeOf(value), Object.prototype);
        assert.ok(Object.hasOwn(value, "__proto__"));
      }
    }
  });
});

describe("a template nested ten thousand deep fails at once", () => {
  const deep: Record<string, string> = {
    parentheses: `${"(".repeat(MANY)}1${")".repeat(MANY)}`,
    lists: `${"[".repeat(MANY)}1${"]".repeat(MANY)}`,
    maps: `${"{'a':".repeat(MANY)}1${"}".repeat(MANY)}`,
    "open lists": "[".repeat(MANY),
    filters: `1${"|abs".repeat(MANY)}`,
    tests: `1${" is defined".repeat(MANY)}`,
    not: `${"not ".repeat(MANY)}1`,
    minus: `${"-".repeat(MANY)}1`,
    choices: `${"1 if 0 else ".repeat(MANY)}1`,
    "choices without else": `1${" if 1".repeat(MANY)}`,
    members: `a${".b".repeat(MANY)}`,
    indexes: `a${"[0]".repeat(MANY)}`,
    methods: `a${".lower()".repeat(MANY)}`,
    sums: `1${"+1".repeat(MANY)}`,
    powers: `1${"**1".repeat(MANY)}`,
    arguments: `${"range(".repeat(MANY)}1${")".repeat(MANY)}`,
  };
  for (const [what, text] of Object.entries(deep)) {
    it(what, () => {
      runsOut(`{{ ${text} }}`, /nested more than 200 deep/);
      runsOut(`a {{ ${text} }}`, /nested more than 200 deep/);
      assert.throws(() => compileCondition(text).test(objectScope({})), { code: "TEMPLATE_BUDGET" });
    });
  }

  it("blocks", () => {
    runsOut(`${"{% for x in [1] %}".repeat(MANY)}x${"{% endfor %}".repeat(MANY)}`, /nested more than 200 deep/);
    runsOut(`${"{% if 1 %}".repeat(MANY)}x${"{% endif %}".repeat(MANY)}`, /nested more than 200 deep/);
    runsOut("{% set x %}".repeat(MANY), /nested more than 200 deep/);
  });

  it("the source itself", () => {
    let source: Json = "{{ 1 }}";
    for (let i = 0; i < MANY; i++) source = [source];
    runsOut(source, /nested more than 1000 deep/);
  });

  it("and a problem says so when it is compiled", () => {
    const [problem] = compileTemplate({ a: `{{ ${deep["lists"]} }}` }).problems;
    assert.equal(problem?.error.code, "TEMPLATE_BUDGET");
    assert.deepEqual(problem?.path, ["a"]);
  });

  it("but long chains of alternatives are not deep", () => {
    assert.equal(render(`{{ 0${" or 0".repeat(MANY)} }}`), 0);
    assert.equal(render(`{{ 1${" and 1".repeat(MANY)} }}`), 1);
    assert.equal(render(`{{ ''${" ~ 'a'".repeat(MANY)} }}`), "a".repeat(MANY));
  });
});

describe("a template that wants too much fails at once", () => {
  const steps = /more than 5,000,000 evaluation steps/;
  const text = /more than 16,777,216 characters of text/;
  const items = /more than 1,000,000 list items/;
  const double = (first: string, next: string): string => `{% set a = ${first} %}${`{% set a = ${next} %}`.repeat(60)}`;
  const cases: [string, RegExp][] = [
    ["{% for i in range(10**12) %}x{% endfor %}", items],
    ["{{ range(10**15) }}", items],
    ["{{ [0] * 10**9 }}", items],
    ["{{ 'a' * 10**12 }}", text],
    ["{{ '%999999999999s' | format(1) }}", text],
    ["{{ '1'.zfill(10**12) }}", text],
    ["{{ 'a' | indent(10**12, true) }}", text],
    ["{{ big | join(long) }}", text],
    ["{{ long | replace('a', long) }}", text],
    ["{{ long | replace('', long) }}", text],
    ["{% for i in big %}{{ long }}{% endfor %}", text],
    ["{% for i in big %}{{ long | upper | length }}{% endfor %}", text],
    [`${double("'0123456789'", "a ~ a")}{{ a }}`, text],
    [`${double("'0123456789'", "a + a")}{{ a }}`, text],
    [`${double("[1]", "a + a")}{{ a }}`, items],
    [`${double("[1]", "[a, a]")}{{ a }}`, steps],
    [`${double("{'a': 1}", "{'a': a, 'b': a}")}{{ a | tojson }}`, steps],
    [`${double("[1]", "[a, a]")}{{ a == a + [] }}`, steps],
    [`${double("[1]", "[a, a]")}{{ [a, a] | unique }}`, steps],
    ["{% for a in big %}{% for b in big %}{% endfor %}{% endfor %}", steps],
    ["{% for a in big %}{% for b in big if b == a %}{% endfor %}{% endfor %}", steps],
    ["{% for a in big %}{% for b in big %}{{ a.id * b.id > 5 and five }}{% endfor %}{% endfor %}", steps],
    ["{% for a in big %}{{ big | unique | length }}{% endfor %}", steps],
    ["{% for a in big %}{{ a in big }}{% endfor %}", steps],
    ["{% for a in big %}{{ 'b' in long }}{% endfor %}", steps],
    ["{% for a in big %}{% for b in big %}{{ long == twin }}{% endfor %}{% endfor %}", steps],
    ["{% for a in big %}{% for b in big %}{{ long.startswith(twin) }}{% endfor %}{% endfor %}", steps],
    ["{{ ('a' * 500000 ~ 'b' ~ 'a' * 500000) in long * 8 }}", steps],
    ["{{ (long * 8).replace('a' * 50000 ~ 'b' ~ 'a' * 50000, '') }}", steps],
    ["{{ ('%999999999999999s' * 1000) | format(1) }}", text],
    ["{% for a in big %}{% for b in big %}{{ ('1' * 1000 ~ 'x') | int }}{% endfor %}{% endfor %}", text],
    ["{% for a in big %}{% for b in big %}{{ 'a'.strip(long) }}{% endfor %}{% endfor %}", steps],
    ["{% for a in big %}{% for b in big %}{{ [1] | map(attribute=long) }}{% endfor %}{% endfor %}", /./],
    ["{% for a in big %}{% for b in big %}{{ wide | length }}{% endfor %}{% endfor %}", /steps|list items/],
    ["{% for a in big %}{{ big | sort(attribute='name') | length }}{% endfor %}", items],
    ["{% for a in big %}{{ long.split('a') | length }}{% endfor %}", items],
    ["{% for a in big %}{{ nested | length }}{{ long.count('a') }}{% endfor %}", steps],
    ["{{ nested }}", /nested more than 1000 deep/],
    ["{{ nested | tojson }}", /nested more than 1000 deep/],
    ["{{ ('[' * 100000 ~ ']' * 100000) | fromjson }}", /nested more than 1000 deep/],
    [`{{ '${"a".repeat(300_000)}' }}`, /longer than 262144 characters/],
  ];
  for (const [source, message] of cases) {
    it(source.length > 120 ? `${source.slice(0, 117)}…` : source, () => runsOut(source, message));
  }

  it("unless its limits are raised, or lowered", () => {
    const template = compileTemplate("{{ range(100) | join }}");
    assert.throws(() => template.render(objectScope({}), { limits: { items: 50 } }), {
      code: "TEMPLATE_BUDGET",
      message: /more than 50 list items \(limit "items"\)/,
    });
    assert.equal(
      template.render(objectScope({}), { limits: { items: 100 } }),
      Array.from({ length: 100 }, (_, i) => i).join(""),
    );
  });

  it("and its budget is one for the whole rendering, and a new one for the next", () => {
    const template = compileTemplate(["{{ 'a' * 10 }}", "{{ 'a' * 10 }}"]);
    const limits = { text: 20 };
    assert.deepEqual(template.render(objectScope({}), { limits }), ["aaaaaaaaaa", "aaaaaaaaaa"]);
    assert.deepEqual(template.render(objectScope({}), { limits }), ["aaaaaaaaaa", "aaaaaaaaaa"]);
    assert.throws(() => template.render(objectScope({}), { limits: { text: 19 } }), { code: "TEMPLATE_BUDGET" });
  });
});

describe("texts made to be read slowly", () => {
  const hostile: Record<string, string> = {
    braces: "{".repeat(200_000),
    "open comments": "{# ".repeat(100_000),
    "open raws": "{% raw %}".repeat(30_000),
    "open outputs": "{{ a ".repeat(100_000),
    "open tags": "{% if ".repeat(100_000),
    "broken outputs": "{{ a b }}".repeat(30_000),
    "odd quotes": "{{ ' }}".repeat(30_001),
    "marks in strings": "{{ ['}}'{{ }}".repeat(20_000),
    "lonely ends": "{% endif %}".repeat(30_000),
    spaces: `{%${" ".repeat(200_000)}{%`,
  };
  for (const [what, text] of Object.entries(hostile)) {
    it(`${what} are read within a second or so`, () => {
      const start = performance.now();
      const { problems } = compileTemplate(text);
      const elapsed = performance.now() - start;
      assert.ok(elapsed < 5_000, `took ${Math.round(elapsed)} ms`);
      assert.ok(problems.length <= 101 || what === "lonely ends");
    });
  }
});

describe("properties", () => {
  const seed = Number(process.env["SEED"] ?? Date.now() % 2 ** 31);
  const settings = { seed, numRuns: 500 };
  console.log(`seed of the property tests: ${seed} (set SEED to repeat)`);

  const word = fc.constantFrom(
    ..."{{ }} {% %} {# #} if else for in endif endfor set endset raw endraw and or not is defined loop x y.a list 'a' \"b\" 1 2.5 ( ) [ ] { } | , : . ~ + - * / % ** // == != < > <= >= = |upper |int |default('x') |join |sort |tojson range(3) none true x[1:2] \\".split(
      " ",
    ),
  );
  const soup = fc.array(word, { maxLength: 30 }).map((words) => words.join(" "));
  const anyText = fc.oneof(
    soup,
    fc.string({ unit: "binary", maxLength: 60 }),
    soup.map((text) => `{{ ${text} }}`),
  );
  const scope = objectScope({ x: [1, "two", { a: null }], y: { a: { b: 3 } }, list: [3, 1, 2] });

  it("no text makes compiling throw, and rendering throws nothing but its own errors", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const template = compileTemplate(text);
        try {
          const value = template.render(scope);
          assert.deepEqual(JSON.parse(JSON.stringify(value)), value);
        } catch (error) {
          assert.ok(error instanceof FlowError && error.code.startsWith("TEMPLATE_"), String(error));
        }
      }),
      settings,
    );
  });

  it("no text makes a condition do otherwise", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        try {
          assert.equal(typeof compileCondition(text).test(scope), "boolean");
        } catch (error) {
          assert.ok(error instanceof FlowError && error.code.startsWith("TEMPLATE_"), String(error));
        }
      }),
      settings,
    );
  });

  it("JSON without marks renders to itself", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const source = JSON.parse(
          JSON.stringify(value).replaceAll("{{", "{ {").replaceAll("{%", "{ %").replaceAll("{#", "{ #"),
        ) as Json;
        assert.equal(compileTemplate(source).render(scope), source);
      }),
      settings,
    );
  });

  it("a JSON value comes out of a whole template, of tojson and of an equal comparison as it went in", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        // -0 has no form in JSON text.
        const plain = JSON.parse(JSON.stringify(value)) as Json;
        const names = objectScope({ v: plain, w: JSON.parse(JSON.stringify(value)) as Json });
        assert.deepEqual(compileTemplate("{{ v }}").render(names), plain);
        assert.deepEqual(compileTemplate("{{ v | tojson | fromjson }}").render(names), plain);
        assert.equal(compileTemplate("{{ v == w }}").render(names), true);
      }),
      settings,
    );
  });

  it("a slice is what Python's rules say, whatever its bounds", () => {
    const index = fc.option(fc.integer({ min: -8, max: 8 }), { nil: null });
    const step = fc.integer({ min: -3, max: 3 }).filter((n) => n !== 0);
    fc.assert(
      fc.property(index, index, step, (start, stop, by) => {
        const list = [0, 1, 2, 3, 4];
        const names = objectScope({ list, start, stop, by });
        assert.deepEqual(compileTemplate("{{ list[start:stop:by] }}").render(names), sliced(list, start, stop, by));
      }),
      settings,
    );
  });
});

/** Python's slice, by its definition: every index that is between the bounds, in steps from the first. */
function sliced(list: number[], start: number | null, stop: number | null, step: number): number[] {
  const at = (index: number): number => (index < 0 ? index + list.length : index);
  const first = start === null ? (step > 0 ? 0 : list.length - 1) : at(start);
  const end = stop === null ? (step > 0 ? list.length : -1) : at(stop);
  const from = step > 0 ? Math.max(first, 0) : Math.min(first, list.length - 1);
  const picked: number[] = [];
  for (let i = from; step > 0 ? i < end : i > end; i += step) if (i >= 0 && i < list.length) picked.push(list[i]!);
  return picked;
}
