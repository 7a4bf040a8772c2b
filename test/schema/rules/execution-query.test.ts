import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import * as v from "valibot";
import { EXECUTION_STATES } from "../../../src/schema/rules/execution-filter.ts";
import { ExecutionFilterBody } from "../../../src/schema/rules/execution-filter-schema.ts";
import { QUERY_CHARS_MAX, queryProblemText, readExecutionQuery } from "../../../src/schema/rules/execution-query.ts";

const NOW = Date.parse("2026-11-23T12:00:00.000Z");
const filterOf = (text: string) => {
  const { filter, problem } = readExecutionQuery(text, NOW);
  assert.equal(problem, undefined, text);
  return filter;
};
const problemOf = (text: string) => readExecutionQuery(text, NOW).problem ?? assert.fail(`'${text}' was read`);

test("terms that stand side by side are one filter", () => {
  assert.deepEqual(filterOf("status:failed path:etl/* label.team:data error:HTTP_429 started:>1h"), {
    status: ["FAILED"],
    path: "etl/*",
    labels: { team: "data" },
    error_code: "HTTP_429",
    since: "2026-11-23T11:00:00.000Z",
  });
  assert.deepEqual(filterOf("  "), {});
  assert.deepEqual(filterOf("status:running,PENDING,running"), { status: ["PENDING", "RUNNING"] });
  assert.deepEqual(filterOf("version:3 step:load parent:7211 by:mcp by_id:12 id:72 is:root"), {
    version: 3,
    step: "load",
    parent_execution_id: "7211",
    started_by: "mcp",
    started_by_id: "12",
    id_prefix: "72",
    roots_only: true,
  });
});

test("a word alone is a part of the path, the beginning of an id, or a pattern of paths", () => {
  assert.deepEqual(filterOf("load"), { path_contains: "load" });
  assert.deepEqual(filterOf("7211"), { id_prefix: "7211" });
  assert.deepEqual(filterOf("etl/**"), { path: "etl/**" });
  assert.deepEqual(filterOf('"7211"'), { path_contains: "7211" });
  assert.deepEqual(filterOf('"a: b"'), { path_contains: "a: b" });
});

test("values may stand in quotation marks, with a backslash before what is meant as it is", () => {
  assert.deepEqual(filterOf('input.day:"2026 01" input.a.b:"say \\"so\\"" label.x:"c\\\\d"'), {
    input: { day: "2026 01", "a.b": 'say "so"' },
    labels: { x: "c\\d" },
  });
});

test("times are spans before now, days and moments", () => {
  assert.equal(filterOf("since:90s")?.since, "2026-11-23T11:58:30.000Z");
  assert.equal(filterOf("started:>=2w")?.since, "2026-11-09T12:00:00.000Z");
  assert.deepEqual(filterOf("started:>2026-01-01 started:<2026-02-01T10:00:00+01:00"), {
    since: "2026-01-01T00:00:00.000Z",
    until: "2026-02-01T09:00:00.000Z",
  });
});

test("names of prototypes are keys like others", () => {
  for (const key of ["constructor", "toString", "__proto__"]) assert.match(problemOf(`${key}:x`).message, /no key/);
  const { input = {} } = filterOf("input.__proto__:1 input.constructor:2") ?? {};
  assert.deepEqual(Object.entries(input), [
    ["__proto__", "1"],
    ["constructor", "2"],
  ]);
});

test("what cannot be read is told with its place", () => {
  const place = (text: string) => {
    const { from, to } = problemOf(text);
    return text.slice(from, to);
  };
  assert.equal(place("status:failed stat:x path:y"), "stat");
  assert.equal(place("path:y status:fail"), "status:fail");
  assert.equal(place("path: y"), "path:");
  assert.equal(place('a path:"b c'), '"b c');
  assert.equal(place("status:failed status:running"), "status:running");
  assert.equal(place("label.team:a label.team:b"), "label.team:b");
  assert.equal(place("label.-x:a"), "label.-x");
  assert.equal(place("label:a"), "label");
  assert.equal(place("a OR b"), "OR");
  assert.equal(place("a -status:failed"), "-status:failed");
  assert.equal(place("started:1h"), "started:1h");
  assert.equal(place("started:>1x"), "started:>1x");
  assert.equal(place("id:0x1"), "id:0x1");
  assert.equal(place("version:0"), "version:0");
  assert.equal(place("by:me"), "by:me");
  assert.equal(place("is:leaf"), "is:leaf");
  assert.match(problemOf("started:>1h started:<2h").message, /nothing starts/);
  assert.match(problemOf("a b").message, /twice/);
  assert.match(problemOf("started:1h").message, /started:>1h \(within the last hour\)/);
  assert.equal(
    queryProblemText("a\tis:b", problemOf("a\tis:b")),
    "'is:' takes root: executions that no other one called\n  a is:b\n    ^^^^",
  );
});

test("a search of the greatest length is read, and one character more is not", () => {
  const text = (length: number) => `input.a:${"x".repeat(400)} `.padEnd(length, " ");
  assert.deepEqual(Object.keys(filterOf(text(QUERY_CHARS_MAX)) ?? {}), ["input"]);
  assert.match(problemOf(text(QUERY_CHARS_MAX + 1)).message, /2048 characters/);
  const labels = (count: number) => Array.from({ length: count }, (_, n) => `label.l${n}:x`).join(" ");
  assert.equal(Object.keys(filterOf(labels(32))?.labels ?? {}).length, 32);
  assert.match(problemOf(labels(33)).message, /32 of them/);
});

test("any text is read or told why not, within it, and what is read is a valid filter", () => {
  const seed = Number(process.env["FLOW_SEED"] ?? Date.now() % 1_000_000);
  const word = fc.constantFrom(
    ...["status:", "path:", "label.a:", "input.b.c:", "started:>", "since:", "is:root", "by:", "id:", '"', "\\", " "],
    ...[...EXECUTION_STATES, "x", "7", "1h", "2026-01-01", "mcp", "*", ":", ".", "\u0000", "\ud800", "é"],
  );
  const text = fc.array(word, { maxLength: 20 }).map((words) => words.join(""));
  fc.assert(
    fc.property(fc.oneof(text, fc.string({ maxLength: 60 })), (query) => {
      const { filter, problem } = readExecutionQuery(query, NOW);
      if (problem !== undefined) {
        assert.ok(problem.from >= 0 && problem.from <= problem.to && problem.to <= Math.max(1, query.length));
      } else if (Object.keys(filter).length > 0) {
        const checked = v.safeParse(ExecutionFilterBody, filter);
        assert.ok(checked.success, JSON.stringify([query, checked.issues?.map(({ message }) => message)]));
      }
    }),
    { seed, numRuns: 2_000 },
  );
});

test("a filter that is empty, or has an empty part, or an unknown key, is none", () => {
  const isValid = (filter: unknown) => v.is(ExecutionFilterBody, filter);
  for (const filter of [undefined, {}, [], { status: [] }, { labels: {} }, { bogus: 1 }, { roots_only: false }]) {
    assert.equal(isValid(filter), false, JSON.stringify(filter));
  }
  for (const filter of [{ status: "failed" }, { status: ["FAILED"] }, { labels: { a: "b" } }, { version: "3" }]) {
    assert.equal(isValid(filter), true, JSON.stringify(filter));
  }
});
