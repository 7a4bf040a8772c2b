import assert from "node:assert/strict";
import { test } from "node:test";
import { markdownOf } from "../../src/schema/api/waits/markdown.ts";

test("paragraphs, headings, lists, fences, and what stands in a line", () => {
  const text =
    "# Release `2.4`\nSee **all** of *it*:\n- one\n- [two](https://a.example/x)\n\n1. first\n```\n# *as it is*\n```\nhttp://b.example";
  assert.deepEqual(markdownOf(text), [
    {
      kind: "heading",
      parts: [
        { kind: "text", text: "Release " },
        { kind: "code", text: "2.4" },
      ],
    },
    {
      kind: "paragraph",
      parts: [
        { kind: "text", text: "See " },
        { kind: "bold", text: "all" },
        { kind: "text", text: " of " },
        { kind: "italic", text: "it" },
        { kind: "text", text: ":" },
      ],
    },
    {
      kind: "list",
      items: [[{ kind: "text", text: "one" }], [{ kind: "link", text: "two", address: "https://a.example/x" }]],
    },
    { kind: "numbers", items: [[{ kind: "text", text: "first" }]] },
    { kind: "fence", text: "# *as it is*" },
    { kind: "paragraph", parts: [{ kind: "link", text: "http://b.example", address: "http://b.example" }] },
  ]);
});

test("markup is text, and addresses that are not of the web are no links", () => {
  const text = "<b>x</b> [a](javascript:alert(1)) [b](data:text/html,x) ![c](/d.png)";
  assert.deepEqual(markdownOf(text), [{ kind: "paragraph", parts: [{ kind: "text", text }] }]);
  assert.deepEqual(markdownOf(""), []);
  assert.deepEqual(markdownOf("```\nnot closed"), [{ kind: "fence", text: "not closed" }]);
});

test("no text of the longest length takes long", () => {
  const begun = performance.now();
  for (const part of ["[", "*", "*a", "`", "[a](http://", "**a ", "[a](https://x ", "- ", "#"]) {
    markdownOf(part.repeat(16_384 / part.length));
    markdownOf(part.repeat(16_384 / part.length).replaceAll(" ", "\n"));
  }
  assert.ok(performance.now() - begun < 5_000, `${performance.now() - begun} ms`);
});
