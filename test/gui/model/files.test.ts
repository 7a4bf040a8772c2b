import assert from "node:assert/strict";
import { test } from "node:test";
import { rowsOf } from "../../../gui/src/execution/files/csv.ts";
import { previewKind, ROWS_SHOWN } from "../../../gui/src/execution/files/kinds.ts";
import { cellText, columnsOf } from "../../../gui/src/execution/files/parquet-cells.ts";

/* How files are shown on the page of their execution. */

test("pictures of pixels are drawn, tables, pages and JSON are shown as what they are, other markup as text, anything else not at all", () => {
  const kinds: [type: string, kind: string | undefined][] = [
    ["image/png", "image"],
    ["IMAGE/JPEG", "image"],
    ["image/svg+xml", "text"],
    ["application/json", "json"],
    ["application/geo+json; charset=utf-8", "json"],
    ["text/csv; charset=utf-8", "csv"],
    ["application/vnd.apache.parquet", "parquet"],
    ["text/html; charset=utf-8", "page"],
    ["application/xhtml+xml", "text"],
    ["application/xml", "text"],
    ["application/pdf", undefined],
    ["application/octet-stream", undefined],
    ["", undefined],
  ];
  for (const [type, kind] of kinds) assert.equal(previewKind(type, 10), kind, type);
  const max = 8 * 1024 * 1024;
  for (const [type, small, large] of [
    ["image/png", "image", undefined],
    ["application/json", "json", "text"],
    ["text/html", "page", "text"],
  ] as const)
    assert.deepEqual([previewKind(type, max), previewKind(type, max + 1)], [small, large]);
});

const bytesOf = (text: string) => new TextEncoder().encode(text);
const rows = (text: string, isLast = true) => rowsOf(bytesOf(text), isLast).rows;

test("rows of CSV: quotes, line breaks within them, empty fields, and what was cut off", () => {
  assert.deepEqual(rows('a,b\r\n"1, ""x""",\n"two\nlines",3'), [
    ["a", "b"],
    ['1, "x"', ""],
    ["two\nlines", "3"],
  ]);
  assert.deepEqual(rows(""), []);
  assert.deepEqual(rows("a\n"), [["a"]]);
  assert.deepEqual(rows("\n\na"), [[""], [""], ["a"]]);
  assert.deepEqual(rows("a,b\n1,2\n3", false), [
    ["a", "b"],
    ["1", "2"],
  ]);
  // What follows cannot be known yet: a line feed, another quote, the rest of a field.
  for (const cut of ["a\r", 'a,"b"', 'a,"b\nc,d\n', "a"]) assert.deepEqual(rows(cut, false), [], cut);
  assert.equal(rows(Array(500).fill("x,y").join("\n")).length, ROWS_SHOWN);
  // In quotes that are never closed nothing is lost, and it takes no time.
  assert.equal(rows(`"${"a,".repeat(30_000)}`, false).length, 0);
});

test("parts of CSV that follow one another have every row once, whatever characters and line ends they have", () => {
  const lines = Array.from({ length: 250 }, (_, at) => `${at},"ä\n""日${at}""",x`);
  for (const end of ["\n", "\r\n", "\r"]) {
    const file = bytesOf(lines.join(end));
    const found: string[][] = [];
    for (let from = 0; from < file.length; ) {
      const part = file.subarray(from, from + 997);
      const { rows: some, end: length } = rowsOf(part, from + part.length >= file.length);
      found.push(...some);
      assert.ok(length > 0);
      from += length;
    }
    assert.deepEqual(
      found,
      lines.map((_, at) => [`${at}`, `ä\n"日${at}"`, "x"]),
    );
  }
});

test("columns of Parquet are those at the top, and values are text without loss", () => {
  const schema = [
    { name: "root", num_children: 3 },
    { name: "id" },
    { name: "tags", num_children: 1 },
    { name: "list", num_children: 1 },
    { name: "element" },
    { name: "at" },
  ];
  assert.deepEqual(columnsOf(schema), ["id", "tags", "at"]);
  assert.deepEqual(columnsOf([]), []);
  assert.deepEqual(columnsOf([{ name: "root", num_children: 9 }, { name: "a" }]), ["a"]);
  const values: [value: unknown, text: string][] = [
    [null, ""],
    [undefined, ""],
    [9_007_199_254_740_993n, "9007199254740993"],
    [0.1, "0.1"],
    [false, "false"],
    ["<b>", "<b>"],
    ["x".repeat(1_001), `${"x".repeat(1_000)}…`],
    [new Date(0), "1970-01-01T00:00:00.000Z"],
    [new Date(Number.NaN), "invalid date"],
    [new Uint8Array([1, 255]), "01ff"],
    [new Uint8Array(33), `${"00".repeat(32)}…`],
    [{ a: [1n, 9_007_199_254_740_993n], b: new Uint8Array([2]) }, '{"a":[1,"9007199254740993"],"b":"02"}'],
  ];
  for (const [value, text] of values) assert.equal(cellText(value), text);
});
