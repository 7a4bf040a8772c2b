import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import fc from "fast-check";
import { loadPlaybook } from "../../../src/language/load/load.ts";

/** Repeat a failure with `SEED=<number>`. */
const seed = process.env["SEED"] === undefined ? Date.now() % 2 ** 31 : Number(process.env["SEED"]);
const fixture = readFileSync(new URL("../../../../test/fixtures/all-forms.yaml", import.meta.url), "utf8");
const lines = fixture.split("\n");

/** What every answer of the loader has in common, whatever it was given. */
function checkAnswer(source: string | Uint8Array): void {
  const { playbook, diagnostics } = loadPlaybook(source, "f.yaml");
  const hasError = diagnostics.some((diagnostic) => diagnostic.severity === "error");
  assert.equal(playbook === undefined, hasError);
  assert.ok(diagnostics.length <= 202);
  for (const { line, column, message } of diagnostics) {
    assert.ok(Number.isInteger(line) && line >= 1 && Number.isInteger(column) && column >= 1);
    assert.ok(message.length > 0);
  }
  if (playbook === undefined) return;
  assert.deepEqual(JSON.parse(JSON.stringify(playbook)), playbook);
  assert.ok(playbook.steps.length > 0);
  for (const step of playbook.steps) assert.ok(step.tasks.length > 0);
}

describe(`any input to the loader (seed ${seed})`, () => {
  const options = { seed, numRuns: 300 };

  it("any bytes give an answer", () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), checkAnswer), options);
  });

  it("any text of YAML's and of the template's marks gives an answer", () => {
    const word = fc.constantFrom(
      ...[
        "\n",
        "\n  ",
        "- ",
        ": ",
        "? ",
        "{",
        "}",
        "[",
        "]",
        ",",
        "&a ",
        "*a",
        "|\n",
        ">",
        '"',
        "'",
        "#",
        "---\n",
        "!t ",
      ],
      ...[
        "{{ ",
        " }}",
        "{% if ",
        "%}",
        "\t",
        "a",
        "1",
        "null",
        "step",
        "tool",
        "next",
        "workflow",
        "__proto__",
        "\u00e9",
      ],
    );
    const text = fc.array(word, { maxLength: 60 }).map((words) => words.join(""));
    fc.assert(fc.property(text, checkAnswer), options);
  });

  it("a valid document with lines removed, doubled and swapped gives an answer", () => {
    const change = fc.tuple(fc.constantFrom("remove", "double", "swap", "indent"), fc.nat(lines.length - 2));
    const property = fc.property(fc.array(change, { minLength: 1, maxLength: 5 }), (changes) => {
      const changed = [...lines];
      for (const [kind, at] of changes) {
        const [line = "", after = ""] = changed.slice(at, at + 2);
        if (kind === "remove") changed.splice(at, 1);
        else if (kind === "double") changed.splice(at, 0, line);
        else if (kind === "swap") changed.splice(at, 2, after, line);
        else changed[at] = `  ${line}`;
      }
      checkAnswer(changed.join("\n"));
    });
    fc.assert(property, { seed, numRuns: 100 });
  });

  it("a valid document with any JSON in place of one of its values gives an answer", () => {
    const keys = [...new Set([...fixture.matchAll(/(\w+): /g)].map((match) => match[1] ?? ""))];
    const property = fc.property(
      fc.constantFrom(...keys),
      fc.jsonValue({ maxDepth: 3 }),
      fc.nat(3),
      (key, value, skip) => {
        let seen = 0;
        const pattern = new RegExp(`\\b${key}: ([^\\n{},\\]]+)`, "g");
        checkAnswer(
          fixture.replace(pattern, (whole) => (seen++ === skip ? `${key}: ${JSON.stringify(value)}` : whole)),
        );
      },
    );
    fc.assert(property, { seed, numRuns: 200 });
  });
});
