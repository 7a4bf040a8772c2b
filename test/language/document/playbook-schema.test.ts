import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { Ajv } from "ajv";
import { parse } from "yaml";
import { playbookJsonSchemaText, SCHEMA_FILE } from "../../../playbooks/generate-schema.ts";
import { loadPlaybook } from "../../../src/language/load/load.ts";
import { RULE_CASES } from "../load-rules-cases.ts";
import { HEAD } from "../load-support.ts";

const root = new URL("../../../../", import.meta.url);

describe("the JSON Schema of playbooks", () => {
  const validate = new Ajv({ strict: true, allowUnionTypes: true }).compile(JSON.parse(playbookJsonSchemaText()));
  const accepts = (text: string): boolean => validate(parse(text, { logLevel: "error" }));

  it("is checked in as it is generated (npm run generate renews it)", () => {
    assert.equal(readFileSync(new URL(SCHEMA_FILE, root), "utf8"), playbookJsonSchemaText());
  });

  it("accepts a document with every form", () => {
    const text = readFileSync(new URL("test/fixtures/all-forms.yaml", root), "utf8");
    assert.ok(accepts(text), JSON.stringify(validate.errors));
  });

  it("accepts every document that the loader accepts", () => {
    const valid = RULE_CASES.filter(({ text }) => loadPlaybook(text, "f").playbook !== undefined);
    assert.ok(valid.length >= 10);
    for (const { name, text } of valid) {
      if (text.includes("\n---\n")) continue; // A file of several documents is beyond what a schema sees.
      assert.ok(accepts(text), `${name}: ${JSON.stringify(validate.errors)}`);
    }
  });

  for (const [name, text] of [
    ["a document without metadata", "apiVersion: a/v2\nkind: Playbook\nworkflow: [{ step: a }]\n"],
    ["another apiVersion", "apiVersion: v1\nkind: Playbook\nmetadata: { name: a }\nworkflow: [{ step: a }]\n"],
    ["another kind", "apiVersion: a/v2\nkind: Job\nmetadata: { name: a }\nworkflow: [{ step: a }]\n"],
    ["a workflow without steps", `${HEAD}workflow: []\n`],
    ["a step without a name", `${HEAD}workflow: [{ tool: { kind: noop } }]\n`],
    ["a number as the name of a step", `${HEAD}workflow: [{ step: 1 }]\n`],
    ["a task without a kind", `${HEAD}workflow: [{ step: a, tool: [{ url: x }] }]\n`],
    ["an unknown mode of a loop", `${HEAD}workflow: [{ step: a, loop: { in: [1], spec: { mode: random } } }]\n`],
    ["a list as the inputs of a step", `${HEAD}workflow: [{ step: a, input: [1] }]\n`],
    [
      "an unknown back-off",
      `${HEAD}workflow: [{ step: a, tool: { kind: noop, spec: { policy: { rules: [{ then: { backoff: cubic } }] } } } }]\n`,
    ],
  ] as const) {
    it(`refuses ${name}, as the loader does`, () => {
      assert.equal(accepts(text), false);
      assert.equal(loadPlaybook(text, "f").playbook, undefined);
    });
  }
});
