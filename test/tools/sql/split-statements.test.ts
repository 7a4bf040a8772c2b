import assert from "node:assert/strict";
import { test } from "node:test";
import { splitStatements, sqlPlaceholders } from "../../../src/tools/sql/split-statements.ts";

/** [what the case shows, the text, its statements]. */
const CASES: [string, string, string[]][] = [
  ["one statement without a semicolon", "select 1", ["select 1"]],
  ["several statements", "select 1; select 2;\nselect 3", ["select 1", "select 2", "select 3"]],
  ["nothing but blanks, semicolons and comments", " ;; -- a\n/* b */ ;", []],
  ["a semicolon in a string", "select 'a;b'; select 2", ["select 'a;b'", "select 2"]],
  ["a doubled quote in a string", "select 'it''s; fine'; select 2", ["select 'it''s; fine'", "select 2"]],
  ["a backslash that escapes nothing in a plain string", "select 'a\\'; select 2", ["select 'a\\'", "select 2"]],
  ["a backslash that escapes the quote in E''", "select E'a\\';b'; select 2", ["select E'a\\';b'", "select 2"]],
  ["e'' in lower case", "select e'\\'';select 2", ["select e'\\''", "select 2"]],
  [
    "a name that ends in e before a string",
    "select date'2024-01-01;'; select 2",
    ["select date'2024-01-01;'", "select 2"],
  ],
  ["a semicolon in a quoted name", 'select 1 as "a;""b"; select 2', ['select 1 as "a;""b"', "select 2"]],
  ["a line comment", "select 1 -- no; split\n; select 2", ["select 1 -- no; split", "select 2"]],
  ["a block comment", "select /* a;b */ 1; select 2", ["select /* a;b */ 1", "select 2"]],
  ["nested block comments", "select /* a /* b; */ c; */ 1; select 2", ["select /* a /* b; */ c; */ 1", "select 2"]],
  ["a quote in a comment", "select 1 /* it's */; select 2 -- don't\n", ["select 1 /* it's */", "select 2 -- don't"]],
  ["a comment sign in a string", "select '--'; select '/*'; select 3", ["select '--'", "select '/*'", "select 3"]],
  ["a dollar quote", "do $$ begin a; b; end $$; select 2", ["do $$ begin a; b; end $$", "select 2"]],
  [
    "a dollar quote with a tag around another",
    "do $x$ a; $$ b; $$ $x$; select 2",
    ["do $x$ a; $$ b; $$ $x$", "select 2"],
  ],
  ["a dollar inside a name", "select a$b$ from t; select $b$x;y$b$", ["select a$b$ from t", "select $b$x;y$b$"]],
  ["a parameter before a semicolon", "select $1; select $2", ["select $1", "select $2"]],
  ["an open quote to the end", "select 'a; select 2", ["select 'a; select 2"]],
  ["an open dollar quote to the end", "do $$ a; b", ["do $$ a; b"]],
  ["an open comment to the end", "select 1 /* a; b", ["select 1 /* a; b"]],
  [
    "semicolons in parentheses",
    "create rule r as on insert to t do (select 1; select 2); select 3",
    ["create rule r as on insert to t do (select 1; select 2)", "select 3"],
  ],
  [
    "the body of a begin atomic function",
    "create or replace function f() returns int begin atomic select 1; select case when true then 2 end; end; select 3",
    [
      "create or replace function f() returns int begin atomic select 1; select case when true then 2 end; end",
      "select 3",
    ],
  ],
  [
    "begin of a transaction, which is no block",
    "begin; select 1; end; select 2",
    ["begin", "select 1", "end", "select 2"],
  ],
  ["letters of other alphabets", "select 'ü;' as größe; select 2", ["select 'ü;' as größe", "select 2"]],
];

for (const [name, sql, expected] of CASES) {
  test(`splitting leaves ${name} as it should be`, () => {
    assert.deepEqual(
      splitStatements(sql).map((statement) => statement.text),
      expected,
    );
  });
}

test("each statement knows the line on which it begins", () => {
  const lines = splitStatements("select 1;\n\n  select\n 2;select 3\n;\n-- note\nselect 4").map(({ line }) => line);
  assert.deepEqual(lines, [1, 3, 4, 6]);
});

test("each statement knows its highest placeholder, outside quotes and comments only", () => {
  const sql = "select $1, $3; select '$9', \"$8\", $$ $7 $$ /* $6 */ -- $5\n; select $10";
  assert.deepEqual(
    splitStatements(sql).map(({ placeholders }) => placeholders),
    [3, 0, 10],
  );
});

test("each statement knows its first word, behind comments too", () => {
  const sql = "/* note */ BEGIN; select 1; (select 2)";
  assert.deepEqual(
    splitStatements(sql).map(({ keyword }) => keyword),
    ["begin", "select", "select"],
  );
});

// Takes 0.2 s, on a busy machine a second; with a cost that grows with the square of the text it would be minutes.
test("a megabyte of statements is split in time that grows with its length", () => {
  const startedAt = performance.now();
  assert.equal(splitStatements("insert into t values ('a;b', $1); ".repeat(30_000)).length, 30_000);
  assert.ok(performance.now() - startedAt < 20_000);
});

test("a warehouse's strings escape by a backslash, names stand in backticks, and // is a comment", () => {
  const sql = "select 'it\\'s; $1', `a;$2` // ; $3\n, $$ ; ? $$; select ? where a = $1 -- ;";
  const texts = splitStatements(sql, "snowflake").map(({ text }) => text);
  assert.deepEqual(texts, ["select 'it\\'s; $1', `a;$2` // ; $3\n, $$ ; ? $$", "select ? where a = $1 -- ;"]);
  assert.deepEqual(sqlPlaceholders(texts[0]!, "snowflake"), []);
  assert.deepEqual(sqlPlaceholders(texts[1]!, "snowflake"), [
    { start: 7, end: 8, number: undefined },
    { start: 19, end: 21, number: 1 },
  ]);
  assert.deepEqual(sqlPlaceholders("select a ? $1", "postgres"), [{ start: 11, end: 13, number: 1 }]);
});
