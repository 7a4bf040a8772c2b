import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../src/schema/words/json.ts";
import { FILE_BYTES_MAX } from "../../src/tools/files/file-names.ts";
import { newArtifact } from "../../src/tools/put-artifact.ts";

/* What `artifact` with `action: put` stores (docs/tools.md). */

const textOf = (config: JsonObject) => Buffer.from(newArtifact(config).content).toString();

test("text is stored as it is, anything else as JSON, bytes from base64", () => {
  assert.equal(textOf({ file: "a.csv", content: "a,b\n1,2\n" }), "a,b\n1,2\n");
  assert.equal(textOf({ file: "a.json", content: { b: [1, null] } }), '{"b":[1,null]}');
  assert.equal(textOf({ file: "empty", content: "" }), "");
  const bytes = Buffer.from([0xff, 0xfe, 0x00, 0x80]);
  const { content } = newArtifact({ file: "a.png", content_b64: ` ${bytes.toString("base64")}\n` });
  assert.deepEqual(Buffer.from(content), bytes);
});

test("the type is the one that is given, else that of the ending, else of the content", () => {
  const typeOf = (config: JsonObject) => newArtifact(config).contentType;
  assert.equal(typeOf({ file: "a.CSV", content: "x" }), "text/csv; charset=utf-8");
  assert.equal(typeOf({ file: "a.png", content_b64: "AAAA" }), "image/png");
  assert.equal(typeOf({ file: "a.bin", content: "x", content_type: "text/x-diff" }), "text/x-diff");
  assert.equal(typeOf({ file: "a.constructor", content: "x" }), "text/plain; charset=utf-8");
  assert.equal(typeOf({ file: "a", content: [1] }), "application/json");
  assert.equal(typeOf({ file: "a", content_b64: "" }), "application/octet-stream");
  for (const type of ["text", "text/html\r\nset-cookie: a=b", "text/html; x", 3]) {
    assert.throws(
      () => newArtifact({ file: "a", content: "x", content_type: type }),
      /must be a media type/,
      String(type),
    );
  }
});

test("a name is that of a file, on every system", () => {
  for (const name of ["report.csv", "Bericht für März.html", "..a", "a..", "日本.txt", "x".repeat(200)]) {
    assert.equal(newArtifact({ file: name, content: "x" }).name, name);
  }
  for (const name of [
    ...[
      "",
      ".",
      "..",
      "...",
      "../a",
      "a/b",
      "/etc/passwd",
      "a\\b",
      "a\u0000b",
      "a\nb",
      "\u202egpj.exe",
      " a",
      "a ",
      "\ud800",
    ],
    ...["x".repeat(201), 7, null, ["a"]],
  ]) {
    assert.throws(
      () => newArtifact({ file: name, content: "x" }),
      /needs the name of its "file"/,
      JSON.stringify(name),
    );
  }
});

test("a file has one content, of a bounded size, and base64 is base64", () => {
  assert.throws(() => newArtifact({ file: "a" }), /"content", or "content_b64"/);
  assert.throws(() => newArtifact({ file: "a", content: "x", content_b64: "AAAA" }), /"content", or "content_b64"/);
  for (const content_b64 of ["AAA", "A===", "%%%%", 3])
    assert.throws(() => newArtifact({ file: "a", content_b64 }), /no base64/);
  assert.equal(newArtifact({ file: "a", content: "x".repeat(FILE_BYTES_MAX) }).content.byteLength, FILE_BYTES_MAX);
  assert.throws(() => newArtifact({ file: "a", content: "x".repeat(FILE_BYTES_MAX + 1) }), /16,777,216 are allowed/);
});
