import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { openBudget } from "../../../src/language/expression/parsing/budget.ts";
import {
  compileCondition,
  compileTemplate,
  type RenderOptions,
  truthy,
} from "../../../src/language/template/template.ts";
import { objectScope } from "../../../src/language/views/scope.ts";
import { View } from "../../../src/language/views/view.ts";
import type { Json } from "../../../src/schema/words/json.ts";

const NAMES = {
  name: "Ada",
  five: 5,
  yes: true,
  nothing: null,
  list: [1, 2, 3],
  map: { a: 1, b: { c: "x" } },
  users: [
    { name: "Zoe", admin: true },
    { name: "Bob", admin: false },
  ],
};

function render(source: Json, names: object = NAMES, options?: RenderOptions): Json {
  return compileTemplate(source).render(objectScope(names), options);
}

function renders(cases: readonly (readonly [source: string, expected: Json])[]): void {
  for (const [source, expected] of cases) {
    it(`${JSON.stringify(source)} renders ${JSON.stringify(expected)}`, () => {
      assert.deepStrictEqual(render(source), expected);
    });
  }
}

describe("a whole template", () => {
  renders([
    ["{{ five }}", 5],
    ["{{five}}", 5],
    ["  {{ five }}\n", 5],
    ["{{ yes }}", true],
    ["{{ list }}", [1, 2, 3]],
    ["{{ map.b }}", { c: "x" }],
    ["{{ nothing }}", null],
    ["{{ missing }}", null],
    ["{{ missing.a[0] }}", null],
    ["{{ [missing, 1] }}", [null, 1]],
    ["{{ {'a': missing, 'b': five} }}", { a: null, b: 5 }],
    ["{{ {'a': {'b': {'c': 1}}} }}", { a: { b: { c: 1 } } }],
    ["{{ '}}' }}", "}}"],
    ["{{ '{{ x }}' }}", "{{ x }}"],
    ["{{- five -}}", 5],
    ["{{ 'a' ~ five }}", "a5"],
    ["{{ '5' }}", "5"],
    ["{{ 'false' }}", "false"],
    ["{{ list | join(',') }}", "1,2,3"],
  ]);

  it("keeps the identity of a value that is plain already", () => {
    assert.equal(render("{{ list }}"), NAMES.list);
  });
});

describe("a text with templates", () => {
  renders([
    ["Hi {{ name }}!", "Hi Ada!"],
    ["{{ name }}{{ five }}", "Ada5"],
    ["{{ five }} ", 5],
    ["{{ five }}.", "5."],
    ["a{{ missing }}b", "ab"],
    ["a{{ nothing }}b", "anullb"],
    ["is {{ yes }}", "is true"],
    ["l={{ list }}", "l=[1,2,3]"],
    ["m={{ map }}", 'm={"a":1,"b":{"c":"x"}}'],
    ["u={{ [missing, none] }}", "u=[null,null]"],
    ["{{ five }}{{ '' }}", "5"],
    ["{# a comment #}{{ five }}", "5"],
    ["a{# x #}b", "ab"],
    ["x {{- name -}} y", "xAday"],
    ["x {#- c -#} y", "xy"],
    ["line\n{{ name }}\n", "line\nAda\n"],
    ['{"a": {{ map | tojson }}}', '{"a": {"a":1,"b":{"c":"x"}}}'],
    ["{% raw %}{{ name }} {% if %}{% endraw %} {{ name }}", "{{ name }} {% if %} Ada"],
    ["a {%- raw -%} {{ x }} {% endraw -%} b", "a{{ x }} b"],
    ["a{% raw %} x {%- endraw %} b", "a x b"],
  ]);
});

describe("blocks", () => {
  renders([
    ["{% if yes %}a{% endif %}", "a"],
    ["{% if missing %}a{% endif %}", ""],
    ["{% if missing %}a{% else %}b{% endif %}", "b"],
    ["{% if five == 1 %}a{% elif five == 5 %}b{% elif yes %}c{% else %}d{% endif %}", "b"],
    ["{% if 'false' %}a{% endif %}", "a"],
    ["{% for x in list %}{{ x }},{% endfor %}", "1,2,3,"],
    ["{% for x in list %}{{ x }}{% if not loop.last %}, {% endif %}{% endfor %}", "1, 2, 3"],
    ["{% for u in users %}{{ loop.index }}:{{ u.name }} {% endfor %}", "1:Zoe 2:Bob "],
    ["{% for u in users if not u.admin %}{{ loop.index0 }}{{ u.name }}{{ loop.length }}{% endfor %}", "0Bob1"],
    ["{% for k, v in map.items() %}{{ k }}={{ v }};{% endfor %}", 'a=1;b={"c":"x"};'],
    ["{% for k in map %}{{ k }}{% endfor %}", "ab"],
    ["{% for c in name %}{{ c }}.{% endfor %}", "A.d.a."],
    ["{% for x in [] %}a{% else %}none{% endfor %}", "none"],
    ["{% for x in missing %}a{% else %}none{% endfor %}", "none"],
    ["{% for x in list %}{{ loop.first }}{{ loop.revindex }} {% endfor %}", "true3 false2 false1 "],
    ["{% for a in list %}{% for b in list %}{{ a * b }} {% endfor %}{% endfor %}", "1 2 3 2 4 6 3 6 9 "],
    [
      "{% for x in list %}{{ loop.index }}{% for y in [9] %}{{ loop.index }}{% endfor %}{{ loop.index }} {% endfor %}",
      "111 212 313 ",
    ],
    ["{% for x in list %}{% endfor %}{{ x }}|{{ loop }}", "|"],
    ["{% set a = five + 1 %}{{ a }}", "6"],
    ["{% set a, b = [1, 2] %}{{ a }}{{ b }}", "12"],
    ["{% set a %}x{{ five }}{% endset %}[{{ a }}]", "[x5]"],
    ["{% set name = 'B' %}{{ name }}", "B"],
    ["{% if yes %}{% set a = 1 %}{% endif %}{{ a }}", "1"],
    ["{% for x in list %}{% set a = x %}{% endfor %}[{{ a }}]", "[]"],
    ["{% set five = missing %}[{{ five }}]", "[]"],
    ["a \n{%- if yes -%}\n b {%- endif %}", "ab"],
    ["{% for x in list -%}\n  {{ x }}\n{%- endfor %}", "123"],
    ["{%if yes%}a{%endif%}", "a"],
  ]);

  const failures: [string, RegExp][] = [
    ["{% for x in 5 %}{% endfor %}", /"\{% for x in 5 %\}": a loop goes over a list, map or text, and got a number/],
    ["{% for a, b in list %}{% endfor %}", /2 names need a list of 2 items, and got a number/],
    ["a{{ 1 / 0 }}", /Cannot evaluate "\{\{ 1 \/ 0 \}\}": it divides by zero/],
  ];
  for (const [source, message] of failures) {
    it(`${source} fails and says why`, () => {
      assert.throws(() => render(source), { code: "TEMPLATE_ERROR", message });
    });
  }
});

describe("what does not parse", () => {
  const verbatim = [
    "docker ps --format '{{ .Names }}'",
    "docker ps --format '{{.Names}}\t{{.Status}}'",
    "{{json .State}}",
    "{{ json .State }}",
    "{{range .Items}}{{.Name}} {{end}}",
    "{{ range $i, $e := .List }}{{ $e }}{{ end }}",
    "{{ if .X }}a{{ else }}b{{ end }}",
    "awk '{{print $1}}'",
    "{{ a b }}",
    "{{ 'open }}",
    "{{ open",
    "{{",
    "{{ }}",
    "{{}}",
    "{{ x | nope }}",
    "{{ f(1) }}",
    '{{"a": 1}}',
    "n=${#list[@]}",
    "{#",
    "{% include 'x' %}",
    "{% if %}",
    "'{%s}' % x",
    "{% endif %}",
    "{% raw %} x",
    "{%",
    "{% %}",
  ];
  for (const source of verbatim) {
    it(`${JSON.stringify(source)} stays as it is`, () => assert.equal(render(source), source));
  }

  renders([
    ["{{ .Go }} {{ name }}", "{{ .Go }} Ada"],
    ["{% if yes %}a", "{% if yes %}a"],
    ["{% if yes %}{{ name }}", "{% if yes %}Ada"],
    ["{% if yes %}a{% else %}b", "{% if yes %}a{% else %}b"],
    ["{% for x in list %}{% if x %}{{ x }}{% endfor %}", "{% if x %}1{% if x %}2{% if x %}3"],
    ["{% else %}{{ name }}", "{% else %}Ada"],
    ["{{range .Items}}{{end}}{{ end }}", "{{range .Items}}{{end}}"],
  ]);

  it("is a problem with its place in the source", () => {
    const { problems, constant } = compileTemplate({ a: ["x", "go {{ .Names }} {{ name | uper }}"], b: "{{ ok }}" });
    assert.equal(constant, false);
    assert.deepEqual(
      problems.map(({ path, offset, message }) => ({ path, offset, message })),
      [
        { path: ["a", 1], offset: 6, message: 'Cannot read "{{ .Names }}": expected a value, found "."' },
        {
          path: ["a", 1],
          offset: 24,
          message: 'Cannot read "{{ name | uper }}": there is no filter "uper"; did you mean "upper"?',
        },
      ],
    );
  });

  it("is a problem for tags without a partner and for unknown ones", () => {
    const messages = (text: string): string[] => compileTemplate(text).problems.map(({ message }) => message);
    assert.deepEqual(messages("{% if x %}"), ['Cannot read "{% if x %}": "{% endif %}" is missing']);
    assert.deepEqual(messages("{% endfor %}"), ['Cannot read "{% endfor %}": "endfor" ends no block']);
    assert.deepEqual(messages("{% else %}"), ['Cannot read "{% else %}": "else" stands in no block that takes it']);
    assert.deepEqual(messages("{% fro x in y %}"), [
      'Cannot read "{% fro x in y %}": there is no tag "fro"; did you mean "for"?',
    ]);
    assert.deepEqual(messages("plain {text} 100 % {x}"), []);
  });
});

describe("a value with templates", () => {
  it("renders every text in maps and lists, and no key", () => {
    const source = { "{{ name }}": "{{ name }}", list: ["{{ five }}", 7, null, { deep: "n={{ five }}" }], on: true };
    assert.deepEqual(render(source), { "{{ name }}": "Ada", list: [5, 7, null, { deep: "n=5" }], on: true });
  });

  it("is constant without templates, and renders to itself", () => {
    const source = { a: [1, "text {x}", { b: null }] };
    const template = compileTemplate(source);
    assert.equal(template.constant, true);
    assert.equal(template.render(objectScope({})), source);
  });

  it("shares its constant parts and does not change", () => {
    const source = { fixed: { a: [1] }, moving: "{{ five }}" };
    const rendered = render(source) as { fixed: Json };
    assert.equal(rendered.fixed, source.fixed);
    assert.deepEqual(source, { fixed: { a: [1] }, moving: "{{ five }}" });
  });
});

class Result extends View {
  readonly value: unknown;

  constructor(value: unknown) {
    super();
    this.value = value;
  }

  get(key: string | number): unknown {
    return key === "inner" ? new Result({ deep: [new Result("x")] }) : undefined;
  }

  plain(): unknown {
    return this.value;
  }
}

describe("rendered values are plain JSON", () => {
  const names = {
    view: new Result({ a: new Result([1, undefined, new Result(null)]) }),
    date: new Date(0),
    fn: () => 1,
  };
  it("without views, however deep they were", () => {
    assert.deepStrictEqual(render("{{ view }}", names), { a: [1, null, null] });
    assert.deepStrictEqual(render("{{ [view.inner] }}", names), [{ deep: ["x"] }]);
    assert.equal(render("t {{ view.inner }}", names), 't {"deep":["x"]}');
    assert.deepStrictEqual(render("{{ {'k': view} }}", names), { k: { a: [1, null, null] } });
  });

  it("and without anything that JSON has no form for", () => {
    assert.deepStrictEqual(render("{{ [date, fn] }}", names), [null, null]);
    assert.equal(render("[{{ date }}{{ fn }}]", names), "[]");
  });
});

describe("options of a rendering", () => {
  it("give the time of now()", () => {
    assert.equal(render("{{ now() }}", {}, { now: () => 0 }), "1970-01-01T00:00:00.000Z");
  });

  it("answer token(), and what it throws passes through unchanged", () => {
    assert.equal(
      render("Bearer {{ token('a', audience=b) }}", { b: "z" }, { token: (call) => JSON.stringify(call) }),
      'Bearer {"args":["a"],"named":{"audience":"z"}}',
    );
    const error = new Error("the service is away");
    assert.throws(
      () =>
        render(
          "{{ token() | default('x') }}",
          {},
          {
            token: () => {
              throw error;
            },
          },
        ),
      (thrown) => thrown === error,
    );
  });
});

describe("conditions", () => {
  const cases: [Json, boolean][] = [
    [true, true],
    [false, false],
    [null, false],
    [1, true],
    [0, false],
    ["", false],
    ["  ", false],
    ["five == 5", true],
    ["five == 6", false],
    ["{{ five == 5 }}", true],
    ["{{ five == 6 }}", false],
    ["five > 1 and missing is not defined", true],
    ["missing.a.b", false],
    ["{{ missing }}", false],
    ["'false'", false],
    ["{{ 'No' }}", false],
    ["not 'false'", false],
    ["{{ list }}", true],
    ["{{ [] }}", false],
    ["{{ {} }}", false],
    ["{% if five == 5 %}true{% else %}false{% endif %}", true],
    ["{% if five == 6 %}true{% else %}false{% endif %}", false],
    ["{{ five }}{{ five }}", true],
    [["{{ five }}"], true],
    [[], false],
  ];
  for (const [source, expected] of cases) {
    it(`${JSON.stringify(source)} is ${expected}`, () => {
      assert.equal(compileCondition(source).test(objectScope(NAMES)), expected);
    });
  }

  it("of a view ask what stands behind it", () => {
    const scope = objectScope({ no: new Result("off"), yes: new Result([0]) });
    assert.equal(compileCondition("no").test(scope), false);
    assert.equal(compileCondition("yes").test(scope), true);
  });

  for (const source of ["five ==", "{{ five == }}", "a && b", "five | nope", "{{ .Go }} x", "{% if five %}"]) {
    it(`${source} is a problem, and testing it throws`, () => {
      const condition = compileCondition(source);
      assert.equal(condition.problems.length, 1);
      assert.throws(() => condition.test(objectScope(NAMES)), { code: "TEMPLATE_ERROR", message: /^Cannot read / });
    });
  }

  it("that mix text with braces are reported, since they are always true", () => {
    const condition = compileCondition("{{ five }} == 6");
    assert.match(condition.problems[0]?.message ?? "", /mixes text with/);
    assert.equal(condition.test(objectScope(NAMES)), true);
    assert.deepEqual(compileCondition("{{ five == 6 }}").problems, []);
  });

  const mentions: [Json, boolean][] = [
    ["event.name == 'step.failed'", true],
    ['{{ event.name in ["step.done", "step.failed"] }}', true],
    ["{{ event.name }} == 'step.failed'", true],
    ["{% if event.name == 'step.failed' %}true{% endif %}", true],
    ["event.name == 'step.failed' &&", true],
    ["event.name == 'step.done'", false],
    ["'step.failed.twice' == x", false],
    ["step.failed", false],
    [true, false],
  ];
  for (const [source, expected] of mentions) {
    it(`${JSON.stringify(source)} ${expected ? "mentions" : "does not mention"} step.failed`, () => {
      assert.equal(compileCondition(source).mentions(["call.error", "step.failed"]), expected);
    });
  }
});

describe("truth of a when", () => {
  const falsy = [
    false,
    null,
    undefined,
    0,
    "",
    " ",
    "false",
    "FALSE",
    "False",
    "0",
    "no",
    "None",
    "null",
    "off",
    "{}",
    "[]",
    [],
    {},
  ];
  const trueish = [true, 1, -1, "true", "yes", "0.0", "nothing", "[ ]", [0], [[]], { a: 0 }];
  it("is false for nothing, zero, what is empty, and their names", () => {
    for (const value of falsy) assert.equal(truthy(value, openBudget()), false, JSON.stringify(value));
  });
  it("is true for everything else", () => {
    for (const value of trueish) assert.equal(truthy(value, openBudget()), true, JSON.stringify(value));
  });
});

describe("scopes", () => {
  it("answer their own names only", () => {
    const scope = objectScope({ a: 1 });
    assert.equal(scope.lookup("a"), 1);
    assert.equal(scope.lookup("toString"), undefined);
    assert.deepEqual([...scope.names()], ["a"]);
  });
});
