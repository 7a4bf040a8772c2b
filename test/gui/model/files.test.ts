import assert from "node:assert/strict";
import { test } from "node:test";
import { previewKind, rowsOf } from "../../../gui/src/execution/files/kinds.ts";

/* How files are shown on the page of their execution. */

test("pictures of pixels are drawn, tables and JSON are shown as what they are, markup as text, anything else not at all", () => {
  const kinds: [type: string, kind: string | undefined][] = [
    ["image/png", "image"],
    ["IMAGE/JPEG", "image"],
    ["image/svg+xml", "text"],
    ["application/json", "json"],
    ["application/geo+json; charset=utf-8", "json"],
    ["text/csv; charset=utf-8", "table"],
    ["text/html; charset=utf-8", "text"],
    ["application/xml", "text"],
    ["application/pdf", undefined],
    ["application/octet-stream", undefined],
    ["", undefined],
  ];
  for (const [type, kind] of kinds) assert.equal(previewKind(type, 10), kind, type);
  const max = 8 * 1024 * 1024;
  assert.deepEqual([previewKind("image/png", max), previewKind("image/png", max + 1)], ["image", undefined]);
  assert.deepEqual([previewKind("application/json", max), previewKind("application/json", max + 1)], ["json", "text"]);
});

test("rows of CSV: quotes, line breaks within them, empty fields, and what was cut off", () => {
  assert.deepEqual(rowsOf('a,b\r\n"1, ""x""",\n"two\nlines",3', true), [
    ["a", "b"],
    ['1, "x"', ""],
    ["two\nlines", "3"],
  ]);
  assert.deepEqual(rowsOf("", true), []);
  assert.deepEqual(rowsOf("a\n", true), [["a"]]);
  assert.deepEqual(rowsOf("a,b\n1,2\n3", false), [
    ["a", "b"],
    ["1", "2"],
  ]);
  const many = rowsOf(Array(500).fill("x,y").join("\n"), true);
  assert.equal(many.length, 101);
  // In quotes that are never closed nothing is lost, and it takes no time.
  assert.equal(rowsOf(`"${"a,".repeat(30_000)}`, false).length, 0);
});
