import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { STEPS_MAX } from "../../../src/language/document/playbook.ts";
import { ALIAS_VALUES_MAX } from "../../../src/language/document/source/convert.ts";
import { DIAGNOSTICS_LISTED_MAX } from "../../../src/language/document/source/findings.ts";
import { DOCUMENT_BYTES_MAX } from "../../../src/language/document/source/text.ts";
import { TOKENS_MAX } from "../../../src/language/document/source/yaml.ts";
import { loadPlaybook } from "../../../src/language/load/load.ts";
import { HEAD, summary } from "../load-support.ts";

const ONE = "workflow: [{ step: one, tool: { kind: noop } }]\n";

/** Generous for a busy machine; without the limits these documents take minutes, or the process with them. */
const HOSTILE = { timeout: 20_000 };

function load(source: string | Uint8Array) {
  const { diagnostics } = loadPlaybook(source, "test.yaml");
  return { found: summary(diagnostics), first: diagnostics[0] };
}

describe("size of a document", () => {
  it("50 MB are refused at once, as text and as bytes", HOSTILE, () => {
    const size = 50 * 1024 * 1024;
    assert.deepEqual(load("[".repeat(size)).found, ["1:1 too-large"]);
    const { found, first } = load(new Uint8Array(size));
    assert.deepEqual(found, ["1:1 too-large"]);
    assert.equal(first?.message, "the document has 52,428,800 bytes; at most 1,048,576 are read");
  });

  it("a document of exactly 1 MiB is read", () => {
    const text = `${HEAD}${ONE}#`;
    assert.deepEqual(load(text + "x".repeat(DOCUMENT_BYTES_MAX - text.length)).found, []);
    assert.deepEqual(load(text + "x".repeat(DOCUMENT_BYTES_MAX - text.length + 1)).found, ["1:1 too-large"]);
  });

  it("a large block of text is no problem", () => {
    const text = `${HEAD}workload:\n  text: |\n${"    line of text\n".repeat(50_000)}${ONE}`;
    assert.deepEqual(load(text).found, []);
  });

  it("the number of tokens is bounded, since each may cost an error", HOSTILE, () => {
    const { found } = load(`[${",".repeat(TOKENS_MAX)}`);
    assert.deepEqual(found, ["1:600001 too-large"]);
  });

  it("the number of steps is bounded", HOSTILE, () => {
    const steps = (count: number) => `${HEAD}workflow:\n${"- a\n".repeat(count)}`;
    assert.ok(!load(steps(STEPS_MAX)).found.includes("5:1 too-many-steps"));
    assert.equal(load(steps(STEPS_MAX + 1)).found[0], "5:1 too-many-steps");
  });
});

describe("bytes of a document", () => {
  const bytes = (...parts: (string | number[])[]) =>
    Uint8Array.from(parts.flatMap((part) => (typeof part === "string" ? [...new TextEncoder().encode(part)] : part)));

  it("Latin-1 is refused with the offset of the first wrong byte", () => {
    const { found, first } = load(bytes("kind: é\nname: M", [0xfc], "ller\n"));
    assert.deepEqual(found, ["2:8 not-utf8"]);
    assert.equal(first?.message, "byte 0xfc at byte offset 16 is not UTF-8");
    assert.equal(first?.hint, "save the file in UTF-8");
  });

  it("a document that ends within a character is refused there", () => {
    assert.equal(load(bytes("kind: ", [0xe2, 0x82])).first?.message, "byte 0xe2 at byte offset 6 is not UTF-8");
  });

  it("UTF-16 is refused at its byte order mark", () => {
    assert.equal(load(bytes([0xff, 0xfe, 0x61, 0])).first?.message, "byte 0xff at byte offset 0 is not UTF-8");
  });

  it("UTF-8 beyond ASCII is read", () => {
    assert.deepEqual(load(bytes(`${HEAD}workload: { "größe": "日本 🎉" }\n${ONE}`)).found, []);
  });

  it("an image is no text", () => {
    assert.deepEqual(load(bytes([0x47, 0x49, 0x46, 0x38, 0x39, 0x61, 0x01, 0x00])).found, ["1:7 not-text"]);
  });

  it("half a character, written as an escape, is refused where it stands; a whole one is not", () => {
    const text = (written: string) => `${HEAD}workflow: [{ step: "a${written}", tool: { kind: noop } }]\n`;
    assert.equal(load(text("\\uD800")).first?.code, "not-text");
    assert.deepEqual(load(text("\\U0001F600")).found, []);
  });
});

describe("nesting and aliases", () => {
  for (const [name, text] of [
    ["brackets", "[".repeat(10_000)],
    ["braces", "{".repeat(10_000)],
    ["a mebibyte of brackets", "[".repeat(DOCUMENT_BYTES_MAX)],
    ["closed brackets", "[".repeat(10_000) + "]".repeat(10_000)],
    ["dashes", "- ".repeat(10_000)],
    ["question marks", "? ".repeat(10_000)],
    ["indented keys", Array.from({ length: 1_000 }, (_, depth) => `${" ".repeat(depth)}a:\n`).join("")],
  ] as const) {
    it(`${name} nested too deep are refused`, HOSTILE, () => {
      assert.equal(load(text).first?.code, "too-deep");
      assert.equal(load(text).found.length, 1);
    });
  }

  it("what is nested as deep as playbooks are is read", () => {
    assert.deepEqual(load(`${HEAD}workload: { a: ${"[".repeat(100)}${"]".repeat(100)} }\n${ONE}`).found, []);
  });

  it("an alias bomb is refused", HOSTILE, () => {
    const levels = Array.from({ length: 10 }, (_, level) => {
      const values = level === 0 ? Array(9).fill("x") : Array(9).fill(`*a${level - 1}`);
      return `  a${level}: &a${level} [${values.join(", ")}]\n`;
    });
    const { diagnostics } = loadPlaybook(`${HEAD}workload:\n${levels.join("")}${ONE}`, "test.yaml");
    assert.deepEqual(
      diagnostics.map((diagnostic) => diagnostic.code),
      ["alias-expansion"],
    );
    assert.equal(diagnostics[0]?.message, "aliases repeat more than 10,000 values");
  });

  it("a chain of aliases that only nests is refused as too deep", HOSTILE, () => {
    const levels = Array.from({ length: 300 }, (_, level) =>
      level === 0 ? "  a0: &a0 x\n" : `  a${level}: &a${level} [*a${level - 1}]\n`,
    );
    const { diagnostics } = loadPlaybook(`${HEAD}workload:\n${levels.join("")}${ONE}`, "test.yaml");
    assert.ok(diagnostics.some(({ code }) => code === "too-deep" || code === "alias-expansion"));
  });

  it("a few aliases are read as copies", () => {
    const text = `${HEAD}workload: { a: &a { x: 1 }, b: *a, c: [*a, *a] }\n${ONE}`;
    const { playbook } = loadPlaybook(text, "test.yaml");
    assert.deepEqual(playbook?.workload, { a: { x: 1 }, b: { x: 1 }, c: [{ x: 1 }, { x: 1 }] });
    assert.ok(ALIAS_VALUES_MAX > 4);
  });

  it("an alias means the anchor before it, even when the name is used again", () => {
    const text = `${HEAD}workload: { a: &x 1, b: [*x], c: &x 2, d: *x }\n${ONE}`;
    assert.deepEqual(loadPlaybook(text, "test.yaml").playbook?.workload, { a: 1, b: [1], c: 2, d: 2 });
  });
});

describe("values of a document", () => {
  it("YAML 1.2 core: yes and on are texts, octals have an o, merge keys are keys", () => {
    const text = `%YAML 1.1\n---\n${HEAD}workload: { a: yes, b: 0o14, c: 012, d: ~, e: 1.5e3, on: off }\n${ONE}`;
    const expected = { a: "yes", b: 12, c: 12, d: null, e: 1500, on: "off" };
    assert.deepEqual(loadPlaybook(text, "test.yaml").playbook?.workload, expected);
  });

  it("keys that are not texts become texts as written", () => {
    const text = `${HEAD}workload: { 1: a, 1.50: b, true: c, ~: d, constructor: e }\n${ONE}`;
    const expected = { "1": "a", "1.50": "b", true: "c", "~": "d", constructor: "e" };
    assert.deepEqual(loadPlaybook(text, "test.yaml").playbook?.workload, expected);
  });

  it("`__proto__` changes no prototype, wherever it stands", () => {
    const { found } = load(`${HEAD}workload: { a: { __proto__: { bad: 1 } }, "__proto__": 1 }\n${ONE}`);
    assert.deepEqual(found, ["4:18 reserved-key", "4:43 reserved-key"]);
    assert.equal(({} as Record<string, unknown>)["bad"], undefined);
  });
});

describe("the list of problems", () => {
  it("is bounded for errors and for warnings, each with the number of the rest", HOSTILE, () => {
    const errors = "  - { desc: x, tool: { kind: noop } }\n".repeat(150);
    const warnings = Array.from({ length: 140 }, (_, index) => `extra${index}: 1\n`).join("");
    const { diagnostics } = loadPlaybook(`${HEAD}${warnings}workflow:\n${errors}`, "test.yaml");
    assert.equal(diagnostics.length, 2 * (DIAGNOSTICS_LISTED_MAX + 1));
    const rest = diagnostics.filter(({ code }) => code.startsWith("more-"));
    assert.deepEqual(
      rest.map(({ line, code, message }) => [line, code, message]),
      [
        [104, "more-warnings", "and 40 more from here on"],
        [245, "more-errors", "and 50 more from here on"],
      ],
    );
  });

  it("stands in the order of the text", () => {
    const text = `${HEAD}extra: 1\nworkflow:\n  - { step: one, next: nowhere }\n  - { step: one }\nworkload: []\n`;
    const { diagnostics } = loadPlaybook(text, "test.yaml");
    const lines = diagnostics.map(({ line, column }) => line * 1000 + column);
    assert.deepEqual(
      lines,
      lines.toSorted((a, b) => a - b),
    );
    assert.ok(lines.length >= 6);
  });
});
