import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { FILTERS } from "../../../src/language/expression/filters.ts";
import { METHODS } from "../../../src/language/expression/methods.ts";
import { openAccount } from "../../../src/language/expression/parsing/budget.ts";
import { PREDICATES } from "../../../src/language/expression/predicates.ts";
import { compileTemplate } from "../../../src/language/template/template.ts";
import { objectScope } from "../../../src/language/views/scope.ts";
import { FlowError } from "../../../src/schema/words/errors.ts";
import { slowness } from "../../support/machine-speed.ts";
import { threadMs } from "../../support/thread-time.ts";

/*
 * Everything that an expression can do, with values of some megabytes, again and again until an account is used up: how long it
 * keeps a server. An operation that is charged too little shows here.
 */

/** Longest that an account may last, ms of processor time, on a machine of usual speed. The dearest took 130 when this was written. */
const ACCOUNT_MS = 250 * slowness();
/** Renderings of one account: a document can have as many arcs. */
const RENDERINGS = 100;

const list = (count: number, item: (index: number) => unknown) =>
  Array.from({ length: count }, (_, index) => item(index));
const map = (count: number) => JSON.stringify(Object.fromEntries(list(count, (index) => [`k${index}`, index]) as []));
const parsed = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
const nest = (depth: number) => JSON.parse(`${"[".repeat(depth)}${"]".repeat(depth)}`) as unknown;

const VALUES: Readonly<Record<string, unknown>> = {
  keys: JSON.parse(map(80_000)),
  again: JSON.parse(map(80_000)),
  maps: list(1_000, () => JSON.parse(map(200))),
  rows: parsed(list(50_000, (id) => ({ id, name: `name ${id % 7}`, tags: [id] }))),
  numbers: parsed(list(800_000, (index) => index)),
  texts: parsed(list(200_000, (index) => `text number ${index}`)),
  deep: list(400, () => nest(400)),
  words: "abc ä ".repeat(1_000_000),
  lines: "a\n".repeat(2_000_000),
  same: "a".repeat(6_000_000),
  emoji: "😀".repeat(1_000_000),
  json: JSON.stringify(list(200_000, (a) => ({ a }))),
};
const SCOPE = objectScope(VALUES);

/** Arguments with which an operation does not end at once. */
const ARGUMENTS = ["", "'a', 'bb'", "keys"];

function* expressions(name: string): Iterable<string> {
  for (const argument of ARGUMENTS) {
    for (const filter of FILTERS.keys()) yield `${name} | ${filter}${argument === "" ? "" : `(${argument})`}`;
    for (const method of METHODS.keys()) yield `${name}.${method}(${argument})`;
    for (const test of PREDICATES.keys())
      if (/^\w+$/.test(test)) yield `${name} is ${test}${argument === "" ? "" : `(${argument})`}`;
  }
  for (const filter of FILTERS.keys()) yield `${name} | map('${filter}') | length`;
  for (const other of [name, "again", "'a'", "3"]) {
    for (const sign of ["==", "!=", "<", "+", "*", "%", "~", "in", "and", "or"]) yield `${name} ${sign} ${other}`;
  }
  yield* ["[1:]", "[::-1]", "[::2]", "[-1]", "[500000]", ".k5", ".a.b"].map((part) => `${name}${part}`);
  yield* [`not ${name}`, `1 if ${name} else 2`, `[${name}]`, `{'a': ${name}}`, `[${name}, ${name}] | unique`];
}

function* templates(name: string): Iterable<string> {
  for (const expression of expressions(name)) yield `{{ ${expression} }}`;
  yield* [`text {{ ${name} }}`, `{% if ${name} %}1{% endif %}`, `{% set a = ${name} %}{{ a | length }}`];
  yield* [`{% for a in ${name} %}{% endfor %}`, `{% for a in ${name} if a == 0 %}{{ a }}{% endfor %}`];
}

/** Of an account this share tells what the rest would take, where that is far below the limit: renderings of a template are alike. */
const SAMPLE = 0.1;

/** Milliseconds that an account lasts, or so many renderings; what the first tenth promises where it is less than a third of the limit. */
function lasts(template: string): number {
  const compiled = compileTemplate(template);
  const account = openAccount();
  const whole = account.left;
  const began = threadMs();
  for (let times = 1; compiled.problems.length === 0 && times <= RENDERINGS && account.left >= 0; times += 1) {
    try {
      compiled.render(SCOPE, { account, now: () => 0 });
    } catch (error) {
      // A wrong type, or more than one rendering may do: the step fails, and nothing more is evaluated.
      assert.ok(error instanceof FlowError, `${template}: ${error}`);
      break;
    }
    const spentMs = threadMs() - began;
    const share = Math.max(1 - account.left / whole, times / RENDERINGS);
    if (spentMs > ACCOUNT_MS || (share >= SAMPLE && spentMs / share < ACCOUNT_MS / 3)) break;
  }
  return threadMs() - began;
}

for (const name of Object.keys(VALUES).filter((one) => one !== "again")) {
  test(`no operation on '${name}' keeps a server for long`, async () => {
    const dear: string[] = [];
    for (const template of templates(name)) {
      // What happens to come between does not do so three times.
      if ([1, 2, 3].every(() => lasts(template) > ACCOUNT_MS)) dear.push(template);
      // The runner learns of tests that have ended only when the event loop comes round.
      await setImmediate();
    }
    assert.deepEqual(dear, []);
  });
}
