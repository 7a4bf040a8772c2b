import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { csvRows } from "../../../src/tools/transfer/csv.ts";
import { jsonRows } from "../../../src/tools/transfer/json.ts";

async function* pieces(text: string, size: number): AsyncGenerator<string> {
  for (let at = 0; at < text.length; at += size) yield text.slice(at, at + size);
}

async function rowsOf(text: string, path: string[] = [], size = 3): Promise<string[]> {
  const rows: string[] = [];
  for await (const row of jsonRows(pieces(text, size), path)) rows.push(row);
  return rows;
}

for (const [name, text, path, expected] of [
  ["a list", ' [ {"a":1} , {"b":[{"c":"}]"}]}\n]', [], ['{"a":1}', '{"b":[{"c":"}]"}]}']],
  ["an empty list", "[]", [], []],
  ["objects line by line", '{"a":1}\n{"a":"\\"}\\\\"}\n', [], ['{"a":1}', '{"a":"\\"}\\\\"}']],
  [
    "a list at a path",
    '{"next":{"items":[0]},"data":{"x":"items","items":[{"a":1}],"y":[}',
    ["data", "items"],
    ['{"a":1}'],
  ],
  ["a path whose key is escaped", '{"d\\u0061ta":[{"a":1}]}', ["data"], ['{"a":1}']],
  ["digits that no double holds", '[{"id":12345678901234567890.123}]', [], ['{"id":12345678901234567890.123}']],
  ["a byte order mark", '\ufeff[{"a":1}]', [], ['{"a":1}']],
] as [string, string, string[], string[]][]) {
  test(`rows of ${name}, however the text is cut`, async () => {
    for (let size = 1; size <= text.length; size += 1) assert.deepEqual(await rowsOf(text, path, size), expected);
  });
}

for (const [name, text, path, message] of [
  ["a text", '"x"', [], /no list of objects\./],
  ["a list of numbers", "[1]", [], /an item that is no object/],
  ["no list at the path", '{"data":{"rows":[{}]}}', ["data", "items"], /no list of objects at "data.items"/],
  ["a text at the path", '{"data":"x"}', ["data"], /no list of objects at "data"/],
  ["a map at the path", '{"data":{"a":[{}]}}', ["data"], /no list of objects at "data"/],
  ["a list with a path", "[{}]", ["data"], /no list of objects at "data"/],
  ["a list that is cut off", '[{"a":1},', [], /cut off/],
  ["a row that is cut off", '{"a":1}{"b":', [], /cut off/],
  ["nothing", "", [], /no list of objects/],
] as [string, string, string[], RegExp][]) {
  test(`${name} gives no rows but a reason`, async () => {
    for (const size of [1, 100]) await assert.rejects(rowsOf(text, path, size), message);
  });
}

test("any list of objects comes out as it went in", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.dictionary(fc.string(), fc.jsonValue())),
      fc.integer({ min: 1, max: 50 }),
      async (list, size) => {
        const rows = await rowsOf(JSON.stringify({ "a.b": 1, rows: list }, null, size % 3), ["rows"], size);
        assert.deepEqual(
          rows.map((row) => JSON.parse(row) as unknown),
          JSON.parse(JSON.stringify(list)),
        );
      },
    ),
    { numRuns: 200 },
  );
});

async function csvOf(text: string, size = 2, delimiter = ","): Promise<unknown[]> {
  const rows: unknown[] = [];
  for await (const { row } of csvRows(pieces(text, size), delimiter)) rows.push(JSON.parse(row));
  return rows;
}

test("CSV with quotes, line breaks in fields, nulls and empty texts, however it is cut", async () => {
  const text = '\ufeffid,name\r\n1,"Ada ""the"" first,\r\nline two"\r\n2,\r\n3,""\n4,x';
  const expected = [
    { id: "1", name: 'Ada "the" first,\r\nline two' },
    { id: "2", name: null },
    { id: "3", name: "" },
    { id: "4", name: "x" },
  ];
  for (let size = 1; size <= text.length; size += 1) assert.deepEqual(await csvOf(text, size), expected);
  assert.deepEqual(await csvOf("a;b\n1;2\n\n", 2, ";"), [{ a: "1", b: "2" }]);
});

test("CSV that is no table says which record is wrong", async () => {
  await assert.rejects(csvOf("a,b\n1,2\n3\n"), /Record 3 of the source's CSV has 1 fields, its first line 2/);
  await assert.rejects(csvOf('a,b\n1,"2'), /ends within a quoted field/);
});
