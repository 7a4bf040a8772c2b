import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { compileExpression } from "../../../src/language/expression/compile.ts";
import { openBudget } from "../../../src/language/expression/parsing/budget.ts";
import { offsetOf } from "../../../src/language/expression/parsing/fault.ts";
import { parseExpression } from "../../../src/language/expression/parsing/parse.ts";
import type { Run, TokenCall } from "../../../src/language/expression/run.ts";
import { objectScope } from "../../../src/language/views/scope.ts";
import { View } from "../../../src/language/views/view.ts";
import { FlowError } from "../../../src/schema/words/errors.ts";
import { CASES, type Fails, NAMES } from "../expression-cases.ts";

function evaluate(text: string, names: object = NAMES): unknown {
  const run: Run = {
    scope: objectScope(names),
    budget: openBudget(),
    now: () => Date.parse("2026-01-31T12:00:00Z"),
    token: ({ args, named }: TokenCall) => `token of ${args[0]}${"scope" in named ? ` for ${named["scope"]}` : ""}`,
    whole: (value) => value,
    source: "",
  };
  return compileExpression(parseExpression(text))(run);
}

function isFails(expected: unknown): expected is Fails {
  return typeof expected === "object" && expected !== null && Object.keys(expected).join() === "fails";
}

for (const [topic, cases] of Object.entries(CASES)) {
  describe(`expressions: ${topic}`, () => {
    for (const [text, expected] of cases) {
      if (isFails(expected)) {
        it(`${text} fails: ${expected.fails}`, () => {
          assert.throws(
            () => evaluate(text),
            (error) => {
              assert.ok(error instanceof FlowError, `threw ${String(error)}`);
              assert.equal(error.code, "TEMPLATE_ERROR");
              assert.ok(error.message.includes(expected.fails), `message is: ${error.message}`);
              return true;
            },
          );
        });
      } else {
        it(`${text} is ${JSON.stringify(expected) ?? "undefined"}`, () => {
          const value = evaluate(text);
          // -0 and 0 are the same to the language.
          assert.deepStrictEqual(value === 0 ? 0 : value, expected === 0 ? 0 : expected);
        });
      }
    }
  });
}

describe("the table of expressions", () => {
  it("has at least 300 cases, none twice", () => {
    const texts = Object.values(CASES).flatMap((cases) => cases.map(([text]) => text));
    assert.ok(texts.length >= 300, `${texts.length} cases`);
    assert.deepEqual(
      texts.filter((text, i) => texts.indexOf(text) !== i),
      [],
    );
  });
});

describe("places of errors", () => {
  const places: [string, number][] = [
    ["1 + )", 4],
    ["name | uper", 5],
    ["a.b is nope", 4],
    ["name | replace('a', neu='b')", 24],
    ["'open", 0],
    ["x.lwer()", 2],
    ["a $ b", 2],
    ["a +", 3],
  ];
  for (const [text, offset] of places) {
    it(`${text} fails at offset ${offset}`, () => {
      assert.throws(
        () => evaluate(text),
        (error) => error instanceof FlowError && offsetOf(error) === offset,
      );
    });
  }

  it("names the expression in an error of evaluation, and no value", () => {
    assert.throws(() => evaluate("secret | sum", { secret: "hunter2 is the word" }), {
      message: 'Cannot evaluate "secret | sum": sum takes numbers, and got text',
    });
  });
});

/** A result as templates see it: a virtual field, and a payload behind it. */
class Result extends View {
  readonly value: unknown;
  loads = 0;

  constructor(value: unknown) {
    super();
    this.value = value;
  }

  get(key: string | number): unknown {
    if (key === "_ref") return "noetl://ref";
    if (key === "broken") throw new FlowError("REFERENCE_NOT_AVAILABLE", "gone");
    return (this.value as Record<string | number, unknown>)[key];
  }

  plain(): unknown {
    this.loads += 1;
    return this.value;
  }
}

class Alias extends View {
  get(): unknown {
    return undefined;
  }

  plain(): unknown {
    return "step.done";
  }

  override equals(other: unknown): boolean {
    return other === "step.done" || other === "call.done";
  }
}

describe("views", () => {
  const names = () => ({
    rows: new Result([1, 2, 3]),
    step: new Result({ status: "ok", n: 2, nested: [1] }),
    number: new Result(4),
    nothing: new Result(null),
    inside: new Result({ inner: new Result("text") }),
    event: { name: new Alias() },
  });
  const cases: [string, unknown][] = [
    ["step.status", "ok"],
    ["step['_ref']", "noetl://ref"],
    ["step.get('_ref', 'x')", "noetl://ref"],
    ["step.get('zz', 'x')", "x"],
    ["rows[0]", 1],
    ["rows[-1]", 3],
    ["rows[1:]", [2, 3]],
    ["rows | length", 3],
    ["rows | sum", 6],
    ["2 in rows", true],
    ["'status' in step", true],
    ["rows == [1, 2, 3]", true],
    ["[1, 2, 3] == rows", true],
    ["rows is list", true],
    ["step is mapping", true],
    ["nothing is none", true],
    ["nothing | default('d')", "d"],
    ["(step | default({}))._ref", "noetl://ref"],
    ["not nothing", true],
    ["number + 1", 5],
    ["number > 3", true],
    ["-number", -4],
    ["step ~ ''", '{"status":"ok","n":2,"nested":[1]}'],
    ["inside | tojson", '{"inner":"text"}'],
    ["inside.inner | upper", "TEXT"],
    ["inside.inner == 'text'", true],
    ["event.name == 'call.done'", true],
    ["'call.done' == event.name", true],
    ["event.name != 'call.done'", false],
    ["event.name in ['x', 'call.done']", true],
    ["event.name == 'step.failed'", false],
    ["event.name.startswith('step')", true],
    ["[event] | selectattr('name', 'eq', 'call.done') | length", 1],
    ["step.nested[0]", 1],
    ["'abc'[number]", undefined],
  ];
  for (const [text, expected] of cases) {
    it(`${text} is ${JSON.stringify(expected)}`, () => assert.deepStrictEqual(evaluate(text, names()), expected));
  }

  it("are not loaded by a lookup of their fields", () => {
    const step = new Result({ status: "ok" });
    assert.equal(evaluate("step.status == 'ok' and step._ref is defined", { step }), true);
    assert.equal(step.loads, 0);
  });

  it("throw their own errors through every operator and filter", () => {
    const broken = names();
    const texts = [
      "step.broken",
      "step.broken | default('d')",
      "step.broken == 1",
      "step.broken is defined",
      "1 in step.broken",
      "step.get('broken')",
      "'x' ~ step.broken",
      "[step] | map(attribute='broken')",
      "step.broken if true else 1",
      "not step.broken",
      "{'a': step.broken}",
    ];
    for (const text of texts) {
      assert.throws(() => evaluate(text, broken), { code: "REFERENCE_NOT_AVAILABLE", message: "gone" }, text);
    }
  });
});

describe("functions of the caller", () => {
  const bare = (text: string): unknown =>
    compileExpression(parseExpression(text))({
      scope: objectScope({}),
      budget: openBudget(),
      now: undefined,
      token: undefined,
      whole: (value) => value,
      source: "",
    });

  it("now() and token() are errors where they are not provided", () => {
    assert.throws(() => bare("now()"), { code: "TEMPLATE_ERROR", message: /now\(\) is not available here/ });
    assert.throws(() => bare("token('x')"), { code: "TEMPLATE_ERROR", message: /token\(\) is not available here/ });
  });
});
